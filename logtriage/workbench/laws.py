"""The laws that a set of rules keeps. Every fault is reported with its file and line; what was looked at is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import regex

from logtriage import pipeline
from logtriage.engine.compile import compile_rules
from logtriage.engine.rule_source import RuleSource
from logtriage.engine.ruleset import TIME_LIMIT, RuleSet
from logtriage.engine.schema import Hit, Miss, Rule
from logtriage.errors import RuleError
from logtriage.workbench.new_rule import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from logtriage.engine.yaml_source import Document
    from logtriage.records import Report

_HOSTILE_LENGTH = 20_000


class Checked(NamedTuple):
    """What a check found, and how much it looked at."""

    faults: list[str]
    looked_at: Counter[str]


class _Placed(NamedTuple):
    label: str
    rule: Rule
    document: Document
    place: tuple[str | int, ...]

    def fault(self, message: str, *inner: str | int) -> str:
        return self.document.fault((*self.place, *inner), f"{self.rule.id}: {message}")


class Workshop:
    """A set of rules ready for checking, all of it or the part in the folder `within`.

    Raises RuleError if the rules cannot even be compiled.
    """

    def __init__(self, folders: Sequence[Path], within: Path | None = None) -> None:
        self.compiled = compile_rules(folders)
        self.rules = RuleSet(self.compiled, linted=within is None)
        self._plain = {rule["id"]: rule for rule in self.rules.rules}
        self._placed = [_Placed(*item) for item in RuleSource(folders).rules]
        self._chosen = [item for item in self._placed if within is None or item.document.path.is_relative_to(within)]
        self._seen_signatures: set[int] = set()

    def lint(self) -> Checked:
        """Check the laws that need no example to run: references, explanations, expressions."""
        faults = [fault for placed in self._chosen for fault in self._lint_rule(placed)]
        faults += self._cycles()
        counts = Counter(rules=len(self._chosen), signatures=sum(len(item.rule.any) for item in self._chosen))
        return Checked(sorted(faults), counts)

    def test(self) -> Checked:
        """Run every example of every rule through the whole analysis."""
        faults: list[str] = []
        counts: Counter[str] = Counter(rules=len(self._chosen))
        for placed in self._chosen:
            self._seen_signatures = set()
            for index, example in enumerate(placed.rule.examples.hit):
                hit = Hit(log=example) if isinstance(example, str) else example
                faults += [placed.fault(text, "examples", "hit", index) for text in self._hit(placed, hit)]
                counts["hits"] += 1
            for index, miss in enumerate(placed.rule.examples.miss):
                faults += [placed.fault(text, "examples", "miss", index) for text in self._miss(placed, miss)]
                counts["misses"] += 1
            faults += self._unseen(placed)
        return Checked(faults, counts)

    def _lint_rule(self, placed: _Placed) -> Iterator[str]:
        rule = placed.rule
        if rule.summary == PLACEHOLDER:
            yield placed.fault("the summary is that of a draft: say who prints this, and when", "summary")
        if rule.strength == "decisive":
            if not rule.references:
                yield placed.fault("a decisive rule names its source in 'references'", "id")
            if not rule.examples.miss:
                yield placed.fault("a decisive rule has an example that it must miss", "examples")
        for key, signatures in (("any", rule.any), ("with", rule.with_), ("unless", rule.unless)):
            for index, signature in enumerate(signatures):
                if signature.regex is not None and not _is_fast(str(signature.anchor), signature.regex):
                    yield placed.fault("the expression is too slow on hostile text", key, index)

    def _cycles(self) -> Iterator[str]:
        """Explanations of decisive rules form no cycle (two failures that explain each other would both vanish)."""
        decisive = [item for item in self._placed if item.rule.strength == "decisive"]
        targets = {
            item.rule.id: {
                other.rule.id
                for other in decisive
                if other.rule.id != item.rule.id
                and {"any", other.label, other.rule.id}.intersection(item.rule.explained_by)
            }
            for item in decisive
        }
        for item in decisive:
            reached: set[str] = set()
            frontier = set(targets[item.rule.id])
            while frontier:
                reached |= frontier
                frontier = {far for near in frontier for far in targets[near]} - reached
            if item.rule.id in reached:
                yield item.fault("it explains itself through other rules", "explained_by")

    def _report(self, log: str, given: dict[str, str | int]) -> tuple[Report, set[str]]:
        options = pipeline.Options(facts=given)
        reading = pipeline.read([log.encode()], self.rules, options)
        self._seen_signatures |= {hit.signature for hits in reading.hits.values() for hit in hits}
        fired = {match.rule["id"] for match in reading.matched.matches}
        return pipeline.report_on(reading, self.rules, options), fired

    def _hit(self, placed: _Placed, example: Hit) -> Iterator[str]:
        rule = placed.rule
        report, fired = self._report(example.log, example.given)
        if rule.id not in fired:
            yield f"does not fire on its example; the verdict is {report.label}"
            return
        wanted = example.verdict or (placed.label if rule.strength == "decisive" else None)
        if wanted and report.label != wanted:
            yield f"the verdict on its example is {report.label} ({report.verdict.rule}), not {wanted}"
        others = sorted({match.label for match in report.incident.unexplained})
        if others:
            yield f"its example is also hit by decisive rules of {', '.join(others)}, which nothing explains"
        root = report.root
        for name, value in example.facts.items():
            found = {**(root.facts if root else {}), **_facts_of(report, rule.id)}.get(name)
            if found != value:
                yield f"the fact {name} is {found!r} in its example, not {value!r}"
        if example.stage and report.verdict.stage != example.stage:
            yield f"the stage of its example is {report.verdict.stage}, not {example.stage}"

    def _miss(self, placed: _Placed, example: Miss) -> Iterator[str]:
        report, fired = self._report(example.log, example.given)
        strength = _strength_of(report, placed.rule.id)
        if placed.rule.id in fired and strength == placed.rule.strength:
            yield f"fires on an example that it must miss ({example.because})"
        if example.owner and report.label != example.owner:
            yield f"the verdict on its miss is {report.label} ({report.verdict.rule}), not {example.owner}"

    def _unseen(self, placed: _Placed) -> Iterator[str]:
        for index, signature in enumerate(placed.rule.any):
            if signature.use is None and not self._numbers(placed, index) <= self._seen_signatures:
                yield placed.fault(f"no example hits the signature {signature.anchor!r}", "any", index)

    def _numbers(self, placed: _Placed, index: int) -> set[int]:
        signature = placed.rule.any[index]
        wanted = (signature.anchor, signature.regex, signature.on == "frame")
        anchors, signatures, frames = (self.compiled[name] for name in ("anchors", "signatures", "frames"))
        numbers = self._plain[placed.rule.id]["any"]
        return {n for n in numbers if (anchors[n], signatures[n][0], n in frames) == wanted}


def check(folders: Sequence[Path], *, examples: bool, within: Path | None = None) -> Checked:
    """Lint rules (only those in the folder `within`, if one is given), and run their examples if asked to.

    What cannot be compiled is reported, not raised.
    """
    try:
        workshop = Workshop(folders, within)
    except RuleError as error:
        return Checked(error.faults, Counter())
    linted = workshop.lint()
    if not examples:
        return linted
    tested = workshop.test()
    return Checked(linted.faults + tested.faults, linted.looked_at | tested.looked_at)


def _facts_of(report: Report, rule_id: str) -> dict[str, object]:
    incident = report.incident
    matches = [*incident.supporting, *incident.unexplained, *incident.outcomes, *incident.endings]
    matches += [item.match for item in incident.explained] + ([incident.root] if incident.root else [])
    facts: dict[str, object] = {}
    for match in matches:
        if match.rule["id"] == rule_id:
            facts |= match.facts
    return facts


def _strength_of(report: Report, rule_id: str) -> str | None:
    incident = report.incident
    if any(match.rule["id"] == rule_id for match in incident.supporting):
        return "supporting"
    if any(match.rule["id"] == rule_id for match in incident.outcomes):
        return "outcome"
    if any(match.rule["id"] == rule_id for match in incident.endings):
        return "symptom"
    return None if incident.root is None or incident.root.rule["id"] != rule_id else "decisive"


def _is_fast(anchor: str, expression: str) -> bool:
    """Search long texts made of the anchor and of what expressions like to repeat, under the time limit."""
    compiled = regex.compile(expression)
    fillers = ("a", " ", "0", "/", "a ", "1.", "[", "x=", "sm_", "'")
    texts = [
        anchor * (_HOSTILE_LENGTH // len(anchor)),
        *(anchor + filler * _HOSTILE_LENGTH for filler in fillers),
    ]
    try:
        return all(compiled.search(text, timeout=TIME_LIMIT) is not NotImplemented for text in texts)
    except TimeoutError:
        return False
