"""Rows that are kept for an anchor in them, in bounded memory: the first and the last ones of each anchor.

So a failure that is printed once is not lost among a million others, and a million equal ones cost little: a window
is searched as a whole, and rows are only taken out of it once no newer ones can replace them.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from logtriage.intake.block_rows import BlockRows
from logtriage.intake.kept import MAX_BYTES
from logtriage.intake.tracebacks import OPENED, TRACEBACK, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from logtriage.intake.block_rows import Group
    from logtriage.intake.blocks import Block
    from logtriage.intake.searching import AnchorSearch, Held
    from logtriage.intake.segments import KeptRow

FIRST, LAST = 8, 16
"""Rows that are kept for an anchor, with the lines around them: the first ones, the last ones."""

CONTEXT = 3
"""Lines kept before and after a line that holds a gate or an anchor."""

ROW_COST = 200
"""Bytes that a row counts for more than it has: every row must also be judged."""

_WAITING = 32  # windows that are held until it is known which of their rows are needed
_REMEMBERED = 10_000


class Anchored:
    """The rows kept for an anchor."""

    def __init__(self, make_search: Callable[[], AnchorSearch]) -> None:
        self._make_search = make_search
        self._search: AnchorSearch | None = None
        self._limits = (FIRST, LAST)
        self._size = 0
        self._max_size = MAX_BYTES
        self._first: dict[bytes, list[Group]] = {}
        self._last: dict[bytes, deque[Group]] = {}
        self._settled: set[tuple[bytes, ...]] = set()
        self._waiting: deque[tuple[Block, int, dict[bytes, list[int]]]] = deque()
        self._newer: dict[bytes, int] = {}

    def held(self, data: bytes) -> Held:
        """Return which anchors rows hold."""
        if self._search is None:
            self._search = self._make_search()
        return self._search.held(data)

    def add(self, rows: BlockRows, held: Held, among: Sequence[int] | None = None) -> None:
        """Keep rows of a block, all or `among` some, which hold what `held` tells."""
        present = held.present - {0}
        numbers = range(len(held.kinds)) if among is None else among
        self._keep_first(rows, held, numbers, present)
        if newest := self._newest(held, numbers, present):
            self._waiting.append((rows.block, rows.before, newest))
            for anchor, found in newest.items():
                self._newer[anchor] = self._newer.get(anchor, 0) + len(found)
        if len(self._waiting) > _WAITING:
            self._settle()

    def rows(self) -> Iterator[KeptRow]:
        """Yield all rows; some of them more than once."""
        whole = self.copy()
        while whole._waiting:
            whole._settle()
        groups = chain.from_iterable(chain(whole._first.values(), whole._last.values()))
        for group in {id(group): group for group in groups}.values():
            yield from group.rows()

    def copy(self) -> Anchored:
        """Return a copy that may grow apart."""
        other = Anchored(self._make_search)
        other.__dict__.update(self.__dict__)
        other._first = {anchor: list(groups) for anchor, groups in self._first.items()}
        other._last = {anchor: ring.copy() for anchor, ring in self._last.items()}
        other._settled = set(self._settled)
        other._waiting = self._waiting.copy()
        other._newer = dict(self._newer)
        return other

    def _keep_first(self, rows: BlockRows, held: Held, numbers: Sequence[int], present: set[int]) -> None:
        wanted = {kind for kind in present if not self._is_settled(held.anchors[kind])}
        if not wanted:
            return
        groups = _Groups(rows)
        for number, kind in zip(numbers, held.kinds, strict=True):
            if kind not in wanted:
                continue
            for anchor in held.anchors[kind]:
                kept = self._first.setdefault(anchor, [])
                if len(kept) < self._limits[0]:
                    kept.append(groups.of(number))
                    self._count(kept[-1])
            if self._is_settled(held.anchors[kind]):
                wanted.discard(kind)
                if not wanted:
                    break

    def _is_settled(self, anchors: tuple[bytes, ...]) -> bool:
        """Return whether all first rows of some anchors are kept."""
        if anchors in self._settled:
            return True
        if any(len(self._first.get(anchor, ())) < self._limits[0] for anchor in anchors):
            return False
        if len(self._settled) > _REMEMBERED:
            self._settled.clear()
        self._settled.add(anchors)
        return True

    def _newest(self, held: Held, numbers: Sequence[int], present: set[int]) -> dict[bytes, list[int]]:
        """Return the last rows of each anchor, newest first."""
        limit = self._limits[1]
        found: dict[bytes, list[int]] = {}
        kinds, wanted = held.kinds, present.copy()
        for at in range(len(kinds) - 1, -1, -1):
            if kinds[at] not in wanted:
                continue
            is_done = True
            for anchor in held.anchors[kinds[at]]:
                rows = found.setdefault(anchor, [])
                if len(rows) < limit:
                    rows.append(numbers[at])
                    is_done = is_done and len(rows) == limit
            if is_done:
                wanted.discard(kinds[at])
                if not wanted:
                    break
        return found

    def _settle(self) -> None:
        """Take out of the oldest window that waits what no newer ones replace."""
        block, before, newest = self._waiting.popleft()
        groups = _Groups(BlockRows(block, before))
        for anchor, found in newest.items():
            self._newer[anchor] -= len(found)
            room = max(0, self._limits[1] - self._newer[anchor])
            for number in reversed(found[:room]):
                group = groups.of(number)
                self._last.setdefault(anchor, deque(maxlen=self._limits[1])).append(group)
                self._count(group)

    def _count(self, group: Group) -> None:
        """Keep fewer rows of each anchor from now on if they are more than memory and time are meant for."""
        self._size += _weight(group)
        if self._size < self._max_size:
            return
        self._size = self._weighed()
        while self._size >= self._max_size // 2 and self._limits != (1, 1):
            first, last = self._limits = (max(1, self._limits[0] // 2), max(1, self._limits[1] // 2))
            for groups in self._first.values():
                del groups[first:]
            self._last = {anchor: deque(ring, last) for anchor, ring in self._last.items()}
            self._size = self._weighed()
        self._max_size = max(self._max_size, 2 * self._size)  # fewer than one row of each anchor cannot be kept

    def _weighed(self) -> int:
        groups = chain.from_iterable(chain(self._first.values(), self._last.values()))
        return sum({id(group): _weight(group) for group in groups}.values())


class _Groups:
    """Rows of one block with the lines around them, or with their traceback as far as it stands in the block."""

    def __init__(self, rows: BlockRows) -> None:
        self._rows = rows
        self._groups: dict[int, Group] = {}

    def of(self, number: int) -> Group:
        """Return a row and what surrounds it."""
        if number not in self._groups:
            end = min(len(self._rows), number + CONTEXT + 1)
            if TRACEBACK in self._rows.row(number):
                end = max(end, follow(self._rows, number + 1, OPENED)[0])
            self._groups[number] = self._rows.part(max(0, number - CONTEXT), end)
        return self._groups[number]


def _weight(group: Group) -> int:
    return len(group.block.data) + ROW_COST * group.block.rows
