"""Every log of the corpus gets the verdict that stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from logtriage.workbench import evaluate
from tests.conftest import ROOT, Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

CASES = [case for case in cases() if case.folder.parent.name != "foreign"]
FOREIGN = [case for case in cases() if case.folder.parent.name == "foreign"]
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
    """In the last launch of a log without a failure no decisive rule holds, explained away or not.

    Where another program's failure, or a quoted one, stands in it, they are those of `explained_away` in case.yaml.
    """
    reading = pipeline.read([case.log], rules, pipeline.Options())
    last = reading.clock.launches - 1
    matches = [match for match in reading.matched.matches if reading.clock.events[match.event].launch == last]
    decisive = {match.rule["id"] for match in matches if match.strength == "decisive"}
    assert sorted(decisive) == case.verdict.get("explained_away", [])
    assert reading.matched.matches or reading.clock.marks


@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: case.folder.name)
def test_logs_of_other_programs_are_no_failed_launch(case: Case, rules: RuleSet) -> None:
    """What another program prints is unknown (an empty file incomplete), and no decisive rule holds on it."""
    reading = pipeline.read([case.log], rules, pipeline.Options())
    assert [match.rule["id"] for match in reading.matched.matches if match.strength == "decisive"] == []
    label = pipeline.analyze(case.log, rules=rules).label
    assert label in (case.verdict["label"], *case.verdict["acceptable"])


def test_no_rule_knows_a_reworded_failure(rules: RuleSet) -> None:
    """On the reworded logs no rule decides, so what is right about them is the classifier's."""
    folders = sorted((ROOT / "corpus" / "reworded").iterdir())
    decided = {folder.name: pipeline.analyze(folder / "run.log", rules=rules).verdict for folder in folders}
    assert [name for name, verdict in decided.items() if verdict.decided_by == "rule"] == []
    assert len(folders) >= 80


def test_evaluate_keeps_reworded_logs_apart(rules: RuleSet) -> None:
    """They do not count among the logs that the rules are held to, and can be asked for by their folder."""
    folder = ROOT / "corpus" / "reworded"
    assert len(evaluate.evaluate(folder, rules)) == len(list(folder.iterdir()))
    assert not {case.folder.parent.name for case in cases()} & set(evaluate.APART)


def test_confidence_means_something(rules: RuleSet) -> None:
    """On the test half, labels given with 0.9 or more are right at least 97 times in 100."""
    outcomes = [o for o in evaluate.evaluate(ROOT / "corpus", rules) if o.split == "test" and o.confidence >= 0.9]
    assert len(outcomes) >= 20
    assert sum(outcome.is_right for outcome in outcomes) >= 0.97 * len(outcomes)


def test_the_corpus_is_there() -> None:
    """The tests above looked at all recorded launches and at the written ones."""
    kinds = [case.folder.parent.name for case in CASES]
    assert kinds.count("recorded") >= 29
    assert kinds.count("written") >= 100
    assert kinds.count("blind") >= 100
    assert len(FOREIGN) >= 25
    assert sum(bool(case.responses) for case in CASES) >= 6
    assert {case.verdict["split"] for case in CASES} == {"train", "test"}
