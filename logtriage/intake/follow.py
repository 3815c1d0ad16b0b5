"""A path in, what is written to it out, piece by piece as it comes: through truncation, rotation and partial lines.

Together with the runner the only place that waits; the sleep is passed in.
"""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING

from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL = 0.04
"""Seconds between two looks at the file: what a look costs is waking up, so fewer of them cost less."""

PIECE = 256 << 10
"""Bytes read at a time."""

_TAIL = 64


def pieces(name: str, sleep: Callable[[float], None], notes: list[str]) -> Iterator[bytes]:
    """Yield what is written to a file (``-`` is standard input), and an empty piece before each wait for more.

    It ends where standard input (or another pipe) is closed, and never for a file. A file that is not there yet is
    waited for. Raises InputError for what cannot be followed.
    """
    if name == "-":
        yield from _from_pipe(0, sleep)
        return
    while not os.path.exists(name):
        yield b""
        sleep(POLL)
    try:
        number = os.open(name, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error
    mode = os.fstat(number).st_mode
    if stat.S_ISFIFO(mode):
        yield from _from_pipe(number, sleep)
    elif stat.S_ISREG(mode):
        yield from _File(name, number, notes).pieces(sleep)
    else:
        os.close(number)
        raise InputError(f"{name}: is no file that grows; only files and pipes can be followed")


def _from_pipe(number: int, sleep: Callable[[float], None]) -> Iterator[bytes]:
    while True:
        if not select.select([number], [], [], 0)[0]:
            yield b""
            sleep(POLL)
        elif data := os.read(number, PIECE):
            yield data
        else:
            return


class _File:
    """The file that is read now: it may be cut short and written anew, or be moved away and another take its name."""

    def __init__(self, name: str, number: int, notes: list[str]) -> None:
        self._name = name
        self._number = number
        self._notes = notes
        self._at = 0
        self._tail = b""
        self._is_cut_short = False

    def pieces(self, sleep: Callable[[float], None]) -> Iterator[bytes]:
        """Yield what is written, and empty pieces."""
        try:
            while True:
                open_line = bool(self._tail) and not self._tail.endswith(b"\n")
                data = self._read()
                if data is None:
                    if open_line:
                        yield b"\n"  # the line that was open will never be finished
                    continue
                if data:
                    yield data
                if len(data) < PIECE and (data or not self._open_next()):
                    yield b""
                    sleep(POLL)
        finally:
            os.close(self._number)

    def _read(self) -> bytes | None:
        """Return what is new, and None if the file was cut short: then it is read from its beginning."""
        size = os.fstat(self._number).st_size
        if size == self._at:
            return b""
        known = len(self._tail)
        found = os.pread(self._number, known + PIECE, self._at - known)
        if size < self._at or not found.startswith(self._tail):
            self._restart(f"{self._name} was cut short while it was followed; line numbers go on")
            self._is_cut_short = True
            return None
        data = found[known:]
        self._at += len(data)
        self._tail = found[-_TAIL:]
        if self._is_cut_short:  # a writer that goes on at its old place leaves a hole before it
            data = data.lstrip(b"\0")
            self._is_cut_short = not data
        return data

    def _open_next(self) -> bool:
        """Open the file that has taken the name, if there is one."""
        try:
            there, here = os.stat(self._name), os.fstat(self._number)
            if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
                return False
            number = os.open(self._name, os.O_RDONLY)
        except OSError:
            return False  # moved away, and nothing new is there yet
        os.close(self._number)
        self._number = number
        self._restart(f"{self._name} was rotated while it was followed; line numbers go on")
        return True

    def _restart(self, note: str) -> None:
        self._at, self._tail = 0, b""
        if note not in self._notes:
            self._notes.append(note)
