"""The cases of a corpus: ``case.yaml`` files in, what they say and what is wrong with them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from logtriage import whole_file
from logtriage.engine.yaml_source import LOADER
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

SPLITS = ("train", "test")
LOG = "run.log"
VERDICT = "case.yaml"


class Case(NamedTuple):
    """A log and what stands beside it. `family` is the folder's name where the case names none."""

    folder: Path
    data: dict[str, Any]

    @property
    def log(self) -> Path:
        """The log itself."""
        return self.folder / LOG

    @property
    def label(self) -> str:
        """The label that the log should get."""
        return str(self.data.get("label"))

    @property
    def split(self) -> str:
        """``train`` or ``test``."""
        return str(self.data.get("split", "test"))

    @property
    def family(self) -> str:
        """What logs of one origin or one wording share; never in both splits."""
        return str(self.data.get("family") or self.folder.name)

    @property
    def root_line(self) -> str:
        """The text of the root-cause line, or ''."""
        return str(self.data.get("root_line") or "")


def read_case(path: Path) -> Case:
    """Read a ``case.yaml``. Raises InputError with the file and the line if it is no mapping."""
    try:
        data = yaml.load(whole_file.read(str(path)).decode("utf-8"), Loader=LOADER)  # noqa: S506
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: must be a mapping such as `label: oom-host`")
    return Case(path.parent, data)


def read_labelled(path: Path) -> Case:
    """Read a ``case.yaml`` that must have a label. Raises InputError."""
    case = read_case(path)
    if not isinstance(case.data.get("label"), str):
        raise InputError(f"{path}: lacks a label, as in `label: oom-host`")
    if not isinstance(case.data.get("acceptable") or [], list):
        raise InputError(f"{path}: acceptable must be a list of labels, such as `[]`")
    return case


def write(folder: Path, text: bytes, data: dict[str, Any]) -> None:
    """Write a log and its case into a new folder. Raises InputError if it is there already or cannot be written."""
    try:
        folder.mkdir(parents=True)
        (folder / LOG).write_bytes(text)
        shown = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
        (folder / VERDICT).write_text(shown, encoding="utf-8")
    except FileExistsError as error:
        raise InputError(f"{folder}: is there already; give another name or folder") from error
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error


def faults(case: Case, labels: Container[str]) -> Iterator[str]:
    """Yield what is wrong with a case by itself: what it lacks, and what is not valid."""
    data = case.data
    missing = [name for name in ("provenance", "split", "label", "acceptable", "root_line") if name not in data]
    for name in missing:
        yield f"lacks {name!r}, as in `{_SUCH_AS[name]}`"
    if "split" in data and case.split not in SPLITS:
        yield f"split {case.split!r} must be one of: {', '.join(SPLITS)}"
    acceptable = data.get("acceptable") or []
    if not isinstance(acceptable, list):
        yield "acceptable must be a list of labels, such as `[]`"
        acceptable = []
    for label in [*([data["label"]] if "label" in data else []), *acceptable]:
        if not isinstance(label, str) or label not in labels:
            yield f"no label {label!r}; `logtriage rules list` shows them"
    if not case.log.is_file():
        yield f"there is no {LOG} beside it"


_SUCH_AS = {
    "provenance": "provenance: written for the tests",
    "split": "split: train",
    "label": "label: oom-host",
    "acceptable": "acceptable: []",
    "root_line": "root_line: ''",
}
