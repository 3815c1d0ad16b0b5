"""Undoes what can only be seen in a log as a whole: lines broken by a terminal, and an order that is newest first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.intake.rows import Row, rows_in
from logtriage.intake.times import seconds, seconds_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from logtriage.intake.blocks import Block
    from logtriage.intake.wrappers import Found, Layout

_BROKEN_ROWS, _BROKEN_SHARE = 4, 0.05
_RULER = 3  # different characters at most in a line that somebody drew
_FALLS, _FALLS_PER_RISE = 3, 4
_HEAD = 40  # characters of a message in which its time stands
_CLEAR = 8  # rises without a fall that settle the order

# Compiled when they are first used: few logs are turned.
_RECORD = r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_OPENS = (
    r'\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|Traceback \(most|  File "|'
    r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?:: |$)"
)
_TRACEBACK = "Traceback (most recent call last)"


def broken_at(texts: Sequence[str], widths: Iterable[int]) -> int:
    """Return the width at which a terminal broke the lines, or 0."""
    widest = max(map(len, texts), default=0)
    if widest not in widths:
        return 0
    full = sum(len(text) == widest and len(set(text)) > _RULER for text in texts)
    return widest if full >= max(_BROKEN_ROWS, _BROKEN_SHARE * len(texts)) else 0


def joined(rows: Iterable[Row], width: int) -> Iterator[Row]:
    """Join a row that fills the terminal with the next, unless that opens a record or a traceback."""
    parts: list[Row] = []
    for row in rows:
        text = row.text()
        if parts and (len(parts[-1].text()) < width or re.match(_OPENS, text)):
            yield Row(b"".join(part.data.rstrip(b"\r") for part in parts), parts[0].place)
            parts = []
        parts.append(row)
    if parts:
        yield Row(b"".join(part.data.rstrip(b"\r") for part in parts), parts[0].place)


class Order:
    """Counts rises and falls of time from line to line, and tracebacks that stand upright or upside down."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._rises = self._falls = 0
        self.upright = self.inverted = 0

    def of(self, texts: Iterable[str]) -> Order:
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
            if self._rises >= _CLEAR and not self._falls:
                break
        return self

    @property
    def is_newest_first(self) -> bool:
        """Whether time falls from line to line, but for a few."""
        return self._falls >= max(_FALLS, _FALLS_PER_RISE * self._rises)


def backwards(blocks: Sequence[Block], layout: Layout, *, by_record: bool) -> Iterator[Row]:
    """Yield the rows in reverse; `by_record` where the lines of one record stand in their order."""
    record: list[Row] = []
    for block in reversed(blocks):
        for row in reversed(list(rows_in(block))):
            record.append(row)
            text = row.text()
            if not by_record or re.match(_RECORD, text[layout.place(text).body :]):
                yield from reversed(record)
                record = []
    yield from reversed(record)


def _timed(text: str, found: Found) -> tuple[float | None, str]:
    """Return the time and the message of a stored line: the wrapper's time, else the line's own."""
    placed = found.outer.place(text)
    message, time = text[placed.body :], placed.time
    if found.coded and (decoded := found.coded.decode(message)):
        message, time = decoded.message, decoded.time or time
    return seconds(time) if time else seconds_in(message[:_HEAD]), message
