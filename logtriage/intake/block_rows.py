"""The rows of a block, by number: as searched, as stored, with what stands around them. Found when first needed."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake.blocks import MAX_LINE, Block, count_rows, row_starts, without_escapes
from logtriage.intake.rows import Row, pack
from logtriage.intake.segments import KeptRow, cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


class Group(NamedTuple):
    """Some rows in a row: a block of their own; `before` rows were read before them."""

    block: Block
    before: int

    def rows(self) -> Iterator[KeptRow]:
        """Yield the rows as stored."""
        rows = BlockRows(*self)
        return map(rows.kept, range(len(rows)))


class BlockRows:
    """The rows of a block (split at line feeds), as searched and as stored; `before` rows were read before them."""

    def __init__(self, block: Block, before: int) -> None:
        self.block = block
        self.before = before
        self.searched = without_escapes(block.data)
        self._starts: list[int] = []
        self._searched_starts: list[int] = []

    def __len__(self) -> int:
        return self.block.rows

    def numbered(self, numbers: Collection[int]) -> Iterator[int]:
        """Yield the rows that have one of the line numbers."""
        if not numbers:
            return
        if self.block.places is None:
            first = self.block.number
            yield from (number - first for number in numbers if 0 <= number - first < len(self))
        else:
            yield from (index for index, place in enumerate(self.block.places) if place.number in numbers)

    def index(self, offset: int) -> int:
        """Return the row that holds `offset` of the searched bytes."""
        self._find_rows()
        return bisect_right(self._searched_starts, offset) - 1

    def indexes(self, offsets: Iterable[int]) -> list[int]:
        """Return the rows that hold some offsets of the searched bytes, which are sorted."""
        found = []
        row = before = 0
        for offset in offsets:
            row += self.searched.count(b"\n", before, offset)
            before = offset
            found.append(row)
        return found

    def at(self, offset: int) -> bytes:
        """Return the row as searched that holds an offset of the searched bytes."""
        end = self.searched.find(b"\n", offset)
        return self.searched[self.searched.rfind(b"\n", 0, offset) + 1 : len(self.searched) if end < 0 else end]

    def head(self, size: int) -> BlockRows:
        """Return the rows that begin in the first `size` bytes as stored: all that is needed to look at a few."""
        end = self.block.data.find(b"\n", size) + 1
        if not end:
            return self
        data = self.block.data[:end]
        return BlockRows(self.block._replace(data=data, rows=count_rows(data)), self.before)

    def tail(self, first: int) -> BlockRows:
        """Return the rows from `first` on, as stored: all that is needed to look at the last few."""
        data, block = self.block.data, self.block
        start = len(data) - data.endswith(b"\n")
        for _ in range(first, len(self)):
            start = data.rfind(b"\n", 0, start)
        place = block.place(first, start + 1)
        places = block.places and block.places[first:]
        rest = block._replace(
            data=data[start + 1 :], byte=place.byte, number=place.number, rows=len(self) - first, places=places
        )
        return BlockRows(rest, self.before + first)

    def behind(self, start: int) -> BlockRows:
        """Return the rows from the one that begins at `start`, as searched."""
        data = self.searched[start:]
        return BlockRows(Block(data, 0, 0, count_rows(data), self.block.layout), 0)

    def row(self, index: int) -> bytes:
        """Return a row as searched."""
        self._find_rows()
        return _row(self.searched, self._searched_starts, index)

    def message(self, index: int) -> bytes | None:
        """Return a row as searched without its wrapper; None for one that is no part of the log."""
        row = self.row(index)
        if not self.block.layout:
            return row
        text = row[:MAX_LINE].decode("utf-8", "replace")
        placed = self.block.layout.place(text)
        return None if placed.is_fence else text[placed.body :].encode()

    def kept(self, index: int) -> KeptRow:
        """Return a row as stored, to be kept."""
        self._find_rows()
        place = self.block.place(index, self._starts[index])
        return KeptRow(self.before + index + 1, _row(self.block.data, self._starts, index), place, self.block.layout)

    def part(self, first: int, end: int) -> Group:
        """Return the rows from `first` up to `end` as stored, without the middle of those that are long."""
        self._find_rows()
        start, stop = self._starts[first], self._starts[end] if end < len(self) else len(self.block.data)
        if stop - start > MAX_LINE:
            return Group(
                pack([self._short(index) for index in range(first, end)])._replace(layout=self.block.layout),
                self.before + first,
            )
        places = self.block.places
        place = self.block.place(first, start)
        data = self.block.data[start:stop]
        block = Block(data, place.byte, place.number, end - first, self.block.layout, places and places[first:end])
        return Group(block, self.before + first)

    def _short(self, index: int) -> Row:
        kept = self.kept(index)
        return Row(cut(kept.data), kept.place)

    def _find_rows(self) -> None:
        if not self._starts:
            self._starts = row_starts(self.block.data)
            is_same = self.searched is self.block.data
            self._searched_starts = self._starts if is_same else row_starts(self.searched)


def _row(data: bytes, starts: list[int], index: int) -> bytes:
    start, end = (starts[at] if at < len(starts) else len(data) for at in (index, index + 1))
    return data[start:end].rstrip(b"\r\n")
