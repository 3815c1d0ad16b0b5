"""What the outcome marks of a launch say of its life: ready, serving, told to stop."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.engine.clock import Mark
    from logtriage.engine.evidence import Evidence
    from logtriage.records import Event, Match


_MOST_AFTER_ECHO = 400  # lines


class Life(Record):
    """Of one launch: the line of an ordered stop, of the last ready line, of the last sign that it served (or -1)."""

    stop: int = -1
    ready: int = -1
    served: int = -1


class Lives:
    """What outcome marks say of each launch (of each file and container, that is).

    One says nothing about another; only among the nodes of one launch, the node that says that the server is ready
    speaks for all.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._events = evidence.events
        self._clocks = evidence.clocks
        self._lives: dict[int, Life] = {}
        for mark in (match for match in evidence.matches if match.strength == "outcome"):
            if mark.rule["id"] == "ordered-stop":
                self._stop_tasks(mark.line, evidence)
            launch = self._events[mark.event].launch
            life = self._lives.get(launch, Life())
            if mark.rule["id"] == "ordered-stop":
                life = life.replace(stop=life.stop if life.stop >= 0 else _begin_of_stop(mark.line, evidence))
            elif mark.rule["id"] != "requests-failed":
                ready = mark.line if mark.rule["id"] == "server-ready" else life.ready
                life = life.replace(ready=ready, served=mark.line)
            self._lives[launch] = life
        self._marks: dict[tuple[int, str], list[Mark]] = defaultdict(list)
        for passed in evidence.marks:
            self._marks[passed.launch, passed.rank].append(passed)
        self._stops = [life.stop for life in self._lives.values() if life.stop >= 0]
        self._share(evidence)

    def of(self, event: int) -> Life:
        """Return what is known of the launch that an event belongs to."""
        return self._lives.get(self._events[event].launch, Life())

    def marks_of(self, event: Event) -> Sequence[Mark]:
        """Return the stages that the rank of an event passed in its launch."""
        return self._marks.get((event.launch, event.rank), ())

    def after_stop(self, match: Match) -> str:
        """Return the reason if a match only follows from an ordered stop, or nothing: who gave the order does not."""
        is_after = 0 <= self.of(match.event).stop < match.line and not match.rule.get("orders_stop")
        return "it follows an ordered stop" if is_after else ""

    def stopped_elsewhere(self, match: Match) -> bool:
        """Return whether another node had been told to stop before (a doubt about the clocks is no excuse)."""
        clocks = self._clocks
        if clocks is None:
            return False
        apart = (clocks.apart(match.line, stop) for stop in self._stops)
        return any(seconds is not None and seconds >= 0 for seconds in apart)

    def _stop_tasks(self, line: int, evidence: Evidence) -> None:
        """Tell the tasks of a log of their stop by its job manager, whose own lines name no task.

        Around both there may be a wrapper that names the manager's container.
        """
        stop = evidence.lines[line]
        for event in (evidence.events[number] for number in evidence.own_events):
            first, life = evidence.lines[event.first], self._lives.get(event.launch, Life())
            is_task = first.origin != stop.origin and first.origin.startswith(stop.origin)
            if is_task and first.file == stop.file and first.number > stop.number and life.stop < 0:
                self._lives[event.launch] = life.replace(stop=event.first - 1)

    def _share(self, evidence: Evidence) -> None:
        """Tell the launches of other nodes that the server was ready, at the last line that was certainly earlier."""
        clocks = self._clocks
        if clocks is None:
            return
        ends: dict[int, list[int]] = defaultdict(list)
        for number in evidence.own_events:
            ends[self._events[number].launch].append(self._events[number].last)

        def newest(lines: Iterable[int]) -> int:
            timed = [at for at in lines if at >= 0 and clocks.at(at) is not None]
            return max(timed, key=lambda at: clocks.at(at) or 0.0, default=-1)

        def before(line: int, own: list[int]) -> int:
            if line < 0 or evidence.lines[own[0]].file == evidence.lines[line].file:
                return -1
            return max((at for at in own if clocks.is_later(line, at)), default=-1)

        lives = list(self._lives.values())
        ready, served = newest(life.ready for life in lives), newest(life.served for life in lives)
        for launch, own in ends.items():
            mine = self._lives.get(launch, Life())
            self._lives[launch] = mine.replace(
                ready=max(mine.ready, before(ready, own)), served=max(mine.served, before(served, own))
            )


def _begin_of_stop(line: int, evidence: Evidence) -> int:
    """The line of a mark, or above it that of the key's echo: several ranks print at once when they are interrupted."""
    above = range(line, max(line - _MOST_AFTER_ECHO, -1), -1)
    return next((at for at in above if evidence.lines[at].text[evidence.lines[at].body :].strip() == "^C"), line)
