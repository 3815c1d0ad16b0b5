"""Reads a file that a user names beside the log, whole, unless it may have no end or is a pipe nobody writes to."""

from __future__ import annotations

import os
import stat

from logtriage.errors import InputError

LARGEST = 64 << 20
"""Bytes that such a file may have."""

_OF_THE_SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


def read(path: str) -> bytes:
    """Return the bytes of a file, or of a pipe that the shell opened (``<(…)``). Raises InputError."""
    try:
        check(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size or LARGEST  # a pipe has none; room for the largest takes time to get
            data = file.read(min(size, LARGEST) + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST:
        raise InputError(f"{path}: is larger than {LARGEST >> 20} MiB; give a smaller file")
    return data


def check(path: str) -> None:
    """Raise InputError for what is neither a file nor a pipe that the shell opened. Raises OSError, ValueError."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: cannot be read: is a directory; name a file in it")
    if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and path.startswith(_OF_THE_SHELL)):
        raise InputError(f"{path}: is a device, a socket or a named pipe; give a file, or <(…) in its place")
