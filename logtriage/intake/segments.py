"""Kept rows in, lines out: undoes carriage returns (a progress bar and the message glued to it become two lines) and
escape sequences, and tells where the message begins behind what other programs put before it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake.blocks import MAX_LINE, Place, without_escapes
from logtriage.intake.times import seconds
from logtriage.records import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.intake.wrappers import Layout

# It begins with the bracket itself: a search looks for a letter far faster than for what stands before one.
_GLUED = re.compile(r"\[(?<=[\])s]\[)(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\] )")
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


class KeptRow(NamedTuple):
    """A row of the log that is kept: how many rows there are up to it, its bytes, where it stands, what wraps it."""

    row: int
    data: bytes
    place: Place
    layout: Layout


def lines_of(kept: KeptRow, file: int) -> Iterator[Line]:
    """Yield the segments of a row that are not empty; an empty row is one empty line."""
    place, layout = kept.place, kept.layout
    at, time = place.byte, seconds(place.time)
    for segment in kept.data.split(b"\r"):
        text = _text(segment)
        body, role, origin = 0, "text", ""
        if layout:
            placed = layout.place(text)
            body, origin = placed.body, placed.origin
            time = seconds(placed.time) if placed.time else time
            role = "fence" if placed.is_fence else role
        if len(segment) == len(kept.data) or len(text) > body:
            yield from _split_glued(
                Line(file, place.number, at, text, body, time, "", role, body=body, row=kept.row, origin=origin)
            )
        at += len(segment) + 1 if place.is_stored else 0


def cut(data: bytes) -> bytes:
    """Return a row without its middle if it is longer than what is looked at."""
    half = MAX_LINE // 2
    return data if len(data) <= MAX_LINE else data[:half] + b" [...] " + data[-half:]


def _text(segment: bytes) -> str:
    text = without_escapes(cut(segment)).decode("utf-8", "replace")
    return text if text.isprintable() else re.sub(_CONTROL, "\ufffd", text)


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
