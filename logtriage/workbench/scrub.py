"""Takes out of a log what tells who ran it and where: users, hosts, home folders, addresses, secrets.

The same name always becomes the same word, so a log of two machines still shows two machines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.redact import Redactor

_NOBODY = re.compile(
    r"(?i)root|user|users|ubuntu|runner|nobody|admin|docker|git|app|sglang|python3?|localhost|(?:user|host)-\d+"
)
_BYTE = 255
_WORDS = {"user": "user-{}", "host": "host-{}", "mail": "user{}@example.org", "address": "203.0.113.{}"}
_NAME = r"[A-Za-z_][\w.-]{0,62}"
_HOST = r"[A-Za-z0-9](?:[\w.-]{0,62}\w)?"
_SYSLOG_TIME = r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+)"
# What introduces a name: (kind, expression with one group around the name).
_INTRODUCED = (
    ("user", re.compile(rf"/(?:home|Users)/({_NAME})")),
    ("user", re.compile(rf"(?<![\w.@/-])({_NAME})@{_HOST}:[~/]")),
    ("user", re.compile(rf"\b(?:USER|LOGNAME|username|user)=['\"]?({_NAME})\b")),
    ("host", re.compile(rf"(?<![\w.@/-]){_NAME}@({_HOST}):[~/]")),
    ("host", re.compile(rf"(?m)^{_SYSLOG_TIME} ({_HOST}) [\w.-]+\[\d+\]: ")),
    ("host", re.compile(rf"(?m)^({_HOST}):\d+:\d+ \[\d+\] NCCL ")),
    ("host", re.compile(rf"\bsrun: error: ({_HOST}): task")),
    ("host", re.compile(rf"\b(?:HOSTNAME|hostname|NodeName|nodename)[=:] ?['\"]?({_HOST})\b")),
    ("host", re.compile(r"\b((?:[a-z0-9-]+\.)+(?:internal|local|lan|corp|intra|intranet))\b")),
)  # fmt: skip
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b")
# An address is told from a version (9.10.2.21) by what stands around it.
_QUAD = r"\d{1,3}(?:\.\d{1,3}){3}"
_ADDRESS = re.compile(rf"(?:(?<=://)|(?<=\(')|(?<=client )|(?<=peer \[)){_QUAD}|\b{_QUAD}(?=:\d{{2,5}}\b)")
_PRIVATE = re.compile(r"(?:10|127|0)\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|203\.0\.113\.|198\.51\.100\.")


class Scrubber:
    """Replaces names all through a log; `counts` tells how many different ones of each kind were met."""

    def __init__(self, redactor: Redactor, names: dict[str, str] | None = None) -> None:
        """Know further `names` from the start: the name as key, ``user`` or ``host`` as value."""
        self.counts: dict[str, int] = {}
        self._redactor = redactor
        self._own = {name: kind for name, kind in (names or {}).items() if _is_name(name)}
        self._names: dict[str, str] = {}
        self._others: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return the text without names of users and hosts, addresses of the internet, mail addresses and secrets."""
        for name, kind in [*self._own.items(), *_introduced(text)]:
            if name not in self._names and name in text:
                self._names[name] = self._word(kind)
        for name in sorted(self._names, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", self._names[name], text)
        text = _MAIL.sub(lambda match: self._other("mail", match[0]), text)
        text = _ADDRESS.sub(lambda match: match[0] if _is_private(match[0]) else self._other("address", match[0]), text)
        shown = self._redactor.text(text)
        if secrets := shown.count("<redacted:") - text.count("<redacted:"):
            self.counts["secret"] = self.counts.get("secret", 0) + secrets
        return shown

    def _other(self, kind: str, text: str) -> str:
        if text not in self._others and text not in self._others.values():
            self._others[text] = self._word(kind)
        return self._others.get(text, text)

    def _word(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return _WORDS[kind].format(self.counts[kind])


def _introduced(text: str) -> Iterator[tuple[str, str]]:
    for kind, expression in _INTRODUCED:
        for match in expression.finditer(text):
            if _is_name(match[1]):
                yield match[1], kind


def _is_private(address: str) -> bool:
    return bool(_PRIVATE.match(address)) or any(int(part) > _BYTE for part in address.split("."))


def _is_name(word: str) -> bool:
    return len(word) > 2 and not _NOBODY.fullmatch(word) and not word.replace(".", "").isdigit()
