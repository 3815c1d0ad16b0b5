"""Exit codes: what a script can rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HEALTHY, FAILED, USAGE, UNKNOWN, INCOMPLETE, INTERNAL, INTERRUPTED, NO_READER = 0, 1, 2, 3, 4, 70, 130, 141

_BY_LABEL = {"healthy": HEALTHY, "incomplete": INCOMPLETE, "unknown": UNKNOWN}
_WORST_FIRST = (USAGE, FAILED, UNKNOWN, INCOMPLETE, HEALTHY)


def of_label(label: str) -> int:
    """Return the exit code of a verdict."""
    return _BY_LABEL.get(label, FAILED)


def worst(codes: Iterable[int]) -> int:
    """Return the code that counts for several unrelated logs."""
    return min(codes, key=_WORST_FIRST.index, default=HEALTHY)
