"""Text in, harmless text out: nothing that a log, a file name or a rule says controls a terminal or forges a line."""

from __future__ import annotations

import re

_FORMATS = r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # what changes the direction, or ends a line
_CONTROL = re.compile(rf"[\x00-\x08\x0a-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]")
_BUT_LINE_FEEDS = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]")
_NOT_IN_JSON = re.compile(rf"[\x7f-\x9f{_FORMATS}\ud800-\udfff]")


def one_line(text: str) -> str:
    """Return `text` with U+FFFD for each line end, control or bidi character and each byte of a name that is no UTF-8.

    Only tabs stay.
    """
    return _CONTROL.sub("\ufffd", text)


def lines(text: str) -> str:
    """Return `text` as `one_line` does, but with its line feeds: for text that was laid out, and for commands."""
    return _BUT_LINE_FEEDS.sub("\ufffd", text)


def in_json(text: str) -> str:
    r"""Return JSON text that prints harmlessly: C1 and bidi characters as \uXXXX, U+FFFD for what is no UTF-8."""
    return _NOT_IN_JSON.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return "\ufffd" if match.group() >= "\ud800" else f"\\u{ord(match.group()):04x}"
