"""The clocks of several nodes: how far each is off, and what came before what in spite of it.

Nodes of one launch wait for each other again and again, and print when that is over. What these lines differ by is what
the clocks differ by.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from logtriage.engine.ruleset import Hit
    from logtriage.records import Event, Line

NOISE = 3.0
"""Seconds by which nodes print the same thing apart though their clocks agree."""

UNCOMPARED = 60.0
"""Seconds by which clocks may differ that could not be compared."""

_RESOLUTION = 1.0  # most logs tell whole seconds


class Skew(Record):
    """How many seconds a clock is ahead of the others' (0 where that may be chance), and how far that may be wrong."""

    ahead: float
    unsure: float


def estimate(times: Mapping[int, Mapping[int, float]]) -> dict[int, Skew]:
    """Return how far the clock of each file is off; files whose clock cannot be compared are left out.

    `times` tell for each file when it first shows each of the signatures that all nodes print together. Of three or
    more clocks the middle one is right, of two the first.
    """
    from statistics import median_low  # slow to import, and most launches have one log

    told = {file: own for file, own in times.items() if own}
    if len(told) < 2:
        return {}
    standard = max(sorted(told), key=lambda file: len(told[file]))
    differences = {
        file: [own[signature] - told[standard][signature] for signature in sorted(own.keys() & told[standard].keys())]
        for file, own in sorted(told.items())
    }
    offsets = {file: median_low(found) for file, found in differences.items() if found}
    if len(offsets) < 2:
        return {}
    middle = median_low(offsets.values()) if len(offsets) > 2 else next(iter(offsets.values()))
    found = {}
    for file, offset in offsets.items():
        ahead = offset - middle
        spread = (max(differences[file]) - min(differences[file])) / 2 + _RESOLUTION
        found[file] = Skew(ahead, spread) if abs(ahead) > NOISE else Skew(0.0, spread + abs(ahead))
    return found


def shown_together(
    lines: Sequence[Line], events: Sequence[Event], hits: Mapping[int, list[Hit]], together: Collection[int],
    launches: Collection[int],
) -> dict[int, dict[int, float]]:  # fmt: skip
    """Return when each file first shows each of the signatures `together`, in the launches that count."""
    wanted, counted = frozenset(together), frozenset(launches)
    times: dict[int, dict[int, float]] = defaultdict(dict)
    for at in sorted(hits):
        line = lines[at]
        event = events[line.event]
        if event.time is None or event.launch not in counted:
            continue
        for hit in hits[at]:
            if hit.signature in wanted:
                own = times[line.file]
                own[hit.signature] = min(event.time, own.get(hit.signature, event.time))
    return times


class Clocks:
    """When each line was printed, by a clock that all files share; of a line without a time, when the one before it."""

    def __init__(
        self, lines: Sequence[Line], events: Sequence[Event], own_events: Iterable[int], skews: Mapping[int, Skew]
    ) -> None:
        self._lines = lines
        self._skews = skews
        self._times: dict[int, float] = {}
        waiting: dict[tuple[int, str], list[int]] = defaultdict(list)
        latest: dict[tuple[int, str], float] = {}
        for number in own_events:
            event = events[number]
            first = lines[event.first]
            stream = first.file, first.origin
            if event.time is not None:
                latest[stream] = event.time - (skews[first.file].ahead if first.file in skews else 0.0)
                for early in waiting.pop(stream, ()):
                    self._times[early] = latest[stream]
            if stream in latest:
                self._times[number] = latest[stream]
            else:
                waiting[stream].append(number)

    def at(self, line: int) -> float | None:
        """Return when a line was printed, None if its file tells no times."""
        return self._times.get(self._lines[line].event)

    def apart(self, one: int, other: int) -> float | None:
        """Return how many seconds `one` was printed after `other` (lines of two files); None if nobody knows."""
        first, second = self.at(one), self.at(other)
        return None if first is None or second is None else first - second

    def unsure(self, one: int, other: int) -> float:
        """Return by how many seconds the time between lines of two files may be wrong."""
        skews = [self._skews.get(self._lines[at].file) for at in (one, other)]
        return sum(skew.unsure for skew in skews if skew) if all(skews) else UNCOMPARED

    def is_later(self, one: int, other: int) -> bool:
        """Return whether `one` was certainly printed later than `other`, a line of another file."""
        apart = self.apart(one, other)
        return apart is not None and apart > self.unsure(one, other)
