"""The laws over the whole set of rules hold, and each check can fail: a planted fault is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import resources
from logtriage.workbench import laws

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
label: port-in-use
"""

RULE = """
  - id: planted
    summary: A planted rule.
    strength: decisive
    any:
      - anchor: "planted phrase"
    references: ["nowhere"]
    examples:
      hit: ["the planted phrase"]
      miss:
        - log: "nothing"
          because: it is not there
"""


@pytest.fixture(scope="module")
def workshop() -> laws.Workshop:
    return laws.Workshop([resources.rules_folder()])


def test_lint(workshop: laws.Workshop) -> None:
    """References, explanations and expressions of all rules keep the laws."""
    checked = workshop.lint()
    assert checked.looked_at["rules"] >= 80
    assert checked.faults == []


def test_examples(workshop: laws.Workshop) -> None:
    """Every example of every rule has its effect, through the whole analysis."""
    checked = workshop.test()
    assert checked.looked_at["hits"] >= 80
    assert checked.looked_at["misses"] >= 80
    assert checked.faults == []


def test_every_label_has_rules_or_is_an_outcome(workshop: laws.Workshop) -> None:
    """All labels but `unknown` have rules."""
    with_rules = {rule["label"] for rule in workshop.rules.rules}
    assert len(with_rules) >= 24
    assert set(workshop.rules.labels) - with_rules == {"unknown"}


def test_every_anchor_is_reachable(workshop: laws.Workshop) -> None:
    """Every signature searched in text is found through a gate, on frames, or on kept lines: none is lost."""
    compiled = workshop.compiled
    reached = {number for numbers in compiled["by_gate"] for number in numbers}
    reached |= {*compiled["frames"], *compiled["kept"]}
    assert reached == set(range(len(compiled["anchors"])))
    for gate, numbers in zip(compiled["gates"], compiled["by_gate"], strict=True):
        assert all(gate in compiled["anchors"][number] for number in numbers)


PLANTED = {
    "no reference": (RULE.replace('references: ["nowhere"]', "references: []"), "names its source"),
    "no miss": (RULE[: RULE.index("      miss:")], "must miss"),
    "dead example": (RULE.replace('["the planted phrase"]', '["another phrase"]'), "does not fire"),
    "unhit signature": (
        RULE.replace("    references", '      - anchor: "never seen"\n    references'),
        "no example hits",
    ),
    "fires on its miss": (RULE.replace('log: "nothing"', 'log: "planted phrase"'), "fires on an example"),
    "wrong owner": (RULE + "          owner: oom-host\n", "the verdict on its miss"),
    "slow expression": (
        RULE.replace(
            '"planted phrase"\n    ref', "\"planted phrase\"\n        regex: '(?:a+)+b planted phrase'\n    ref"
        ),
        "too slow",
    ),
    "second label on one example": (
        RULE.replace(
            '["the planted phrase"]',
            '["the planted phrase", "planted phrase, CUDA out of memory. Tried to allocate 2 GiB"]',
        ),
        "planted",
    ),
    "self-explanation": (
        RULE.replace("    references", "    explained_by: [other-planted]\n    references")
        + RULE.replace("planted", "other-planted").replace(
            "    references", "    explained_by: [planted]\n    references"
        ),
        "explains itself",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """Each law finds the fault that was made for it."""
    rules, message = PLANTED[name]
    (tmp_path / "port-in-use.yaml").write_text(f"label: port-in-use\nrules:{rules}", encoding="utf-8")
    checked = laws.check([resources.rules_folder(), tmp_path], examples=True, within=tmp_path)
    assert any(message in fault and str(tmp_path) in fault for fault in checked.faults), checked.faults


def test_a_label_that_asks_for_a_fact_that_nobody_has(tmp_path: Path) -> None:
    """What a label needs to be guessed is a fact that is known, else it would never count."""
    head = "label: licence-expired\ntitle: A licence has expired\nabout: No licence.\nfamily: sibling\nretry: never\n"
    (tmp_path / "licence-expired.yaml").write_text(
        f"{head}action: fix-environment\nguess_when: {{licence: {{is: old}}}}\nrules: []\n", encoding="utf-8"
    )
    faults = laws.check([resources.rules_folder(), tmp_path], examples=False).faults
    assert [fault for fault in faults if "licence-expired.yaml:7" in fault and "'licence'" in fault], faults


def test_five_faults_are_reported_at_once(tmp_path: Path) -> None:
    """A file with five faults gives all five, each with its line."""
    (tmp_path / "port-in-use.yaml").write_text(
        "label: port-in-use\n"
        "rules:\n"
        "  - id: Not_Kebab\n"
        "    summary: A.\n"
        "    strength: certain\n"
        "    any:\n"
        "      - anchor: abc\n"
        "    seen_in: [0.5]\n"
        "    colour: red\n"
        "    examples:\n"
        "      hit: [x]\n",
        encoding="utf-8",
    )
    faults = laws.check([resources.rules_folder(), tmp_path], examples=False).faults
    lines = sorted(int(fault.split(":")[1]) for fault in faults if str(tmp_path) in fault)
    assert lines == [3, 5, 7, 8, 9]
