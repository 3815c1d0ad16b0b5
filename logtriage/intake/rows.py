"""Stored lines in, lines as the server printed them out: undoes what wrappers, terminals and exports did to a log.

A log is changed only where its first lines show that it must be; all others pass through untouched, block by block.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.intake.blocks import MAX_LINE, Block, Place, row_starts, without_escapes
from logtriage.intake.times import seconds
from logtriage.intake.wrappers import Found, Layout, Wrapper, detect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SAMPLE_ROWS = 400
"""Lines at the beginning of a log by which its layout is judged."""

MAX_BROKEN = 8 << 20
"""Bytes of a log up to which lines that a terminal broke are joined: it must be held as a whole."""

MAX_REVERSED = 64 << 20
"""Bytes of a log up to which newest-first is undone."""

_SAMPLE_BYTES = 1 << 20
_PACKED = 1 << 20
_MAX_JOINED = 4 << 20
_BROKEN_ROWS, _BROKEN_SHARE = 4, 0.05
_RULER = 3  # different characters at most in a line that somebody drew
_FALLS, _FALLS_PER_RISE = 3, 4

_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_RECORD = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_OPENS = re.compile(
    r'\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|Traceback \(most|  File "|'
    r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?:: |$)"
)
_TRACEBACK = "Traceback (most recent call last)"


class _Row(NamedTuple):
    data: bytes
    place: Place

    def text(self) -> str:
        return _text(self.data)


def as_printed(blocks: Iterator[Block], wrappers: Mapping[str, Any], name: str, notes: list[str]) -> Iterator[Block]:
    """Yield the lines of `blocks` as they were printed, with their layout; tell in `notes` what was done to them."""
    sample, blocks = _sampled(blocks)
    if width := _width(sample, wrappers["widths"]):
        held, blocks, is_all = _hold(blocks, MAX_BROKEN)
        if is_all and _width([row.text() for block in held for row in _rows(block)], wrappers["widths"]) == width:
            notes.append(f"{name}: lines that a terminal broke at {width} columns were joined")
            sample, blocks = _sampled(_packed(_joined(_rows_of(held), width)))
    found = detect(sample, wrappers)
    if _Order(found).of(sample).is_newest_first:
        held, blocks, is_all = _hold(blocks, MAX_REVERSED)
        order = _Order(found).of(row.text() for block in held for row in _rows(block))
        if not is_all:
            limit = MAX_REVERSED >> 20
            notes.append(f"{name} is newest first and larger than {limit} MiB: sort it by time, oldest first")
        elif order.is_newest_first:
            notes.append(f"{name} is newest first: it was read from its last line up")
            blocks = _packed(_backwards(held, found.outer, by_record=order.upright > order.inverted))
    if found.json:
        blocks = _packed(_decoded(_rows_of(blocks), found.outer, found.json))
    else:
        for layer in found.outer.prefixes:
            if layer.partial:
                blocks = _whole(blocks, found.outer, layer)
    for block in blocks:
        yield block._replace(layout=found.inner)


def _text(data: bytes) -> str:
    return without_escapes(data[:MAX_LINE]).decode("utf-8", "replace").rstrip("\r")


def _rows(block: Block) -> Iterator[_Row]:
    starts = row_starts(block.data)
    ends = [*starts[1:], len(block.data)]
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        yield _Row(block.data[start:end].removesuffix(b"\n"), block.place(index, start))


def _rows_of(blocks: Iterable[Block]) -> Iterator[_Row]:
    return chain.from_iterable(map(_rows, blocks))


def _packed(rows: Iterable[_Row]) -> Iterator[Block]:
    """Pack rows into blocks again."""
    packed: list[_Row] = []
    size = 0
    for row in rows:
        packed.append(row)
        size += len(row.data)
        if size >= _PACKED:
            yield _pack(packed)
            packed, size = [], 0
    if packed:
        yield _pack(packed)


def _pack(rows: list[_Row]) -> Block:
    places = [row.place for row in rows]
    return Block(b"".join(row.data + b"\n" for row in rows), places[0].byte, places[0].number, places=places)


def _sampled(blocks: Iterator[Block]) -> tuple[list[str], Iterator[Block]]:
    """Return the first lines, and all blocks; the sample does not depend on the size of the blocks."""
    kept: list[Block] = []
    count = size = 0
    for block in blocks:
        kept.append(block)
        count += block.data.count(b"\n")
        size += len(block.data)
        if count >= SAMPLE_ROWS or size >= _SAMPLE_BYTES:
            break
    sample = []
    size = 0
    for row in islice(_rows_of(kept), SAMPLE_ROWS):
        sample.append(row.text())
        size += len(row.data) + 1
        if size >= _SAMPLE_BYTES:
            break
    return sample, chain(kept, blocks)


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


def _width(texts: Sequence[str], widths: Iterable[int]) -> int:
    """Return the width at which a terminal broke the lines, or 0."""
    widest = max(map(len, texts), default=0)
    if widest not in widths:
        return 0
    full = sum(len(text) == widest and len(set(text)) > _RULER for text in texts)
    return widest if full >= max(_BROKEN_ROWS, _BROKEN_SHARE * len(texts)) else 0


def _joined(rows: Iterable[_Row], width: int) -> Iterator[_Row]:
    """Join a row that fills the terminal with the next, unless that opens a record or a traceback."""
    parts: list[_Row] = []
    for row in rows:
        text = row.text()
        if parts and (len(parts[-1].text()) < width or _OPENS.match(text)):
            yield _Row(b"".join(part.data.rstrip(b"\r") for part in parts), parts[0].place)
            parts = []
        parts.append(row)
    if parts:
        yield _Row(b"".join(part.data.rstrip(b"\r") for part in parts), parts[0].place)


class _Order:
    """Counts rises and falls of time from line to line, and tracebacks that stand upright or upside down."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._rises = self._falls = 0
        self.upright = self.inverted = 0

    def of(self, texts: Iterable[str]) -> _Order:
        """Count in `texts`."""
        last: float | None = None
        before = ""
        for text in texts:
            time, message = _timed(text, self._found)
            if time is not None:
                self._rises += last is not None and time > last
                self._falls += last is not None and time < last
                last = time
            self.upright += _TRACEBACK in before and message.startswith("  File ")
            self.inverted += _TRACEBACK in message and before.startswith("  File ")
            before = message
        return self

    @property
    def is_newest_first(self) -> bool:
        return self._falls >= max(_FALLS, _FALLS_PER_RISE * self._rises)


def _timed(text: str, found: Found) -> tuple[float | None, str]:
    """Return the time and the message of a stored line: the wrapper's time, else the line's own."""
    placed = found.outer.place(text)
    message, time = text[placed.body :], placed.time
    if found.json and (decoded := found.json.decode(message)):
        message, time = decoded.message, decoded.time
    if time is None and (stamp := _STAMP.search(message, 0, 40)):
        time = seconds(stamp[0])
    return time, message


def _backwards(blocks: Sequence[Block], layout: Layout, *, by_record: bool) -> Iterator[_Row]:
    """Yield the rows in reverse; `by_record` where the lines of one record stand in their order."""
    record: list[_Row] = []
    for block in reversed(blocks):
        for row in reversed(list(_rows(block))):
            record.append(row)
            text = row.text()
            if not by_record or _RECORD.match(text, layout.place(text).body):
                yield from reversed(record)
                record = []
    yield from reversed(record)


class _Parts:
    """Messages that go on in the next line of the same stream; of a huge one the end is dropped."""

    def __init__(self) -> None:
        self._open: dict[str, list[_Row]] = {}

    def add(self, stream: str, row: _Row, *, goes_on: bool) -> Iterator[_Row]:
        """Add a part; yield the whole message if that was its last."""
        parts = self._open.setdefault(stream, [])
        if sum(len(part.data) for part in parts) < _MAX_JOINED:
            parts.append(row)
        if not goes_on:
            yield from self._close(stream)

    def is_open(self, stream: str) -> bool:
        """Return whether a message of the stream has begun and not ended."""
        return stream in self._open

    def finish(self) -> Iterator[_Row]:
        """Yield messages whose end never came."""
        for stream in list(self._open):
            yield from self._close(stream)

    def _close(self, stream: str) -> Iterator[_Row]:
        parts = self._open.pop(stream)
        yield _Row(b"".join(part.data for part in parts), parts[0].place)

    def __bool__(self) -> bool:
        return bool(self._open)


def _decoded(rows: Iterable[_Row], outer: Layout, layer: Wrapper) -> Iterator[_Row]:
    """Yield the messages of lines of JSON; what is no JSON passes through."""
    parts = _Parts()
    for row in rows:
        text = without_escapes(row.data).decode("utf-8", "replace")
        placed = outer.place(text)
        decoded = layer.decode(text[placed.body :])
        if decoded is None:
            yield row
            continue
        data = decoded.message.encode("utf-8", "replace")
        goes_on = bool(layer.splits_at) and len(data) >= layer.splits_at and not data.endswith(b"\n")
        time = placed.time if decoded.time is None else decoded.time
        place = row.place._replace(time=time, is_stored=False)
        whole = _Row(data.removesuffix(b"\n"), place)
        for message in parts.add(decoded.stream, whole, goes_on=goes_on):
            for part in message.data.split(b"\n"):
                yield _Row(part, message.place)
    yield from parts.finish()


def _whole(blocks: Iterable[Block], layout: Layout, layer: Wrapper) -> Iterator[Block]:
    """Join the lines that `layer` marks as partial; blocks without any pass through."""
    parts = _Parts()
    mark = layer.partial.encode()
    for block in blocks:
        if parts or mark in block.data:
            joined = list(_join_partial(_rows(block), layout, layer, parts))
            if joined:
                yield _pack(joined)
        else:
            yield block
    if parts:
        yield _pack(list(parts.finish()))


def _join_partial(rows: Iterable[_Row], layout: Layout, layer: Wrapper, parts: _Parts) -> Iterator[_Row]:
    before = Layout(layout.prefixes[: layout.prefixes.index(layer)])
    for row in rows:
        text = without_escapes(row.data).decode("utf-8", "replace").rstrip("\r")
        match = layer.regex.match(text, before.place(text).body)
        if match is None:
            yield row
            continue
        if parts.is_open(match["stream"]):
            row = _Row(text[match.end() :].encode("utf-8"), row.place)
        yield from parts.add(match["stream"], row, goes_on=match["partial"] is not None)
