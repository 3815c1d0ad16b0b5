"""Reads YAML strictly: duplicate keys are faults, and every value keeps the line that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

Place = tuple[str | int, ...]

_SCALARS = yaml.SafeLoader("")


class Document:
    """A YAML file as plain data, the line of every key and item, and the faults met on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []
        self._lines: dict[Place, int] = {(): 1}
        self.data: Any = self._read()

    def line(self, place: Place) -> int:
        """Return the line (1-based) of the value at `place`, or of the nearest parent that has one."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def fault(self, place: Place, message: str) -> str:
        """Return `message` with the file and line of `place` in front."""
        return f"{self.path}:{self.line(place)}: {message}"

    def _read(self) -> Any:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            node = yaml.compose(self.path.read_text(encoding="utf-8"), Loader=loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.faults.append(f"{self.path}:{line}: not valid YAML: {error.problem}")
            return None
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            self.faults.append(f"{self.path}:1: cannot be read: {error}")
            return None
        return self._plain(node, ()) if node is not None else None

    def _plain(self, node: yaml.Node, place: Place) -> Any:
        self._lines[place] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*place, index)) for index, item in enumerate(node.value)]
        return _SCALARS.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            value = self._plain(value_node, (*place, key))
            self._lines[(*place, key)] = key_node.start_mark.line + 1
            if key in result:
                self.faults.append(self.fault((*place, key), f"duplicate key {key!r}"))
            result[key] = value
        return result
