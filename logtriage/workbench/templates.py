"""The templates of generated logs: YAML files in, families of failures and the parts that all logs share out.

A family is one mechanism in one wording; it belongs wholly to the training half or wholly to the test half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from logtriage.engine.yaml_source import LOADER
from logtriage.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SPLITS = ("train", "test")
PRINTS = ("exception", "capture", "parent", "record", "bare")
"""How a failure is printed: by the scheduler with a traceback, wrapped by the graph capture, as a traceback of the
parent, as records with a time stamp, or as bare lines."""
ENDS = ("child", "parent", "serving", "none")
"""What follows: the launch is torn down, the parent ends, the server goes on serving, or nothing."""
KEEPS = ("stage", "frames")
"""What an excerpt of the log must not cut off, because the label rests on it."""

_LISTS = "shared.yaml"  # of a folder of wordings: lists that several labels share


class Family(NamedTuple):
    """One mechanism of one label, in its own words.

    Attributes:
        at: the stages of the launch in which it may happen, one is drawn (empty where there is no launch around it).
        print: one of PRINTS; outside the graph capture ``capture`` is printed like ``exception``.
        frames: names of shared chains (``stage``: those of the drawn stage), or ``path function`` with an optional
            `` | source``.
        cause: alternatives for the failure's own lines; the root line is the first one, or the one marked ``%r``.
        sm, ranks, versions: what it is limited to; empty means anything.
    """

    id: str
    label: str
    split: str
    mechanism: str
    at: list[str]
    print: str
    ends: str
    cause: list[str]
    frames: list[str]
    before: list[str]
    after: list[str]
    flags: list[str]
    keep: list[str]
    confusers: list[str]
    sm: list[int]
    ranks: list[int]
    versions: list[str]


class Templates(NamedTuple):
    """All families by label, and the shared parts by name."""

    families: dict[str, list[Family]]
    shared: dict[str, Any]


def load(folder: Path) -> Templates:
    """Read ``<label>.yaml`` files and ``shared/*.yaml`` of a folder.

    Raises InputError for a file that cannot be read, an unknown or missing key, or an id that is used twice.
    """
    shared: dict[str, Any] = {}
    for path in sorted((folder / "shared").glob("*.yaml")):
        shared.update(_read(path))
    families: dict[str, list[Family]] = {}
    for path in sorted(folder.glob("*.yaml")):
        families[path.stem] = [_family(path, item, shared) for item in _items(path)]
    if not families or not shared:
        raise InputError(f"{folder}: holds no templates; it needs <label>.yaml and shared/*.yaml")
    ids = [family.id for members in families.values() for family in members]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise InputError(f"{folder}: two families are called {twice[0]!r}")
    return Templates(families, shared)


def wordings(folder: Path, shared: dict[str, Any]) -> dict[str, list[Family]]:
    """Read a folder of failures in other words, which are only trained with: by label, families with `say` for `cause`.

    `say` is a list of wordings or the name of a list of the folder's ``shared.yaml``. Raises InputError as `load` does.
    """
    lists = _read(folder / _LISTS)
    found: dict[str, list[Family]] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.name == _LISTS:
            continue
        found[path.stem] = []
        for number, item in enumerate(_items(path), start=1):
            says = item.pop("say", None)
            if isinstance(says, str):
                _choice(f"{path}: family {number}", "say", [says], list(lists))
                says = lists[says]
            named = {"id": f"wording-{path.stem}-{number}", "split": "train", "mechanism": "in other words"}
            found[path.stem].append(_family(path, {**named, "cause": says, **item}, shared))
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: must be a mapping")
    return data


def _items(path: Path) -> list[dict[str, Any]]:
    data = _read(path)
    defaults = data.get("defaults") or {}
    if data.get("label") != path.stem or set(data) - {"label", "defaults", "families"}:
        raise InputError(f"{path}: needs `label: {path.stem}` and `families:`, and may have `defaults:`")
    return [{**defaults, **item} for item in data.get("families") or []]


def _family(path: Path, item: dict[str, Any], shared: dict[str, Any]) -> Family:
    where = f"{path}: family {item.get('id', '?')!r}"
    unknown = sorted(set(item) - set(Family._fields))
    if unknown:
        raise InputError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(Family._fields)}")
    missing = sorted({"id", "split", "mechanism", "cause"} - set(item))
    if missing:
        raise InputError(f"{where}: lacks {missing[0]!r}")
    values: dict[str, Any] = {name: _many(item.get(name)) for name in Family._fields}
    values.update({name: str(item.get(name) or "") for name in ("id", "split", "mechanism")}, label=path.stem)
    values["print"] = str(item.get("print") or "exception")
    values["ends"] = str(item.get("ends") or ("parent" if values["print"] == "parent" else "child"))
    family = Family(**values)
    _choice(where, "split", [family.split], SPLITS)
    _choice(where, "print", [family.print], PRINTS)
    _choice(where, "ends", [family.ends], ENDS)
    _choice(where, "keep", family.keep, KEEPS)
    _choice(where, "at", family.at, [stage["stage"] for stage in shared["stages"]])
    _choice(where, "confusers", family.confusers, list(shared["confusers"]))
    _choice(where, "versions", family.versions, shared["versions"])
    if family.sm:
        _choice(where, "sm", [str(sm) for sm in family.sm], sorted({str(gpu["sm"]) for gpu in shared["gpus"]}))
    return family


def _many(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _choice(where: str, what: str, given: list[str], valid: list[str] | tuple[str, ...]) -> None:
    for value in given:
        if value not in valid:
            raise InputError(f"{where}: {what} {value!r} must be one of: {', '.join(valid)}")
