"""Opens what the user names (a file, standard input, bytes, lines) and hands it on in blocks of whole lines."""

from __future__ import annotations

import os
import stat
import sys
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, cast

from logtriage.errors import InputError
from logtriage.intake.blocks import MAX_LINE, Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["BLOCK", "MAX_LINE", "Block", "Source", "open_source"]

BLOCK = 1 << 20
"""Bytes read at a time."""

_MAX_OPEN = 4 << 20
_SAMPLE = 8192
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\b\x1b\0")


class Source:
    """One input, read once from start to end; `size`, `lines` and `notes` grow while it is read.

    Sizes and offsets are those of the file as stored; of a compressed one or one in UTF-16 they are those of its text
    after unpacking, in UTF-8. `notes` tell what the user should know about how the input was read.
    """

    def __init__(self, name: str, stream: IO[bytes], wrappers: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.size = 0
        self.lines = 0
        self.notes: list[str] = []
        self._stream = stream
        self._wrappers = wrappers
        self._hole = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the input as blocks that end at a line's end, without what wraps its lines; closes the stream.

        Raises InputError if the input is binary or fails while it is read.
        """
        stored = self._stored()
        if self._wrappers is None:
            return stored
        from logtriage.intake.rows import as_printed

        return as_printed(stored, self._wrappers, self.name, self.notes)

    def _stored(self) -> Iterator[Block]:
        line = _OpenLine()
        is_text = False
        with self._stream:
            for data in self._text():
                line.length += self._hole
                self._hole = 0
                if not is_text:
                    if not data.strip(b"\0"):
                        line.length += len(data)
                        continue
                    is_text = True
                end = data.rfind(b"\n") + 1
                if end:
                    head, stored = line.close(data[:end])
                    yield self._block(head, stored)
                line.add(data[end:])
        if line.length:
            if not is_text:
                raise InputError(f"{self.name}: looks binary, not like a log: it holds only NUL bytes")
            yield self._block(*line.close(b""))

    def _text(self) -> Iterator[bytes]:
        """Yield pieces of the input's text, unpacked and in UTF-8."""
        pieces: Iterator[bytes] = self._pieces()
        head, pieces = _peek(pieces, 4)
        if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            from logtriage.intake import compression

            pieces = compression.unpacked(pieces, head, self.name, self.notes)
            head, pieces = _peek(pieces, 4)
        if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
            from logtriage.intake import encoding

            pieces = encoding.without_mark(pieces, head)
            self.size = encoding.length_of_mark(head)
        head, pieces = _peek(pieces, _SAMPLE)
        _refuse_binary(head[:_SAMPLE], self.name)
        return pieces

    def _pieces(self) -> Iterator[bytes]:
        """Yield what the stream holds, without the holes of a sparse file: `_hole` counts the bytes of the last ones."""
        while data := self._read():
            if data.count(0) == len(data) and (skipped := self._skip_hole()) is not None:
                self._hole += len(data) + skipped
                continue
            yield data

    def _read(self) -> bytes:
        try:
            return self._stream.read(BLOCK)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror or error}") from error

    def _skip_hole(self) -> int | None:
        """Move to the next data of a sparse file; return the bytes passed over, None where that cannot be done."""
        try:
            number = self._stream.fileno()
            here = os.lseek(number, 0, os.SEEK_CUR)
            return self._to_data(number, here) - here
        except (OSError, AttributeError, ValueError):
            return None

    @staticmethod
    def _to_data(number: int, here: int) -> int:
        import errno

        try:
            return os.lseek(number, here, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # no data up to the end
                raise
            return os.lseek(number, 0, os.SEEK_END)

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
