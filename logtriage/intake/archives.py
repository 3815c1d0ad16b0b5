"""The logs in a tar or zip archive, read as streams: nothing is written to disk, and memory stays bounded.

What is no ordinary file (links, devices), or has a name that leads out of the archive, is passed over.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from logtriage.errors import InputError
from logtriage.intake import compression
from logtriage.intake.gathered import MAX_FILES, Found, is_hidden, is_kernel_log, why_no_log
from logtriage.intake.inputs import GZIP, ZSTD
from logtriage.intake.source import BLOCK, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.intake.gathered import Passed

MAX_HEADERS = 4 << 20
"""Bytes that describe the members of a zip archive, or one member of a tar archive."""

_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError,
    RecursionError,  # headers of headers of headers
)  # fmt: skip
_ENCRYPTED = 0x1


def tar_members(path: str, passed: Passed) -> Iterator[Found]:
    """Yield the logs of a tar archive, which may be packed with gzip or zstd, in their order in it."""
    with open_file(path) as file:
        stream = _Forward(file, path, passed)
        for archive, member in _tar_entries(stream, path, passed):
            kind = "a link" if member.issym() or member.islnk() else "" if member.isreg() else "no file"
            if member.isdir() or not _counts(member.name, kind, passed):
                continue
            yield _found(path, member.name, _Member(archive.extractfile(member), member.name, passed))


def zip_members(path: str, passed: Passed) -> Iterator[Found]:
    """Yield the logs of a zip archive, in their order in it."""
    with open_file(path) as file:
        limited = _Limited(file, path)
        try:
            archive = zipfile.ZipFile(limited)
        except _DAMAGED as error:
            raise InputError(f"{path}: is a damaged zip archive: {error}") from error
        entries = archive.infolist()
        if len(entries) > MAX_FILES:
            raise InputError(f"{path}: holds more than {MAX_FILES:,} files; that is no archive of logs")
        counted = _Counted(path, limited.size)
        for entry in entries:
            mode = entry.external_attr >> 16
            kind = "a link" if stat.S_ISLNK(mode) else "no file" if stat.S_IFMT(mode) not in (0, stat.S_IFREG) else ""
            if entry.flag_bits & _ENCRYPTED:
                kind = "needs a password"
            elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                kind = "packed in a way that is not read"
            if entry.is_dir() or not _counts(entry.filename, kind, passed):
                continue
            try:
                data = archive.open(entry)
            except _DAMAGED as error:
                passed.add(entry.filename, f"damaged: {error}")
                continue
            yield _found(path, entry.filename, _Member(data, entry.filename, passed, counted))


def _found(path: str, name: str, member: Any) -> Found:
    return Found(f"{path}!{name}", lambda: member, is_kernel_log(name))


def _counts(name: str, kind: str, passed: Passed) -> bool:
    """Whether a member is to be read; tells what is not, but for hidden ones."""
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ".." in parts or name[1:2] == ":":
        kind = kind or "its name leads out of the archive"
    elif is_hidden(name):
        return False
    if why := kind or why_no_log(name):
        passed.add(name, why)
        return False
    return True


def _tar_entries(
    stream: _Forward, path: str, passed: Passed
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:  # fmt: skip
    """Yield the entries, each while the stream stands at it; of a damaged archive those before the damage."""
    archive = None
    try:
        archive = tarfile.TarFile(fileobj=stream, mode="r")  # type: ignore[arg-type] # it reads, seeks and tells
        for count in range(MAX_FILES + 1):
            with stream.headers():
                member = archive.next()
            if member is None:
                return
            archive.members = []  # type: ignore[attr-defined] # it would keep them all
            if count < MAX_FILES:
                yield archive, member
    except _DAMAGED as error:
        if archive is None:
            raise InputError(f"{path}: is a damaged tar archive: {error}") from error
        passed.add("the rest", f"the archive is damaged or ends too early: {error}")
        return
    raise InputError(f"{path}: holds more than {MAX_FILES:,} files; that is no archive of logs")


class _Forward:
    """A file, unpacked, that can be read and sought forward only; what describes a member must be small."""

    def __init__(self, file: IO[bytes], path: str, passed: Passed) -> None:
        self._path = path
        self._held = b""
        self._used = 0
        self._at = 0
        self._left: int | None = MAX_HEADERS
        first = file.read(BLOCK)
        self._pieces: Iterator[bytes] = chain([first], iter(partial(file.read, BLOCK), b""))
        if first.startswith((GZIP, ZSTD)):
            self._pieces = compression.unpacked(self._pieces, first[:4], path, passed.others)

    @contextmanager
    def headers(self) -> Iterator[None]:
        """Allow only so much to be read as headers have."""
        self._left = MAX_HEADERS
        yield
        self._left = None

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end only."""
        if self._left is not None:
            self._left -= size
            if self._left < 0:
                raise InputError(f"{self._path}: needs more than {MAX_HEADERS >> 20} MiB to describe a file in it")
        return self._take(size)

    def tell(self) -> int:
        """Return how many bytes were passed."""
        return self._at

    def seek(self, place: int) -> int:
        """Pass bytes up to `place`."""
        if place < self._at:
            raise tarfile.ReadError("a member overlaps another")
        while self._at < place and self._take(min(place - self._at, BLOCK)):
            pass
        return self._at

    def _take(self, size: int) -> bytes:
        parts = []
        while size > 0:
            if self._used == len(self._held):
                self._held, self._used = next(self._pieces, b""), 0
                if not self._held:
                    break
            parts.append(self._held[self._used : self._used + size])
            self._used += len(parts[-1])
            self._at += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)


class _Limited:
    """A zip archive's file, of which only so much is read at a time as a table of contents has."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self.size = file.seek(0, os.SEEK_END)
        self.seek, self.tell, self.close = file.seek, file.tell, file.close
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        """Return the bytes; raise InputError for too many."""
        wanted = size if size is not None and size >= 0 else self.size - self._file.tell()
        if wanted > MAX_HEADERS:
            raise InputError(f"{self._path}: needs more than {MAX_HEADERS >> 20} MiB to list the files in it")
        return self._file.read(wanted)

    def seekable(self) -> bool:
        """Return that one can move in it."""
        return True


class _Counted:
    """How much was unpacked of an archive so far."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self._made = 0

    def add(self, count: int) -> None:
        """Count bytes; raise InputError if they are more than logs unpack to."""
        self._made += count
        if self._made > compression.RATIO_FROM and self._made > compression.MAX_RATIO * self._size:
            raise InputError(
                f"{self._path}: unpacks to more than {compression.MAX_RATIO} times its size; that is no log"
            )
        if self._made > compression.MAX_UNPACKED:
            raise InputError(f"{self._path}: unpacks to more than {compression.MAX_UNPACKED >> 30} GiB")


class _Member:
    """A member as a stream; where it is damaged it ends."""

    def __init__(self, data: IO[bytes] | None, name: str, passed: Passed, counted: _Counted | None = None) -> None:
        self._data = data
        self._name = name
        self._passed = passed
        self._counted = counted

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        if self._data is not None:
            self._data.close()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        if self._data is None:
            return b""
        try:
            piece = self._data.read(size)
        except _DAMAGED as error:
            self._passed.add(self._name, f"only up to where it is damaged: {error}")
            self._data = None
            return b""
        if self._counted is not None:
            self._counted.add(len(piece))
        return piece
