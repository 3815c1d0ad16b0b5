"""Follows a traceback from row to row, also where it goes on in the next block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from logtriage.intake.block_rows import BlockRows

TRACEBACK = b"Traceback (most recent call last)"

_MAX_FRAMES = 400
_MAX_MESSAGE = 60
_RECORD = rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"


class Open(NamedTuple):
    """The traceback that is open: whether its frames or its message are read, and how many rows more it may have."""

    mode: str
    left: int


CLOSED = Open("", 0)
OPENED = Open("frames", _MAX_FRAMES)


def follow(rows: BlockRows, at: int, state: Open) -> tuple[int, Open]:
    """Follow a traceback from row `at`; return the first row that does not belong to it, and whether it is open."""
    mode, left = state
    while mode and at < len(rows):
        row = rows.message(at)
        if row is None:
            at += 1
            continue
        if mode == "frames" and (row[:1] not in (b" ", b"\t") or not left):
            mode, left = "message", _MAX_MESSAGE
        if mode == "message" and (not left or re.match(_RECORD, row) or TRACEBACK in row):
            return at, CLOSED
        left -= 1
        at += 1
    return at, Open(mode, left)
