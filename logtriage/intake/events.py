"""Lines in, events out: a record with its continuation lines, a traceback with its whole chain, or a single line.

Every line gets its time, rank and role. Echoed source lines and carets of a traceback get the role ``source``:
they are never evidence. What another program put before a line (``Line.body``) takes no part in this.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from logtriage.intake.times import seconds
from logtriage.records import Event, Line, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TRACEBACK = "Traceback (most recent call last)"
# Those that few logs need are compiled when they are first used.
_FIRST_CALL = "(most recent call first)"
_FAULT = r"(?:Thread 0x|Current thread 0x|Fatal Python error).*\(most recent call first\):?$"
_RAISED = (
    r"(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failure|Errors?\w*)\s*(?::|$)|"
    r"(?:[a-z_]\w*\.)+[A-Z]\w*: "
)
_ELIDED = r"(?i)\s*(?:\.{2,}|…|[\[(<]\s*(?:\.{2,}|…|snip|omitted|truncated|skipped|\d+ more)).{0,40}$"
ELIDED_BEGINS = (".", "…", "[", "(", "<")
_IGNORED = "Exception ignored in"
_HEADLINES = (_IGNORED, "Exception in thread ")  # Python's words above a traceback
_ABORTS = "terminate called "  # and below it, indented, what() it was
_CHAIN = (
    "During handling of the above exception, another exception occurred",
    "The above exception was the direct cause of the following exception",
)
_FRAME = re.compile(r'\s*File "[^"]*", line \d+,? in ')
_USAGE = re.compile(r"usage: \S")
_HEAD_BEGINS = "[0123456789"
_NAMED = r"[A-Za-z_][\w.]*\s*(?::|$)"  # as an exception begins, whatever its name
_AHEAD = 8  # lines below one that something else may have printed into a traceback
_QUARTER = 900.0  # seconds; zones differ by multiples of it


class _Head(Record):
    """Where the message of a record begins, its time and its ranks."""

    start: int
    time: float | None
    rank: str


def group(lines: Sequence[Line], prefixes: Iterable[str]) -> tuple[list[Line], list[Event]]:
    """Return the lines with time, rank, role and event filled in, and the events.

    `prefixes` are regular expressions with the named groups ``time`` and ``ranks``; the first that fits wins.
    """
    grouper = _Grouper(list(prefixes))
    grouper.set_clock(lines)
    for at, line in enumerate(lines):
        grouper.add(line, lines[at + 1 : at + 1 + _AHEAD])
    return grouper.finish()


class _Grouper:
    """Walks the lines once; remembers only the event that is open."""

    def __init__(self, prefixes: list[str]) -> None:
        self._prefixes = prefixes
        self._lines: list[Line] = []
        self._events: list[Event] = []
        self._state = "single"
        self._first = 0
        self._traceback: int | None = None
        self._flat = False
        self._ahead: dict[int, float] = {}

    def set_clock(self, lines: Iterable[Line]) -> None:
        """Find how far the wrapper's clock is ahead of the server's (zones differ), by the first line with both."""
        for line in lines:
            if line.time is None or line.file in self._ahead:
                continue
            head = self._head(line.text, line.body)
            if head is not None and head.time is not None:
                self._ahead[line.file] = round((line.time - head.time) / _QUARTER) * _QUARTER

    def add(self, line: Line, ahead: Iterable[Line]) -> None:
        if line.role == "fence":
            if self._lines and self._has_gap(line):
                self._close()
                self._state = "single"
            self._lines.append(line._replace(event=len(self._events)))
            return
        head = self._head(line.text, line.body)
        text = line.text[head.start if head else line.body :]
        if head is None and not self._has_gap(line) and self._is_between(text, ahead):
            starts, role = False, "text"
        else:
            starts, role = self._place(line, text, is_record=head is not None and not self._goes_on(head, text))
        if starts and self._lines:
            self._close()
        if role in ("head", "frame") and self._traceback is None:
            self._traceback = len(self._lines)
        start, time, rank = (head.start, head.time, head.rank) if head else (line.start, line.time, line.rank)
        if head is None and time is not None and line.file in self._ahead:
            time = float(math.floor(time - self._ahead[line.file]))
        self._lines.append(line._replace(role=role, event=len(self._events), start=start, time=time, rank=rank))

    def finish(self) -> tuple[list[Line], list[Event]]:
        if self._lines:
            self._close()
        return self._lines, self._events

    def _head(self, text: str, body: int) -> _Head | None:
        near = text[body : body + 14]
        if near[:1] not in _HEAD_BEGINS or not (":" in near or "-" in near or "=" in near):
            return None  # every prefix begins with a date, a time or the number of a GPU
        for prefix in self._prefixes:
            if match := re.match(prefix, text[body:] if body else text):
                named = match.groupdict()
                return _Head(body + match.end(), seconds(named.get("time") or ""), (named.get("ranks") or "").strip())
        return None

    def _goes_on(self, head: _Head, text: str) -> bool:
        """Whether a record is the next line of a traceback of which each line was printed as a record of its own."""
        if self._state != "frames" or not self._lines[-1].start or self._lines[-1].rank != head.rank:
            return False
        is_within = self._lines[-1].role in ("frame", "source")
        return bool(_FRAME.match(text) or (is_within and (text[:1].isspace() or re.match(_RAISED, text))))

    def _is_between(self, text: str, ahead: Iterable[Line]) -> bool:
        """Whether something else printed a line into a traceback, which goes on below."""
        if self._state != "frames" or self._flat or not text.strip() or text[:1].isspace():
            return False
        if _FRAME.match(text) or re.match(_NAMED, text):
            return False
        if _TRACEBACK in text or text.startswith((*_HEADLINES, _ABORTS)):
            return False
        for line in ahead:
            below = line.text[line.body :]
            if _FRAME.match(below) or re.match(_RAISED, below):
                return True
            if _TRACEBACK in below or (not below[:1].isspace() and self._head(line.text, line.body) is not None):
                return False
        return False

    def _place(self, line: Line, text: str, *, is_record: bool) -> tuple[bool, str]:
        """Return whether the line starts an event, and its role; moves the state."""
        is_new = is_record or self._has_gap(line)
        if _TRACEBACK in text:
            joins = not is_new and self._state in ("chain", "record")
            self._state, self._flat = "frames", False
            return not joins, "head"
        if text.startswith(_HEADLINES):
            self._state = "record"
            return True, "text"
        if _FIRST_CALL in text and re.match(_FAULT, text):
            joins = not is_new and self._state in ("frames", "fault")
            self._state = "fault"
            return not joins, "head"
        if self._state not in ("frames", "fault", "usage") and _FRAME.match(text):
            # An excerpt that begins below the head of its traceback, perhaps with the indentation stripped.
            announced = self._state == "record" and self._lines[-1].text.rstrip().endswith((":", "xception"))
            joins = not is_new and (self._state == "chain" or announced)
            self._state, self._flat = "frames", not text[:1].isspace()
            return not joins, "frame"
        if is_new:
            self._state = "record" if is_record else "single"
            if _USAGE.match(text):
                self._state = "usage"
            return True, "text" if text else "blank"
        return self._continue(text)

    def _continue(self, text: str) -> tuple[bool, str]:
        indented = text[:1] in (" ", "\t")
        state = self._state
        if state in ("frames", "fault"):
            if _FRAME.match(text):
                self._flat = self._flat or not indented
                return False, "frame"
            if not text or (text.lstrip().startswith(ELIDED_BEGINS) and re.match(_ELIDED, text)):
                return False, "blank"
            if indented or (self._flat and not re.match(_RAISED, text)):
                return False, "source"
            if state == "frames" or text.startswith("Current thread"):
                if state == "fault":
                    return False, "head"
                # An ignored exception ends nothing, so that what is printed below it is not its message.
                is_ignored = self._lines[self._first].text.startswith(_IGNORED, self._lines[self._first].body)
                self._state = "single" if is_ignored else "message"
                return False, "exception"
        if state in ("message", "after-blank", "chain"):
            return self._continue_message(text)
        if state == "usage" and indented:
            return False, "source"
        if state == "record" and indented:
            return False, "message"
        self._state = "usage" if _USAGE.match(text) else "single"
        return True, "text" if text else "blank"

    def _continue_message(self, text: str) -> tuple[bool, str]:
        if not text:
            self._state = "after-blank" if self._state == "message" else self._state
            return False, "blank"
        if text.startswith(_CHAIN):
            self._state = "chain"
            return False, "blank"
        if self._state == "message":
            return False, "message"
        if _USAGE.match(text):
            self._state = "usage"
        else:
            self._state = "single"
        return True, "text"

    def _has_gap(self, line: Line) -> bool:
        if not self._lines:
            return True
        last = self._lines[-1]
        return (line.file, line.origin) != (last.file, last.origin) or line.row > last.row + 1

    def _close(self) -> None:
        first = self._lines[self._first]
        last = len(self._lines) - 1
        self._events.append(Event(self._first, last, first.rank, first.time, self._traceback))
        self._first = last + 1
        self._traceback = None
