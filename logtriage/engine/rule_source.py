"""Reads the rule files of some folders, each validated by itself; every fault keeps its file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from logtriage.engine.schema import (
    Disabled,
    FactNames,
    LabelFile,
    LabelPart,
    Rule,
    SecretKind,
    SecretKinds,
    Signature,
    SignatureGroups,
    Strict,
    Wrappers,
)
from logtriage.engine.schema_knowledge import FlagFile, KernelFile
from logtriage.engine.schema_preflight import PreflightFile
from logtriage.engine.schema_server import RunnerFile, ServerLog
from logtriage.engine.schema_smoke import PromptFile
from logtriage.engine.yaml_source import Document

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Model = TypeVar("Model", bound=Strict)


class RuleSource:
    """All rule files of a set of folders, validated one by one; `faults` grows and nothing is raised."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.faults: list[str] = []
        self.labels: dict[str, LabelFile] = {}
        self.heads: dict[str, Document] = {}
        self.rules: list[tuple[str, Rule, Document, tuple[str | int, ...]]] = []
        self.groups: dict[str, list[Signature]] = {}
        self.facts: dict[str, str] = {}
        self.log: ServerLog | None = None
        self.flags: FlagFile | None = None
        self.kernels: KernelFile | None = None
        self.preflight: PreflightFile | None = None
        self.runner: RunnerFile | None = None
        self.knowledge: dict[str, Document] = {}
        self.secrets: list[SecretKind] = []
        self.disabled: list[tuple[str, Document]] = []
        self.wrappers = Wrappers(wrappers=[])
        for folder in folders:
            self._read_folder(folder)

    def _read_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self.faults.append(f"{folder}:1: is not a folder of rule files")
            return
        known = {
            "signatures.yaml": self._read_groups,
            "facts.yaml": self._read_facts,
            "secrets.yaml": self._read_secrets,
            "disable.yaml": self._read_disabled,
            "wrappers.yaml": self._read_wrappers,
            "servers/sglang/log.yaml": self._read_log,
            "servers/sglang/flags.yaml": self._read_flags,
            "servers/sglang/kernels.yaml": self._read_kernels,
            "servers/sglang/preflight.yaml": self._read_preflight,
            "servers/sglang/smoke.yaml": self._read_smoke,
            "servers/sglang/runner.yaml": self._read_runner,
        }
        for path in sorted(folder.rglob("*.yaml")):
            name = path.relative_to(folder).as_posix()
            known.get(name, self._read_label)(Document(path))

    def _read_label(self, document: Document) -> None:
        data = document.data
        is_part = isinstance(data, dict) and "title" not in data
        file: LabelFile | LabelPart | None
        file = self._validate(document, LabelPart) if is_part else self._validate(document, LabelFile)
        if file is None:
            return
        if file.label not in (document.path.stem, document.path.parent.name):
            self.faults.append(document.fault(("label",), f"label {file.label!r} is not the file's or folder's name"))
        if isinstance(file, LabelFile):
            if file.label in self.labels:
                self.faults.append(document.fault(("label",), f"label {file.label!r} has two heads"))
            self.labels[file.label] = file
            self.heads[file.label] = document
        for index, rule in enumerate(file.rules):
            self.rules.append((file.label, rule, document, ("rules", index)))

    def _read_groups(self, document: Document) -> None:
        file = self._validate(document, SignatureGroups)
        self.groups |= file.groups if file else {}

    def _read_facts(self, document: Document) -> None:
        file = self._validate(document, FactNames)
        self.facts |= {name: kind.type for name, kind in file.facts.items()} if file else {}

    def _read_disabled(self, document: Document) -> None:
        file = self._validate(document, Disabled)
        self.disabled += [(rule, document) for rule in file.disable] if file else []

    def _read_secrets(self, document: Document) -> None:
        file = self._validate(document, SecretKinds)
        self.secrets += file.kinds if file else []

    def _read_wrappers(self, document: Document) -> None:
        file = self._validate(document, Wrappers)
        self.wrappers = self.wrappers.joined(file) if file else self.wrappers

    def _read_log(self, document: Document) -> None:
        self.log = self._validate(document, ServerLog) or self.log

    def _read_flags(self, document: Document) -> None:
        self.flags = self._validate(document, FlagFile) or self.flags
        self.knowledge["flags"] = document

    def _read_kernels(self, document: Document) -> None:
        self.kernels = self._validate(document, KernelFile) or self.kernels
        self.knowledge["kernels"] = document

    def _read_preflight(self, document: Document) -> None:
        self.preflight = self._validate(document, PreflightFile) or self.preflight
        self.knowledge["preflight"] = document

    def _read_smoke(self, document: Document) -> None:
        self._validate(document, PromptFile)  # read by the smoke test itself, no part of the compiled rules

    def _read_runner(self, document: Document) -> None:
        self.runner = self._validate(document, RunnerFile) or self.runner

    def _validate(self, document: Document, model: type[Model]) -> Model | None:
        self.faults += document.faults
        if document.faults and document.data is None:
            return None
        try:
            return model.model_validate(document.data)
        except ValidationError as error:
            for item in error.errors():
                place = tuple(part for part in item["loc"] if part not in ("Hit", "str"))
                if document.is_bad(place):  # said already
                    continue
                where = ".".join(str(part) for part in place)
                self.faults.append(document.fault(place, f"{where}: {item['msg']}"))
            return None
