"""How often the verdicts on the corpus are right, and whether confidence means something."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.workbench.cases import read_labelled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

APART = ("reworded",)
"""Folders of a corpus that only the classifier can know: no rule has their wording."""
BANDS = (0.9, 0.7, 0.5, 0.0)
"""Lower ends of the bands of confidence, highest first."""


class Outcome(NamedTuple):
    """The verdict on one log of the corpus beside the one that it should get."""

    name: str
    split: str
    wanted: str
    acceptable: tuple[str, ...]
    label: str
    confidence: float
    root_is_right: bool | None

    @property
    def is_right(self) -> bool:
        """Whether the label is the wanted one or acceptable."""
        return self.label == self.wanted or self.label in self.acceptable


def evaluate(corpus: Path, rules: RuleSet) -> list[Outcome]:
    """Analyze every log below a folder that has a ``case.yaml`` beside it.

    Logs of a folder of APART count only if it is that folder that is asked for. Raises InputError if there is none.
    """
    paths = sorted(path for path in corpus.rglob("case.yaml") if path.relative_to(corpus).parts[0] not in APART)
    outcomes = [_one(path, rules) for path in paths]
    if not outcomes:
        raise InputError(f"{corpus}: holds no case.yaml")
    return outcomes


def _one(path: Path, rules: RuleSet) -> Outcome:
    case = read_labelled(path).data
    report = pipeline.analyze(path.parent / "run.log", rules=rules)
    shown = report.lines[report.root.line].text if report.root else ""
    root = case.get("root_line")
    return Outcome(
        name=path.parent.name,
        split=case.get("split", "test"),
        wanted=case["label"],
        acceptable=tuple(case.get("acceptable") or ()),
        label=report.label,
        confidence=report.verdict.confidence,
        root_is_right=shown == root if root else None,
    )


def table(outcomes: Iterable[Outcome]) -> str:
    """Return, for each half of the corpus, how many labels and root lines are right, by band of confidence."""
    outcomes = list(outcomes)
    rows = [f"{'split':<6} {'confidence':<12} {'logs':>5} {'label right':>12} {'root line right':>16}"]
    for split in ("train", "test"):
        half = [outcome for outcome in outcomes if outcome.split == split]
        upper = 1.01
        for lower in BANDS:
            band = [outcome for outcome in half if lower <= outcome.confidence < upper]
            rows.append(_row(split, f"{lower:.1f} to {min(upper, 1.0):.1f}", band))
            upper = lower
        rows.append(_row(split, "all", half))
    wrong = [
        f"wrong: {o.name}: {o.label} ({o.confidence:.2f}), should be {o.wanted}" for o in outcomes if not o.is_right
    ]
    return "\n".join([*rows, *wrong]) + "\n"


def _row(split: str, name: str, outcomes: list[Outcome]) -> str:
    roots = [outcome.root_is_right for outcome in outcomes if outcome.root_is_right is not None]
    labels = [outcome.is_right for outcome in outcomes]
    return f"{split:<6} {name:<12} {len(outcomes):>5} {_share(labels):>12} {_share(roots):>16}"


def _share(answers: list[bool]) -> str:
    return f"{sum(answers)} ({sum(answers) / len(answers):.0%})" if answers else "-"
