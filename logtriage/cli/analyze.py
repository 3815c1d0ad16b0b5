"""``logtriage analyze``: the main job."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline, whole_file
from logtriage.advice import pins
from logtriage.cli import exit_codes, output, per_node, reports
from logtriage.cli.after import LEDGER, SeveralAfter, attempts
from logtriage.cli.options import RULES, SM, VERSION, check_logs, failures_of
from logtriage.cli.per_node import EXIT_CODE, KERNEL_LOG
from logtriage.errors import InputError
from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet

EPILOG = """\b
Examples:
  logtriage analyze run.log
  logtriage analyze run.log --format json | jq .verdict.label
  logtriage analyze run.log --format github --format html=report.html
  kubectl logs my-pod | logtriage analyze -
  logtriage analyze node*.log --kernel-log node3.log=dmesg3.txt
  logtriage analyze run.log --follow --until failed
  logtriage analyze run.log --response answer.json --sm 120
  logtriage analyze run3.log --after run1.log run2.log --pin --tp
  logtriage analyze run.log -- python3 -m sglang.launch_server --model-path … --tp 8
"""


@click.command("analyze", cls=SeveralAfter, epilog=EPILOG)
@click.argument("logs", nargs=-1, required=True, metavar="LOG... [-- CMD...]")
@click.option("--format", "formats", multiple=True, metavar="FORMAT[=FILE]",
              help="text (default), json, github, junit, markdown, html; may be repeated, with files.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write the report to a file; without --format its suffix tells the form.")  # fmt: skip
@click.option("--response", "responses", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="An answer of the server (chat completion, /generate, or plain text); may be repeated.")  # fmt: skip
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten, such as 120 for SM120.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang, if the log does not tell it.")
@click.option("--exit-code", "exit_codes", type=EXIT_CODE, multiple=True, metavar="[LOG=]N",
              help="Exit code of the launch, or of the node that a LOG is of (-9 or 137 for SIGKILL).")  # fmt: skip
@click.option("--kernel-log", "kernel_logs", multiple=True, type=KERNEL_LOG, metavar="[LOG=]FILE",
              help="The kernel's log of the same time (dmesg), or of the node that a LOG is of (without LOG= a number "
                   "in its name tells the node); may be repeated.")  # fmt: skip
@click.option("--after", multiple=True, type=click.Path(), metavar="OLDLOG...",
              help="Logs of earlier launches, the oldest first: what they rule out is not advised.")  # fmt: skip
@click.option("--after-response", "after_responses", multiple=True, metavar="OLDLOG=FILE",
              help="An answer of the server of an earlier launch; may be repeated.")  # fmt: skip
@LEDGER
@click.option("--pin", "pinned", multiple=True, metavar="FLAG", help="A flag that must stay; may be repeated.")
@click.option("--weights", type=click.Path(dir_okay=False, exists=True), metavar="FILE",
              help="Weights of the classifier, as `logtriage train` writes them. Also LOGTRIAGE_WEIGHTS.")  # fmt: skip
@click.option("--follow", "-f", is_flag=True, help="Read on while the log is written, until the verdict is decided.")
@click.option("--until", type=click.Choice(["ready", "failed", "exit"]), default="ready", show_default=True,
              help="Follow until the server is ready or has failed; until it has failed or was stopped; until it is "
                   "silent after that. Standard input ends when it is closed.")  # fmt: skip
@click.option("--grace", type=click.FloatRange(0), default=2.0, show_default=True, metavar="SECONDS",
              help="Follow so much longer after a failure: other ranks still print.")  # fmt: skip
@click.option("--separate", is_flag=True, help="The logs are of unrelated launches: one report for each.")
@click.option("--fail-on", metavar="NAME,...",
              help="Exit with 1 for these labels or outcomes (failed, degenerate, unknown, incomplete, healthy; with "
                   "--baseline also new) and with 0 for all others.")  # fmt: skip
@click.option("--baseline", type=click.Path(dir_okay=False), metavar="FILE",
              help="An earlier report in JSON: say whether this is the same failure or a new one.")  # fmt: skip
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever the verdict.")
@click.option("--no-redact", is_flag=True, help="Leave secrets in the report.")
@click.option("--verbose", "-v", is_flag=True, help="Show everything that only followed from the cause.")
@click.pass_obj
def command(trailing: list[str] | None, /, logs: tuple[str, ...], **given: Any) -> int:
    """Say what went wrong first in the LOG of an SGLang launch, and show the line that proves it.

    Several LOGs are one launch on several nodes unless --separate is given; - is standard input. A LOG may also be a
    folder, a quoted pattern ('logs/node*.log'), or a tar (.gz, .zst) or zip archive: then it stands for the logs in it.
    CMD is the command that was launched, if the log does not show it.

    A LOG may have any size, and may be packed with gzip or zstd: at most 64 GiB are unpacked, and no more than 800
    times its own size. Of a line 64 KiB are looked at. Above 64 MiB lines are not counted, and newest-first is not
    undone; above 8 MiB lines that a terminal broke are not joined. Where very many lines look like failures, the first
    and the last of each kind are kept.
    """
    if not given["separate"]:
        logs = _each_once(logs)
    kernel_logs = [path for _, path in given["kernel_logs"]]
    check_logs([*logs, *kernel_logs])
    targets = reports.targets(given["formats"], given["output"])
    _keep_inputs([*logs, *kernel_logs, *given["responses"], *given["after"]], targets)
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    given["fail_on"] = failures_of(given["fail_on"], rules.labels, has_baseline=given["baseline"] is not None)
    options = pipeline.Options(
        command=trailing or (),
        facts={name: given[name] for name in ("sm", "server_version") if given[name] is not None},
        responses=[whole_file.read(path) for path in given["responses"]],
        response_names=given["responses"],
        pinned=pins.checked(given["pinned"], rules),
        weights=given["weights"],
    )
    options = options.replace(
        **per_node.options(given["exit_codes"], given["kernel_logs"], is_separate=given["separate"]),
        after=attempts(given, rules, options.facts),
    )
    taken = reports.Reports(targets, given, options.after)
    if given["follow"]:
        return _follow(logs, rules, options, given, taken)
    if given["separate"]:
        return _separately(logs, rules, options, taken)
    code = taken.add(pipeline.analyze(*logs, rules=rules, options=options))
    taken.finish()
    return code


def _each_once(logs: tuple[str, ...]) -> tuple[str, ...]:
    """The logs without those that are a file named before, which would count as a further node of the launch."""
    kept, seen = [], set()
    for log in logs:
        file = _file_of(log)
        if file is not None and file in seen:
            output.complain(f"logtriage: {log} is a file that was named before; it is read once")
            continue
        seen.add(file)
        kept.append(log)
    return tuple(kept)


def _file_of(log: str) -> tuple[int, int] | None:
    """What tells a file from all others; None for a folder, a pipe, a pattern or standard input."""
    try:
        found = os.stat(log)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _separately(logs: tuple[str, ...], rules: RuleSet, options: pipeline.Options, taken: reports.Reports) -> int:
    """Report on each log; one that cannot be read does not keep the others from it."""
    codes = []
    for log in logs:
        try:
            for report in pipeline.analyze_each(log, rules, options):
                codes.append(taken.add(report))
        except InputError as error:
            output.complain(plain.one_line(f"logtriage: {error}"))
            codes.append(exit_codes.USAGE)
    taken.finish()
    return exit_codes.worst(codes)


def rule_folders(named: tuple[str, ...]) -> list[Any]:
    """Return the folders of further rules: those of LOGTRIAGE_RULES, then those named."""
    listed = [folder for folder in os.environ.get("LOGTRIAGE_RULES", "").split(os.pathsep) if folder]
    if not listed and not named:
        return []
    from pathlib import Path

    return [Path(folder) for folder in (*listed, *named)]


def _follow(
    logs: tuple[str, ...], rules: RuleSet, options: pipeline.Options, given: dict[str, Any], taken: reports.Reports
) -> int:
    from logtriage.cli.follow import follow

    if len(logs) != 1:
        raise click.UsageError("one LOG can be followed; name one")
    report, is_interrupted = follow(logs[0], rules, options, given)
    code = taken.add(report)
    taken.finish()
    return exit_codes.INTERRUPTED if is_interrupted else code


def _keep_inputs(inputs: list[str], targets: Sequence[reports.Target]) -> None:
    """Refuse to write a report over what it is made from."""
    for target in targets:
        if target.path is not None:
            _keep_input(inputs, target.path)


def _keep_input(inputs: list[str], path: str) -> None:
    try:
        target = os.stat(path)
    except (OSError, ValueError):  # it is made when the report is written
        return
    for name in inputs:
        try:
            found = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(found.st_mode) and os.path.samestat(found, target):
            raise click.UsageError(f"--output {path} is one of the files that are read; name another one")
