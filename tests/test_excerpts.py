"""People post excerpts: a log cut around its root line keeps its verdict, one cut beside it gets no sure other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests.conftest import Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

LENGTHS = (5, 10, 20, 40)
FAILED = [case for case in cases() if case.verdict["root_line"] and case.verdict["label"] != "unknown"]
OUTCOMES = ("healthy", "incomplete", "unknown")
SURE = 0.7


def _root(case: Case, rules: RuleSet) -> tuple[list[bytes], int]:
    """The lines of a log and the index of its root line."""
    report = pipeline.analyze(case.log, rules=rules)
    assert report.root is not None
    return [row + b"\n" for row in case.log.read_bytes().split(b"\n")], report.lines[report.root.line].number - 1


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_cut_around_the_root_line(case: Case, rules: RuleSet) -> None:
    """5, 10, 20 and 40 lines around the root line give the same label and root line.

    Where the verdict rests on a line further away (`rests_on` in case.yaml; the frames, for the stage of an
    out-of-memory) it may become unknown or unsure. Another rank's wrapper that quotes the line is as good.
    """
    rests_on_more = "rests_on" in case.verdict or case.verdict["label"].startswith("oom-")
    message = case.verdict["root_line"].partition(": ")[2] or case.verdict["root_line"]
    rows, at = _root(case, rules)
    wrong = []
    for length in LENGTHS:
        start = max(0, at - length // 2)
        report = pipeline.analyze(b"".join(rows[start : start + length]), rules=rules)
        text = report.lines[report.root.line].text if report.root else ""
        same = report.label == case.verdict["label"] and message in text
        weaker = report.label in OUTCOMES or report.verdict.confidence < SURE
        if not same and not (weaker and rests_on_more):
            wrong.append((length, report.label, report.verdict.confidence, text[:80]))
    assert wrong == []


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_cut_without_the_root_line(case: Case, rules: RuleSet) -> None:
    """What stands before or after the root line gives no other failure that is sure.

    Where an effect alone reads like a cause (`without_root` in case.yaml), it is that label.
    """
    allowed = {*OUTCOMES, case.verdict["label"], case.verdict.get("without_root")}
    rows, at = _root(case, rules)
    for part in (rows[:at], rows[at + 1 :]):
        report = pipeline.analyze(b"".join(part), rules=rules)
        sure = report.verdict.confidence >= SURE
        assert report.label in allowed or not sure, (report.label, report.verdict.rule)
