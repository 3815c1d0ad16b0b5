"""From matches to one incident: explains effects away, chooses the root, names what nobody accounts for.

Everything here is about one launch. It never looks at the words of a message, except for the generic signs of
trouble that no rule knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.engine import order
from logtriage.engine.clock import is_later
from logtriage.engine.evidence import Evidence
from logtriage.engine.lives import Lives
from logtriage.records import Event, Explained, Incident, Match, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from logtriage.records import Line

__all__ = ["Evidence", "build"]

_LAST_LINES = 30
_MARKDOWN = ("```", "~~~", "<details", "</details", "<pre", "</pre", "<code", "</code")


def build(evidence: Evidence) -> Incident:
    """Return the incident of a launch."""
    matches = evidence.matches
    outcomes = tuple(m for m in matches if m.strength == "outcome")
    lives = Lives(evidence)
    explained: list[Explained] = []
    decisive = [m for m in matches if m.strength == "decisive"]
    decisive = _take(decisive, explained, lives.after_stop)
    decisive = _take(decisive, explained, lambda m: _survived(m, evidence, lives))
    decisive = _without_effects(decisive, explained, evidence)
    troubles = tuple(order.by_time(_told(_troubles(evidence, lives), evidence), lambda at: at, evidence))
    symptoms = [m for m in matches if m.strength == "symptom"]
    root = order.choose(decisive, evidence)
    if root is not None and _is_mere_echo(root, _Known(None, lives, troubles, symptoms), evidence):
        decisive = _take(
            decisive, explained, lambda m: "it follows from a failure on another node" if m is root else ""
        )
        root = None
    unexplained: list[Match] = []
    for other in decisive:
        if other is not root:
            because = _accounted(other, root, evidence) if root is not None else ""
            if because:
                explained.append(Explained(other, because))
            else:
                unexplained.append(other)
    known = _Known(root, lives, troubles, symptoms)
    endings = _take(symptoms, explained, lambda m: _ending_explained(m, known, evidence))
    supporting = tuple(m for m in matches if m.strength == "supporting" and not lives.after_stop(m))
    explained.sort(key=lambda item: item.match.line)
    return Incident(
        root=root,
        explained=tuple(explained),
        unexplained=tuple(unexplained),
        supporting=supporting,
        endings=tuple(order.by_time(endings, lambda m: m.line, evidence)),
        troubles=troubles,
        trouble_events=tuple(evidence.lines[at].event for at in troubles),
        outcomes=outcomes,
    )


def _without_effects(decisive: list[Match], explained: list[Explained], evidence: Evidence) -> list[Match]:
    """Move what is an effect of another decisive match to `explained`; return the others."""
    effects: list[Explained] = []
    of_rule: dict[str, list[Match]] = {}
    for rule in {match.rule["id"]: match.rule for match in decisive}.values():
        of_rule[rule["id"]] = [cause for cause in decisive if _may_cause(cause, rule)]
    causes = _take(decisive, effects, lambda m: _effect_of(m, of_rule[m.rule["id"]], evidence))
    if evidence.clocks is not None and not causes and (first := order.choose(decisive, evidence)) is not None:
        causes = [first]  # on two nodes at once, so that each could be the effect of the other
        effects = [item for item in effects if item.match is not first]
    explained += effects
    return causes


def _is_mere_echo(root: Match, known: _Known, evidence: Evidence) -> bool:
    """Whether a failure that may be an effect came after another node had died of something that no rule proves."""
    if evidence.clocks is None or not (root.rule.get("distributed") or root.rule.get("explained_by")):
        return False
    died = [m.line for m in known.symptoms if m.label != "healthy" and not _ending_explained(m, known, evidence)]
    died += [at for at in known.troubles if evidence.lines[at].event in evidence.fatal]
    file = evidence.lines[root.line].file
    return any(evidence.lines[at].file != file and evidence.clocks.is_later(root.line, at) for at in died)


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
    if match.rule.get("shows_while_ready"):
        return ""
    if event.stage == "serving":
        return _said_by_a_client(event, evidence)
    ready = lives.of(match.event).ready
    if ready > match.line and not (_ends_server(match, evidence) and _is_another_block(match.line, ready, evidence)):
        return "the server became ready afterwards"
    if match.event in evidence.fatal:
        return ""
    for mark in lives.marks_of(event):
        if mark.time is None or event.time is None:
            continue
        later = mark.line > match.line and mark.time > event.time
        if later and event.stage is not None and is_later(mark.stage, event.stage):
            return f"the launch went on to {mark.stage} afterwards"
    return ""


def _is_another_block(one: int, other: int, evidence: Evidence) -> bool:
    """Whether somebody shows two lines in blocks of their own, with words between: the other one is another attempt."""
    return any(is_markdown(evidence.lines[at]) for at in range(one + 1, other))


def is_markdown(line: Line) -> bool:
    """Return whether a line begins or ends a block of a text; what other programs print around a log does not."""
    return line.role == "fence" and line.text.lstrip().startswith(_MARKDOWN)


def _ends_server(match: Match, evidence: Evidence) -> bool:
    """Whether a match stands in a traceback that ends the server's main program or its scheduler."""
    event = evidence.events[match.event]
    if event.traceback is None:
        return False
    lines = evidence.lines[event.first : event.last + 1]
    is_main = any(line.text.endswith("in <module>") for line in lines)
    return (match.event in evidence.fatal or is_main) and evidence.is_own(lines)


def _said_by_a_client(event: Event, evidence: Evidence) -> str:
    """Whether a client of a ready server printed this traceback, and the server went on answering as if nothing was.

    A missing stamp proves nothing: the driver, C++ and threads of the server print without one, and it answers probes
    while its scheduler is dead. What a client prints right below an access record is one event with it.
    """
    served_at = {match.line for match in evidence.matches if match.rule["id"] == "requests-served"}
    first = event.first + 1 if event.first in served_at and event.last > event.first else event.first
    lines = evidence.lines[first : event.last + 1]
    if lines[0].start > lines[0].body or evidence.is_own(lines):
        return ""
    if not any(line.role == "frame" and evidence.is_client(line.text) for line in lines):
        return ""
    later = [match for match in evidence.matches if match.line > event.last]
    served = sum(match.line in served_at for match in later)
    is_over = any(match.strength == "symptom" and match.label != "healthy" for match in later)
    return "the server did not print it, and answered requests afterwards" if served > 1 and not is_over else ""


def _may_cause(cause: Match, rule: dict[str, Any]) -> bool:
    names = rule.get("explained_by", ())
    named = "any" in names or cause.label in names or cause.rule["id"] in names
    return named and cause.rule["id"] != rule["id"]


def _effect_of(match: Match, causes: Iterable[Match], evidence: Evidence) -> str:
    """Return why a match is an effect of one of the `causes` that its rule names, or nothing."""
    for cause in causes:
        if cause is not match and (cause.event == match.event or not order.is_later(cause, match, evidence)):
            return f"it follows from {cause.label}"
    return ""


def _accounted(other: Match, root: Match, evidence: Evidence) -> str:
    """Return why a further decisive match is no second failure, or nothing."""
    if other.event == root.event:
        return "it is part of the same error"
    if other.label == root.label:
        rank = evidence.events[other.event].rank
        if rank and rank != evidence.events[root.event].rank:
            return f"the same on {rank}"
        return "the same again" if order.is_same_file(other, root, evidence) else "the same on another node"
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
    if root is not None and (match.event == root.event or not order.is_later(root, match, evidence)):
        return f"it follows from {root.label}"
    if root is not None and _is_above(match, root, evidence) and "any" not in match.rule.get("explained_by", ()):
        return ""
    if root is not None:
        return f"it belongs to {root.label}, which was printed later"
    if match.rule["label"] != "healthy":
        if any(order.is_before(line, match.line, evidence) for line in known.troubles):
            return "it follows from a failure that no rule knows"
        names = match.rule.get("explained_by", ())
        own = [m for m in known.symptoms if m is not match and order.is_same_file(m, match, evidence)]
        if any(m.rule["id"] in names and not order.is_later(m, match, evidence) for m in own):
            return "the server had begun to end itself"
    elif known.lives.stopped_elsewhere(match):
        return "another node had been stopped"
    return ""


def _is_above(match: Match, root: Match, evidence: Evidence) -> bool:
    return match.line < root.line or not order.is_same_file(match, root, evidence)


def _told(troubles: Iterable[int], evidence: Evidence) -> list[int]:
    """Lines that look like failures, without heads of tracebacks whose end is not known, if there are others."""
    found = list(troubles)
    heads = {at for at in found if "Traceback (most recent call last)" in evidence.lines[at].text}
    return [at for at in found if at not in heads] or found


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


def _innermost(raised: Sequence[int], evidence: Evidence) -> int:
    """The last exception of a chain, or the one above it whose message it only quotes at its end."""
    texts = [evidence.lines[at].text[evidence.lines[at].body :] for at in raised]
    for at, text in zip(raised, texts, strict=True):
        message = text.partition(": ")[2].strip()
        if message and texts[-1].rstrip().endswith(f": {message}"):
            return at
    return raised[-1]


def _error_line(event: Event, end: int, evidence: Evidence) -> int | None:
    """The exception of a traceback, or an error line among the last lines of the launch, which ends at `end`."""
    if event.traceback is not None:
        raised = [at for at in range(event.first, event.last + 1) if evidence.lines[at].role == "exception"]
        return _innermost(raised, evidence) if raised else event.traceback
    newest = evidence.lines[end]
    first = evidence.lines[event.first]
    if first.file == newest.file and first.row > newest.row - _LAST_LINES:
        for at in range(event.first, event.last + 1):
            line = evidence.lines[at]
            if line.role in ("text", "message") and evidence.troubles.search(line.text[line.start :]):
                return at
    return None
