"""Rules on events: which rules hold at which line, and which almost did."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from logtriage.engine import conditions
from logtriage.records import Event, Line, Match, NearMiss, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from logtriage.engine.ruleset import Hit, RuleSet

KEPT_HITS = 32
"""Hits kept of each signature from the beginning of a log, and as many from its end."""

_SEARCHED = ("text", "head", "exception", "message")


class Matched(Record):
    """What `match` found: the rules that hold, those that almost did, and the lines that are no evidence.

    These are covered by harmless rules, or hold answers of the server, which are judged apart.
    """

    matches: list[Match]
    near_misses: list[NearMiss]
    covered: set[int]


def scan(lines: Sequence[Line], rules: RuleSet) -> dict[int, list[Hit]]:
    """Return the signatures that hit each line; of one that hits many lines of a log, the first and the last hits."""
    by_signature: dict[tuple[int, int], list[tuple[int, Hit]]] = defaultdict(list)
    for index, line in enumerate(lines):
        if line.role == "frame":
            found: Iterable[Hit] = rules.frame_hits(line.text[line.body :])
        elif line.role in _SEARCHED:
            found = rules.hits(line.text[line.start :] if line.start else line.text)
        else:
            continue
        for hit in found:
            kept = by_signature[hit.signature, line.file]
            kept.append((index, hit))
            if len(kept) > 2 * KEPT_HITS:
                del kept[KEPT_HITS]
    hits: dict[int, list[Hit]] = defaultdict(list)
    for signature in sorted(by_signature):
        for index, hit in by_signature[signature]:
            hits[index].append(hit)
    return hits


def match(
    lines: Sequence[Line],
    events: Sequence[Event],
    hits: Mapping[int, list[Hit]],
    rules: RuleSet,
    facts: Mapping[int, dict[str, Any]],
) -> Matched:
    """Return the rules that hold. `facts` are the known facts of each launch."""
    index = _Index(lines, hits)
    matches: list[Match] = []
    near: list[NearMiss] = []
    for rule in rules.rules_of(index.signatures):
        for at, hit in index.of_rule(rule):
            event = events[lines[at].event]
            captured = rules.typed(hit.groups)
            verdict, strength = _judge(rule, at, event, index, events, {**facts[event.launch], **captured})
            if verdict:
                near.append(NearMiss(rule, at, verdict))
                continue
            start = lines[at].start
            span = (start + hit.start, start + hit.end)
            matches.append(Match(rule, at, lines[at].event, span, strength, captured))
    covered = _covered(matches, lines, events)
    kept, dropped = _uncover(matches, covered)
    kept = _one_per_event(kept)
    kept.sort(key=lambda item: (item.line, item.rule["id"]))
    return Matched(kept, near + dropped, {*covered, *index.places(rules.log["answers"])})  # answers are judged apart


class _Index:
    """Where each signature hit: by line, by event."""

    def __init__(self, lines: Sequence[Line], hits: Mapping[int, list[Hit]]) -> None:
        self._lines_of: dict[int, list[tuple[int, Hit]]] = defaultdict(list)
        for at in sorted(hits):
            for hit in hits[at]:
                self._lines_of[hit.signature].append((at, hit))
        self._lines = lines
        self.signatures = frozenset(self._lines_of)

    def of_rule(self, rule: dict[str, Any]) -> Iterable[tuple[int, Hit]]:
        """The rule's hits, one per line: the one that caught most."""
        best: dict[int, Hit] = {}
        for signature in rule["any"]:
            for at, hit in self._lines_of.get(signature, ()):
                if at not in best or len(hit.groups) > len(best[at].groups):
                    best[at] = hit
        return sorted(best.items())

    def places(self, signatures: Iterable[int], like: str = "") -> Iterable[int]:
        """The lines that one of the signatures hit; those alone where what it caught begins a name, if one is given."""
        return (at for signature in signatures for at, hit in self._lines_of.get(signature, ())
                if not like or any(_plain(like).startswith(_plain(name)) for name in hit.groups.values()))  # fmt: skip

    def event(self, at: int) -> int:
        """The event of a line."""
        return self._lines[at].event


def _judge(
    rule: dict[str, Any], at: int, event: Event, index: _Index, events: Sequence[Event], facts: dict[str, Any]
) -> tuple[str, str]:
    """Return why the rule does not hold at the line (empty if it does), and its strength there."""
    strength = rule["strength"]
    stages = rule.get("stages")
    if stages and event.stage is not None and event.stage not in stages:
        return f"the stage is {event.stage}, the rule needs {' or '.join(stages)}", strength

    def found(signatures: list[int], scope: str, like: str) -> bool:
        for place in index.places(signatures, str(facts.get(like)) if like else ""):
            if scope == "event":
                if index.event(place) == index.event(at):
                    return True
            elif events[index.event(place)].launch == event.launch and (scope == "log" or place <= at):
                return True
        return False

    for signatures, scope, like in rule["with"]:
        if not found(signatures, scope, like):
            return f"what must stand {_where(scope)} does not", strength
    for signatures, scope, like in rule["unless"]:
        if found(signatures, scope, like):
            return f"what must not stand {_where(scope)} does", strength
    answer = conditions.holds(rule["when"], facts)
    if answer is False:
        return conditions.describe(rule["when"], facts), strength
    if answer is None or (stages and event.stage is None):
        strength = rule.get("strength_if_unknown", "supporting")
    platforms = rule.get("platforms")
    if platforms and strength == "decisive" and facts.get("platform") not in (None, *platforms):
        strength = "supporting"  # what this label means cannot happen on this platform
    return "", strength


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _where(scope: str) -> str:
    return {"event": "in the same event", "before": "before it", "log": "in the same launch"}[scope]


def _one_per_event(matches: Iterable[Match]) -> list[Match]:
    """Of the matches of one rule in one event the first, except for rules that speak of single lines."""
    kept: dict[tuple[str, int], Match] = {}
    for found in matches:
        single = found.strength in ("harmless", "outcome")
        kept.setdefault((found.rule["id"], found.line if single else -1 - found.event), found)
    return list(kept.values())


def _covered(matches: Iterable[Match], lines: Sequence[Line], events: Sequence[Event]) -> dict[int, str]:
    """Return the lines that harmless matches take out of the evidence, with the id of the rule.

    A harmless text inside a traceback, or on the line that opens it, covers the traceback. One on a record that a
    traceback happens to follow covers it only if the rule says that this record carries one; one below the exception,
    or between its frames, may be what another program printed.
    """
    covered: dict[int, str] = {}
    for found in matches:
        if found.strength != "harmless":
            continue
        event = events[found.event]
        is_apart = lines[found.line].role in ("message", "text")
        is_inside = event.traceback is not None and found.line >= event.traceback and not is_apart
        whole = is_inside or found.rule.get("covers") == "record"
        span = range(event.first, event.last + 1) if whole else (found.line,)
        covered.update(dict.fromkeys(span, found.rule["id"]))
    return covered


def _uncover(matches: Iterable[Match], covered: Mapping[int, str]) -> tuple[list[Match], list[NearMiss]]:
    kept, dropped = [], []
    for found in matches:
        if found.line in covered and found.strength not in ("harmless", "outcome"):
            dropped.append(NearMiss(found.rule, found.line, f"{covered[found.line]} says that this is harmless"))
        else:
            kept.append(found)
    return kept, dropped
