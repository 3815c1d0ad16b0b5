"""The one module that knows where rules live (an installed wheel, or beside the package in a checkout) and where caches go."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

from logtriage._version import __version__

_PACKAGE = Path(__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "rules"
_IN_CHECKOUT = _PACKAGE.parent / "rules"


def rules_folder() -> Path:
    """Return the folder of the built-in rule files."""
    return _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT


def shipped_rules() -> dict[str, Any] | None:
    """Return the compiled rules that a wheel ships; None in a checkout, where rule files may change at any time."""
    return _load(_IN_WHEEL / "compiled.json")


def cached_rules() -> dict[str, Any] | None:
    """Return the rules compiled earlier from exactly these rule files and this code, or None."""
    return _load(_cache_file())


def cache_rules(compiled: dict[str, Any]) -> None:
    """Keep compiled rules for the next start; silently not where the cache folder cannot be written."""
    target = _cache_file()
    temporary = target.with_suffix(f".{os.getpid()}.tmp")  # another process may be doing the same
    text = json.dumps(compiled, ensure_ascii=False, separators=(",", ":"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)


def _load(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _cache_file() -> Path:
    return _cache_folder() / f"rules-{__version__}-{_fingerprint():016x}.json"


def _fingerprint() -> int:
    """A number that changes with the bytes of any rule file and with the code that compiles them."""
    total = length = 0
    for path in [*sorted(rules_folder().rglob("*.yaml")), *sorted((_PACKAGE / "engine").glob("*.py"))]:
        data = path.read_bytes()
        total = crc32(data, crc32(path.name.encode(), total))
        length += len(data)
    return (total << 32) | (length & 0xFFFFFFFF)


def _cache_folder() -> Path:
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "logtriage"
