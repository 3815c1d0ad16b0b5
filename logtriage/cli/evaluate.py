"""``logtriage evaluate``: the verdicts on a corpus against those that stand beside its logs."""

from __future__ import annotations

from pathlib import Path

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES
from logtriage.report import plain


@click.command("evaluate")
@click.argument("corpus", type=click.Path(file_okay=False, exists=True))
@RULES
def command(corpus: str, folders: tuple[str, ...]) -> int:
    """Analyze every log below CORPUS that has a case.yaml beside it; print how often label and root line are right."""
    from logtriage.workbench import evaluate

    outcomes = evaluate.evaluate(Path(corpus), pipeline.load_rules(rule_folders(folders)))
    output.write(plain.lines(evaluate.table(outcomes)))
    return exit_codes.HEALTHY if all(outcome.is_right for outcome in outcomes) else exit_codes.FAILED
