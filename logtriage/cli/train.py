"""``logtriage train``: makes the classifier's weights from logs with known labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from logtriage import pipeline, resources
from logtriage.cli import exit_codes, output
from logtriage.cli.progress import bar
from logtriage.errors import InputError

EPILOG = """\b
Examples:
  logtriage train --corpus my-logs --output my-weights.json
  logtriage analyze run.log --weights my-weights.json

A folder of a corpus holds run.log and case.yaml (`logtriage corpus add` makes both), and may hold templates/.
"""


@click.command("train", epilog=EPILOG)
@click.option("--corpus", "corpora", multiple=True, type=click.Path(file_okay=False, exists=True), metavar="DIR",
              help="Logs with their labels; may be repeated. The examples of the rules are always used, and in a "
                   "checkout its own corpus.")  # fmt: skip
@click.option(
    "--only", is_flag=True, help="Use nothing but the folders named: quick, but it knows no more than they do."
)
@click.option("--output", "-o", "path", type=click.Path(dir_okay=False), default="weights.json", show_default=True,
              help="Write the weights to this file.")  # fmt: skip
def command(corpora: tuple[str, ...], path: str, *, only: bool) -> int:
    """Train the classifier for failures that no rule knows, and write its weights.

    It needs scikit-learn (pip install 'logtriage[train]'); the weights need nothing. Logs with `split: test` are never
    used. The same logs give the same file.
    """
    from logtriage.classifier import train
    from logtriage.workbench import training

    folders = [Path(folder) for folder in corpora]
    own = None if only else resources.corpus_folder()
    if own is not None and all(folder.resolve() != Path(own) for folder in folders):
        folders.insert(0, Path(own))
    if not folders:
        raise InputError("there is no corpus to train with: name one with --corpus DIR")
    rules = pipeline.load_rules()
    words = training.lexicon()
    logs = training.labelled(folders, rules, examples=not only)
    with bar("reading logs", len(logs)) as advance:
        found = training.samples(logs, advance)
    with bar("training", 1.0) as advance:
        data = train.fit(found, words, training.about(logs), lambda _stage, share: advance(share))
    output.to_file(path, json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    card = data["card"]
    held_out = card["held_out_families"]
    output.say(f"{path}: {len(data['labels'])} labels from {card['logs']} logs of {card['families']} families")
    output.say(f"families that it had not seen: {_told(held_out)}")
    return exit_codes.HEALTHY


def _told(figures: dict[str, Any]) -> str:
    if not figures["failures"]:
        return "none, there are too few logs to set some aside"
    if not figures["answered"]:
        return "0% answered"
    return f"{figures['answered']:.0%} answered, {figures['right_of_answered']:.0%} of these right"
