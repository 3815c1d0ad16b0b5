"""The failures in other words that the classifier is trained with: how they are read, that they give away no test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage.classifier import masking
from logtriage.errors import InputError
from logtriage.workbench import duplicates, templates, variants
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.workbench.templates import Family


@pytest.fixture(scope="module")
def other_words() -> dict[str, list[Family]]:
    """The failures in other words of the corpus, by label."""
    return templates.wordings(ROOT / "corpus/wordings", templates.load(ROOT / "corpus/templates").shared)


def test_other_words_are_no_leak(other_words: dict[str, list[Family]]) -> None:
    """No failure in other words that the classifier is trained with is (nearly) one of the test half."""
    loaded = templates.load(ROOT / "corpus/templates")
    held_out = [family for members in loaded.families.values() for family in members if family.split == "test"]
    tested = {frozenset(_words(cause)): family.id for family in held_out for cause in family.cause}
    causes = [cause for families in other_words.values() for family in families for cause in family.cause]
    trained = [(frozenset(_words(cause)), cause) for cause in causes]
    assert len(trained) > 3000
    near = [
        (cause, tested[other]) for words, cause in trained for other in tested
        if len(words) > 3 and len(words & other) > 0.8 * len(words | other)
    ]  # fmt: skip
    assert near == []


def test_other_words_do_not_say_what_the_test_half_says(other_words: dict[str, list[Family]]) -> None:
    """With its places filled none of them holds a line by which only the test half is known."""
    folder = ROOT / "corpus/templates"
    tests, training_half = ([text for _, text in variants.wordings(folder, split)] for split in ("test", "train"))
    held = duplicates.Wordings(tests, training_half)
    shared = templates.load(folder).shared
    families = [family for members in other_words.values() for family in members]
    assert [text for family in families for text in variants.told_by(family, shared) if held.are_in(text)] == []


def test_other_words_may_come_from_a_shared_list(tmp_path: Path) -> None:
    """`say` takes a list by its name, defaults hold for all families of a file, and an unknown name is refused."""
    shared = templates.load(ROOT / "corpus/templates").shared
    (tmp_path / "shared.yaml").write_text("full: [no room, no space]\n")
    (tmp_path / "oom-gpu.yaml").write_text(
        "label: oom-gpu\ndefaults: {print: bare}\nfamilies:\n  - {say: full}\n  - {say: [all gone]}\n"
    )
    families = templates.wordings(tmp_path, shared)["oom-gpu"]
    assert [(family.print, family.cause) for family in families] == [
        ("bare", ["no room", "no space"]), ("bare", ["all gone"])
    ]  # fmt: skip
    (tmp_path / "oom-gpu.yaml").write_text("label: oom-gpu\nfamilies: [{say: fully}]\n")
    with pytest.raises(InputError, match="say 'fully' must be one of: full"):
        templates.wordings(tmp_path, shared)


def _words(cause: str) -> list[str]:
    return [word for word in masking.shape(cause).lower().split() if any(letter.isalpha() for letter in word)]
