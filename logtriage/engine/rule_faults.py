"""Faults that no rule file shows alone: references to what does not exist, ids used twice, bad expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import regex

from logtriage.engine import schema_knowledge, schema_preflight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.engine.rule_source import RuleSource
    from logtriage.engine.schema import Signature


def cross_faults(source: RuleSource) -> Iterator[str]:
    """Faults that no file shows alone: references to what does not exist, ids used twice, bad expressions."""
    if source.log is None:
        yield "rules:1: servers/sglang/log.yaml is missing"
    if source.flags is None:
        yield "rules:1: servers/sglang/flags.yaml is missing"
    if source.kernels is None:
        yield "rules:1: servers/sglang/kernels.yaml is missing"
    if source.preflight is None:
        yield "rules:1: servers/sglang/preflight.yaml is missing"
    if source.runner is None:
        yield "rules:1: servers/sglang/runner.yaml is missing"
    yield from _knowledge_faults(source)
    for label, document in source.heads.items():
        for name in source.labels[label].guess_when:
            if name not in source.facts:
                yield document.fault(("guess_when",), f"fact {name!r} is not in facts.yaml")
    ids = {rule.id for _, rule, _, _ in source.rules}
    for index, (name, document) in enumerate(source.disabled):
        if name not in ids:
            yield document.fault(("disable", index), f"no rule {name!r}")
    seen: dict[str, str] = {}
    names = {name for _, rule, _, _ in source.rules for name in (rule.id, *rule.was)}
    for label, rule, document, place in source.rules:
        if label not in source.labels:
            yield document.fault(("label",), f"no file gives label {label!r} a head")
        if rule.id in seen:
            yield document.fault((*place, "id"), f"rule id {rule.id!r} is used in {seen[rule.id]} too")
        seen[rule.id] = document.fault((*place, "id"), "").rstrip(": ")
        for target in rule.left_by:
            if target != "any" and target not in source.labels:
                yield document.fault((*place, "left_by"), f"{target!r} is no label")
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


def _knowledge_faults(source: RuleSource) -> Iterator[str]:
    if source.flags is None or source.kernels is None:
        return
    blocks = {
        rule.blocks["kernels"]: document.fault((*place, "blocks"), "")
        for _, rule, document, place in source.rules
        if "kernels" in rule.blocks
    }
    flags_at, kernels_at = source.knowledge["flags"], source.knowledge["kernels"]
    yield from schema_knowledge.cross_faults(source.flags, flags_at, source.kernels, kernels_at, blocks)
    if source.preflight is not None:
        yield from schema_preflight.cross_faults(source.preflight, source.knowledge["preflight"], source.flags)


def _signature_faults(signature: Signature, source: RuleSource) -> Iterator[str]:
    if signature.use is not None:
        if signature.use not in source.groups:
            yield f"no group {signature.use!r} in signatures.yaml"
        return
    if signature.regex is None:
        return
    try:
        expression = regex.compile(signature.regex)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        yield f"not a regular expression: {error}"
        return
    for name in expression.groupindex:
        if name not in source.facts:
            yield f"named group {name!r} is not in facts.yaml"
    try:
        re.compile(signature.regex)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        yield f"not a regular expression for Python's re: {error}"
    if str(signature.anchor) not in _literal(signature.regex):
        yield f"the regex does not contain its anchor {signature.anchor!r}"


def _literal(expression: str) -> str:
    """Undo the escapes of plain characters, so that an anchor can be looked for in a regex."""
    return re.sub(r"\\([^A-Za-z0-9])", r"\1", expression)
