"""Follows a traceback from row to row, also where it goes on in the next block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from logtriage.intake.block_rows import BlockRows

TRACEBACK = b"Traceback (most recent call last)"

_FRAME = b'File "'
_MAX_FRAMES = 400
_MAX_MESSAGE = 60
_MAX_BETWEEN = 8
_RECORD = rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"


class Open(NamedTuple):
    """The traceback that is open: whether its frames, a record among them or its message are read.

    `frames` and `message` are how many rows more of these may follow.
    """

    mode: str
    frames: int
    message: int


CLOSED = Open("", 0, 0)
OPENED = Open("frames", _MAX_FRAMES, _MAX_MESSAGE)


def follow(rows: BlockRows, at: int, state: Open) -> tuple[int, Open]:
    """Follow a traceback from row `at`; return the first row that does not belong to it, and whether it is open."""
    mode, frames, message = state
    while mode and at < len(rows):
        row = rows.message(at)
        if row is None:
            at += 1
            continue
        is_record = re.match(_RECORD, row) is not None
        if mode != "frames" and frames and row.lstrip().startswith(_FRAME):
            mode = "frames"  # what looked like the end was printed into it by something else, or is not indented
        elif mode == "frames" and (row[:1] not in (b" ", b"\t") or not frames):
            mode, message = ("record", _MAX_BETWEEN) if is_record else ("message", _MAX_MESSAGE)
        elif mode == "record" and not is_record and row[:1] not in (b" ", b"\t"):
            mode, message = "message", _MAX_MESSAGE
        if mode == "frames":
            frames -= 1
        elif not message or TRACEBACK in row or (is_record and mode == "message"):
            return at, CLOSED
        else:
            message -= 1
        at += 1
    return at, Open(mode, frames, message)
