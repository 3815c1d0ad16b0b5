"""A line of a log in, the first draft of a rule for it out: the phrase that stays, an expression for what varies."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from logtriage.errors import InputError

_VARIES = re.compile(
    r"""(?x)
    (?P<path>(?<![\w.])/[\w.@+~-]+(?:/[\w.@+~-]*)+)
    |(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)
    |(?P<hex>\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b)
    |(?P<number>(?<![A-Za-z_])\d[\d.,]*)"""
)
_EXPRESSIONS = {"path": r"\S+", "address": r"[\d.:]+", "hex": r"\w+", "number": r"[\d.,]+"}
_MIN_ANCHOR = 5
_MAX_EXAMPLE = 600
_MAX_WORDS = 5
PLACEHOLDER = "Say who prints this, and when."
"""The summary of a draft, which `logtriage rules lint` does not let pass."""


class Draft(NamedTuple):
    """A drafted rule: its id, the fixed phrase, the expression (None if the phrase is the whole message)."""

    id: str
    anchor: str
    regex: str | None


def draft(message: str) -> Draft:
    """Return a draft for a message (a line without its prefix). Raises InputError if nothing in it is fixed."""
    message = message.strip()[:_MAX_EXAMPLE]
    fixed: list[str] = []
    pattern: list[str] = []
    at = 0
    for match in _VARIES.finditer(message):
        fixed.append(message[at : match.start()])
        pattern += [re.escape(fixed[-1]), _EXPRESSIONS[str(match.lastgroup)]]
        at = match.end()
    fixed.append(message[at:])
    pattern.append(re.escape(fixed[-1]))
    anchor = max((part.strip() for part in fixed), key=len)
    if len(anchor) < _MIN_ANCHOR:
        raise InputError(f"no phrase of {_MIN_ANCHOR} characters or more in it is fixed: {message!r}")
    words = re.findall(r"[a-z]+", anchor.lower())[:_MAX_WORDS]
    expression = "".join(pattern).replace(r"\ ", " ")
    return Draft("-".join(words) or "new-rule", anchor, expression if len(fixed) > 1 else None)


def render(label: str, message: str, *, on_frame: bool = False) -> str:
    """Return a rule file for `label` with a drafted rule for `message` (of a frame of a traceback, if `on_frame`)."""
    found = draft(message)
    rows = [
        f"# Save it as {label}.yaml in a folder of yours with a summary, then: logtriage rules test --rules FOLDER",
        f"label: {label}",
        "rules:",
        f"  - id: {found.id}",
        f"    summary: {_quoted(PLACEHOLDER)}",
        "    strength: supporting    # decisive once the message proves the label; then add references and a miss",
        "    any:",
        f"      - anchor: {_quoted(found.anchor)}",
    ]
    if on_frame:
        rows.append("        on: frame")
    if found.regex is not None:
        rows.append(f"        regex: {_single(found.regex)}")
    rows += ["    examples:", "      hit:", f"        - {_quoted(message)}"]
    return "\n".join(rows) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
