"""Generated logs: the same bytes for the same seed, whole families on one side, faults of templates told clearly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage.errors import InputError
from logtriage.workbench import templates
from logtriage.workbench.variants import of_family, variants
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = ROOT / "corpus" / "templates"
SHARED = """
versions: ["0.5.9"]
ranks: [2]
tags: [" TP#"]
labels_without_root: [healthy]
gpus: [{name: A GPU, sm: 90, gib: 80}]
stages: [{stage: init, opens: ["%a Init torch distributed begin."]}]
noise: {init: []}
chain_of_stage: {}
chains: {echo: []}
teardown: {launch: [[]], served: [[]], parent: [[]], goes_on: [[]]}
wrappers: [""]
confusers: {}
words: {prompt: ["$ "], command: [serve], hit: ["Scheduler hit an exception: Traceback"], shows-sources: ["no"],
        site: [/site], echo: [Broken pipe]}
"""


@pytest.mark.parametrize("split", ["train", "test"])
def test_same_seed_same_bytes(split: str) -> None:
    """Two runs agree byte for byte, another seed does not, and a longer run begins with the shorter one."""
    first = list(variants(TEMPLATES, split, 120, 3))
    assert first == list(variants(TEMPLATES, split, 120, 3))
    assert first[:40] == list(variants(TEMPLATES, split, 40, 3))
    other = list(variants(TEMPLATES, split, 120, 4))
    assert [variant.name for variant in other] == [variant.name for variant in first]
    assert sum(a.text == b.text for a, b in zip(first, other, strict=True)) < 12


def test_families_are_wholly_train_or_wholly_test() -> None:
    """No family gives logs of both splits, and both splits have every label."""
    train, test = (list(variants(TEMPLATES, split, 1000, 1)) for split in ("train", "test"))
    assert not {variant.family for variant in train} & {variant.family for variant in test}
    assert {variant.label for variant in train} == {variant.label for variant in test}
    assert all(variant.split == "test" for variant in test)


def test_a_generated_log_says_so_and_holds_its_root_line() -> None:
    """The case of every generated log says `generated`; its root line is a line of the log."""
    seen = 0
    for variant in variants(TEMPLATES, "train", 400, 2):
        assert variant.case()["provenance"] == "generated"
        if variant.root_line is not None:
            assert variant.root_line in variant.text.decode().split("\n")
            seen += 1
    assert seen > 250


def test_no_placeholder_is_left() -> None:
    """Every family can be printed, and none leaves a mark or an unfilled place of a template."""
    loaded = templates.load(TEMPLATES)
    families = [family for members in loaded.families.values() for family in members]
    for family in families:
        for number in range(3):
            text = of_family(family, loaded.shared, number, 9).text.decode()
            assert not any(line.startswith(("%r ", "%b ", "%s ", "%p ", "%o ")) for line in text.split("\n")), family.id
    assert len(families) > 30


@pytest.mark.parametrize(
    ("family", "told"),
    [
        ("{id: a, split: dev, mechanism: m, cause: [x]}", "split 'dev' must be one of: train, test"),
        ("{id: a, split: test, mechanism: m}", "lacks 'cause'"),
        ("{id: a, split: test, mechanism: m, cause: [x], colour: red}", "unknown key 'colour'"),
        (
            "{id: a, split: test, mechanism: m, cause: ['{nobody}'], print: bare}",
            "{nobody}: the templates have no such",
        ),
        ("{id: a, split: test, mechanism: m, cause: [x], at: lunch}", "at 'lunch' must be one of: init"),
    ],
)
def test_a_fault_of_a_template_is_told(tmp_path: Path, family: str, told: str) -> None:
    """A wrong value is named with what is valid, and a word that does not exist with its name."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "all.yaml").write_text(SHARED, encoding="utf-8")
    (tmp_path / "oom-host.yaml").write_text(f"label: oom-host\nfamilies: [{family}]\n", encoding="utf-8")
    with pytest.raises(InputError, match=told.replace("{", r"\{").replace("}", r"\}")):
        list(variants(tmp_path, "test", 1, 1))


def test_the_failing_rank_is_not_lost(tmp_path: Path) -> None:
    """A traceback carries the tag of one rank, and that rank's launch stands above it."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "all.yaml").write_text(SHARED, encoding="utf-8")
    text = "label: oom-host\nfamilies: [{id: a, split: test, mechanism: m, at: init, cause: ['MemoryError']}]\n"
    (tmp_path / "oom-host.yaml").write_text(text, encoding="utf-8")
    for variant in variants(tmp_path, "test", 30, 1):
        assert variant.root_line == "MemoryError"
        assert b" TP0] " in variant.text or b" TP1] " in variant.text
