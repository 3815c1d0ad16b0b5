"""A folder, a pattern or an archive as the logs in it, one after the other, and what was passed over."""

from __future__ import annotations

import os
import re
import stat
from typing import IO, TYPE_CHECKING, NamedTuple

from logtriage.errors import InputError
from logtriage.intake.source import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_FILES = 10_000
"""Files that a folder or an archive may hold; MAX_LOGS of them may be logs."""

MAX_LOGS = 1000

_SUFFIXES = (
    "7z bin bz2 cfg conf csv db gguf gif html ini ipynb jpeg jpg json lock md npy npz onnx parquet pdf pickle pid pkl "
    "png pt pth py pyc rar safetensors so sqlite svg tar tgz toml tsv whl xml xz yaml yml zip"
)
_NO_LOGS = frozenset(_SUFFIXES.split())
_KERNEL = re.compile(r"(?:.*[-_.])?(?:dmesg|kern(?:el)?\.log|kern)(?:[-_.].*)?", re.IGNORECASE)
_SHOWN = 6


class Found(NamedTuple):
    """A file that counts as a log: its name as shown, how to open it, and whether it is the kernel's log."""

    name: str
    open: Callable[[], IO[bytes]]
    is_kernel: bool


class Passed:
    """What was read and what was passed over, and why, which one note tells; `others` are further notes."""

    def __init__(self, name: str) -> None:
        self.others: list[str] = []
        self.logs = 0
        self._name = name
        self._names: list[str] = []
        self._count = 0

    def add(self, member: str, why: str, *, was_log: bool = False) -> None:
        """Remember a file that was not read (or was opened as a log and is none)."""
        self.logs -= was_log
        self._count += 1
        if len(self._names) < _SHOWN:
            self._names.append(f"{member} ({why})")

    def check(self) -> None:
        """Raise InputError if no log was found."""
        if not self.logs:
            told = f" (passed over: {self._listed()})" if self._count else ""
            raise InputError(f"{self._name}: holds no log{told}")

    def notes(self) -> list[str]:
        """Return a note on all of them."""
        return [*([f"{self._name}: passed over {self._listed()}"] if self._count else []), *self.others]

    def _listed(self) -> str:
        more = f" and {self._count - _SHOWN} more" if self._count > _SHOWN else ""
        return ", ".join(self._names) + more


def logs_in(path: str, kind: str, passed: Passed, member: str = "") -> Iterator[Found]:
    """Yield the logs of a folder, a pattern or an archive, in order; each must be read before the next is asked for.

    Of an archive only `member`, if one is named.

    Raises InputError for what cannot be read, or holds more than a launch has.
    """
    if kind in ("tar", "zip"):
        from logtriage.intake import archives

        found = archives.tar_members(path, passed) if kind == "tar" else archives.zip_members(path, passed)
    else:
        found = _files(path, kind, passed)
    for item in found:
        if member and item.name != f"{path}!{member}":
            continue
        passed.logs += 1
        if passed.logs > MAX_LOGS:
            raise InputError(f"{path}: holds more than {MAX_LOGS:,} logs; name those of one launch")
        yield item
    if member and not passed.logs:
        raise InputError(f"{path}: holds no log {member!r}")


def why_no_log(name: str) -> str:
    """Return why a file of this name is no log, or nothing."""
    base = name.rpartition("/")[2]
    suffix = base.lower().rpartition(".")[2] if "." in base else ""
    return "no log by its name" if suffix in _NO_LOGS or re.search(r"\.(?:tar|zip)\.\w+$", base) else ""


def is_hidden(name: str) -> bool:
    """Return whether a file or one of its folders is hidden, or a leftover of a packer."""
    return any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in name.split("/"))


def is_kernel_log(name: str) -> bool:
    """Return whether a name is usual for the kernel's log."""
    return _KERNEL.fullmatch(name.rpartition("/")[2]) is not None


def _files(path: str, kind: str, passed: Passed) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    for name in sorted(_in_folder(path) if kind == "folder" else _matching(path)):
        if why := why_no_log(name):
            passed.add(name, why)
            continue
        try:
            found = os.stat(name)
        except OSError as error:
            passed.add(name, error.strerror or str(error))
            continue
        if not stat.S_ISREG(found.st_mode):
            passed.add(name, "no file")
        elif not os.access(name, os.R_OK):
            passed.add(name, "permission denied")
        elif (found.st_dev, found.st_ino) not in seen:  # `latest.log` is a link to another one
            seen.add((found.st_dev, found.st_ino))
            yield Found(name, lambda name=name: open_file(name), is_kernel_log(name))  # type: ignore[misc]


def _in_folder(path: str) -> list[str]:
    names: list[str] = []
    for folder, folders, files in os.walk(path, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        names += [os.path.join(folder, name) for name in files if not is_hidden(name)]
        if len(names) > MAX_FILES:
            raise InputError(f"{path}: holds more than {MAX_FILES:,} files; name the folder of one launch")
    return names


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror or error}") from error


def _matching(pattern: str) -> list[str]:
    from glob import iglob
    from itertools import islice

    if not any(True for _ in iglob(pattern, recursive=True)):
        raise InputError(f"{pattern}: no such file, and no file that fits the pattern")
    names = [name for name in islice(iglob(pattern, recursive=True), MAX_FILES + 1) if not os.path.isdir(name)]
    if len(names) > MAX_FILES:
        raise InputError(f"{pattern}: fits more than {MAX_FILES:,} files; name those of one launch")
    return names
