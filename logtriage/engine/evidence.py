"""All that an incident is made from: the lines, events, matches and marks of one launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.records import Event, Line, Match, Record

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence

    from logtriage.engine.clock import Mark
    from logtriage.engine.skew import Clocks


class Evidence(Record):
    """All that is known about one launch.

    Attributes:
        lines, events: those of the whole log.
        own_events: indexes of the launch's events, in order.
        matches, marks: those of the launch.
        covered: lines that harmless rules take out of the evidence.
        fatal: events that say that their process ends with them.
        troubles: what looks like trouble where no rule knows better.
        is_own: whether one of some lines speaks of the server's own parts.
        is_client: whether a frame is one of another program, a client of the server.
        clocks: the clocks of several logs; None for a single one.
    """

    lines: Sequence[Line]
    events: Sequence[Event]
    own_events: Sequence[int]
    matches: Sequence[Match]
    marks: Sequence[Mark]
    covered: set[int]
    fatal: set[int]
    troubles: re.Pattern[str]
    is_own: Callable[[Iterable[Line]], bool]
    is_client: Callable[[str], bool]
    clocks: Clocks | None = None
