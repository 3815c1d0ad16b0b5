"""Reads YAML strictly: duplicate keys are faults, and every value keeps the line that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

Place = tuple[str | int, ...]

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of plain values, in C where the library has it: ten times as fast."""

MAX_VALUES = 100_000
"""Values in one file, those that aliases repeat included; our largest file has 3,000."""

_SHOWN = 40
_SCALARS = yaml.SafeLoader("")


class _TooLargeError(Exception):
    pass


class Document:
    """A YAML file as plain data, the line of every key and item, and the faults met on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []
        self._lines: dict[Place, int] = {(): 1}
        self._bad: set[Place] = set()
        self._open: set[int] = set()
        self._count = 0
        self.data: Any = self._read()

    def line(self, place: Place) -> int:
        """Return the line (1-based) of the value at `place`, or of the nearest parent that has one."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def fault(self, place: Place, message: str) -> str:
        """Return `message` with the file and line of `place` in front."""
        return f"{self.path}:{self.line(place)}: {message}"

    def is_bad(self, place: Place) -> bool:
        """Return whether the value at `place`, or one that it is part of, could not be read: a fault tells of it."""
        return any(place[:length] in self._bad for length in range(len(place) + 1))

    def _read(self) -> Any:
        try:
            if not self.path.is_file():  # reading a pipe would wait for ever
                raise OSError("is not a file")
            node = yaml.compose(self.path.read_text(encoding="utf-8"), Loader=LOADER)
            return self._plain(node, ()) if node is not None else None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.faults.append(f"{self.path}:{line}: not valid YAML: {error.problem}")
        except (OSError, ValueError, yaml.YAMLError) as error:
            self.faults.append(f"{self.path}:1: cannot be read: {' '.join(str(error).split())}")
        except RecursionError:
            self.faults.append(f"{self.path}:1: cannot be read: it is nested too deeply")
        except _TooLargeError:
            self.faults.append(f"{self.path}:1: cannot be read: it has more than {MAX_VALUES} values, aliases included")
        return None

    def _plain(self, node: yaml.Node, place: Place) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _TooLargeError
        self._lines[place] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if id(node) in self._open:
            return self._refuse(place, "it is an alias of what it is part of")
        self._open.add(id(node))
        plain: Any
        if isinstance(node, yaml.MappingNode):
            plain = self._mapping(node, place)
        else:
            plain = [self._plain(item, (*place, index)) for index, item in enumerate(node.value)]
        self._open.discard(id(node))
        return plain

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        kind = node.tag.rpartition(":")[2]
        try:
            if kind == "binary":
                raise ValueError("rules hold no bytes")
            return _SCALARS.construct_object(node)
        except (ValueError, OverflowError, LookupError, AttributeError, yaml.YAMLError):
            return self._refuse(place, f"{node.value[:_SHOWN]!r} is no valid {kind}; put it in quotes if it is text")

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._lines[(*place, "?")] = key_node.start_mark.line + 1
                self._refuse((*place, "?"), "a key is a word, not a list or a mapping")
                continue
            key = key_node.value
            value = self._plain(value_node, (*place, key))
            self._lines[(*place, key)] = key_node.start_mark.line + 1
            if key in result:
                self.faults.append(self.fault((*place, key), f"duplicate key {key!r}"))
            result[key] = value
        return result

    def _refuse(self, place: Place, message: str) -> None:
        self._bad.add(place)
        self.faults.append(self.fault(place, message))
