"""What the outcome marks of a launch say of its life: ready, serving, told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.records import Event, Match


class Life(Record):
    """Of one launch: the line of an ordered stop, of the last ready line, of the last sign that it served (or -1)."""

    stop: int = -1
    ready: int = -1
    served: int = -1


class Lives:
    """What outcome marks say of each launch (of each file and container, that is): one says nothing about another."""

    def __init__(self, matches: Iterable[Match], events: Sequence[Event]) -> None:
        self._events = events
        self._lives: dict[int, Life] = {}
        for mark in (match for match in matches if match.strength == "outcome"):
            launch = self._events[mark.event].launch
            life = self._lives.get(launch, Life())
            if mark.rule["id"] == "ordered-stop":
                life = life.replace(stop=life.stop if life.stop >= 0 else mark.line)
            else:
                ready = mark.line if mark.rule["id"] == "server-ready" else life.ready
                life = life.replace(ready=ready, served=mark.line)
            self._lives[launch] = life

    def of(self, event: int) -> Life:
        """Return what is known of the launch that an event belongs to."""
        return self._lives.get(self._events[event].launch, Life())

    def after_stop(self, match: Match) -> str:
        """Return the reason if a match only follows from an ordered stop, or nothing."""
        return "it follows an ordered stop" if 0 <= self.of(match.event).stop < match.line else ""
