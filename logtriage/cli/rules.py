"""``logtriage rules``: work on rules."""

from __future__ import annotations

import click

from logtriage import pipeline, resources
from logtriage.cli import exit_codes, output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, log_and_line
from logtriage.report import plain


@click.group("rules")
def command() -> None:
    """List, lint and test the rules."""


@command.command("list", short_help="List the labels, or the rules of one label.")
@click.argument("label", required=False)
@RULES
def list_rules(label: str | None, folders: tuple[str, ...]) -> int:
    """List the labels with the number of their rules, or the rules of one LABEL."""
    rules = pipeline.load_rules(rule_folders(folders))
    if label is not None and label not in rules.labels:
        raise click.BadParameter(f"no label {label!r}", param_hint="LABEL")
    if label is None:
        for name, head in rules.labels.items():
            count = sum(rule["label"] == name for rule in rules.rules)
            output.say(f"{name:<24} {count:>4}  {head['title']}")
        return exit_codes.HEALTHY
    for rule in rules.rules:
        if rule["label"] == label:
            output.say(f"{rule['id']:<44} {rule['strength']:<11} {rule['summary']}")
    return exit_codes.HEALTHY


def _no_folder(_context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> None:
    if words:
        raise click.UsageError(f"a folder of rules is given with --rules {words[0]}")


_NO_FOLDER = click.argument("words", nargs=-1, metavar="", expose_value=False, callback=_no_folder)


@command.command("lint", short_help="Check rule files without running their examples.")
@_NO_FOLDER
@RULES
def lint(folders: tuple[str, ...]) -> int:
    """Check rule files without running their examples; every fault has its file and line."""
    return _check(folders, examples=False)


@command.command("test")
@_NO_FOLDER
@RULES
def test(folders: tuple[str, ...]) -> int:
    """Check rule files and run all their examples."""
    return _check(folders, examples=True)


@command.command(
    "new",
    short_help="Print the first draft of a rule.",
    epilog="Example: logtriage rules new --from run.log:4127 --label oom-host > my-rules/oom-host.yaml",
)
@click.option("--from", "place", required=True, metavar="LOG:LINE", help="The line that the rule is to know.")
@click.option("--label", required=True, help="The label that the rule is to give.")
@RULES
def new(place: str, label: str, folders: tuple[str, ...]) -> int:
    """Print the first draft of a rule for a line of a log: a file for a folder of yours."""
    from logtriage.redact import Redactor
    from logtriage.workbench import explain, new_rule

    rules = pipeline.load_rules(rule_folders(folders))
    path, number = log_and_line(place)
    if number is None:
        raise click.BadParameter("give a log and a line, such as run.log:4127", param_hint="--from")
    if label not in rules.labels:
        raise click.BadParameter(f"no label {label!r}; `logtriage rules list` shows them", param_hint="--label")
    answer = explain.explain_line(path, number, rules, pipeline.Options())[-1]
    line = answer.line
    if ending := next((rule["id"] for rule, strength, _ in answer.fired if strength == "symptom"), None):
        output.complain(
            f"logtriage: this line tells only that something ended or gave up (rule {ending}), not why: "
            "name the line of the failure, which mostly stands before it"
        )
    redact = Redactor(rules.secrets)
    is_frame = line.role == "frame"
    message = redact.text(redact.across(answer.lines).get(answer.at, line.text)[line.start :])
    output.write(plain.lines(new_rule.render(label, message if is_frame else message.strip(), on_frame=is_frame)))
    return exit_codes.HEALTHY


def _check(folders: tuple[str, ...], *, examples: bool) -> int:
    from logtriage.workbench import laws

    checked = laws.check([resources.rules_folder(), *rule_folders(folders)], examples=examples)
    for fault in checked.faults:
        output.say(fault)
    counts = ", ".join(f"{count} {what}" for what, count in checked.looked_at.items())
    output.say(f"{counts or 'nothing could be checked'}: {len(checked.faults)} faults")
    return exit_codes.USAGE if checked.faults else exit_codes.HEALTHY
