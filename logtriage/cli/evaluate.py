"""``logtriage evaluate``: the verdicts on a corpus against those that stand beside its logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline, resources
from logtriage.cli import exit_codes, output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES
from logtriage.cli.progress import bar
from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

EPILOG = """\b
Examples:
  logtriage evaluate corpus
  logtriage evaluate --corpus my-logs --rules-off --weights my-weights.json
  logtriage evaluate --variants 1000 --format json --picture confusion.png
"""


@click.command("evaluate", epilog=EPILOG)
@click.argument("folder", metavar="[CORPUS]", required=False, type=click.Path(file_okay=False, exists=True))
@click.option("--corpus", type=click.Path(file_okay=False, exists=True), metavar="DIR",
              help="Print figures by label for the logs below DIR; in a checkout its own if not given.")  # fmt: skip
@click.option("--split", type=click.Choice(["test", "train", "all"]), default="all", show_default=True,
              help="Only the logs of one half.")  # fmt: skip
@click.option("--variants", type=click.IntRange(0), default=0, metavar="N",
              help="Instead of stored logs N logs made from DIR/templates, which training never sees.")  # fmt: skip
@click.option(
    "--rules-off",
    is_flag=True,
    help="Without the rules of failures: the classifier's best guess, however unsure it is.",
)
@click.option("--weights", type=click.Path(dir_okay=False, exists=True), metavar="FILE",
              help="Weights of the classifier, if not those that are shipped.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--picture", type=click.Path(dir_okay=False), metavar="FILE",
              help="Draw which label is taken for which one (PNG or SVG).")  # fmt: skip
@RULES
def command(folder: str | None, corpus: str | None, folders: tuple[str, ...], **given: Any) -> int:
    """Analyze every log that has a case.yaml beside it; print how often label and root line are right.

    With CORPUS alone it prints a summary by confidence, and which logs are wrong; else precision, recall, F1 and
    confusion by label, and how well confidence is calibrated.
    """
    rules = pipeline.load_rules(rule_folders(folders))
    if folder is not None and corpus is None and not _asks_for_figures(given):
        from logtriage.workbench import evaluate

        outcomes = evaluate.evaluate(Path(folder), rules)
        output.write(plain.lines(evaluate.table(outcomes)))
        return exit_codes.HEALTHY if all(outcome.is_right for outcome in outcomes) else exit_codes.FAILED
    from logtriage.workbench import accuracy

    chosen = corpus or folder or resources.corpus_folder()
    if chosen is None:
        raise click.UsageError("there is no corpus here: name one with --corpus DIR")
    if given["variants"]:
        logs = accuracy.generated(Path(chosen), given["variants"])
    else:
        logs = accuracy.stored(Path(chosen), given["split"])
    deciders = ("guess",) if given["rules_off"] else ("rules", "classifier")
    options = pipeline.Options(deciders=deciders, weights=given["weights"])
    with bar("analyzing", len(logs)) as advance:
        found = accuracy.figures(accuracy.judge(logs, rules, options, advance), accuracy.mission(rules))
    if given["picture"]:
        from logtriage.workbench import picture

        picture.confusion_matrix(found["confusion"], given["picture"])
    shown = (
        json.dumps(found, indent=1, ensure_ascii=False) + "\n" if given["format_"] == "json" else accuracy.table(found)
    )
    output.write(plain.lines(shown))
    return exit_codes.HEALTHY if found["right"] == 1 else exit_codes.FAILED


def _asks_for_figures(given: Mapping[str, Any]) -> bool:
    return bool(
        given["variants"] or given["rules_off"] or given["weights"] or given["picture"]
        or given["split"] != "all" or given["format_"] == "json"
    )  # fmt: skip
