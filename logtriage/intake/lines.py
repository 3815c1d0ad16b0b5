"""Blocks in, the lines worth keeping out: lines that hold a gate, what surrounds them, whole tracebacks, both ends.

Where too many lines hold a gate, and behind a beginning that is long enough, a line is kept only for an anchor in it:
the first and the last ones of each.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from logtriage.intake.block_rows import BlockRows
from logtriage.intake.kept import Group, Kept
from logtriage.intake.segments import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from logtriage.intake.blocks import Block
    from logtriage.intake.segments import KeptRow
    from logtriage.records import Line

CONTEXT = 3
"""Lines kept before and after a line that holds a gate."""

ENDS = 40
"""Lines kept at the beginning and at the end of the log, whatever they hold."""

MAX_HOT = 200
"""Lines of a block that may hold a gate; in a block with more of them anchors are searched for."""

_PROBE, _MAX_PROBED = 64 << 10, 150  # the start of a launch holds about a hundred such lines
_MAX_FRAMES = 400
_MAX_MESSAGE = 60

_RECORD = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_TRACEBACK = b"Traceback (most recent call last)"


class AnchorSearch(Protocol):
    """Tells which anchors some lines hold."""

    def present(self, data: bytes) -> list[bytes]:
        """Return the anchors that `data` holds, sorted."""


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
        self._make_anchors = anchors
        self._anchors: AnchorSearch | None = None
        self._kept = Kept()
        self._recent: deque[tuple[Block, int]] = deque()
        self._recent_rows = 0
        self._seen = 0
        self._after = 0
        self._open = _CLOSED
        self._is_open_for_anchor = False
        self._newest_hot = _NewestHot()

    def add(self, block: Block) -> None:
        """Keep what is worth keeping of a block."""
        rows = BlockRows(block, self._seen)
        hot, is_crowded = self._hot(rows.searched)
        if hot or self._after or self._open.mode or self._seen < ENDS or self._also:
            if self._make_anchors and (is_crowded or self._kept.is_full):
                self._add_for_anchors(rows, hot, is_crowded=is_crowded)
            else:
                self._add(rows, hot)
        self._recent.append((block, self._seen))
        self._recent_rows += block.rows
        self._seen += block.rows
        while self._recent_rows - self._recent[0][0].rows >= ENDS:
            self._recent_rows -= self._recent.popleft()[0].rows

    def lines(self, file: int) -> list[Line]:
        """Return the lines of all that was kept and the last lines of the log. More blocks may be added afterwards."""
        kept = self._kept.copy()
        self._newest_hot.give(kept, {})
        return [line for row in kept.all(self._newest(ENDS)) for line in lines_of(row, file)]

    def copy(self) -> Selector:
        """Return a copy that may grow apart."""
        other = Selector(self._find, self._also, self._make_anchors)
        other.__dict__.update(self.__dict__)
        other._kept = self._kept.copy()
        other._recent = self._recent.copy()
        return other

    def _newest(self, count: int) -> Iterator[KeptRow]:
        skipped = self._recent_rows - count
        for block, seen in self._recent:
            rows = BlockRows(block, seen)
            yield from map(rows.kept, range(min(max(0, skipped), block.rows), block.rows))
            skipped -= block.rows

    def _hot(self, data: bytes) -> tuple[list[int], bool]:
        """Return where lines that hold a gate begin, and whether these are too many (then not all are told)."""
        hot: list[int] = []
        start = end = 0
        for size, limit in ((_PROBE, _MAX_PROBED), (len(data), MAX_HOT)):
            stop = data.find(b"\n", start + size) + 1 or len(data)
            for offset in self._find(data[start:stop]):
                if start + offset >= end:
                    hot.append(data.rfind(b"\n", 0, start + offset) + 1)
                    end = data.find(b"\n", start + offset) + 1 or len(data)
            if len(hot) > limit:
                return hot, True
            start = stop
        return hot, False

    def _carried(self, rows: BlockRows) -> set[int]:
        """Return the rows that belong to what the rows before them began, and those of the log's beginning."""
        count = len(rows)
        wanted = {*range(min(self._after, count)), *range(min(ENDS - self._seen, count)), *rows.numbered(self._also)}
        self._after = max(0, self._after - count)
        if self._open.mode:
            head = rows.head(_PROBE)
            end, state = _follow(head, 0, self._open)
            if end == len(head) < count:
                head = rows
                end, state = _follow(head, 0, self._open)
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
            if _TRACEBACK in rows.row(index):
                end, self._open = _follow(rows, index + 1, _OPENED)
                self._is_open_for_anchor = False
                wanted.update(range(index, end))
        if before:
            self._kept.add(self._newest(min(before, self._recent_rows)))
        self._kept.add(map(rows.kept, sorted(wanted)))

    def _add_for_anchors(self, rows: BlockRows, hot: list[int], *, is_crowded: bool) -> None:
        self._kept.add(map(rows.kept, sorted(self._carried(rows))))
        if not hot:
            return
        if self._anchors is None:
            assert self._make_anchors is not None  # noqa: S101 - the caller asks
            self._anchors = self._make_anchors()
        data = rows.searched if is_crowded else b"\n".join(map(rows.at, hot))
        newest: dict[bytes, list[int]] = {}
        groups = _Groups(rows)
        for anchor in self._anchors.present(data):
            first, last = self._kept.room(anchor)
            found = rows.ends(anchor, first, last) if is_crowded else [at for at in hot if anchor in rows.at(at)]
            newest[anchor] = found[-last:]
            if first > 0:
                self._kept.add_first(anchor, map(groups.of, found[:first]))
        self._newest_hot.give(self._kept, newest)
        self._newest_hot = _NewestHot(groups, newest)
        heads = [found[-1] for found in newest.values() if _TRACEBACK in rows.at(found[-1])]
        if heads:
            _, self._open = _follow(rows.behind(max(heads)), 1, _OPENED)
            self._is_open_for_anchor = True


class _Open(NamedTuple):
    """The traceback that is open: whether its frames or its message are read, and how many rows more it may have."""

    mode: str
    left: int


_CLOSED = _Open("", 0)
_OPENED = _Open("frames", _MAX_FRAMES)


def _follow(rows: BlockRows, at: int, state: _Open) -> tuple[int, _Open]:
    """Follow a traceback from row `at`; return the first row that does not belong to it, and whether it is open."""
    mode, left = state
    while mode and at < len(rows):
        row = rows.message(at)
        if row is None:
            at += 1
            continue
        if mode == "frames" and (row[:1] not in (b" ", b"\t") or not left):
            mode, left = "message", _MAX_MESSAGE
        if mode == "message" and (not left or _RECORD.match(row) or _TRACEBACK in row):
            return at, _CLOSED
        left -= 1
        at += 1
    return at, _Open(mode, left)


class _Groups:
    """Rows of one block with the lines around them, or with their traceback as far as it stands in the block."""

    def __init__(self, rows: BlockRows) -> None:
        self._rows = rows
        self._groups: dict[int, Group] = {}

    def of(self, start: int) -> Group:
        """Return the row that begins at `start` and what surrounds it."""
        index = self._rows.index(start)
        if index not in self._groups:
            end = min(len(self._rows), index + CONTEXT + 1)
            if _TRACEBACK in self._rows.row(index):
                end = max(end, _follow(self._rows, index + 1, _OPENED)[0])
            self._groups[index] = [self._rows.short(at) for at in range(max(0, index - CONTEXT), end)]
        return self._groups[index]


class _NewestHot:
    """The newest rows of each anchor in one block. They are only taken once no newer ones can replace them."""

    def __init__(self, groups: _Groups | None = None, found: Mapping[bytes, list[int]] | None = None) -> None:
        self._groups = groups
        self._found = found or {}

    def give(self, kept: Kept, newer: Mapping[bytes, list[int]]) -> None:
        """Keep the rows, but for anchors of which so many `newer` rows were found that these will be dropped."""
        for anchor, indexes in self._found.items():
            if self._groups and len(newer.get(anchor, ())) < kept.room(anchor)[1]:
                kept.add_last(anchor, map(self._groups.of, indexes))
