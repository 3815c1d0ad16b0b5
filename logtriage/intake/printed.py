"""Stored blocks in, blocks as the server printed them out: undoes what wrappers, terminals and exports did to a log.

A log is changed only where its first lines show that it must be; all others pass through untouched, block by block.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from logtriage.intake.blocks import MAX_LINE, count_rows, without_escapes
from logtriage.intake.parts import Parts, decoded_block, decoded_messages, whole_lines
from logtriage.intake.rows import pack, packed, rows_in, rows_of
from logtriage.intake.turned import Order, backwards, broken_at, joined
from logtriage.intake.wrappers import detect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from logtriage.intake.blocks import Block
    from logtriage.intake.rows import Row
    from logtriage.intake.wrappers import Found

SAMPLE_ROWS = 400
"""Lines at the beginning of a log by which its layout is judged."""

MAX_BROKEN = 8 << 20
"""Bytes of a log up to which lines that a terminal broke are joined: it must be held as a whole."""

MAX_REVERSED = 64 << 20
"""Bytes of a log up to which newest-first is undone."""

_SAMPLE_BYTES = 1 << 20


def as_printed(blocks: Iterator[Block], wrappers: Mapping[str, Any], name: str, notes: list[str]) -> Iterator[Block]:
    """Yield the lines of `blocks` as they were printed, with their layout; tell in `notes` what was done to them."""
    sample, blocks = sampled(blocks)
    if width := broken_at(sample, wrappers["widths"]):
        held, blocks, is_all = _hold(blocks, MAX_BROKEN)
        if is_all and broken_at([row.text() for row in rows_of(held)], wrappers["widths"]) == width:
            notes.append(f"{name}: lines that a terminal broke at {width} columns were joined")
            sample, blocks = sampled(packed(joined(rows_of(held), width)))
    found = detect(sample, wrappers)
    if Order(found).of(sample).is_newest_first:
        held, blocks, is_all = _hold(blocks, MAX_REVERSED)
        order = Order(found).of(row.text() for row in rows_of(held))
        if not is_all:
            limit = MAX_REVERSED >> 20
            notes.append(f"{name} is newest first and larger than {limit} MiB: sort it by time, oldest first")
        elif order.is_newest_first:
            notes.append(f"{name} is newest first: it was read from its last line up")
            blocks = packed(backwards(held, found.outer, by_record=order.upright > order.inverted))
    undo = Undo(found)
    for block in blocks:
        yield from undo.add(block)
    yield from undo.rest()


class Undo:
    """Undoes the wrappers of a log, block by block; a message that is cut waits for its rest."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._layers = [found.coded] if found.coded else [layer for layer in found.outer.prefixes if layer.partial]
        self._parts = [Parts() for _ in self._layers]
        self._then = Undo(found.then) if found.then else None

    def add(self, block: Block) -> Iterator[Block]:
        """Yield a stored block as it was printed; nothing if all of it must wait."""
        for undone in self._add(block):
            yield from self._then.add(undone) if self._then else (undone,)

    def rest(self) -> Iterator[Block]:
        """Yield the messages whose end never came."""
        rows: Iterable[Row] = ()
        for index, parts in enumerate(self._parts):
            rows = chain(self._undone(rows, index, index + 1), parts.finish())
        for undone in self._packed(rows):
            yield from self._then.add(undone) if self._then else (undone,)
        if self._then:
            yield from self._then.rest()

    def copy(self) -> Undo:
        """Return a copy that may grow apart."""
        other = Undo(self._found)
        other._parts = [parts.copy() for parts in self._parts]
        other._then = self._then.copy() if self._then else None
        return other

    def _add(self, block: Block) -> Iterator[Block]:
        marks = [layer.partial.encode() for layer in self._layers]
        coded, is_waiting = self._found.coded, any(self._parts)
        if coded and not is_waiting and not self._found.outer and (decoded := decoded_block(block, coded)):
            yield decoded._replace(layout=self._found.inner)
        elif is_waiting or coded or any(mark in block.data for mark in marks):
            yield from self._packed(self._undone(rows_in(block)))
        else:
            yield block._replace(layout=self._found.inner)

    def _undone(self, rows: Iterable[Row], first: int = 0, end: int | None = None) -> Iterator[Row]:
        outer = self._found.outer
        for layer, parts in list(zip(self._layers, self._parts, strict=True))[first:end]:
            rows = (decoded_messages if self._found.coded else whole_lines)(rows, outer, layer, parts)
        return iter(rows)

    def _packed(self, rows: Iterable[Row]) -> Iterator[Block]:
        if waiting := list(rows):
            yield pack(waiting)._replace(layout=self._found.inner)


def sampled(blocks: Iterator[Block]) -> tuple[list[str], Iterator[Block]]:
    """Return the first lines, and all blocks; the sample does not depend on the size of the blocks."""
    kept: list[Block] = []
    count = size = 0
    for block in blocks:
        kept.append(block)
        count += block.rows
        size += len(block.data)
        if count >= SAMPLE_ROWS or size >= _SAMPLE_BYTES:
            break
    return _texts(b"".join(block.data for block in kept)[:_SAMPLE_BYTES]), chain(kept, blocks)


def _texts(data: bytes) -> list[str]:
    """Return the first lines as `Row.text` does, all at once: no escape sequence holds a line feed."""
    count = min(SAMPLE_ROWS, count_rows(data))
    rows = [row[:MAX_LINE] for row in data.split(b"\n", count)[:count]]
    text = without_escapes(b"\n".join(rows)).decode("utf-8", "replace")
    return [row.rstrip("\r") for row in text.split("\n")]


def _hold(blocks: Iterator[Block], limit: int) -> tuple[list[Block], Iterator[Block], bool]:
    """Return the blocks of the first `limit` bytes, all blocks, and whether the former are all there are."""
    held: list[Block] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block.data)
        if size > limit:
            return held, chain(held, blocks), False
    return held, iter(held), True
