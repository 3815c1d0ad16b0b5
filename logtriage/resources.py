"""The one module that knows where rules live (in an installed wheel, or beside the package) and where caches go."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any
from zlib import crc32

from logtriage._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# Plain os.path: pathlib would cost a start of every command several milliseconds.
_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_IN_WHEEL = os.path.join(_PACKAGE, "rules")
_IN_CHECKOUT = os.path.join(os.path.dirname(_PACKAGE), "rules")

_PARTS: Mapping[type, tuple[str, ...]] = {
    str: ("digest",),
    dict: ("facts", "labels", "log", "wrappers", "flags"),
    list: ("gates", "failures", "by_gate", "frames", "kept", "anchors", "secrets"),
}
_SERVER_PARTS: Mapping[type, tuple[str, ...]] = {
    dict: ("aliases", "flags", "preflight", "runner"),
    list: ("versions", "kernels", "values", "matrix", "ranking"),
}


def rules_folder() -> Path:
    """Return the folder of the built-in rule files."""
    from pathlib import Path

    return Path(_folder())


def weights_file() -> str | None:
    """Return the path of the classifier's weights: LOGTRIAGE_WEIGHTS, or those that are shipped; None without any."""
    if named := os.environ.get("LOGTRIAGE_WEIGHTS"):
        return named
    path = os.path.join(_PACKAGE, "classifier", "weights", "weights.json")
    return path if os.path.isfile(path) else None


def lexicon_file() -> str:
    """Return the path of the groups of words that the classifier is trained with."""
    return os.path.join(_PACKAGE, "classifier", "lexicon.yaml")


def corpus_folder() -> str | None:
    """Return the folder of the checkout's own corpus; None in a wheel, which ships none."""
    path = os.path.join(os.path.dirname(_PACKAGE), "corpus")
    return path if os.path.isdir(os.path.join(path, "templates")) else None


def shipped_rules() -> dict[str, Any] | None:
    """Return the compiled rules that a wheel ships; None in a checkout, where rule files may change at any time.

    The rules themselves and their signatures are lines of JSON, since of hundreds a log needs a few.
    The knowledge about servers is no part of them: `server_file` names the file that `server_knowledge` reads.
    """
    return _load_rules(os.path.join(_IN_WHEEL, "compiled.json"))


def cached_rules() -> dict[str, Any] | None:
    """Return the rules compiled earlier from exactly these rule files and this code, or None."""
    return _load_rules(_cache_file())


def server_knowledge(server_file: str) -> dict[str, Any] | None:
    """Return the part of compiled rules that only advice needs, or None if it cannot be read."""
    known = _load(server_file)
    return known if known is not None and _has(known, _SERVER_PARTS) else None


def cache_rules(compiled: dict[str, Any]) -> None:
    """Keep compiled rules for the next start; silently not where the cache folder cannot be written."""
    try:
        os.makedirs(_cache_folder(), exist_ok=True)
        write_rules(compiled, _cache_file())
    except OSError:
        return


def write_rules(compiled: dict[str, Any], target: str) -> None:
    """Write compiled rules to `target`, the rules and what advice knows to files beside it. Raises OSError."""
    head = {name: part for name, part in compiled.items() if name not in ("server", "rules", "signatures")}
    parts = {
        _server_part(target): [compiled["server"]],
        _rules_part(target): [*compiled["rules"], *compiled["signatures"]],
        target: [head],  # the last, so that it never stands without the others
    }
    for path, items in parts.items():
        temporary = f"{path}.{os.getpid()}.tmp"  # another process may be doing the same
        with open(temporary, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n" for item in items)
        os.replace(temporary, path)


def _server_part(path: str) -> str:
    return f"{path.removesuffix('.json')}-server.json"


def _rules_part(path: str) -> str:
    return f"{path.removesuffix('.json')}-rules.jsonl"


def _folder() -> str:
    return _IN_WHEEL if os.path.isdir(_IN_WHEEL) else _IN_CHECKOUT


def _load_rules(path: str) -> dict[str, Any] | None:
    head = _load(path)
    if head is None or not _has(head, _PARTS):
        return None
    try:
        with open(_rules_part(path), "rb") as file:
            *lines, rest = file.read().split(b"\n")
    except OSError:
        return None
    count = len(lines) - len(head["anchors"])
    if rest or count != head.get("count"):
        return None
    return {**head, "rules": lines[:count], "signatures": lines[count:], "server_file": _server_part(path)}


def _has(data: dict[str, Any], parts: Mapping[type, Iterable[str]]) -> bool:
    """Return whether compiled data has the shape that this program writes: a cache may have been damaged."""
    return all(isinstance(data.get(name), kind) for kind, names in parts.items() for name in names)


def _load(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError):
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
        paths = (os.path.join(parent, name) for name in sorted(names) if name.endswith(ending))
        yield from (path for path in paths if os.path.isfile(path))


def _cache_folder() -> str:
    home = os.path.expanduser("~")
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "logtriage")
