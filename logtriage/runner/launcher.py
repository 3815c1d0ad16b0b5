"""Starts a server as a child in a session of its own, with its output in a log and a marker in its environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKER = "LOGTRIAGE_ATTEMPT"
"""The variable by which a process of a launch is recognised, wherever it has gone."""

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


class Child:
    """A launch: its first process, which leads a session and a process group; its log; its marker."""

    def __init__(self, process: subprocess.Popen[bytes], log: str, marker: str) -> None:
        self._process = process
        self.log = log
        self.marker = marker
        self.pid = process.pid

    def poll(self) -> int | None:
        """Return the exit code (negative for a signal), or None while the first process lives."""
        return self._process.poll()


def start(command: Sequence[str], log: str, marker: str, *, head: str = "") -> Child:
    """Start a command with its output in the file `log`, which is written anew and begins with the line `head`.

    A single word with blanks is text for a shell; variables may be set in front (`A=b python3 …`). Raises InputError
    if there is no such program, or the log cannot be written.
    """
    words, settings = _as_words(command)
    if not words:
        raise InputError("no command to run: give it after `--`, as in `logtriage run -- python3 -m sglang.…`")
    try:
        number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.write(number, f"{head}\n".encode("utf-8", "backslashreplace") if head else b"")
    except OSError as error:
        raise InputError(f"{log}: the log cannot be written: {error.strerror or error}") from error
    try:
        process = subprocess.Popen(  # noqa: S603 - the command that the user asks for
            words, stdin=subprocess.DEVNULL, stdout=number, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, **settings, MARKER: marker},
        )  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: a word that no program can be given
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{words[0]}: cannot be started: {reason}") from error
    finally:
        os.close(number)
    return Child(process, log, marker)


def from_text(text: str) -> list[str]:
    """Return a command that advice gives as text as the words that `start` takes."""
    try:
        words = shlex.split(text)
    except ValueError:
        return [text]
    return [text] if any(word in ("&&", "||", ";", "|", "&") for word in words) else words


def _as_words(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    if len(command) == 1 and " " in command[0].strip():
        return ["/bin/sh", "-c", command[0]], {}
    words, settings = list(command), {}
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        settings[found["name"]] = found["value"]
        words.pop(0)
    return words, settings
