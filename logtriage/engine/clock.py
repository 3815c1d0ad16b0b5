"""Splits a log into launches and tells, for every event, the stage its rank had reached.

In: events and the signatures that hit their lines. Out: events with launch and stage, and the marks that were passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.records import STAGES, Event, Line, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.engine.ruleset import Hit, RuleSet

_STARTS = ("args", "init", "weight-load")
FOR_ALL_RANKS = ("args", "warmup", "serving")
"""Stages of the server as a whole: the mark of one rank opens them for all."""


class Mark(Record):
    """A stage mark that was passed: at which line, in which launch, by which rank, when, and which stage it opens."""

    line: int
    launch: int
    rank: str
    time: float | None
    stage: str


class Clock(Record):
    """Events with launch and stage filled in, and all marks in order."""

    events: list[Event]
    marks: list[Mark]
    launches: int


def run(lines: Sequence[Line], events: Sequence[Event], hits: Mapping[int, list[Hit]], rules: RuleSet) -> Clock:
    """Walk the events once; the latest mark of the rank, or of the whole server, is the stage."""
    stage_of = {number: mark["stage"] for mark in rules.log["marks"] for number in mark["any"]}
    boundaries = set(rules.log["boundaries"])
    marks: list[Mark] = []
    placed: list[Event] = []
    launch, progressed = 0, False
    latest: dict[str, Mark] = {}
    died: set[str] = set()
    stream = (0, "")
    for event in events:
        found = [(at, hit) for at in range(event.first, event.last + 1) for hit in hits.get(at, ())]
        opens = any(hit.signature in boundaries for _, hit in found)
        again = event.rank in died and any(stage_of.get(hit.signature) in _STARTS for _, hit in found)
        first = lines[event.first]
        if (first.file, first.origin) != stream or (opens and progressed) or again:
            stream = (first.file, first.origin)
            launch, progressed, latest, died = launch + bool(placed), False, {}, set()
        placed.append(event._replace(stage=_stage(event.rank, latest), launch=launch))
        progressed = progressed or event.traceback is not None
        if is_fatal(event, lines, rules):
            died.add(event.rank)
        for at, hit in found:
            # A warning of the imports stands above the arguments of the launch that it belongs to.
            is_told = lines[at].role != "text" or event.time is not None
            progressed = progressed or (is_told and rules.is_decisive(hit.signature))
            if stage := stage_of.get(hit.signature):
                mark = Mark(at, launch, event.rank, event.time, stage)
                marks.append(mark)
                latest["" if stage in FOR_ALL_RANKS else event.rank] = mark
                latest["*"] = mark
                progressed = progressed or stage != "args"
    return Clock(placed, marks, launch + 1)


def ends_with_a_mention(ticked: Clock) -> bool:
    """Return whether the last launch is a mere command below the log of another: the steps to reproduce, say."""
    last = ticked.launches - 1
    if last < 1:
        return False
    own = (event for event in ticked.events if event.launch == last)
    is_silent = all(event.time is None and event.traceback is None for event in own)
    return is_silent and all(mark.stage == "args" for mark in ticked.marks if mark.launch == last)


def without_the_mention(ticked: Clock) -> Clock:
    """Return the clock with the last launch counted to the one before."""
    last = ticked.launches - 1
    events = [event._replace(launch=last - 1) if event.launch == last else event for event in ticked.events]
    return Clock(events, [mark for mark in ticked.marks if mark.launch != last], last)


def is_fatal(event: Event, lines: Sequence[Line], rules: RuleSet) -> bool:
    """Return whether a record says that its process ends with it."""
    return event.traceback is not None and any(word in lines[event.first].text for word in rules.log["fatal"])


def _stage(rank: str, latest: Mapping[str, Mark]) -> str | None:
    """The later of the rank's own last mark and the server's; of a line without a rank, the last mark of all."""
    own = latest.get(rank) if rank else latest.get("*")
    shared = latest.get("")
    known = [mark for mark in (own, shared) if mark is not None]
    if rank and not known and "*" in latest:
        known = [latest["*"]]
    return max(known, key=lambda mark: mark.line).stage if known else None


def is_later(stage: str, than: str | None) -> bool:
    """Return whether `stage` comes after the stage `than`; an unknown stage comes before all."""
    return than is None or STAGES.index(stage) > STAGES.index(than)
