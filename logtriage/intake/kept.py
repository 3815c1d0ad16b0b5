"""The rows of a log that are kept, in bounded memory: all at its beginning, then of each anchor the first and the last.

Once so many rows are kept that more would cost too much, a row is kept only for an anchor in it, so that a failure
that is printed once is not lost among a million others.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logtriage.intake.segments import KeptRow

MAX_KEPT = 10_000
"""Rows kept from the beginning of the log."""

MAX_BYTES = 12 << 20
"""Bytes of them, and as many of the rows that are kept for an anchor."""

FIRST, LAST = 8, 16
"""Rows that are kept for an anchor, with the lines around them: the first ones, the last ones."""

Group = list["KeptRow"]


class Kept:
    """Rows kept, each once. `is_full`: from now on a row must be kept for an anchor."""

    def __init__(self) -> None:
        self.is_full = False
        self._head: Group = []
        self._bytes = 0
        self._newest = 0
        self._first: dict[bytes, list[Group]] = {}
        self._last: dict[bytes, deque[Group]] = {}
        self._limits = (FIRST, LAST)
        self._added = 0
        self._carried: deque[Group] = deque(maxlen=LAST)

    def add(self, rows: Iterable[KeptRow]) -> None:
        """Keep rows, in order, unless they were kept before."""
        for row in rows:
            if row.row > self._newest:
                self._head.append(row)
                self._newest = row.row
                self._bytes += len(row.data)
        self.is_full = self.is_full or len(self._head) >= MAX_KEPT or self._bytes >= MAX_BYTES

    def room(self, anchor: bytes) -> tuple[int, int]:
        """Return how many first rows and how many last rows of an anchor may still be kept."""
        first, last = self._limits
        return first - len(self._first.get(anchor, ())), last

    def add_first(self, anchor: bytes, groups: Iterable[Group]) -> None:
        """Keep first rows for an anchor: each group is a row that holds it, with the lines around it."""
        for group in groups:
            self._first.setdefault(anchor, []).append(group)
            self._count(group)

    def add_last(self, anchor: bytes, groups: Iterable[Group]) -> None:
        """Keep newer rows for an anchor, instead of those that were the last ones before."""
        ring = self._last.setdefault(anchor, deque(maxlen=self._limits[1]))
        for group in groups:
            ring.append(group)
            self._count(group)

    def carry(self, rows: Group) -> None:
        """Keep the rest of a traceback that was kept for an anchor in it."""
        self._carried.append(rows)

    def copy(self) -> Kept:
        """Return a copy that may grow apart."""
        other = Kept()
        other.__dict__.update(self.__dict__)
        other._head = list(self._head)
        other._first = {anchor: list(groups) for anchor, groups in self._first.items()}
        other._last = {anchor: ring.copy() for anchor, ring in self._last.items()}
        other._carried = self._carried.copy()
        return other

    def all(self, newest: Iterable[KeptRow]) -> list[KeptRow]:
        """Return all rows in order, together with the newest ones of the log."""
        rings = chain(self._first.values(), self._last.values(), [self._carried])
        found = {row.row: row for groups in rings for group in groups for row in group}
        found.update((row.row, row) for row in newest)
        found.update((row.row, row) for row in self._head)
        return [found[row] for row in sorted(found)]

    def _count(self, group: Group) -> None:
        """Keep fewer rows of each anchor from now on if they are more than memory is meant for."""
        self._added += sum(len(row.data) for row in group)
        if self._added < MAX_BYTES:
            return
        self._added = self._size()
        while self._added >= MAX_BYTES // 2 and self._limits != (1, 1):
            first, last = self._limits = (max(1, self._limits[0] // 2), max(1, self._limits[1] // 2))
            for groups in self._first.values():
                del groups[first:]
            self._last = {anchor: deque(ring, last) for anchor, ring in self._last.items()}
            self._added = self._size()

    def _size(self) -> int:
        """Return the bytes of the rows that are kept for an anchor, each counted once."""
        groups = chain.from_iterable(chain(self._first.values(), self._last.values()))
        return sum({id(row): len(row.data) for group in groups for row in group}.values())
