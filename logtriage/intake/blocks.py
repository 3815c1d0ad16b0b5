"""Blocks of whole lines, as they pass through the intake, and the marks of a terminal in them."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake.wrappers import PLAIN, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINE = 64 << 10
"""Bytes of a line that are looked at: head and tail of a longer one are kept."""

_ESCAPE = rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|[()*+][0-9A-Za-z]|[@-Z\\^_=>78c])|[\x00\x08]"


class Place(NamedTuple):
    """Where a line stands in the file as stored: offset of its first byte, its number; its wrapper's time as printed.

    `is_stored` tells whether the line stands there as it is, or in another form (in JSON).
    """

    byte: int
    number: int
    time: str = ""
    is_stored: bool = True


class Block(NamedTuple):
    """Some whole lines of a file.

    Attributes:
        data: their bytes.
        byte: offset of the first one's first byte in the file as stored.
        number: number of the first one, from 1.
        rows: how many they are.
        layout: what other programs put around each line.
        places: where each line stands, if they do not stand one after the other as in `data`.
    """

    data: bytes
    byte: int
    number: int
    rows: int
    layout: Layout = PLAIN
    places: Sequence[Place] | None = None

    def place(self, index: int, start: int) -> Place:
        """Return the place of line `index`, which begins at `start` in `data`."""
        return Place(self.byte + start, self.number + index) if self.places is None else self.places[index]


def without_escapes(data: bytes) -> bytes:
    """Return `data` without escape sequences, NUL bytes and backspaces; line ends stay as they are."""
    return re.sub(_ESCAPE, b"", data) if b"\x1b" in data or b"\0" in data or b"\x08" in data else data


def count_rows(data: bytes) -> int:
    """Return how many lines `data` holds; the last one may be open."""
    return data.count(b"\n") + (not data.endswith(b"\n"))


def row_starts(data: bytes) -> list[int]:
    """Return where each line of `data` begins."""
    starts = [0, *accumulate(map((1).__add__, map(len, data.split(b"\n"))))]
    del starts[-2 if data.endswith(b"\n") else -1 :]
    return starts
