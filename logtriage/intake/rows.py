"""Lines one by one, where a log must be changed before it is searched, and their way back into blocks."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake.blocks import MAX_LINE, Block, Place, without_escapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKED = 1 << 20
"""Bytes of rows that make a block."""


class Row(NamedTuple):
    """A stored line without its line feed, and its place."""

    data: bytes
    place: Place

    def text(self, limit: int | None = MAX_LINE) -> str:
        """Return its first `limit` bytes as text without escape sequences and without a carriage return at the end."""
        return without_escapes(self.data[:limit]).decode("utf-8", "replace").rstrip("\r")


def rows_in(block: Block) -> Iterator[Row]:
    """Yield the rows of a block, each found when it is asked for."""
    start = 0
    for index in range(block.rows):
        end = block.data.find(b"\n", start)
        yield Row(block.data[start : end if end >= 0 else None], block.place(index, start))
        start = end + 1


def rows_of(blocks: Iterable[Block]) -> Iterator[Row]:
    """Yield the rows of all blocks."""
    return chain.from_iterable(map(rows_in, blocks))


def packed(rows: Iterable[Row]) -> Iterator[Block]:
    """Pack rows into blocks again."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row)
        size += len(row.data)
        if size >= PACKED:
            yield pack(waiting)
            waiting, size = [], 0
    if waiting:
        yield pack(waiting)


def pack(rows: list[Row]) -> Block:
    """Make a block of rows, of which there must be one or more."""
    places = [row.place for row in rows]
    return Block(b"".join(row.data + b"\n" for row in rows), places[0].byte, places[0].number, len(rows), places=places)
