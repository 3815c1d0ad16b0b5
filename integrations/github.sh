#!/usr/bin/env bash
# What action.yml runs: installs logtriage where it is missing, analyzes the logs, hands label and outcome on.
set -euo pipefail
set -f # logtriage reads patterns itself

if ! command -v logtriage >/dev/null; then
    python3 -m venv "$RUNNER_TEMP/logtriage"
    "$RUNNER_TEMP/logtriage/bin/pip" install --quiet "$GITHUB_ACTION_PATH"
    PATH=$RUNNER_TEMP/logtriage/bin:$PATH
fi

logs=()
while read -r line || [ -n "$line" ]; do
    [ -z "$line" ] || logs+=("$line")
done <<<"$LOGS"
# Of several lines each is a path; a single one holds several, unless it is the name of a file.
if [ "${#logs[@]}" -eq 1 ] && [ ! -e "${logs[0]}" ]; then
    read -r -a logs <<<"${logs[0]}"
fi
read -r -d '' -a more <<<"$ARGUMENTS" || true

if [ -n "$BASELINE" ] && [ ! -e "$BASELINE" ]; then
    echo "logtriage: $BASELINE is not there yet: nothing to compare with, each failure is a new one" >&2
    BASELINE=
    FAIL_ON=,${FAIL_ON// /},
    FAIL_ON=${FAIL_ON//,new,/,failed,degenerate,}
    FAIL_ON=${FAIL_ON#,} FAIL_ON=${FAIL_ON%,}
fi

# What an earlier step wrote must not pass for a report of this one. As a baseline it is still to be read.
fresh=$JSON.new
rm -f -- "$fresh" "$HTML"
[ "$JSON" -ef "$BASELINE" ] || rm -f -- "$JSON"

words=(${logs[@]+"${logs[@]}"} --format github --format text --format "html=$HTML" --format "json=$fresh")
[ -z "$FAIL_ON" ] || words+=(--fail-on "$FAIL_ON")
[ -z "$BASELINE" ] || words+=(--baseline "$BASELINE")

code=0
logtriage analyze "${words[@]}" ${more[@]+"${more[@]}"} || code=$?
if [ -f "$fresh" ]; then
    mv -f -- "$fresh" "$JSON"
    python3 - "$JSON" >>"$GITHUB_OUTPUT" <<'PYTHON'
import json, sys

text = open(sys.argv[1], encoding="utf-8").read()
try:
    reports = [json.loads(text)]
except ValueError:  # of unrelated launches: one report a line
    reports = [json.loads(line) for line in text.split("\n") if line]
better = ["unknown", "incomplete", "healthy"]
verdicts = [report["verdict"] for report in reports]
worst = min(verdicts, key=lambda verdict: better.index(verdict["label"]) if verdict["label"] in better else -1)
print(f"label={worst['label']}\noutcome={worst['outcome']}")
PYTHON
fi
exit "$code"
