"""The rows of a block, by number: as searched, as stored, with what stands around them. Found when first needed."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING

from logtriage.intake.blocks import MAX_LINE, Block, count_rows, row_starts, without_escapes
from logtriage.intake.segments import KeptRow, cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class BlockRows:
    """The rows of a block (split at line feeds), as searched and as stored; `before` rows were read before them."""

    def __init__(self, block: Block, before: int) -> None:
        self.searched = without_escapes(block.data)
        self._block = block
        self._before = before
        self._starts: list[int] = []
        self._searched_starts: list[int] = []
        self._short: dict[int, KeptRow] = {}

    def __len__(self) -> int:
        return self._block.rows

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
        self._find_rows()
        return bisect_right(self._searched_starts, offset) - 1

    def ends(self, anchor: bytes, first: int, last: int) -> list[int]:
        """Return where the first and the last rows that hold an anchor begin, in order; all if they are no more."""
        data = self.searched
        newest: deque[int] = deque()
        end = len(data)
        while len(newest) < last and (at := data.rfind(anchor, 0, end)) >= 0:
            end = data.rfind(b"\n", 0, at) + 1
            newest.appendleft(end)
        oldest: list[int] = []
        start = 0
        while len(oldest) < first and (at := data.find(anchor, start, end)) >= 0:
            oldest.append(data.rfind(b"\n", 0, at) + 1)
            start = data.find(b"\n", at) + 1 or end
        return [*oldest, *newest]

    def at(self, start: int) -> bytes:
        """Return the row as searched that begins at `start`."""
        end = self.searched.find(b"\n", start)
        return self.searched[start:] if end < 0 else self.searched[start:end]

    def head(self, size: int) -> BlockRows:
        """Return the rows that begin in the first `size` bytes as stored: all that is needed to look at a few."""
        end = self._block.data.find(b"\n", size) + 1
        if not end:
            return self
        data = self._block.data[:end]
        return BlockRows(self._block._replace(data=data, rows=count_rows(data)), self._before)

    def behind(self, start: int) -> BlockRows:
        """Return the rows from the one that begins at `start`, as searched."""
        data = self.searched[start:]
        return BlockRows(Block(data, 0, 0, count_rows(data), self._block.layout), 0)

    def row(self, index: int) -> bytes:
        """Return a row as searched."""
        self._find_rows()
        return _row(self.searched, self._searched_starts, index)

    def message(self, index: int) -> bytes | None:
        """Return a row as searched without its wrapper; None for one that is no part of the log."""
        row = self.row(index)
        if not self._block.layout:
            return row
        text = row[:MAX_LINE].decode("utf-8", "replace")
        placed = self._block.layout.place(text)
        return None if placed.is_fence else text[placed.body :].encode()

    def kept(self, index: int) -> KeptRow:
        """Return a row as stored, to be kept."""
        self._find_rows()
        place = self._block.place(index, self._starts[index])
        return KeptRow(self._before + index + 1, _row(self._block.data, self._starts, index), place, self._block.layout)

    def short(self, index: int) -> KeptRow:
        """Return the same without the middle of a long row."""
        if index not in self._short:
            kept = self.kept(index)
            self._short[index] = kept._replace(data=cut(kept.data))
        return self._short[index]

    def _find_rows(self) -> None:
        if not self._starts:
            self._starts = row_starts(self._block.data)
            is_same = self.searched is self._block.data
            self._searched_starts = self._starts if is_same else row_starts(self.searched)


def _row(data: bytes, starts: list[int], index: int) -> bytes:
    start, end = (starts[at] if at < len(starts) else len(data) for at in (index, index + 1))
    return data[start:end].rstrip(b"\r\n")
