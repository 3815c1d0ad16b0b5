"""Generates labelled logs from templates: the same folder, split, count and seed give the same bytes.

A generated log is no record of a launch, and its case says so.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.workbench import printing, templates
from logtriage.workbench.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from logtriage.workbench.printing import Row
    from logtriage.workbench.templates import Family


class Variant(NamedTuple):
    """A generated log with what is known about it; `root_line` is None where nothing failed."""

    name: str
    family: str
    label: str
    text: bytes
    root_line: str | None
    split: str

    def case(self) -> dict[str, Any]:
        """Return the content of a ``case.yaml`` for this log."""
        return {
            "provenance": "generated",
            "family": self.family,
            "split": self.split,
            "label": self.label,
            "acceptable": [],
            "root_line": self.root_line or "",
        }


def variants(folder: Path, split: str, count: int, seed: int) -> Iterator[Variant]:
    """Yield `count` logs of the families of one split, evenly over the labels and over the families of a label.

    Args:
        folder: holds the templates (``corpus/templates``).
        split: ``train`` or ``test``.
        seed: another seed gives other logs of the same families.

    Raises InputError if the templates have a fault or none of this split.
    """
    loaded = templates.load(folder)
    families = {
        label: [family for family in members if family.split == split] for label, members in loaded.families.items()
    }
    yield from islice(_endless({k: v for k, v in families.items() if v}, loaded.shared, seed), count)


def of_family(family: Family, shared: dict[str, Any], number: int, seed: int) -> Variant:
    """Return the log of this number of a family."""
    name = f"{family.id}-{number:03}"
    rng = random.Random(f"{seed}/{name}")  # noqa: S311 - logs, not secrets
    scene = Scene(family, shared, rng)
    rows = [*printing.head(scene, family), *printing.failure(scene, family), *printing.rest(scene, family)]
    lines, root = _wrapped(scene, _excerpt(rows, family, rng))
    ending = "" if rng.random() < 0.1 else "\n"
    text = ("\n".join(lines) + ending).encode()
    has_root = family.label not in shared["labels_without_root"]
    return Variant(
        name, family.id, family.label, text, lines[root] if has_root and root is not None else None, family.split
    )


def _endless(families: dict[str, list[Family]], shared: dict[str, Any], seed: int) -> Iterator[Variant]:
    turn = 0
    while families:
        for members in families.values():
            yield of_family(members[turn % len(members)], shared, turn // len(members), seed)
        turn += 1


def _excerpt(rows: list[Row], family: Family, rng: random.Random) -> list[Row]:
    """Cut a log as people do who paste one: only its end, only the failure, frames left out, no end."""
    first_own = next((at for at, row in enumerate(rows) if row.part == "own"), len(rows))
    last_mark = max((at for at, row in enumerate(rows[:first_own]) if row.part == "mark"), default=0)
    start = 0
    how = rng.random()
    if how < 0.25:
        start = rng.randint(0, max(0, last_mark))
    elif how < 0.35 and "stage" not in family.keep and first_own < len(rows):
        start = first_own
    kept = rows[start:]
    if "frames" not in family.keep and rng.random() < 0.15:
        kept = [row for row in kept if row.part != "chain"]
    if rng.random() < 0.15:
        kept = [row for row in kept if row.part != "after"]
    return kept or rows


def _wrapped(scene: Scene, rows: list[Row]) -> tuple[list[str], int | None]:
    """Put the prefix of another program in front of every line, or none; return the lines and the root's index."""
    wrapper = scene.fill(scene.rng.choice(scene.shared["wrappers"]))
    lines: list[str] = []
    root = None
    for row in rows:
        prefix = wrapper.replace("<iso>", f"{row.time:%Y-%m-%dT%H:%M:%S.%f}").replace(
            "<syslog>", f"{row.time:%b %d %H:%M:%S}"
        )
        if row.is_root and root is None:
            root = len(lines)
        lines.append(prefix + row.text if row.text or prefix else "")
    return lines, root


def wordings(folder: Path, split: str) -> Iterator[tuple[str, str]]:
    """Yield family and text of every line by which the families of a split can be known: one per alternative.

    Raises InputError if the templates have a fault.
    """
    loaded = templates.load(folder)
    for members in loaded.families.values():
        for family in members:
            if family.split == split:
                for text in told_by(family, loaded.shared):
                    yield family.id, text


def told_by(family: Family, shared: dict[str, Any]) -> Iterator[str]:
    """Yield every line by which a family can be known: one per alternative."""
    scene = Scene(family, shared, random.Random(family.id))  # noqa: S311 - logs, not secrets
    for text in (*printing.root_lines(family.cause), *printing.root_lines(family.before, marked=True)):
        yield scene.fill(text)
