"""The one module that knows where rules live (in an installed wheel, or beside the package) and where caches go."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any
from zlib import crc32

from logtriage._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Plain os.path: pathlib would cost a start of every command several milliseconds.
_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_IN_WHEEL = os.path.join(_PACKAGE, "rules")
_IN_CHECKOUT = os.path.join(os.path.dirname(_PACKAGE), "rules")


def rules_folder() -> Path:
    """Return the folder of the built-in rule files."""
    from pathlib import Path

    return Path(_folder())


def shipped_rules() -> dict[str, Any] | None:
    """Return the compiled rules that a wheel ships; None in a checkout, where rule files may change at any time."""
    return _load(os.path.join(_IN_WHEEL, "compiled.json"))


def cached_rules() -> dict[str, Any] | None:
    """Return the rules compiled earlier from exactly these rule files and this code, or None."""
    return _load(_cache_file())


def cache_rules(compiled: dict[str, Any]) -> None:
    """Keep compiled rules for the next start; silently not where the cache folder cannot be written."""
    target = _cache_file()
    temporary = f"{target}.{os.getpid()}.tmp"  # another process may be doing the same
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(compiled, file, ensure_ascii=False, separators=(",", ":"))
        os.replace(temporary, target)
    except OSError:
        return


def _folder() -> str:
    return _IN_WHEEL if os.path.isdir(_IN_WHEEL) else _IN_CHECKOUT


def _load(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _cache_file() -> str:
    return os.path.join(_cache_folder(), f"rules-{__version__}-{_fingerprint():016x}.json")


def _fingerprint() -> int:
    """A number that changes with the bytes of any rule file and with the code that compiles them."""
    total = length = 0
    for path in [*_files(_folder(), ".yaml"), *_files(os.path.join(_PACKAGE, "engine"), ".py")]:
        with open(path, "rb") as file:
            data = file.read()
        total = crc32(data, crc32(path.encode(), total))
        length += len(data)
    return (total << 32) | (length & 0xFFFFFFFF)


def _files(folder: str, ending: str) -> Iterator[str]:
    for parent, _, names in sorted(os.walk(folder)):
        yield from (os.path.join(parent, name) for name in sorted(names) if name.endswith(ending))


def _cache_folder() -> str:
    home = os.path.expanduser("~")
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "logtriage")
