"""Turns rule files into the one compiled set that the engine runs, and refuses them with all faults at once.

In: a rules folder (and further folders of the user). Out: plain data, ready for JSON. Never used on the hot path.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, TypeVar

import regex
from pydantic import ValidationError

from logtriage._version import __version__
from logtriage.engine import gates
from logtriage.engine.schema import (
    FactNames,
    FlagAliases,
    LabelFile,
    LabelPart,
    Rule,
    SecretKind,
    SecretKinds,
    ServerLog,
    Signature,
    SignatureGroups,
    Strict,
    Wrappers,
)
from logtriage.engine.yaml_source import Document
from logtriage.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Model = TypeVar("Model", bound=Strict)


class RuleSource:
    """All rule files of a set of folders, validated one by one; `faults` grows and nothing is raised."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.faults: list[str] = []
        self.labels: dict[str, LabelFile] = {}
        self.rules: list[tuple[str, Rule, Document, tuple[str | int, ...]]] = []
        self.groups: dict[str, list[Signature]] = {}
        self.facts: dict[str, str] = {}
        self.log: ServerLog | None = None
        self.flags: FlagAliases | None = None
        self.secrets: list[SecretKind] = []
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
            "wrappers.yaml": self._read_wrappers,
            "servers/sglang/log.yaml": self._read_log,
            "servers/sglang/flags.yaml": self._read_flags,
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
        for index, rule in enumerate(file.rules):
            self.rules.append((file.label, rule, document, ("rules", index)))

    def _read_groups(self, document: Document) -> None:
        file = self._validate(document, SignatureGroups)
        self.groups |= file.groups if file else {}

    def _read_facts(self, document: Document) -> None:
        file = self._validate(document, FactNames)
        self.facts |= {name: kind.type for name, kind in file.facts.items()} if file else {}

    def _read_secrets(self, document: Document) -> None:
        file = self._validate(document, SecretKinds)
        self.secrets += file.kinds if file else []

    def _read_wrappers(self, document: Document) -> None:
        file = self._validate(document, Wrappers)
        self.wrappers = self.wrappers.joined(file) if file else self.wrappers

    def _read_log(self, document: Document) -> None:
        self.log = self._validate(document, ServerLog) or self.log

    def _read_flags(self, document: Document) -> None:
        self.flags = self._validate(document, FlagAliases) or self.flags

    def _validate(self, document: Document, model: type[Model]) -> Model | None:
        self.faults += document.faults
        if document.faults and document.data is None:
            return None
        try:
            return model.model_validate(document.data)
        except ValidationError as error:
            for item in error.errors():
                place = tuple(part for part in item["loc"] if part not in ("Hit", "str"))
                where = ".".join(str(part) for part in place)
                self.faults.append(document.fault(place, f"{where}: {item['msg']}"))
            return None


def compile_rules(folders: Iterable[Path], disable: Iterable[str] = ()) -> dict[str, Any]:
    """Return the compiled set of all rule files in `folders`, without the rules named in `disable`.

    Raises RuleError with every fault of every file.
    """
    folders = list(folders)
    source = RuleSource(folders)
    disabled = set(disable)
    faults = source.faults + list(_cross_faults(source))
    faults += [f"--disable: no rule {name!r}" for name in sorted(disabled - {r.id for _, r, _, _ in source.rules})]
    if faults:
        raise RuleError(faults)
    assert source.log is not None  # noqa: S101 - _cross_faults reports its absence
    assert source.flags is not None  # noqa: S101
    table = _SignatureTable(source.groups)
    ready = {name for name, file in source.labels.items() if file.shows_while_ready}
    rules = [
        {**_compile_rule(label, rule, table), "shows_while_ready": label in ready}
        for label, rule, _, _ in source.rules
        if rule.id not in disabled
    ]
    log = source.log
    marks = [{"stage": mark.stage, "any": table.flat(mark.any)} for mark in log.marks]
    sources = [
        {"id": item.id, "any": table.flat(item.any), "gives": item.gives, "scale": item.scale} for item in log.sources
    ]
    boundaries = table.flat(log.boundaries)
    routes = [_route(entry, log.busy) for entry in table.entries]
    searched = [entry[0] for entry, route in zip(table.entries, routes, strict=True) if route == "gate"]
    chosen = gates.choose(searched, log.failures, log.busy)
    return {
        "tool": __version__,
        "digest": digest(folders, disabled),
        "facts": source.facts,
        "labels": {name: _head(file) for name, file in sorted(source.labels.items())},
        "gates": chosen,
        "by_gate": _by_gate(chosen, table.entries, routes),
        "frames": [number for number, route in enumerate(routes) if route == "frame"],
        "kept": [number for number, route in enumerate(routes) if route == "kept"],
        "signatures": table.entries,
        "rules": rules,
        "log": {
            "prefixes": log.prefixes,
            "marks": marks,
            "sources": sources,
            "boundaries": boundaries,
            "recognised_by": log.recognised_by,
            "blame": [[item.path, item.component, item.flag] for item in log.blame],
            "gpus": [[item.name, item.sm] for item in log.gpus],
        },
        "wrappers": source.wrappers.compiled(),
        "flags": source.flags.model_dump(exclude={"server"}),
        "secrets": [
            kind.model_dump(include={"kind", "anchor", "regex", "keep", "keep_after"}, exclude_none=True)
            for kind in source.secrets
        ],
    }


def digest(folders: Iterable[Path], disabled: Iterable[str] = ()) -> str:
    """Return ``sha256:…`` over the names and bytes of all rule files, the disabled ids and the tool's version."""
    total = hashlib.sha256(__version__.encode())
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    total.update("\0".join(sorted(disabled)).encode())
    return f"sha256:{total.hexdigest()}"


class _SignatureTable:
    """Each different signature once, by number."""

    def __init__(self, groups: dict[str, list[Signature]]) -> None:
        self.entries: list[tuple[str, str | None, str]] = []
        self._numbers: dict[tuple[str, str | None, str], int] = {}
        self._groups = groups

    def flat(self, signatures: Iterable[Signature]) -> list[int]:
        return [number for signature in signatures for number in self.alternatives(signature)]

    def alternatives(self, signature: Signature) -> list[int]:
        members = self._groups[signature.use] if signature.use else [signature]
        return [self._number(member) for member in members]

    def _number(self, signature: Signature) -> int:
        entry = (str(signature.anchor), signature.regex, signature.on)
        if entry not in self._numbers:
            self._numbers[entry] = len(self.entries)
            self.entries.append(entry)
        return self._numbers[entry]


def _compile_rule(label: str, rule: Rule, table: _SignatureTable) -> dict[str, Any]:
    plain = rule.model_dump(
        include={
            "id", "summary", "strength", "strength_if_unknown", "stages", "implies", "blocks",
            "explained_by", "distributed", "covers", "action", "hint", "references",
        },
        exclude_none=True,
        exclude_defaults=True,
    )  # fmt: skip
    when = {name: test.model_dump(exclude_none=True, by_alias=True) for name, test in rule.when.items()}
    return {
        **plain,
        "label": label,
        "any": table.flat(rule.any),
        "with": [[table.alternatives(item), item.scope] for item in rule.with_],
        "unless": [[table.alternatives(item), item.scope] for item in rule.unless],
        "when": when,
    }


def _head(file: LabelFile) -> dict[str, Any]:
    return file.model_dump(exclude={"label", "rules"}, exclude_none=True)


def _route(entry: tuple[str, str | None, str], busy: list[str]) -> str:
    """How a signature is found: through a gate; on the frames of tracebacks, which are kept whole; or, where its
    phrase is printed all the time by a healthy server, only on lines that are kept for another reason.
    """
    if entry[2] == "frame":
        return "frame"
    return "kept" if any(entry[0] in line for line in busy) else "gate"


def _by_gate(chosen: list[str], entries: list[tuple[str, str | None, str]], routes: list[str]) -> list[list[int]]:
    """For each gate the signatures found through it: every signature belongs to its first gate only."""
    lists: list[list[int]] = [[] for _ in chosen]
    for number, entry in enumerate(entries):
        if routes[number] == "gate":
            lists[next(index for index, gate in enumerate(chosen) if gate in entry[0])].append(number)
    return lists


def _cross_faults(source: RuleSource) -> Iterator[str]:
    """Faults that no file shows alone: references to what does not exist, ids used twice, bad expressions."""
    if source.log is None:
        yield "rules:1: servers/sglang/log.yaml is missing"
    if source.flags is None:
        yield "rules:1: servers/sglang/flags.yaml is missing"
    seen: dict[str, str] = {}
    names = {name for _, rule, _, _ in source.rules for name in (rule.id, *rule.was)}
    for label, rule, document, place in source.rules:
        if label not in source.labels:
            yield document.fault(("label",), f"no file gives label {label!r} a head")
        if rule.id in seen:
            yield document.fault((*place, "id"), f"rule id {rule.id!r} is used in {seen[rule.id]} too")
        seen[rule.id] = document.fault((*place, "id"), "").rstrip(": ")
        for target in rule.explained_by:
            if target != "any" and target not in source.labels and target not in names:
                yield document.fault((*place, "explained_by"), f"{target!r} is no label and no rule")
        for name in rule.when:
            if name not in source.facts and not name.startswith("--"):
                yield document.fault((*place, "when"), f"fact {name!r} is not in facts.yaml")
        for key, signatures in (("any", rule.any), ("with", rule.with_), ("unless", rule.unless)):
            for index, signature in enumerate(signatures):
                for message in _signature_faults(signature, source):
                    yield document.fault((*place, key, index), message)


def _signature_faults(signature: Signature, source: RuleSource) -> Iterator[str]:
    if signature.use is not None:
        if signature.use not in source.groups:
            yield f"no group {signature.use!r} in signatures.yaml"
        return
    if signature.regex is None:
        return
    try:
        expression = regex.compile(signature.regex)
    except regex.error as error:
        yield f"not a regular expression: {error}"
        return
    for name in expression.groupindex:
        if name not in source.facts:
            yield f"named group {name!r} is not in facts.yaml"
    try:
        re.compile(signature.regex)
    except re.error as error:
        yield f"not a regular expression for Python's re: {error}"
    if str(signature.anchor) not in _literal(signature.regex):
        yield f"the regex does not contain its anchor {signature.anchor!r}"


def _literal(expression: str) -> str:
    """Undo the escapes of plain characters, so that an anchor can be looked for in a regex."""
    return re.sub(r"\\([^A-Za-z0-9])", r"\1", expression)
