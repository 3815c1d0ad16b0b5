"""Sentences of the advice name what the log names, and say nothing where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests.conftest import ROOT

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet


@pytest.mark.parametrize(
    ("case", "start"),
    [
        ("blind/mllama-transformers-import", "Install the version of transformers that"),
        ("recorded/h200-tokenizer-missing", "Check the path /models/nowhere: "),
    ],
)
def test_the_summary_names_what_the_log_names(rules: RuleSet, case: str, start: str) -> None:
    """A package rather than one of its modules; the path that is not there."""
    assert pipeline.analyze(ROOT / "corpus" / case / "run.log", rules=rules).advice.summary.startswith(start)


def test_a_sentence_with_a_gap_gives_way_to_the_label(rules: RuleSet) -> None:
    """A message that does not give the path gets the advice of its label, without an ellipsis."""
    log = "+ python3 -m sglang.launch_server --model-path a/b\nOSError: Repo id must be in the form 'repo_name'\n"
    advice = pipeline.analyze(log.encode(), rules=rules).advice
    assert advice.summary == rules.labels["model-load"]["remedy"]["advice"]
