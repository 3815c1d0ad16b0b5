"""``logtriage analyze``: the main job."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output
from logtriage.cli.after import SeveralAfter, attempts, read_bytes
from logtriage.cli.options import RULES, SM, VERSION, check_logs, labels_of
from logtriage.errors import InputError
from logtriage.report import json_v1, plain

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

EPILOG = """\b
Examples:
  logtriage analyze run.log
  logtriage analyze run.log --format json | jq .verdict.label
  kubectl logs my-pod | logtriage analyze -
  logtriage analyze run.log --follow --until failed
  logtriage analyze run.log --response answer.json --sm 120
  logtriage analyze run3.log --after run1.log run2.log --pin --tp
  logtriage analyze run.log -- python3 -m sglang.launch_server --model-path … --tp 8
"""


@click.command("analyze", cls=SeveralAfter, epilog=EPILOG)
@click.argument("logs", nargs=-1, required=True, metavar="LOG... [-- CMD...]")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the report.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the report to a file.")
@click.option("--response", "responses", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="An answer of the server (chat completion, /generate, or plain text); may be repeated.")  # fmt: skip
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten, such as 120 for SM120.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang, if the log does not tell it.")
@click.option("--exit-code", type=int, metavar="N", help="Exit code of the launch (-9 or 137 for SIGKILL).")
@click.option("--kernel-log", "kernel_logs", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="The kernel's log of the same time (dmesg); may be repeated.")  # fmt: skip
@click.option("--after", multiple=True, type=click.Path(), metavar="OLDLOG...",
              help="Logs of earlier launches, the oldest first: what they rule out is not advised.")  # fmt: skip
@click.option("--after-response", "after_responses", multiple=True, metavar="OLDLOG=FILE",
              help="An answer of the server of an earlier launch; may be repeated.")  # fmt: skip
@click.option("--pin", "pinned", multiple=True, metavar="FLAG", help="A flag that must stay; may be repeated.")
@click.option("--follow", "-f", is_flag=True, help="Read on while the log is written, until the verdict is decided.")
@click.option("--until", type=click.Choice(["ready", "failed", "exit"]), default="ready", show_default=True,
              help="Follow until the server is ready or has failed; until it has failed or was stopped; until it is "
                   "silent after that. Standard input ends when it is closed.")  # fmt: skip
@click.option("--grace", type=click.FloatRange(0), default=2.0, show_default=True, metavar="SECONDS",
              help="Follow so much longer after a failure: other ranks still print.")  # fmt: skip
@click.option("--separate", is_flag=True, help="The logs are of unrelated launches: one report for each.")
@click.option("--fail-on", metavar="LABEL,...", help="Exit with 1 for these labels and with 0 for all others.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever the verdict.")
@click.option("--no-redact", is_flag=True, help="Leave secrets in the report.")
@click.option("--verbose", "-v", is_flag=True, help="Show everything that only followed from the cause.")
@click.pass_obj
def command(trailing: list[str] | None, /, logs: tuple[str, ...], **given: Any) -> int:
    """Say what went wrong first in the LOG of an SGLang launch, and show the line that proves it.

    Several LOGs are parts of one launch unless --separate is given; - is standard input. CMD is the command that was
    launched, if the log does not show it.

    A LOG may have any size, and may be packed with gzip or zstd: at most 64 GiB are unpacked, and no more than 800
    times its own size. Of a line 64 KiB are looked at. Above 64 MiB lines are not counted, and newest-first is not
    undone; above 8 MiB lines that a terminal broke are not joined. Where very many lines look like failures, the first
    and the last of each kind are kept.
    """
    check_logs([*logs, *given["kernel_logs"]])
    _keep_inputs([*logs, *given["kernel_logs"], *given["responses"], *given["after"]], given["output"])
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    given["fail_on"] = labels_of(given["fail_on"], rules.labels)
    options = pipeline.Options(
        command=trailing or (),
        facts={name: given[name] for name in ("sm", "server_version") if given[name] is not None},
        responses=[read_bytes(path) for path in given["responses"]],
        response_names=given["responses"],
        exit_code=given["exit_code"],
        kernel_logs=given["kernel_logs"],
        pinned=given["pinned"],
    )
    options = options.replace(after=attempts(given, rules, options.facts))
    if given["follow"]:
        return _follow(logs, rules, options, given)
    groups = [(log,) for log in logs] if given["separate"] else [logs]
    codes = []
    collected: list[str] = []
    for group in groups:
        try:
            report = pipeline.analyze(*group, rules=rules, options=options)
        except InputError as error:
            if not given["separate"]:
                raise
            output.complain(plain.one_line(f"logtriage: {error}"))
            codes.append(exit_codes.USAGE)
            continue
        if codes and given["format_"] == "text":
            _put("\n", collected, given)
        _show(report, collected, given)
        codes.append(_exit_code(report.label, given))
    _save(collected, given)
    return exit_codes.worst(codes)


def rule_folders(named: tuple[str, ...]) -> list[Any]:
    """Return the folders of further rules: those of LOGTRIAGE_RULES, then those named."""
    listed = [folder for folder in os.environ.get("LOGTRIAGE_RULES", "").split(os.pathsep) if folder]
    if not listed and not named:
        return []
    from pathlib import Path

    return [Path(folder) for folder in (*listed, *named)]


def _follow(logs: tuple[str, ...], rules: RuleSet, options: pipeline.Options, given: dict[str, Any]) -> int:
    from logtriage.cli.follow import follow

    if len(logs) != 1:
        raise click.UsageError("one LOG can be followed; name one")
    report, is_interrupted = follow(logs[0], rules, options, given)
    collected: list[str] = []
    _show(report, collected, given)
    _save(collected, given)
    return exit_codes.INTERRUPTED if is_interrupted else _exit_code(report.label, given)


def _keep_inputs(inputs: list[str], path: str | None) -> None:
    """Refuse to write the report over what it is made from."""
    if path is None:
        return
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


def _show(report: Report, collected: list[str], given: dict[str, Any]) -> None:
    """Print a report, or collect it where it goes to a file."""
    data = json_v1.to_dict(report, redact=not given["no_redact"])
    if given["format_"] == "json":
        shown = json_v1.dumps(data, one_line=given["separate"])
    else:
        from logtriage.report import text

        if given["output"] is None and sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            output.guarded(lambda: text.print_coloured(data, sys.stdout, verbose=given["verbose"]))
            return
        shown = text.render(data, verbose=given["verbose"])
    _put(shown, collected, given)


def _put(shown: str, collected: list[str], given: dict[str, Any]) -> None:
    if given["output"] is None:
        output.write(shown)
    else:
        collected.append(shown)


def _save(collected: list[str], given: dict[str, Any]) -> None:
    """Write the file, if one is asked for: only when all was read."""
    if given["output"] is not None:
        output.to_file(given["output"], "".join(collected))


def _exit_code(label: str, given: dict[str, Any]) -> int:
    if given["exit_zero"]:
        return exit_codes.HEALTHY
    if given["fail_on"] is None:
        return exit_codes.of_label(label)
    return exit_codes.FAILED if label in given["fail_on"] else exit_codes.HEALTHY
