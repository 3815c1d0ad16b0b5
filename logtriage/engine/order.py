"""What came first: among matches of one log by time and place, among those of several nodes by clocks made equal."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, TypeVar

from logtriage.engine.identity import natural
from logtriage.intake.events import ELIDED_BEGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from logtriage.engine.evidence import Evidence
    from logtriage.records import Match

_DAY = 86400
NEAR_SECONDS = 2.0
NEAR_LINES = 200
"""A distributed failure yields to another failure this near (lines where there are no times)."""

# What the kernel's log says of the GPU or of killed processes, as dmesg shows it (seconds since the boot), or dated.
_OF_KERNEL = r"\[ *\d{1,8}\.\d{6}\] (?:NVRM: |.*[Oo]ut of memory|oom-kill:)"
_OF_KERNEL_DATED = (
    r"(?:\[[A-Z][a-z]{2} )?([A-Z][a-z]{2} [ \d]\d) \d\d:\d\d:\d\d (?:\d{4}\] |\S+ kernel: )"
    r"(?:NVRM: |.*[Oo]ut of memory|oom-kill:)"
)

_Item = TypeVar("_Item")


def choose(decisive: Sequence[Match], evidence: Evidence) -> Match | None:
    """Return the earliest; ties go to the lowest rank; a distributed one yields to another that is near.

    What several ranks print at once is judged by a traceback that tells far more, if the first one was cut short.
    """
    if not decisive:
        return None
    ordered = sorted(decisive, key=_key(decisive, evidence))
    first = ordered[0]
    if first.rule.get("distributed"):
        others = (other for other in ordered[1:] if not other.rule.get("distributed"))
        first = next((other for other in others if _is_near(first, other, evidence)), first)
    fullest = max(_alike(first, ordered, evidence), key=lambda match: _frames(match, evidence))
    return fullest if _is_cut(first, fullest, evidence) and fullest.label != first.label else first


def is_later(one: Match, other: Match, evidence: Evidence) -> bool:
    """Return whether `one` came later than `other`: by time if both have one and it differs, else by line.

    Of lines of two logs only what the clocks prove counts.
    """
    own, its = evidence.lines[one.line], evidence.lines[other.line]
    if evidence.clocks is not None and own.file != its.file:
        return evidence.clocks.is_later(one.line, other.line)
    first, second = evidence.events[one.event].time, evidence.events[other.event].time
    if first is not None and second is not None and first != second:
        return first > second
    if _is_of_the_same_hours(own.text, second):
        return False  # pasted below: it counts seconds since the boot, or has another time zone
    if own.file == its.file and own.origin != its.origin:  # read apart, printed one after the other
        return own.number > its.number
    return one.line > other.line


def _is_of_the_same_hours(text: str, time: float | None) -> bool:
    """Whether a line of the kernel may be as old as another: it has no date, or one at most a day away."""
    if re.match(_OF_KERNEL, text):
        return True
    dated = re.match(_OF_KERNEL_DATED, text)
    if dated is None:
        return False
    if time is None or time < 2 * _DAY:  # a time of day
        return True
    days = (date.fromordinal(int(time // _DAY) + shift) for shift in (-1, 0, 1))
    return any(f"{day:%b} {day.day:2d}" == dated[1] for day in days)


def is_before(one: int, other: int, evidence: Evidence) -> bool:
    """Return whether line `one` stands above line `other`, or was printed before it on another node."""
    if evidence.clocks is None or evidence.lines[one].file == evidence.lines[other].file:
        return one < other
    return evidence.clocks.is_later(other, one)


def is_same_file(one: Match, other: Match, evidence: Evidence) -> bool:
    """Return whether two matches stand in the same log."""
    return evidence.lines[one.line].file == evidence.lines[other.line].file


def by_time(items: Iterable[_Item], line: Callable[[_Item], int], evidence: Evidence) -> list[_Item]:
    """Return items, each of which stands at a line, as they are; those of several logs by time."""
    clocks = evidence.clocks
    if clocks is None:
        return list(items)

    def when(item: _Item) -> tuple[bool, float, int]:
        at = clocks.at(line(item))
        return (at is None, at or 0.0, line(item))

    return sorted(items, key=when)


def _key(decisive: Sequence[Match], evidence: Evidence) -> Callable[[Match], tuple[object, ...]]:
    """By time, at the same time the lowest rank; what has no rank stands where its line does."""
    clocks = evidence.clocks
    timed = all(evidence.events[match.event].time is not None for match in decisive)
    lowest: dict[float, tuple[tuple[object, ...], int]] = {}  # of each time the lowest rank, and its first line

    def when(match: Match) -> float | None:
        if clocks is not None:
            return clocks.at(match.line)
        return evidence.events[match.event].time if timed else None

    for match in decisive:
        at, rank = when(match), evidence.events[match.event].rank
        if at is not None and rank:
            own = (natural(rank), match.line)
            lowest[at] = min(lowest.get(at, own), own)

    def key(match: Match) -> tuple[object, ...]:
        at, rank = when(match), evidence.events[match.event].rank
        place = lowest[at][1] if at is not None and rank else match.line
        return (
            at is None,
            match.line if at is None else at,
            place,
            natural(rank) if at is not None else (),
            match.line,
            "implies" not in match.rule,
            "flag" not in {**match.rule.get("implies", {}), **match.facts},
        )  # who names the blame

    return key


def _alike(first: Match, others: Iterable[Match], evidence: Evidence) -> list[Match]:
    """Those of `others` that say the same as `first` at about the same time, but for numbers."""
    text = _message(first, evidence)
    return [other for other in others if _is_near(first, other, evidence) and _message(other, evidence) == text]


def _message(match: Match, evidence: Evidence) -> str:
    line = evidence.lines[match.line]
    return re.sub(r"\d+", "0", line.text[line.start :])


def _is_cut(match: Match, whole: Match, evidence: Evidence) -> bool:
    """Whether somebody left frames out of a traceback: dots say so, or it has twice as many elsewhere."""
    event = evidence.events[match.event]
    lines = evidence.lines[event.first : event.last + 1]
    has_dots = any(line.role == "blank" and line.text[line.body :].lstrip().startswith(ELIDED_BEGINS) for line in lines)
    return has_dots or 2 * _frames(match, evidence) <= _frames(whole, evidence)


def _frames(match: Match, evidence: Evidence) -> int:
    event = evidence.events[match.event]
    return sum(line.role == "frame" for line in evidence.lines[event.first : event.last + 1])


def _is_near(first: Match, other: Match, evidence: Evidence) -> bool:
    if evidence.clocks is not None and not is_same_file(first, other, evidence):
        apart = evidence.clocks.apart(first.line, other.line)
        return apart is None or abs(apart) <= NEAR_SECONDS + evidence.clocks.unsure(first.line, other.line)
    one, two = evidence.events[first.event].time, evidence.events[other.event].time
    if one is not None and two is not None:
        return abs(two - one) <= NEAR_SECONDS
    return abs(evidence.lines[other.line].row - evidence.lines[first.line].row) <= NEAR_LINES
