#!/usr/bin/env bash
# Runs a server, keeps its log, and when it fails writes the verdict to where Kubernetes looks for the last words of a
# container (`kubectl describe pod`). Signals go to the server; the exit code is the server's.
#
#   launch.sh python3 -m sglang.launch_server --model-path … --tp 8
set -uo pipefail
log=${LOGTRIAGE_LOG:-/tmp/run.log}
message=${LOGTRIAGE_MESSAGE:-/dev/termination-log}

server= asked=
trap 'asked=yes; [ -z "$server" ] || kill -TERM "$server" 2>/dev/null' TERM INT
"$@" > >(tee "$log") 2>&1 &
server=$!
[ -z "$asked" ] || kill -TERM "$server" # it came while the server was being started
wait "$server"
code=$?
while kill -0 "$server" 2>/dev/null; do # a signal ended the wait, not the server
    wait "$server"
    code=$?
done

if [ "$code" -ne 0 ]; then
    # Kubernetes keeps 4096 bytes; iconv drops a letter that was cut in two.
    logtriage analyze "$log" --exit-code "$code" --exit-zero | head -c 4096 | iconv -c -f UTF-8 -t UTF-8 >"$message"
fi
exit "$code"
