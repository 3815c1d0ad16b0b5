"""Every log of the corpus gets the verdict that stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests.conftest import Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

CASES = cases()
NAMES = [case.folder.name for case in CASES]
FAILURES = ("decisive",)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_label_and_root_line(case: Case, rules: RuleSet) -> None:
    """The label is the case's own (not just an acceptable one), and so is the root line where the case has one."""
    report = pipeline.analyze(case.log, rules=rules)
    assert report.label == case.verdict["label"]
    if case.verdict["root_line"]:
        assert report.root is not None
        assert report.lines[report.root.line].text == case.verdict["root_line"]


@pytest.mark.parametrize("case", [case for case in CASES if case.responses], ids=lambda case: case.folder.name)
def test_label_with_responses(case: Case, rules: RuleSet) -> None:
    """With the server's answers the label is the case's label_with_responses."""
    options = pipeline.Options(responses=[path.read_bytes() for path in case.responses])
    report = pipeline.analyze(case.log, rules=rules, options=options)
    assert report.label == case.verdict["label_with_responses"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.verdict.get("responsible_flag")], ids=lambda case: case.folder.name
)
def test_blamed_flag(case: Case, rules: RuleSet) -> None:
    """The flag or environment variable to blame is the case's."""
    report = pipeline.analyze(case.log, rules=rules)
    assert report.root is not None
    assert report.root.flag == case.verdict["responsible_flag"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.verdict["label"] in ("healthy", "incomplete")], ids=lambda c: c.folder.name
)
def test_no_failure_rule_fires_on_a_healthy_log(case: Case, rules: RuleSet) -> None:
    """On a log without a failure no decisive rule holds, explained away or not."""
    reading = pipeline.read([case.log], rules, pipeline.Options())
    assert [match.rule["id"] for match in reading.matched.matches if match.strength == "decisive"] == []
    assert any(match.strength in ("outcome", "harmless") for match in reading.matched.matches)


def test_the_corpus_is_there() -> None:
    """The tests above looked at all recorded launches and at the written ones."""
    kinds = [case.folder.parent.name for case in CASES]
    assert kinds.count("recorded") >= 29
    assert kinds.count("written") >= 3
    assert sum(bool(case.responses) for case in CASES) >= 6
    assert {case.verdict["split"] for case in CASES} == {"train", "test"}
