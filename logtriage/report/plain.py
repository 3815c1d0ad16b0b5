"""Text in, harmless text out: nothing that a log, a file name or a rule says controls a terminal or forges a line."""

from __future__ import annotations

import re
from typing import Any

_FORMATS = r"\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # what changes the direction, or ends a line
# Compiled when they are first used: such wide classes cost a start up to a millisecond each.
_CONTROL = rf"[\x00-\x08\x0a-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]"
_BUT_LINE_FEEDS = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]"
_NOT_IN_JSON = rf"[\x7f-\x9f{_FORMATS}\ud800-\udfff]"


_JOB_COMMAND = r"#(?=#\w*\[)"  # ##[name], ##vso[name], ##teamcity[name]: anywhere in a line


def one_line(text: str) -> str:
    """Return `text` with U+FFFD for each line end, control or bidi character and each byte of a name that is no UTF-8.

    Only tabs stay.
    """
    return re.sub(_CONTROL, "\ufffd", text)


def lines(text: str) -> str:
    """Return `text` as `one_line` does, but with its line feeds: for text that was laid out, and for commands."""
    return re.sub(_BUT_LINE_FEEDS, "\ufffd", text)


def in_json(text: str) -> str:
    r"""Return JSON text that prints harmlessly: C1 and bidi characters as \uXXXX, U+FFFD for what is no UTF-8.

    The `##[` of a CI system's command is written as \u0023#[.
    """
    if not all(map(str.isprintable, text.split("\n"))):
        text = re.sub(_NOT_IN_JSON, _escaped, text)
    return re.sub(_JOB_COMMAND, r"\\u0023", text)


def _escaped(match: re.Match[str]) -> str:
    return "\ufffd" if match.group() >= "\ud800" else f"\\u{ord(match.group()):04x}"


def data(value: Any) -> Any:
    """Return report data with every text as `one_line` gives it; a command keeps its lines."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {one_line(key): _command(item) if key == "command_text" else data(item) for key, item in value.items()}
    return [data(item) for item in value] if isinstance(value, list | tuple) else value


def in_markup(text: str) -> str:
    """Return HTML or XML that no CI system takes for its own commands when it is printed in a job's log."""
    text = re.sub(_JOB_COMMAND, "&#35;", text)
    return re.sub(r"(?m)^(\s*):(?=:)", r"\1&#58;", text)


def in_job(text: str) -> str:
    """Return text that no CI system takes for its own commands: no line begins with `::`, and `##[` is broken.

    GitHub's runner, Azure's agent and TeamCity read such commands from whatever a job prints.
    """
    text = re.sub(_JOB_COMMAND, "#\ufffd", text)
    return re.sub(r"(?m)^(\s*)::", "\\1\ufffd::", text)


def _command(value: Any) -> Any:
    return lines(value) if isinstance(value, str) else value
