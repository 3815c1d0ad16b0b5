"""The story that the tool was built for: three launches, each of which a reader of the last line misjudges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import pipeline
from tests.conftest import ROOT

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

WRITTEN = ROOT / "corpus" / "written"


def test_killed_after_an_assertion_is_an_effect(rules: RuleSet) -> None:
    """Eight ranks assert, the shell says Killed: the assertion is the cause and Killed is listed as explained by it."""
    report = pipeline.analyze(WRITTEN / "story-1-sm100-only-then-killed" / "run.log", rules=rules)
    assert report.label == "sm100-only-kernel"
    assert report.root is not None
    assert (report.root.flag, report.root.value) == ("--moe-runner-backend", "flashinfer_trtllm")
    killed = [item for item in report.incident.explained if "Killed" in report.lines[item.match.line].text]
    assert len(killed) == 1
    assert "sm100-only-kernel" in killed[0].because
    same = {report.events[item.match.event].rank for item in report.incident.explained if "same on" in item.because}
    assert len(same) == 7
    assert report.incident.unexplained == ()


def test_a_healthy_log_with_a_garbage_answer(rules: RuleSet) -> None:
    """Nothing in the log is wrong; the answer decides."""
    folder = WRITTEN / "story-2-healthy-but-garbage"
    assert pipeline.analyze(folder / "run.log", rules=rules).label == "healthy"
    options = pipeline.Options(responses=[(folder / "response-1.json").read_bytes()])
    report = pipeline.analyze(folder / "run.log", rules=rules, options=options)
    assert (report.label, report.verdict.decided_by) == ("degenerate-output", "response")


def test_nothing_but_killed(rules: RuleSet) -> None:
    """A notice of the shell alone is never out of memory."""
    report = pipeline.analyze(b"bash: line 14: 48326 Killed\n", rules=rules)
    assert report.label == "killed-unexplained"
    assert report.verdict.confidence < 0.8


def test_answers_never_make_a_failed_launch_healthy(rules: RuleSet) -> None:
    """A good answer does not undo a failure that the log shows."""
    good = b'{"choices": [{"message": {"content": "The capital of France is Paris."}}]}'
    log = WRITTEN / "story-1-sm100-only-then-killed" / "run.log"
    report = pipeline.analyze(log, rules=rules, options=pipeline.Options(responses=[good]))
    assert report.label == "sm100-only-kernel"
