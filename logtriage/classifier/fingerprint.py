"""A short name for a failure: the same for the same failure with other numbers, paths, ranks and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

from logtriage.classifier import masking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.records import Event, Line

_SAYS_LITTLE = 4
_FRAME = r'\s*File "(?:[^"]*[/\\])?([^"/\\]*)", line \d+,? in (\S+)'


def of(at: int, lines: Sequence[Line], events: Sequence[Event]) -> str:
    """Return the fingerprint of the failure whose line has the index `at`.

    It is made of the masked message; where that says little (a bare exception, say), of the deepest frame above it too.
    """
    line = lines[at]
    message = masking.shape(line.text[line.start or line.body :])
    parts = [message]
    if len(re.findall(r"[A-Za-z]{3,}", message)) < _SAYS_LITTLE:
        parts.append(_deepest_frame(at, lines, events[line.event]))
    return of_text("\n".join(parts))


def of_text(text: str) -> str:
    """Return the fingerprint of a text that is masked already: 16 hexadecimal digits."""
    data = text.encode("utf-8", "replace")
    return f"{crc32(data):08x}{crc32(data[::-1]):08x}"


def _deepest_frame(at: int, lines: Sequence[Line], event: Event) -> str:
    """File and function of the nearest frame above a line of the same event; nothing if there is none."""
    for index in range(at, event.first - 1, -1):
        if lines[index].role == "frame" and (match := re.match(_FRAME, lines[index].text[lines[index].body :])):
            return f"{match[1]} {match[2]}"
    return ""
