#!/usr/bin/env bash
# For ExecStopPost=: reads what this very start of the unit has written to the journal, and says why it failed.
# systemd sets SERVICE_RESULT, EXIT_CODE (exited, killed, dumped), EXIT_STATUS (a number, or the name of a signal) and
# INVOCATION_ID.
set -uo pipefail
[ "${SERVICE_RESULT:-success}" != success ] || exit 0

case ${EXIT_CODE:-} in
    exited) code=$EXIT_STATUS ;;
    killed | dumped) code=$((128 + $(kill -l "$EXIT_STATUS"))) ;;
    *) code= ;; # it never started
esac
journalctl --no-pager --output=cat "_SYSTEMD_INVOCATION_ID=$INVOCATION_ID" |
    logtriage analyze - ${code:+--exit-code "$code"} --exit-zero \
        --format text --format "html=${STATE_DIRECTORY:-/tmp}/last-failure.html"
