"""Compressed bytes in, plain bytes out, piece by piece: gzip and Zstandard, several archives one after the other.

What can be read of a truncated or damaged archive is handed on, and a note says so. Memory and output are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from logtriage.errors import InputError, NoLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_UNPACKED = 64 << 30
"""Bytes that one input may unpack to; what follows is not read."""

MAX_RATIO = 800
"""Times its own size that an input may unpack to. Logs reach 5 to 200, gzip ends at 1030."""

RATIO_FROM = 256 << 20
"""Bytes up to which no ratio is too large."""

_GZIP = b"\x1f\x8b"
# Zstandard can make 128 KiB of 4 bytes, gzip 1 KiB of one: so much is unpacked at a time.
_GZIP_SLICE, _ZSTD_SLICE = 8 << 10, 256


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def unpacked(pieces: Iterable[bytes], head: bytes, name: str, notes: list[str]) -> Iterator[bytes]:
    """Yield what `pieces` unpack to; `head` is how they begin (gzip, or else Zstandard).

    Adds to `notes` where not all could be read. Raises InputError if nothing can be read, if the input unpacks to far
    more than a log would, or if Python lacks what the format needs.
    """
    make, size, error = _gzip() if head.startswith(_GZIP) else _zstd(name)
    archive = _Archive(make, error)
    read = made = 0
    for piece in pieces:
        for start in range(0, len(piece), size):
            part = piece[start : start + size]
            read += len(part)
            plain = archive.add(part)
            made += len(plain)
            if made > RATIO_FROM and made > MAX_RATIO * read:
                raise InputError(f"{name}: unpacks to more than {MAX_RATIO} times its size; that is no log")
            if plain:
                yield plain
            if archive.is_broken or made >= MAX_UNPACKED:
                break
        if archive.is_broken or made >= MAX_UNPACKED:
            break
    if made >= MAX_UNPACKED:
        notes.append(f"{name}: only the first {MAX_UNPACKED >> 30} GiB that it unpacks to were read")
    elif archive.is_broken or not archive.is_complete:
        what = "is damaged" if archive.is_broken else "ends too early"
        if not made:
            raise InputError(f"{name}: the compressed data {what}; nothing can be read")
        notes.append(f"{name}: the compressed data {what}; what could be unpacked was read")


class _Archive:
    """A chain of archives, unpacked as their bytes arrive; zeros and rubbish behind the last one are passed over."""

    def __init__(self, make: Callable[[], _Unpacker], error: type[Exception]) -> None:
        self.is_broken = False
        self._make = make
        self._error = error
        self._unpacker = make()
        self._is_between = False

    @property
    def is_complete(self) -> bool:
        """Whether the last archive has ended."""
        return self._is_between or self._unpacker.eof

    def add(self, data: bytes) -> bytes:
        """Return what `data` unpacks to; of damaged data what stands before the damage."""
        plain = b""
        while data and not self.is_broken:
            if self._is_between:
                data = data.lstrip(b"\0")
                if not data:
                    break
                self._unpacker, self._is_between = self._make(), False
                plain += self._step(data, is_first=False)
            else:
                plain += self._step(data, is_first=True)
            data = self._unpacker.unused_data if self._unpacker.eof else b""
            self._is_between = self._is_between or self._unpacker.eof
        return plain

    def _step(self, data: bytes, *, is_first: bool) -> bytes:
        copy = getattr(self._unpacker, "copy", None)
        before = copy() if copy else None
        try:
            return self._unpacker.decompress(data)
        except self._error:
            self.is_broken = True
            return _bytewise(before, data, self._error) if before is not None and is_first else b""


def _bytewise(unpacker: _Unpacker, data: bytes, error: type[Exception]) -> bytes:
    """Return what `data` unpacks to before the first damaged byte."""
    plain = []
    try:
        for at in range(len(data)):
            plain.append(unpacker.decompress(data[at : at + 1]))
    except error:
        pass
    return b"".join(plain)


def _gzip() -> tuple[Callable[[], _Unpacker], int, type[Exception]]:
    import zlib

    return lambda: zlib.decompressobj(wbits=31), _GZIP_SLICE, zlib.error


def _zstd(name: str) -> tuple[Callable[[], _Unpacker], int, type[Exception]]:
    from importlib import import_module

    module: Any
    try:
        module = import_module("compression.zstd")  # Python 3.14
        return module.ZstdDecompressor, _ZSTD_SLICE, module.ZstdError
    except ImportError:
        pass
    try:
        module = import_module("zstandard")
    except ImportError as error:
        raise NoLogError(
            f"{name}: is compressed with Zstandard, which needs the extra 'zstd': "
            "pip install 'logtriage[zstd]' (or unpack it: zstd -d)",
            "Zstandard, which needs pip install 'logtriage[zstd]'",
        ) from error
    return lambda: module.ZstdDecompressor().decompressobj(), _ZSTD_SLICE, module.ZstdError
