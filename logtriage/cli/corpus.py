"""``logtriage corpus``: file a log for the tests and the classifier, check what is there, generate logs to look at."""

from __future__ import annotations

from pathlib import Path

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, check_logs

CORPUS = "corpus"
SPLIT = click.Choice(["train", "test"])


@click.group("corpus")
def command() -> None:
    """File logs with their labels, check them, generate some."""


@command.command(
    "add",
    short_help="File a log with its label.",
    epilog="Example: logtriage corpus add run.log --label oom-host --root-line 4127",
)
@click.argument("log")
@click.option("--label", required=True, help="What went wrong in it; `logtriage rules list` shows the labels.")
@click.option(
    "--root-line", type=click.IntRange(min=1), metavar="N", help="The line that shows it; default: the verdict's."
)
@click.option(
    "--corpus", type=click.Path(file_okay=False), default=CORPUS, show_default=True, help="The log is filed below this."
)
@click.option("--name", default="", help="Name of the folder; default: label and name of the log.")
@click.option("--split", type=SPLIT, default="train", show_default=True, help="Is it to be learned from, or a test?")
@click.option("--family", default="", help="What it shares with other logs of its origin; default: the folder's name.")
@click.option("--note", default="", help="A sentence on what is remarkable about it.")
@click.option("--whole", is_flag=True, help="Keep all lines.")
@RULES
def add(
    log: str,
    label: str,
    root_line: int | None,
    corpus: str,
    name: str,
    split: str,
    family: str,
    note: str,
    whole: bool,
    folders: tuple[str, ...],
) -> int:
    """File LOG with a label: names and secrets are taken out, lines that the verdict does not need are cut off."""
    from logtriage.workbench import corpus_add

    check_logs([log])
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() and name:
        raise click.BadParameter(f"{name!r} must be letters, digits and hyphens, such as moe-oom", param_hint="--name")
    wanted = corpus_add.Wanted(label, root_line, name, split, family, note, whole)
    added = corpus_add.add(log, Path(corpus), wanted, pipeline.load_rules(rule_folders(folders)))
    replaced = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in sorted(added.replaced.items()))
    output.say(f"{added.folder}: {added.kept} of {added.lines} lines; replaced: {replaced or 'nothing'}")
    output.say("Read it before you share it: only what is known to be a name or a secret was replaced.")
    return exit_codes.HEALTHY


@command.command("check", short_help="Say what is wrong with the cases of a corpus.")
@click.argument("corpus", type=click.Path(file_okay=False, exists=True), default=CORPUS)
@RULES
def check(corpus: str, folders: tuple[str, ...]) -> int:
    """Say what is wrong with the cases below CORPUS: incomplete, not valid, a secret, the same in both splits."""
    from logtriage.workbench import corpus_check

    checked = corpus_check.check(Path(corpus), pipeline.load_rules(rule_folders(folders)))
    for fault in checked.faults:
        output.say(fault)
    output.say(f"{checked.cases} cases, {checked.families} families of templates: {len(checked.faults)} faults")
    return exit_codes.USAGE if checked.faults else exit_codes.HEALTHY


@command.command(
    "generate",
    short_help="Write generated logs to look at.",
    epilog="Example: logtriage corpus generate /tmp/logs --split test --count 50",
)
@click.argument("folder", type=click.Path(file_okay=False))
@click.option(
    "--templates", type=click.Path(file_okay=False, exists=True), default=f"{CORPUS}/templates", show_default=True
)
@click.option("--split", type=SPLIT, default="test", show_default=True)
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def generate(folder: str, templates: str, split: str, count: int, seed: int) -> int:
    """Write generated logs with their cases below FOLDER, to look at; the same seed gives the same bytes."""
    from logtriage.workbench import cases
    from logtriage.workbench.variants import variants

    written = 0
    for variant in variants(Path(templates), split, count, seed):
        cases.write(Path(folder) / variant.name, variant.text, variant.case())
        written += 1
    output.say(f"{folder}: {written} logs")
    return exit_codes.HEALTHY
