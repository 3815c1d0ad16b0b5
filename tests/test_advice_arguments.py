"""Flags that a version does not have go from the command; one that may stand for several is left to its writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from logtriage import pipeline
from logtriage.pipeline import Options
from logtriage.runner.decide import Next
from tests.conftest import ROOT

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Advice

SERVER = "python3 -m sglang.launch_server --model-path some/model"


def _refused(flags: str, message: str, rules: RuleSet, *pinned: str) -> Advice:
    log = f"+ {SERVER} {flags}\nusage: launch_server.py [-h] --model-path M\nlaunch_server.py: error: {message}\n"
    return pipeline.analyze(log.encode(), rules=rules, options=Options(pinned=pinned)).advice


@pytest.mark.parametrize(
    ("flags", "rejected", "left"),
    [
        ("--frobnicate 7 --tp 8", "--frobnicate 7", "--tp 8"),
        ("--enable-deepep-moe --tp 8 --enable-ep-moe", "--enable-deepep-moe --enable-ep-moe", "--tp 8"),
        ("--tp 8 --odd=3 --odder a --odder b", "--odd=3 --odder a --odder b", "--tp 8"),
        ("--tp 8 --fp4-gemm-backend auto", "--fp4-gemm-backend auto", "--tp 8"),
    ],
    ids=["one", "two switches", "values", "a flag of other versions"],
)
def test_what_is_rejected_goes(rules: RuleSet, flags: str, rejected: str, left: str) -> None:
    """All flags that the message rejects, with their values; the command is whole without them."""
    advice = _refused(flags, f"unrecognized arguments: {rejected}", rules)
    assert advice.command_text == f"{SERVER} {left}"
    assert all(change.removed and change.flag in advice.summary for change in advice.changes)
    step = Next.from_advice(advice)
    assert step.changed == (advice.changes[0].flag, "removed")
    assert "None" not in step.why


def test_a_pinned_flag_does_not_go(rules: RuleSet) -> None:
    """There is no step without it."""
    advice = _refused("--odd --tp 8", "unrecognized arguments: --odd", rules, "--odd")
    assert (advice.changes, advice.command_text) == ((), None)
    assert "--odd is pinned" in advice.summary


def test_which_flag_was_meant_is_not_guessed(rules: RuleSet) -> None:
    """An abbreviation of several flags is not removed: the message's own list is given."""
    told = "--cuda-graph-bs-decode, --cuda-graph-bs-prefill"
    advice = _refused("--cuda-graph-b 4", f"ambiguous option: --cuda-graph-b could match {told}", rules)
    assert advice.summary == f"Write out which flag --cuda-graph-b stands for: {told}."
    assert advice.command_text is None


def test_a_flag_that_is_only_not_known_here_stays(rules: RuleSet) -> None:
    """SGLang takes --max-lora-rank, and rejects its value: a gap in the knowledge is no reason to remove it."""
    advice = pipeline.analyze(ROOT / "corpus/blind/lora-rank-too-high/run.log", rules=rules).advice
    assert "no flag" not in advice.summary
    assert not any(change.removed for change in advice.changes)


def test_next_and_the_report_say_it(run: Any) -> None:
    """`next` has a command to print, and the report says that the flag goes."""
    log = str(ROOT / "corpus/recorded/h200-unknown-flag/run.log")
    done = run("next", log)
    assert done.returncode == 0
    assert "--fp4-gemm-runner-backends" not in done.stdout
    assert "remove --fp4-gemm-runner-backends  (now x; " in run("analyze", log).stdout
