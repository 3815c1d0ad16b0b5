"""Text in, harmless text out: nothing that a log, a file name or a rule says controls a terminal or forges a line."""

from __future__ import annotations

import re

_FORMATS = r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # what changes the direction, or ends a line
# Compiled when they are first used: such wide classes cost a start up to a millisecond each.
_CONTROL = rf"[\x00-\x08\x0a-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]"
_BUT_LINE_FEEDS = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]"
_NOT_IN_JSON = rf"[\x7f-\x9f{_FORMATS}\ud800-\udfff]"


def one_line(text: str) -> str:
    """Return `text` with U+FFFD for each line end, control or bidi character and each byte of a name that is no UTF-8.

    Only tabs stay.
    """
    return re.sub(_CONTROL, "\ufffd", text)


def lines(text: str) -> str:
    """Return `text` as `one_line` does, but with its line feeds: for text that was laid out, and for commands."""
    return re.sub(_BUT_LINE_FEEDS, "\ufffd", text)


def in_json(text: str) -> str:
    r"""Return JSON text that prints harmlessly: C1 and bidi characters as \uXXXX, U+FFFD for what is no UTF-8."""
    return re.sub(_NOT_IN_JSON, _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return "\ufffd" if match.group() >= "\ud800" else f"\\u{ord(match.group()):04x}"
