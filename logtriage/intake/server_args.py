"""Reads the arguments that a server prints at its start: `server_args=ServerArgs(tp_size=8, …)` in all its shapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.intake.launch_command import LaunchSpec


def from_server_args(text: str, spec: LaunchSpec) -> dict[str, str] | None:
    """Read `server_args=ServerArgs(tp_size=8, …)`, `server_args={'tp_size': 8, …}` or the like in JSON.

    Keys are attribute names as reports spell them (`fp4_gemm_backend` for `fp4_gemm_runner_backend`), values
    literals, strings without quotes. None and a value that the line cuts are left out. None for no arguments.
    """
    opened = _ARGUMENTS.search(text)
    known_as = {_attribute(flag): _attribute(name) for flag, name in spec.aliases.items() if flag.startswith("--")}
    found: dict[str, str] = {}
    for name, literal in _arguments(text, opened.end()) if opened else ():
        key = known_as.get(name, name)
        if literal[0] in ("'", '"'):
            inner = literal[1:-1]
            found[key] = re.sub(r"\\([\\'\"])", r"\1", inner) if "\\" in inner else inner
        elif literal not in ("None", "null"):
            found[key] = {"true": "True", "false": "False"}.get(literal, literal)
    return found or None


_ARGUMENTS = re.compile(r"(?:server_args\s?[=:]\s?(?:ServerArgs)?|\bServerArgs)[({]")
# An argument as nearly all are; the others are read in parts.
_PLAIN = re.compile(r"""[\s,]*(\w+)=('[^'\\]*'|[\w.+-]+)(?=[,)}])""")
_KEY = re.compile(r"""[\s,]*(?:(\w+)\s*=|["'](\w+)["']\s*:)\s*""")
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\[({]|[\])}]|,|[^'"\[\](){},]+""", re.DOTALL)


def _arguments(text: str, place: int) -> Iterator[tuple[str, str]]:
    """Yield name and literal of each argument; stops at the closing bracket or where the line is cut."""
    while True:
        while plain := _PLAIN.match(text, place):
            yield plain[1], plain[2]
            place = plain.end()
        if not (key := _KEY.match(text, place)):
            return
        start = place = key.end()
        depth = 0
        while (token := _LITERAL.match(text, place)) and (depth or token[0] not in (",", ")", "}")):
            depth += (token[0] in ("[", "(", "{")) - (token[0] in ("]", ")", "}"))
            place = token.end()
        if token is None:
            return
        yield key[1] or key[2], text[start:place].strip() or "None"


def _attribute(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")
