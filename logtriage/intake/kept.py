"""The rows of a log that are kept, in bounded memory: all at its beginning, until more would cost too much."""

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

_TRACEBACKS = 16  # whose rest is kept, the newest ones


class Kept:
    """Rows kept, each once. `is_full`: from now on a row must be kept for an anchor."""

    def __init__(self) -> None:
        self.is_full = False
        self._head: list[KeptRow] = []
        self._bytes = 0
        self._newest = 0
        self._carried: deque[list[KeptRow]] = deque(maxlen=_TRACEBACKS)

    def add(self, rows: Iterable[KeptRow]) -> None:
        """Keep rows, in order, unless they were kept before."""
        for row in rows:
            if row.row > self._newest:
                self._head.append(row)
                self._newest = row.row
                self._bytes += len(row.data)
        self.is_full = self.is_full or len(self._head) >= MAX_KEPT or self._bytes >= MAX_BYTES

    def carry(self, rows: list[KeptRow]) -> None:
        """Keep the rest of a traceback that was kept for an anchor in it."""
        self._carried.append(rows)

    def copy(self) -> Kept:
        """Return a copy that may grow apart."""
        other = Kept()
        other.__dict__.update(self.__dict__)
        other._head = list(self._head)
        other._carried = self._carried.copy()
        return other

    def rows(self) -> Iterable[KeptRow]:
        """Return all of them; what was carried comes first."""
        return chain(chain.from_iterable(self._carried), self._head)
