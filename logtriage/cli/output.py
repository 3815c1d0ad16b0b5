"""What commands print goes out here: made harmless, and with a message where it cannot be written.

A reader that has gone (`| head`) is no error: the rest is dropped, and the exit code is that of the command.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from logtriage.errors import TriageError
from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Callable


def say(line: str) -> None:
    """Print one line on standard output, with U+FFFD for control characters."""
    write(plain.one_line(line) + "\n")


def complain(message: str) -> None:
    """Print a message on standard error; where that cannot be written either, nothing can be done."""
    try:
        if sys.stderr is not None:
            shown = plain.lines(message)
            sys.stderr.write((plain.in_job(shown) if _in_job() else shown) + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        _drop(sys.stderr)


def write(text: str) -> None:
    """Write text that is harmless already on standard output. Raises TriageError where that is not possible."""
    shown = plain.in_job(text) if _in_job() else text
    guarded(lambda: sys.stdout.write(shown))


def job_command(text: str) -> None:
    """Write a command for the CI system that runs this. Raises TriageError where that is not possible."""
    guarded(lambda: sys.stdout.write(text))


def finish() -> None:
    """Write what is still held. Raises TriageError."""
    if sys.stdout is not None:
        guarded(sys.stdout.flush)


def to_file(path: str, text: str, *, append: bool = False) -> None:
    """Write a report to a file. Raises TriageError."""
    try:
        with open(path, "a" if append else "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise TriageError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def guarded(action: Callable[[], object]) -> None:
    """Do something that prints on standard output. Raises TriageError where that cannot be written."""
    if sys.stdout is None:
        raise TriageError("standard output is closed; `analyze --output FILE` writes to a file")
    try:
        action()
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        raise TriageError(f"standard output cannot be written: {error.strerror or error}") from error


def drop() -> None:
    """Let go of what is still held for standard output."""
    if sys.stdout is not None:
        _drop(sys.stdout)


def _in_job() -> bool:
    """Whether a CI system may read commands from what is printed."""
    return any(os.environ.get(name) for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"))


def _drop(stream: TextIO) -> None:
    """Let what is still held for a stream go nowhere: Python would try to write it once more at its end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return
