"""Turns rule files into the one compiled set that the engine runs, and refuses them with all faults at once.

In: a rules folder (and further folders of the user). Out: plain data, ready for JSON. Never used on the hot path.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from logtriage._version import __version__
from logtriage.engine import gates
from logtriage.engine.rule_faults import cross_faults
from logtriage.engine.rule_source import RuleSource
from logtriage.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from logtriage.engine.schema import LabelFile, Rule, Signature
    from logtriage.engine.schema_knowledge import FlagFile, KernelFile
    from logtriage.engine.schema_server import RunnerFile


def compile_rules(folders: Iterable[Path], disable: Iterable[str] = ()) -> dict[str, Any]:
    """Return the compiled set of all rule files in `folders`, without the rules named in `disable`.

    Raises RuleError with every fault of every file.
    """
    folders = list(folders)
    source = RuleSource(folders)
    disabled = {*disable, *(name for name, _ in source.disabled)}
    faults = source.faults + list(cross_faults(source))
    if faults:
        raise RuleError(faults)
    assert source.log is not None  # noqa: S101 - cross_faults reports its absence
    assert source.flags is not None  # noqa: S101
    assert source.kernels is not None  # noqa: S101
    assert source.preflight is not None  # noqa: S101
    assert source.runner is not None  # noqa: S101
    table = _SignatureTable(source.groups)
    rules = [
        _compile_rule(label, rule, table, source.labels[label])
        for label, rule, _, _ in source.rules
        if rule.id not in disabled
    ]
    log = source.log
    marks = [{"stage": mark.stage, "any": table.flat(mark.any)} for mark in log.marks]
    sources = [{"id": item.id, "any": table.flat(item.any), "gives": item.gives} for item in log.sources]
    boundaries, notices, answers = (table.flat(own) for own in (log.boundaries, log.notices, log.answers))
    together = table.flat(log.together)
    routes = [_route(entry, log.busy) for entry in table.entries]
    searched = [entry[0] for entry, route in zip(table.entries, routes, strict=True) if route == "gate"]
    chosen = gates.choose(searched, log.failures, log.busy)
    return {
        "tool": __version__,
        "digest": digest(folders, disabled),
        "facts": source.facts,
        "labels": {name: _head(file) for name, file in sorted(source.labels.items())},
        "gates": chosen,
        "failures": log.failures,
        "by_gate": _by_gate(chosen, table.entries, routes),
        "frames": [number for number, route in enumerate(routes) if route == "frame"],
        "kept": [number for number, route in enumerate(routes) if route == "kept"],
        "anchors": [anchor for anchor, _, _ in table.entries],
        "signatures": _signatures(rules, table.entries),
        "count": len(rules),
        "rules": rules,
        "log": {
            "prefixes": log.prefixes,
            "arguments": log.arguments,
            "marks": marks,
            "together": together,
            "sources": sources,
            "answers": answers,
            "answer_cues": log.answer_cues,
            "repeats_asked": log.repeats_asked,
            "complaints": log.complaints,
            "boundaries": boundaries,
            "notices": notices,
            "recognised_by": log.recognised_by,
            "described_by": log.described_by,
            "related_words": log.related_words,
            "own_words": log.own_words,
            "client_words": log.client_words,
            "fatal": log.fatal,
            "troubles": log.troubles,
            "blame": [[item.path, item.component, item.flag] for item in log.blame],
            "gpus": [[item.name, item.sm] for item in log.gpus],
        },
        "wrappers": source.wrappers.compiled(),
        "flags": source.flags.model_dump(include=_LAUNCH),
        "server": {
            **_server(source.flags, source.kernels, source.runner),
            "preflight": source.preflight.model_dump(mode="json", by_alias=True),
        },
        "secrets": [
            kind.model_dump(include={"kind", "anchor", "shape", "regex", "keep", "keep_after"}, exclude_none=True)
            for kind in source.secrets
        ],
    }


_LAUNCH = {"modules", "commands", "aliases", "switches"}


def _server(flags: FlagFile, kernels: KernelFile, runner: RunnerFile) -> dict[str, Any]:
    """What only advice needs; it is kept apart from the rest, so that reading a log need not load it."""
    return {
        "aliases": flags.aliases,
        **flags.model_dump(exclude={"server", *_LAUNCH}, exclude_unset=True, by_alias=True),
        **kernels.model_dump(exclude_unset=True, by_alias=True),
        "runner": runner.model_dump(exclude={"server"}),
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


def _compile_rule(label: str, rule: Rule, table: _SignatureTable, head: LabelFile) -> dict[str, Any]:
    plain = rule.model_dump(
        include={
            "id", "summary", "strength", "strength_if_unknown", "stages", "implies", "blocks",
            "explained_by", "distributed", "confidence", "covers", "shows_while_ready", "orders_stop", "left_by",
            "action", "hint", "references",
        },
        exclude_none=True,
        exclude_defaults=True,
    )  # fmt: skip
    when = {name: test.model_dump(exclude_none=True, by_alias=True) for name, test in rule.when.items()}
    return {
        **plain,
        **head.model_dump(include={"shows_while_ready", "passes_when_served", "platforms"}, exclude_defaults=True),
        "label": label,
        "any": table.flat(rule.any),
        "with": [[table.alternatives(item), item.scope, item.like] for item in rule.with_],
        "unless": [[table.alternatives(item), item.scope, item.like] for item in rule.unless],
        "when": when,
    }


def _signatures(
    rules: Sequence[dict[str, Any]], entries: Sequence[tuple[str, str | None, str]]
) -> list[tuple[str | None, list[int]]]:
    """For each signature its regular expression and the numbers of the rules that it may set off."""
    owners: list[list[int]] = [[] for _ in entries]
    for number, rule in enumerate(rules):
        for signature in sorted(set(rule["any"])):
            owners[signature].append(number)
    return [(regex, own) for (_, regex, _), own in zip(entries, owners, strict=True)]


def _head(file: LabelFile) -> dict[str, Any]:
    return file.model_dump(exclude={"label", "rules"}, exclude_none=True, by_alias=True)


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
