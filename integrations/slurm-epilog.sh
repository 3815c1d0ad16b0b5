#!/usr/bin/env bash
# For Slurm's Epilog=: beside the output of a failed job lies its verdict (FILE.logtriage.txt and FILE.logtriage.html).
# It works as the user of the job, on the job's first node, and never fails: a failing epilog would drain the node.
set -uo pipefail

job=$(scontrol show job --oneliner "$SLURM_JOB_ID") || exit 0
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
[ "${SLURMD_NODENAME:-$first}" = "$first" ] || exit 0

[[ $job =~ \ ExitCode=([0-9]+):([0-9]+) ]] || exit 0
code=${BASH_REMATCH[1]}
[ "${BASH_REMATCH[2]}" -eq 0 ] || code=$((128 + BASH_REMATCH[2]))
[[ $code -ne 0 && $job =~ \ StdOut=([^ ]+) ]] || exit 0
log=${BASH_REMATCH[1]}

runuser -u "$SLURM_JOB_USER" -- logtriage analyze "$log" --exit-code "$code" --exit-zero \
    --format "text=$log.logtriage.txt" --format "html=$log.logtriage.html"
exit 0
