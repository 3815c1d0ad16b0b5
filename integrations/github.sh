#!/usr/bin/env bash
# What action.yml runs: installs logtriage where it is missing, analyzes the logs, hands label and outcome on.
set -euo pipefail
set -f # logtriage reads patterns itself

if ! command -v logtriage >/dev/null; then
    python3 -m venv "$RUNNER_TEMP/logtriage"
    "$RUNNER_TEMP/logtriage/bin/pip" install --quiet "$GITHUB_ACTION_PATH"
    PATH=$RUNNER_TEMP/logtriage/bin:$PATH
fi

read -r -d '' -a words <<<"$LOGS" || true
read -r -d '' -a more <<<"$ARGUMENTS" || true
words+=(--format github --format text --format "html=$HTML" --format "json=$JSON")
[ -z "$FAIL_ON" ] || words+=(--fail-on "$FAIL_ON")
[ -z "$BASELINE" ] || words+=(--baseline "$BASELINE")

code=0
logtriage analyze "${words[@]}" "${more[@]}" || code=$?
if [ -f "$JSON" ]; then
    python3 - "$JSON" >>"$GITHUB_OUTPUT" <<'PYTHON'
import json, sys
verdict = json.load(open(sys.argv[1], encoding="utf-8"))["verdict"]
print(f"label={verdict['label']}\noutcome={verdict['outcome']}")
PYTHON
fi
exit "$code"
