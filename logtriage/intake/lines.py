"""Blocks in, the lines worth keeping out: lines that hold a gate, what surrounds them, whole tracebacks, both ends.

Undoes escape sequences and carriage returns (a progress bar and the message glued to it become two lines) and tells
where the message begins behind what other programs put before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake.blocks import MAX_LINE, Block, row_starts, without_escapes
from logtriage.intake.times import seconds
from logtriage.records import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

CONTEXT = 3
"""Lines kept before and after a line that holds a gate."""

ENDS = 40
"""Lines kept at the beginning and at the end of the log, whatever they hold."""

MAX_KEPT = 20_000
"""Lines kept at most from the beginning of the log, and as many from its end."""

_MAX_FRAMES = 400
_MAX_MESSAGE = 60

_RECORD = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_GLUED = re.compile(r"(?<=[\])s])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\] )")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_TRACEBACK = b"Traceback (most recent call last)"


def select(
    blocks: Iterable[Block], find: Callable[[bytes], list[int]], file: int = 0, also: Collection[int] = ()
) -> list[Line]:
    """Return the lines of `blocks` worth keeping, in order.

    `find` gives offsets inside lines that hold a gate; lines with a number in `also` are kept whatever they hold.
    """
    selector = _Selector(find, frozenset(also))
    for block in blocks:
        selector.add(block, file)
    return selector.finish()


class _Selector:
    """Walks the blocks; what it decides does not depend on where one block ends and the next begins."""

    def __init__(self, find: Callable[[bytes], list[int]], also: frozenset[int]) -> None:
        self._find = find
        self._also = also
        self._kept = _Kept()
        self._newest: deque[list[Line]] = deque(maxlen=ENDS)
        self._after = 0
        self._seen = 0
        self._mode = ""
        self._left = 0

    def add(self, block: Block, file: int) -> None:
        """Keep what is worth keeping of a block."""
        rows = _Rows(block, file, self._seen)
        wanted = self._wanted(rows)
        before = max((CONTEXT - index for index in wanted.hot if index < CONTEXT), default=0)
        for lines in list(self._newest)[-before:] if before else ():
            self._kept.add(lines)
        for index in sorted(wanted.rows):
            self._kept.add(rows.lines(index))
        self._newest.extend(list(rows.lines(index)) for index in range(max(0, len(rows) - ENDS), len(rows)))
        self._seen += len(rows)

    def finish(self) -> list[Line]:
        """Return all that was kept, and the last lines of the log."""
        for lines in self._newest:
            self._kept.add(lines)
        return self._kept.all()

    def _wanted(self, rows: _Rows) -> _Wanted:
        count = len(rows)
        wanted = _Wanted(set(), set())
        wanted.rows.update(range(min(self._after, count)))
        wanted.rows.update(range(max(0, min(ENDS - self._seen, count))))
        wanted.rows.update(rows.numbered(self._also))
        self._after = max(0, self._after - count)
        wanted.rows.update(range(self._follow(rows, 0)))
        for index in dict.fromkeys(map(rows.index, self._find(rows.searched))):
            wanted.hot.add(index)
            wanted.rows.update(range(max(0, index - CONTEXT), min(count, index + CONTEXT + 1)))
            self._after = max(self._after, index + CONTEXT + 1 - count)
            if _TRACEBACK in rows.row(index):
                self._mode, self._left = "frames", _MAX_FRAMES
                wanted.rows.update(range(index, self._follow(rows, index + 1)))
        return wanted

    def _follow(self, rows: _Rows, at: int) -> int:
        """Follow an open traceback from row `at`; return the first row that does not belong to it."""
        while self._mode and at < len(rows):
            row = rows.message(at)
            if row is None:
                at += 1
                continue
            if self._mode == "frames" and (row[:1] not in (b" ", b"\t") or not self._left):
                self._mode, self._left = "message", _MAX_MESSAGE
            if self._mode == "message" and (not self._left or _RECORD.match(row) or _TRACEBACK in row):
                self._mode = ""
                break
            self._left -= 1
            at += 1
        return at


class _Wanted(NamedTuple):
    rows: set[int]
    hot: set[int]


class _Kept:
    """First and last lines of what was selected; the middle of a huge selection is dropped."""

    def __init__(self) -> None:
        self._head: list[Line] = []
        self._tail: deque[Line] = deque(maxlen=MAX_KEPT)
        self._newest = 0

    def add(self, lines: Iterable[Line]) -> None:
        """Keep the lines of a row, unless they were kept before."""
        row = 0
        for line in lines:
            row = line.row
            if row > self._newest:
                (self._head if len(self._head) < MAX_KEPT else self._tail).append(line)
        self._newest = max(self._newest, row)

    def all(self) -> list[Line]:
        return self._head + list(self._tail)


class _Rows:
    """The rows of a block (split at line feeds), as searched and as stored; `before` rows were read before them."""

    def __init__(self, block: Block, file: int, before: int) -> None:
        self._block = block
        self._file = file
        self._before = before
        stored = block.data
        self.searched = without_escapes(stored)
        self._starts = row_starts(stored)
        self._searched_starts = self._starts if self.searched is stored else row_starts(self.searched)

    def __len__(self) -> int:
        return len(self._starts)

    def numbered(self, numbers: Collection[int]) -> Iterator[int]:
        """Yield the rows that have one of the line numbers."""
        if not numbers:
            return
        if self._block.places is None:
            first = self._block.number
            yield from (number - first for number in numbers if 0 <= number - first < len(self))
        else:
            yield from (index for index, place in enumerate(self._block.places) if place.number in numbers)

    def index(self, offset: int) -> int:
        """Return the row that holds `offset` of the searched bytes."""
        return bisect_right(self._searched_starts, offset) - 1

    def row(self, index: int) -> bytes:
        """Return a row as searched."""
        return _cut(self.searched, self._searched_starts, index)

    def message(self, index: int) -> bytes | None:
        """Return a row as searched without its wrapper; None for one that is no part of the log."""
        row = self.row(index)
        if not self._block.layout:
            return row
        text = row[:MAX_LINE].decode("utf-8", "replace")
        placed = self._block.layout.place(text)
        return None if placed.is_fence else text[placed.body :].encode()

    def lines(self, index: int) -> Iterator[Line]:
        """Yield the segments of a row that are not empty; an empty row is one empty line."""
        raw = _cut(self._block.data, self._starts, index)
        place = self._block.place(index, self._starts[index])
        at, time = place.byte, seconds(place.time)
        layout = self._block.layout
        for segment in raw.split(b"\r"):
            text = _text(segment)
            line = Line(self._file, place.number, at, text, time=time, row=self._before + index + 1)
            if layout:
                placed = layout.place(text)
                time = seconds(placed.time) if placed.time else time
                role = "fence" if placed.is_fence else line.role
                line = line._replace(start=placed.body, body=placed.body, time=time, role=role, origin=placed.origin)
            if segment is raw or len(text) > line.body:
                yield from _split_glued(line)
            at += len(segment) + 1 if place.is_stored else 0


def _cut(data: bytes, starts: list[int], index: int) -> bytes:
    end = starts[index + 1] if index + 1 < len(starts) else len(data)
    return data[starts[index] : end].rstrip(b"\r\n")


def _text(segment: bytes) -> str:
    if len(segment) > MAX_LINE:
        half = MAX_LINE // 2
        segment = segment[:half] + b" [...] " + segment[-half:]
    text = without_escapes(segment).decode("utf-8", "replace")
    return _CONTROL.sub("\ufffd", text)


def _split_glued(line: Line) -> Iterator[Line]:
    """Split a message that was printed onto the end of a progress bar."""
    at = 0
    for match in _GLUED.finditer(line.text):
        yield _part(line, at, match.start())
        at = match.start()
    yield _part(line, at, len(line.text))


def _part(line: Line, start: int, end: int) -> Line:
    if (start, end) == (0, len(line.text)):
        return line
    part = line._replace(text=line.text[start:end], byte=line.byte + len(line.text[:start].encode()))
    return part._replace(start=0, body=0) if start else part
