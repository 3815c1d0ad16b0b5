"""From matches to one incident: explains effects away, chooses the root, names what nobody accounts for.

Everything here is about one launch. It never looks at the words of a message, except for the generic signs of
trouble that no rule knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.engine.clock import Mark, is_later
from logtriage.engine.lives import Lives
from logtriage.records import Event, Explained, Incident, Line, Match, Record

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

NEAR_SECONDS = 2.0
NEAR_LINES = 200
"""A distributed failure yields to another failure this near (lines where there are no times)."""

_LAST_LINES = 30


class Evidence(Record):
    """All that is known about one launch.

    Attributes:
        lines, events: those of the whole log.
        own_events: indexes of the launch's events, in order.
        matches, marks: those of the launch.
        covered: lines that harmless rules take out of the evidence.
        fatal: events that say that their process ends with them.
        troubles: what looks like trouble where no rule knows better.
    """

    lines: Sequence[Line]
    events: Sequence[Event]
    own_events: Sequence[int]
    matches: Sequence[Match]
    marks: Sequence[Mark]
    covered: set[int]
    fatal: set[int]
    troubles: re.Pattern[str]


def build(evidence: Evidence) -> Incident:
    """Return the incident of a launch."""
    matches = evidence.matches
    outcomes = tuple(m for m in matches if m.strength == "outcome")
    lives = Lives(evidence.matches, evidence.events)
    explained: list[Explained] = []
    decisive = [m for m in matches if m.strength == "decisive"]
    decisive = _take(decisive, explained, lives.after_stop)
    decisive = _take(decisive, explained, lambda m: _survived(m, evidence, lives))
    decisive = _take(decisive, explained, lambda m: _effect_of(m, decisive, evidence))
    root = _choose(decisive, evidence)
    unexplained: list[Match] = []
    for other in decisive:
        if other is not root and root is not None:
            because = _accounted(other, root, evidence)
            if because:
                explained.append(Explained(other, because))
            else:
                unexplained.append(other)
    troubles = tuple(_troubles(evidence, lives))
    symptoms = [m for m in matches if m.strength == "symptom"]
    known = _Known(root, lives, troubles, symptoms)
    endings = _take(symptoms, explained, lambda m: _ending_explained(m, known, evidence))
    supporting = tuple(m for m in matches if m.strength == "supporting" and not lives.after_stop(m))
    explained.sort(key=lambda item: item.match.line)
    return Incident(
        root=root,
        explained=tuple(explained),
        unexplained=tuple(unexplained),
        supporting=supporting,
        endings=tuple(endings),
        troubles=troubles,
        trouble_events=tuple(evidence.lines[at].event for at in troubles),
        outcomes=outcomes,
    )


def _take(matches: list[Match], explained: list[Explained], why: Callable[[Match], str]) -> list[Match]:
    """Move the matches for which `why` gives a reason to `explained`; return the others."""
    left = []
    for match in matches:
        because = why(match)
        if because:
            explained.append(Explained(match, because))
        else:
            left.append(match)
    return left


def _survived(match: Match, evidence: Evidence, lives: Lives) -> str:
    """A failure after which the same rank went on to a later stage, or the server became ready, was no failure."""
    event = evidence.events[match.event]
    if event.stage == "serving" or match.rule.get("shows_while_ready"):
        return ""
    if lives.of(match.event).ready > match.line:
        return "the server became ready afterwards"
    if match.event in evidence.fatal:
        return ""
    for mark in evidence.marks:
        if mark.time is None or event.time is None or (mark.launch, mark.rank) != (event.launch, event.rank):
            continue
        later = mark.line > match.line and mark.time > event.time
        if later and event.stage is not None and is_later(mark.stage, event.stage):
            return f"the launch went on to {mark.stage} afterwards"
    return ""


def _effect_of(match: Match, causes: Iterable[Match], evidence: Evidence) -> str:
    """Return why a match with `explained_by` is an effect of one of `causes`, or nothing."""
    names = match.rule.get("explained_by", ())
    for cause in causes:
        if cause is match or cause.rule["id"] == match.rule["id"]:
            continue
        if "any" in names or cause.label in names or cause.rule["id"] in names:
            same_event = cause.event == match.event
            if same_event or not _is_later(cause, match, evidence):
                return f"it follows from {cause.label}"
    return ""


def _choose(decisive: Sequence[Match], evidence: Evidence) -> Match | None:
    """The earliest; ties go to the lowest rank; a distributed one yields to another that is near."""
    if not decisive:
        return None

    timed = all(evidence.events[match.event].time is not None for match in decisive)

    def order(match: Match) -> tuple[float, str, int]:
        event = evidence.events[match.event]
        return (event.time or 0.0 if timed else match.line, event.rank, match.line)

    ordered = sorted(decisive, key=order)
    first = ordered[0]
    if first.rule.get("distributed"):
        for other in ordered[1:]:
            if not other.rule.get("distributed") and _is_near(first, other, evidence):
                return other
    return first


def _is_near(first: Match, other: Match, evidence: Evidence) -> bool:
    one, two = evidence.events[first.event].time, evidence.events[other.event].time
    if one is not None and two is not None:
        return abs(two - one) <= NEAR_SECONDS
    return abs(evidence.lines[other.line].row - evidence.lines[first.line].row) <= NEAR_LINES


def _is_later(one: Match, other: Match, evidence: Evidence) -> bool:
    """Return whether `one` came later than `other`: by time if both have one and it differs, else by line."""
    first, second = evidence.events[one.event].time, evidence.events[other.event].time
    if first is not None and second is not None and first != second:
        return first > second
    own, its = evidence.lines[one.line], evidence.lines[other.line]
    if own.file == its.file and own.origin != its.origin:  # read apart, printed one after the other
        return own.number > its.number
    return one.line > other.line


def _accounted(other: Match, root: Match, evidence: Evidence) -> str:
    """Return why a further decisive match is no second failure, or nothing."""
    if other.event == root.event:
        return "it is part of the same error"
    if other.label == root.label:
        rank = evidence.events[other.event].rank
        return f"the same on {rank}" if rank and rank != evidence.events[root.event].rank else "the same again"
    if other.rule.get("distributed"):
        return "another rank that lost its partner"
    return ""


class _Known(Record):
    """What may explain a symptom."""

    root: Match | None
    lives: Lives
    troubles: Sequence[int]
    symptoms: Sequence[Match]


def _ending_explained(match: Match, known: _Known, evidence: Evidence) -> str:
    """Return what a symptom follows from: the root, an ordered stop, an unknown failure, or SGLang ending itself."""
    root = known.root
    life = known.lives.of(match.event)
    if 0 <= life.stop < match.line:
        return "it follows an ordered stop"
    if life.served > match.line and match.rule.get("passes_when_served"):
        return "the server answered requests afterwards"
    if because := _survived(match, evidence, known.lives):
        return because
    if root is not None and (match.event == root.event or not _is_later(root, match, evidence)):
        return f"it follows from {root.label}"
    if root is not None and match.line < root.line and "any" not in match.rule.get("explained_by", ()):
        return ""
    if root is not None:
        return f"it belongs to {root.label}, which was printed later"
    if match.rule["label"] != "healthy":
        if any(line < match.line for line in known.troubles):
            return "it follows from a failure that no rule knows"
        names = match.rule.get("explained_by", ())
        if any(m.rule["id"] in names and not _is_later(m, match, evidence) for m in known.symptoms if m is not match):
            return "the server had begun to end itself"
    return ""


def _troubles(evidence: Evidence, lives: Lives) -> Iterator[int]:
    """Lines that look like failures and that no rule took care of: tracebacks, and error lines near the end.

    A traceback that the server survived (it became ready, or answered requests afterwards) is no trouble.
    """
    known = {m.event for m in evidence.matches if m.strength in ("decisive", "outcome")}
    symptoms = [m for m in evidence.matches if m.strength == "symptom"]
    known |= {m.event for m in symptoms if m.label != "healthy" or m.rule.get("distributed")}
    teardown = [m for m in symptoms if m.label == "healthy" and not lives.after_stop(m)]
    dying = {evidence.events[m.event].launch for m in teardown if m.line > lives.of(m.event).ready}
    newest = {evidence.events[number].launch: number for number in evidence.own_events}
    for number in evidence.own_events:
        event, life = evidence.events[number], lives.of(number)
        survived = life.ready if number in evidence.fatal else life.served
        if number in known or event.last < survived or 0 <= life.stop < event.first:
            continue
        if life.served >= 0 and event.launch not in dying and event.traceback is None:
            continue  # an error line of a server that goes on is a matter of one request
        at = _error_line(event, evidence.events[newest[event.launch]].last, evidence)
        if at is not None and at not in evidence.covered:
            yield at


def _error_line(event: Event, end: int, evidence: Evidence) -> int | None:
    """The last exception of a traceback, or an error line among the last lines of the launch, which ends at `end`."""
    if event.traceback is not None:
        raised = [at for at in range(event.first, event.last + 1) if evidence.lines[at].role == "exception"]
        return raised[-1] if raised else event.traceback
    newest = evidence.lines[end]
    first = evidence.lines[event.first]
    if first.file == newest.file and first.row > newest.row - _LAST_LINES:
        for at in range(event.first, event.last + 1):
            line = evidence.lines[at]
            if line.role in ("text", "message") and evidence.troubles.search(line.text[line.start :]):
                return at
    return None
