"""Every message of corpus/messages.tsv has a rule or a reason, no wrong label, and docs/coverage.md tells so."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("coverage_of_rules", ROOT / "tools" / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TOOL = _load()


@pytest.fixture(scope="module")
def outcomes(rules: RuleSet) -> list[Any]:
    return list(TOOL.outcomes(rules))


def test_every_message_has_a_rule_or_a_reason_and_no_wrong_label(outcomes: list[Any]) -> None:
    """No message is unknown without a reason, and none gets a failure label that contradicts what it means."""
    assert TOOL.faults(outcomes) == []


def test_the_page_is_up_to_date(outcomes: list[Any]) -> None:
    """docs/coverage.md is what `make coverage` writes."""
    assert TOOL.PAGE.read_text(encoding="utf-8") == TOOL.page(outcomes), "run `make coverage`"


def test_the_list_is_long_and_mostly_decided(outcomes: list[Any]) -> None:
    """The list covers all sections, few messages are left out, and most failures are told by one message alone."""
    ids = [outcome.message.id for outcome in outcomes]
    assert len(ids) == len(set(ids)) >= 1100
    assert sum(bool(outcome.message.left_out) for outcome in outcomes) <= 60
    assert sum(outcome.label not in TOOL.NO_FAILURE for outcome in outcomes) >= 700
    assert {outcome.message.section for outcome in outcomes} >= {f"d{n}" for n in range(1, 17)} | {"a6", "k1a", "k13"}


def test_expected_labels_exist(rules: RuleSet) -> None:
    """`expected` names labels, or one of the words for messages that give none."""
    allowed = {*rules.labels, *TOOL.NO_LABEL, "by stage"}
    for message in TOOL.messages():
        assert set(message.expected.split(" or ")) <= allowed, message


FAULTY = {
    "no rule": (TOOL.Message("x-1", "words that nobody prints", "", "unknown", "", ""), "no rule and no reason"),
    "wrong label": (
        TOOL.Message("x-2", "RuntimeError: CUDA error: out of memory", "", "model-load", "", ""),
        "expected model-load",
    ),
    "healthy": (
        TOOL.Message("x-3", "RuntimeError: CUDA error: out of memory", "", "healthy", "", ""),
        "expected healthy",
    ),
    "left out for nothing": (
        TOOL.Message("x-4", "RuntimeError: CUDA error: out of memory", "", "by stage", "a reason", ""),
        "left out, but",
    ),
    "agreed for nothing": (
        TOOL.Message("x-5", "RuntimeError: CUDA error: out of memory", "", "by stage", "", "a reason"),
        "an agreed difference that is none",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_planted_fault_is_found(name: str, rules: RuleSet) -> None:
    """Each check finds the fault that was made for it."""
    message, text = FAULTY[name]
    assert any(text in fault for fault in TOOL.faults([TOOL.run(message, rules)]))


def test_context_and_facts_count(rules: RuleSet) -> None:
    """Further lines and facts of a row are given to the analysis."""
    phrase = "RuntimeError: No supported CUDA architectures found for major versions [12]."
    assert TOOL.run(TOOL.Message("x-1", phrase, "sm=120", "", "", ""), rules).label == "cuda-toolkit-mismatch"
    assert TOOL.run(TOOL.Message("x-2", phrase, "sm=100", "", "", ""), rules).label == "arch-unsupported-kernel"
    framed = TOOL.Message(
        "x-3",
        '  File "/usr/lib/python3.12/site-packages/sgl_kernel/marlin.py", line 9, in gptq_marlin_repack',
        "Traceback (most recent call last): ⏎ > torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
        "", "", "",
    )  # fmt: skip
    assert TOOL.run(framed, rules).label == "oom-weight-shuffle"
