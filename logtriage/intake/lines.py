"""Blocks in, the lines worth keeping out: lines that hold a gate, what surrounds them, whole tracebacks, both ends.

Where too many lines hold a gate, and behind a beginning that is long enough, a line is kept only for an anchor in it:
the first and the last ones of each.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from logtriage.intake.anchored import CONTEXT, Anchored
from logtriage.intake.block_rows import BlockRows
from logtriage.intake.kept import Kept
from logtriage.intake.segments import lines_of
from logtriage.intake.tracebacks import CLOSED, OPENED, TRACEBACK, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from logtriage.intake.blocks import Block
    from logtriage.intake.searching import AnchorSearch, Held
    from logtriage.intake.segments import KeptRow
    from logtriage.records import Line

ENDS = 40
"""Lines kept at the beginning and at the end of the log, whatever they hold."""

MAX_HOT = 200
"""Lines of a block that may hold a gate; in a block with more of them anchors are searched for."""

_PROBE, _MAX_PROBED = 64 << 10, 150  # the start of a launch holds about a hundred such lines


def select(
    blocks: Iterable[Block],
    find: Callable[[bytes], list[int]],
    file: int = 0,
    also: Collection[int] = (),
    anchors: Callable[[], AnchorSearch] | None = None,
) -> list[Line]:
    """Return the lines of `blocks` worth keeping, in order.

    `find` gives offsets inside lines that hold a gate; lines with a number in `also` are kept whatever they hold.
    `anchors` makes the search for anchors when it is first needed; without it, gates are all there is.
    """
    selector = Selector(find, also, anchors)
    for block in blocks:
        selector.add(block)
    return selector.lines(file)


class Selector:
    """Walks the blocks, and remembers little of them. What it keeps depends on where blocks end: give it windows."""

    def __init__(
        self,
        find: Callable[[bytes], list[int]],
        also: Collection[int] = (),
        anchors: Callable[[], AnchorSearch] | None = None,
    ) -> None:
        self._find = find
        self._also = frozenset(also)
        self._kept = Kept()
        self._anchored = Anchored(anchors) if anchors else None
        self._recent: deque[tuple[Block, int]] = deque()
        self._recent_rows = 0
        self._seen = 0
        self._after = 0
        self._open = CLOSED
        self._is_open_for_anchor = False
        self._is_noisy = False

    def add(self, block: Block) -> None:
        """Keep what is worth keeping of a block."""
        rows = BlockRows(block, self._seen)
        if not (self._anchored and self._is_noisy and self._add_noisy(self._anchored, rows)):
            hot, is_crowded = self._hot(rows.searched)
            if hot or self._after or self._open.mode or self._seen < ENDS or self._also:
                if self._anchored and (is_crowded or self._kept.is_full):
                    self._add_for_anchors(self._anchored, rows, None if is_crowded else hot)
                else:
                    self._add(rows, hot)
        self._recent.append((block, self._seen))
        self._recent_rows += block.rows
        self._seen += block.rows
        while self._recent_rows - self._recent[0][0].rows >= ENDS:
            self._recent_rows -= self._recent.popleft()[0].rows

    def lines(self, file: int) -> list[Line]:
        """Return the lines of all that was kept and the last lines of the log. More blocks may be added afterwards."""
        rows = chain(self._anchored.rows() if self._anchored else (), self._kept.rows(), self._newest(ENDS))
        found = {row.row: row for row in rows}
        return [line for row in sorted(found) for line in lines_of(found[row], file)]

    def copy(self) -> Selector:
        """Return a copy that may grow apart."""
        other = Selector(self._find, self._also)
        other.__dict__.update(self.__dict__)
        other._kept = self._kept.copy()
        other._anchored = self._anchored and self._anchored.copy()
        other._recent = self._recent.copy()
        return other

    def _newest(self, count: int) -> Iterator[KeptRow]:
        skipped = self._recent_rows - count
        for block, seen in self._recent:
            if skipped < block.rows:
                rows = BlockRows(block, seen).tail(max(0, skipped))
                yield from map(rows.kept, range(len(rows)))
            skipped -= block.rows

    def _hot(self, data: bytes) -> tuple[list[int], bool]:
        """Return offsets in the lines that hold a gate, one in each, and whether these are too many: then not all."""
        hot: list[int] = []
        end = 0
        probed = data.find(b"\n", _PROBE) + 1 or len(data)
        for offset in self._find(data):
            if offset < end:
                continue
            hot.append(offset)
            end = data.find(b"\n", offset) + 1 or len(data)
            if len(hot) > (_MAX_PROBED if offset < probed else MAX_HOT) and self._anchored:
                return hot, True
        return hot, False

    def _carried(self, rows: BlockRows) -> set[int]:
        """Return the rows that belong to what the rows before them began, and those of the log's beginning."""
        count = len(rows)
        wanted = {*range(min(self._after, count)), *range(min(ENDS - self._seen, count)), *rows.numbered(self._also)}
        self._after = max(0, self._after - count)
        if self._open.mode:
            head = rows.head(_PROBE)
            end, state = follow(head, 0, self._open)
            if end == len(head) < count:
                head = rows
                end, state = follow(head, 0, self._open)
            self._open = state
            if self._is_open_for_anchor:
                self._kept.carry([head.kept(index) for index in range(end)])
            else:
                wanted.update(range(end))
        return wanted

    def _add(self, rows: BlockRows, hot: Iterable[int]) -> None:
        count = len(rows)
        wanted = self._carried(rows)
        before = 0
        for index in map(rows.index, hot):
            before = max(before, CONTEXT - index)
            wanted.update(range(max(0, index - CONTEXT), min(count, index + CONTEXT + 1)))
            self._after = max(self._after, index + CONTEXT + 1 - count)
            if TRACEBACK in rows.row(index):
                end, self._open = follow(rows, index + 1, OPENED)
                self._is_open_for_anchor = False
                wanted.update(range(index, end))
        if before:
            self._kept.add(self._newest(min(before, self._recent_rows)))
        self._kept.add(map(rows.kept, sorted(wanted)))

    def _add_noisy(self, anchored: Anchored, rows: BlockRows) -> bool:
        """Add a block behind a noisy one, most likely as noisy, without a look at gates; return whether it was added.

        A row with an anchor holds a gate, so that all is as if gates had been searched for.
        """
        held = anchored.held(rows.searched)
        self._is_noisy = len(held.kinds) - held.kinds.count(0) > MAX_HOT
        if self._is_noisy or self._kept.is_full:
            self._keep_anchored(anchored, rows, held, None)
            return True
        return False

    def _add_for_anchors(self, anchored: Anchored, rows: BlockRows, hot: Sequence[int] | None) -> None:
        """Keep rows for an anchor in them; `hot` are offsets in those that may hold one, if these are not too many."""
        held = anchored.held(rows.searched if hot is None else b"\n".join(map(rows.at, hot)))
        self._is_noisy = len(held.kinds) - held.kinds.count(0) > MAX_HOT
        self._keep_anchored(anchored, rows, held, None if hot is None else rows.indexes(hot))

    def _keep_anchored(self, anchored: Anchored, rows: BlockRows, held: Held, among: Sequence[int] | None) -> None:
        self._kept.add(map(rows.kept, sorted(self._carried(rows))))
        if among == []:
            return
        anchored.add(rows, held, among)
        last = rows.searched.rfind(TRACEBACK)
        if last >= 0:
            _, self._open = follow(rows.behind(rows.searched.rfind(b"\n", 0, last) + 1), 1, OPENED)
            self._is_open_for_anchor = True
