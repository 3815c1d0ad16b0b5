"""Opens what the user names (a file, standard input, bytes, lines) and hands it on in blocks of whole lines."""

from __future__ import annotations

import os
import re
import stat
import sys
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, cast

from logtriage.errors import InputError, NoLogError
from logtriage.intake.blocks import MAX_LINE, Block
from logtriage.intake.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["BLOCK", "MAX_LINE", "Block", "Source", "open_file", "open_source"]

BLOCK = 256 << 10
"""Bytes read at a time."""

_SAMPLE = 8192
_MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
_ODD = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b\0"))


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
        from logtriage.intake.printed import as_printed

        return as_printed(stored, self._wrappers, self.name, self.notes)

    def _stored(self) -> Iterator[Block]:
        with self._stream:
            pieces = self._text()
            windows = Windows(self.size)
            for data in pieces:
                if self._hole:
                    yield from windows.skip(self._hole)
                    self._hole = 0
                for block in windows.add(data):
                    self.size, self.lines = windows.size, windows.lines
                    yield block
        yield from windows.skip(self._hole) if self._hole else ()
        if windows.is_hole:
            raise NoLogError(f"{self.name}: looks binary, not like a log: it holds nothing but NUL bytes")
        for block in windows.rest():
            windows.lines += block.rows
            yield block
        self.size, self.lines = windows.stands_for, windows.lines

    def _text(self) -> Iterator[bytes]:
        """Yield pieces of the input's text, unpacked and in UTF-8."""
        head, pieces = _peek(self._pieces(), 4)
        if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            from logtriage.intake import compression

            head, pieces = _peek(compression.unpacked(pieces, head, self.name, self.notes), 4)
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            from logtriage.intake import encoding

            pieces = encoding.from_utf16(pieces)
        elif head.startswith(_MARK):
            self.size = len(_MARK)
            pieces = chain([head[len(_MARK) :]], islice(pieces, 1, None))
        head, pieces = _peek(self._after_nuls(pieces), _SAMPLE)
        _refuse_binary(head[:_SAMPLE], self.name)
        return pieces

    def _after_nuls(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Pass over NUL bytes at the beginning: a log that was truncated while being written begins with them."""
        for data in pieces:
            text = data.lstrip(b"\0")
            self._hole += len(data) - len(text)
            if text:
                yield text
                break
        yield from pieces

    def _pieces(self) -> Iterator[bytes]:
        """Yield what the stream holds without the holes of a sparse file; `_hole` counts the bytes of the last ones."""
        while data := self._read():
            is_empty = data[0] == data[-1] == 0 and data.count(0) == len(data)
            if is_empty and (skipped := self._skip_hole()) is not None:
                self._hole += len(data) + skipped
            else:
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


def _peek(pieces: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Return the first piece, made of several if need be to have `size` bytes, and all pieces with it."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= size:
            break
    return head, chain([head] if head else [], pieces)


def open_source(
    log: str | os.PathLike[str] | bytes | IO[bytes] | Iterable[str | bytes], wrappers: Mapping[str, Any] | None = None
) -> Source:
    """Return a Source for a path (``-`` is standard input), the bytes of a log, or its lines.

    `wrappers` (as compiled from ``rules/wrappers.yaml``) are undone where the log shows them. Raises InputError, with a
    message that says what is wrong, for what is missing, unreadable or no log.
    """
    import io

    if isinstance(log, bytes):
        return Source("<bytes>", io.BytesIO(log), wrappers)
    if isinstance(log, io.IOBase) and not isinstance(log, io.TextIOBase):
        return Source(str(getattr(log, "name", "<stream>")), cast("IO[bytes]", log), wrappers)
    if isinstance(log, str | os.PathLike):
        name = os.fspath(log)
        if name == "-":
            return Source("<stdin>", sys.stdin.buffer, wrappers)
        return Source(name, open_file(name), wrappers)
    return Source("<lines>", cast("IO[bytes]", _Lines(log)), wrappers)


class _Lines:
    """Lines (of which there may be no end yet) as a stream."""

    def __init__(self, lines: Iterable[str | bytes]) -> None:
        self._lines = iter(lines)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, size: int) -> bytes:
        """Return whole lines of at least `size` bytes together, or what is left."""
        parts: list[bytes] = []
        length = 0
        for line in self._lines:
            parts.append(_encode_line(line))
            length += len(parts[-1])
            if length >= size:
                break
        return b"".join(parts)


def _encode_line(line: str | bytes) -> bytes:
    data = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line
    return data if data.endswith(b"\n") else data + b"\n"


def open_file(name: str) -> IO[bytes]:
    """Open a file as a stream of bytes. Raises InputError for what is missing, unreadable or no file."""
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{name}: is a directory; name a log file in it")
        is_terminal = name in ("/dev/stdin", "/dev/tty", "/dev/fd/0")
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not is_terminal):
            raise NoLogError(f"{name}: is a device or socket, not a log file")
        return open(name, "rb", buffering=0)
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file") from error
    except PermissionError as error:
        raise InputError(f"{name}: permission denied") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r}: cannot be opened: {error}") from error


def _refuse_binary(sample: bytes, name: str) -> None:
    """Refuse what is plainly no text. A log may begin with NUL bytes (truncated while being written)."""
    text = re.sub(rb"\0+", b"\0", sample.strip(b"\0"))  # runs of NUL stand where a log was truncated
    odd = len(text) - len(text.translate(None, _ODD)) + text.count(0)
    if (sample and not text) or odd * 20 > len(text):
        raise NoLogError(f"{name}: looks binary, not like a log; unpack or convert it first")
