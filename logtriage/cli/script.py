"""The shell script of ``run --save``: the command that works, for people to start by hand."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from logtriage.errors import InputError
from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.runner.results import Order

_VARIABLE = re.compile(r"(?<=[\s='\"])\$([A-Z_][A-Z0-9_]*)")
_BARE = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<bare>\$[A-Z_][A-Z0-9_]*)""", re.DOTALL)
"""What is quoted already, or a variable that is not: its value would be split at blanks."""


def check(path: str) -> None:
    """Raise InputError if a script cannot be written to `path`. What is there stays as it is."""
    is_new = not os.path.lexists(path)
    with _told(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        if is_new:
            os.remove(path)


def save(path: str, order: Order) -> None:
    """Write the command of an attempt. Raises InputError if that is not possible."""
    lines = ["#!/bin/sh", f"# {plain.one_line(order.why or 'as given')}"]
    text, given = order.text, " ".join(order.command)
    if names := sorted(set(_VARIABLE.findall(text)) - set(_VARIABLE.findall(given))):
        text = _BARE.sub(lambda found: f'"{found[0]}"' if found["bare"] and found[0][1:] in names else found[0], text)
        lines.append(f"# Secrets are not kept here; set and export before: {', '.join(names)}")
    with _told(path), open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join([*lines, _begun(order) + text, ""]))
        os.chmod(path, 0o755)  # noqa: S103 - a script that others may run


def _begun(order: Order) -> str:
    """What stands before the command, so that signals to the script reach the server where that is possible."""
    if len(order.command) == 1:  # text for a shell, which may be more than one command
        return ""
    return "exec env " if "=" in order.command[0] else "exec "


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
