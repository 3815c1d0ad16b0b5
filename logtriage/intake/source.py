"""Opens what the user names (a file, several, standard input, bytes, lines) and hands it on in blocks of whole lines."""

from __future__ import annotations

import os
import stat
import sys
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = 1 << 20
"""Bytes read at a time."""

MAX_LINE = 64 << 10
"""Bytes of a line that are looked at: head and tail of a longer one are kept."""

_MAX_OPEN = 4 << 20
_SAMPLE = 8192
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\b\x1b\0")


class Block(NamedTuple):
    """Some whole lines of a file: their bytes, the offset of the first byte, the number of the first line."""

    data: bytes
    byte: int
    number: int


class Source:
    """One input, read once from start to end; `size` and `lines` grow while it is read."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name = name
        self.size = 0
        self.lines = 0
        self._stream = stream

    def blocks(self) -> Iterator[Block]:
        """Yield the input as blocks that end at a line's end; closes the stream.

        Raises InputError if the input is binary or fails while it is read.
        """
        line = _OpenLine()
        with self._stream:
            while data := self._read():
                if self.size == 0 and not line.length:
                    _refuse_binary(data[:_SAMPLE], self.name)
                end = data.rfind(b"\n") + 1
                if end:
                    head, stored = line.close(data[:end])
                    yield self._block(head, stored)
                line.add(data[end:])
        if line.length:
            yield self._block(*line.close(b""))

    def _read(self) -> bytes:
        try:
            return self._stream.read(BLOCK)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror or error}") from error

    def _block(self, data: bytes, stored: int) -> Block:
        """A block of `data`, which stands for `stored` bytes of the file."""
        block = Block(data, self.size, self.lines + 1)
        self.size += stored
        self.lines += data.count(b"\n") + (not data.endswith(b"\n"))
        return block


class _OpenLine:
    """The beginning of a line whose end has not been read yet; of a huge one the middle is dropped."""

    def __init__(self) -> None:
        self.length = 0
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        self.length += len(data)
        room = _MAX_OPEN - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-_MAX_OPEN:]

    def close(self, data: bytes) -> tuple[bytes, int]:
        """Return the line with `data` behind it, and the number of bytes that it stands for; start afresh."""
        whole, stored = self._head + self._tail + data, self.length + len(data)
        self.length, self._head, self._tail = 0, b"", b""
        return whole, stored


def open_source(log: str | os.PathLike[str] | bytes | IO[bytes] | Iterable[str | bytes]) -> Source:
    """Return a Source for a path (``-`` is standard input), the bytes of a log, or its lines.

    Raises InputError, with a message that says what is wrong, for what is missing, unreadable or no log.
    """
    import io

    if isinstance(log, bytes):
        return Source("<bytes>", io.BytesIO(log))
    if isinstance(log, io.IOBase):
        return Source(str(getattr(log, "name", "<stream>")), cast("IO[bytes]", log))
    if isinstance(log, str | os.PathLike):
        name = os.fspath(log)
        return Source("<stdin>", sys.stdin.buffer) if name == "-" else _open_file(name)
    return Source("<lines>", io.BytesIO(b"".join(map(_encode_line, log))))


def _encode_line(line: str | bytes) -> bytes:
    data = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line
    return data if data.endswith(b"\n") else data + b"\n"


def _open_file(name: str) -> Source:
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{name}: is a directory; name the log file in it")
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(0)):
            raise InputError(f"{name}: is a device or socket, not a log file")
        return Source(name, open(name, "rb", buffering=0))
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file") from error
    except PermissionError as error:
        raise InputError(f"{name}: permission denied") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r}: cannot be opened: {error}") from error


def _refuse_binary(sample: bytes, name: str) -> None:
    """Refuse what is plainly no text. A log may begin with NUL bytes (truncated while being written)."""
    text = sample.lstrip(b"\0")
    odd = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in text) + text.count(0)
    if (sample and not text) or odd * 20 > len(text):
        raise InputError(f"{name}: looks binary, not like a log; unpack or convert it first")
