"""Pieces of text in, whole lines out in blocks that depend on the text alone, never on how it was cut into pieces.

A block holds the lines that begin in one window of the input. A line that goes on far beyond the window is a block
of its own, and of a huge one the middle is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.intake.blocks import Block, count_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

WINDOW = 256 << 10
"""Bytes of a window (so few that it is searched while the cache still holds it), counted from the input's beginning."""

MAX_OPEN = 512 << 10
"""Bytes beyond its window that a line may have; of a longer one so much of the head and of the tail is kept."""

_LINE_FEED = 10


class Windows:
    """Takes pieces, gives blocks. `size` and `lines` tell how much of the input the blocks so far stand for."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.lines = 0
        self._held: list[memoryview] = []
        self._length = 0
        self._huge: _HugeLine | None = None

    def add(self, data: bytes) -> Iterator[Block]:
        """Add a piece; yield the blocks that it completes."""
        at = 0
        while at < len(data):
            if self._huge:
                end = data.find(b"\n", at) + 1 or len(data)
                self._huge.add(data[at:end])
                at = end
                if data[end - 1] == _LINE_FEED:
                    yield self._close_huge(self._huge)
                continue
            limit = (self.size // WINDOW + 1) * WINDOW - (self.size + self._length) + at  # as an index into `data`
            end = data.find(b"\n", max(at, limit - 1), max(at, limit + MAX_OPEN)) + 1
            if not end and len(data) < limit + MAX_OPEN:
                self._hold(memoryview(data)[at:])
                return
            self._hold(memoryview(data)[at : end or max(at, limit)])
            at = end or max(at, limit)
            if end:
                yield self._block(self._release())
            else:
                yield from self._open_huge()

    def skip(self, hole: int) -> Iterator[Block]:
        """Pass over `hole` bytes that are not there (of a sparse file); they belong to the line that is open."""
        huge = self._huge
        if huge is None:
            huge = yield from self._open_huge()
        huge.length += hole

    def rest(self) -> list[Block]:
        """Return what is held as blocks, as if the input ended here. Changes nothing: more may be added."""
        if self._huge:
            return [Block(self._huge.text, self.size, self.lines + 1, 1)] if self._huge.length else []
        data = b"".join(self._held)
        return [Block(data, self.size, self.lines + 1, count_rows(data))] if data else []

    @property
    def stands_for(self) -> int:
        """Bytes of the input up to here, with those that no block holds yet."""
        return self.size + (self._huge.length if self._huge else self._length)

    @property
    def is_hole(self) -> bool:
        """Whether all that came so far are bytes that are not there."""
        return not self.size and self._huge is not None and not self._huge.text

    def _open_huge(self) -> Generator[Block, None, _HugeLine]:
        """Give out the whole lines that are held, and begin a huge line with the rest."""
        data = self._release()
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            yield self._block(whole)
        self._huge = huge = _HugeLine()
        huge.add(data[len(whole) :])
        return huge

    def _hold(self, data: memoryview) -> None:
        self._held.append(data)
        self._length += len(data)

    def _release(self) -> bytes:
        data = b"".join(self._held)
        self._held, self._length = [], 0
        return data

    def _block(self, data: bytes) -> Block:
        block = Block(data, self.size, self.lines + 1, count_rows(data))
        self.size += len(data)
        self.lines += block.rows
        return block

    def _close_huge(self, huge: _HugeLine) -> Block:
        block = Block(huge.text, self.size, self.lines + 1, 1)
        self.size += huge.length
        self.lines += 1
        self._huge = None
        return block


class _HugeLine:
    """A line that is too long to be kept as a whole; `length` counts all its bytes."""

    def __init__(self) -> None:
        self.length = 0
        self._head = b""
        self._tail = b""

    @property
    def text(self) -> bytes:
        """What is kept of it."""
        return self._head + self._tail

    def add(self, data: bytes) -> None:
        self.length += len(data)
        room = MAX_OPEN - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-MAX_OPEN:] if len(data) > room else self._tail
