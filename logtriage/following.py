"""A growing log in, one report out: as soon as its verdict is decided, or when whoever follows has seen enough.

The verdict is that of batch on what was written so far. Nothing is read twice, and nothing is judged without a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import pipeline
from logtriage.intake import follow as intake_follow
from logtriage.intake.blocks import without_escapes
from logtriage.intake.growing import GrowingLog
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

UNTIL = ("ready", "failed", "exit")
"""What ends following: the server is ready or what `failed` says; it has failed or was stopped; that, and silence."""

GRACE = 2.0
"""Seconds that a failure is given before it counts: other ranks still print, and some failures are survived."""

_SHARE = 10
_SETTLED = 0.3
_LOOK_AT_LEAST = 0.05  # seconds between two looks, where so much is written that no look finds nothing


class Clock(Record):
    """Where time comes from, so that tests need not wait.

    `used` is the CPU time that this process has used so far; without it time that passes counts as used.
    """

    now: Callable[[], float]
    sleep: Callable[[float], None]
    used: Callable[[], float] | None = None


class Follower:
    """Follows one log. After an interruption `report` still tells the verdict so far."""

    def __init__(
        self, name: str, rules: RuleSet, options: pipeline.Options, clock: Clock, until: str = "ready",
        grace: float = GRACE, on_stage: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.on_piece: Callable[[bytes], None] | None = None
        """Is given what is written, as it comes."""
        search, anchors = pipeline.searches(rules)
        self._log = GrowingLog("<stdin>" if name == "-" else name, rules.wrappers, search.offsets, anchors)
        self._name = name
        self._rules = rules
        self._options = options
        self._clock = clock
        self._until = until
        self._grace = grace
        self._alarm = _Alarm(rules, search.offsets, on_stage)
        self._notes: list[str] = []
        self._due: float | None = 0.0
        self._is_rung = False
        self._rested = 0.0
        self._decided_at: float | None = None
        self._written_at = 0.0
        self._taken = 0
        self._looked_at = 0.0

    def run(self) -> Report:
        """Follow the log until its verdict is decided; return the report. Raises InputError."""
        for report in self.steps():
            if report is not None:
                return report
        return self.report()

    def steps(self) -> Iterator[Report | None]:
        """Yield after each look at the log: the report if its verdict is decided, else None. Raises InputError.

        It sleeps a moment where nothing was written, and ends where the log does.
        """
        for piece in intake_follow.pieces(self._name, self._clock.sleep, self._notes):
            if piece:
                self._log.add(piece)
                if self.on_piece is not None:
                    self.on_piece(piece)
                self._taken += len(piece)
                self._written_at = self._clock.now()
                if self._alarm.rings(piece):
                    self._due, self._is_rung = self._written_at, True
            if not piece or self._clock.now() - self._looked_at >= _LOOK_AT_LEAST:
                self._looked_at = self._clock.now()
                yield self._look()

    @property
    def written_at(self) -> float:
        """The time at which something new was last found in the log, by the clock; 0 if nothing was yet."""
        return self._written_at

    @property
    def taken(self) -> int:
        """How many bytes of the log were read so far."""
        return self._taken

    def report(self, options: pipeline.Options | None = None) -> Report:
        """Return the report on what was written so far; `options` are those of the caller in place of its own."""
        return pipeline.report_on_growing(self._log, self._notes, self._rules, options or self._options)

    def _look(self) -> Report | None:
        """Judge the log if there is a reason to; return the report if that decides."""
        now = self._clock.now()
        is_last = (
            self._decided_at is not None and now >= self._decided_at
        )  # the grace is over: no rest before that look
        if not is_last and (self._due is None or now < max(self._due, self._rested)):
            return None
        used = self._clock.used or self._clock.now
        begin = used()
        report = self.report()
        took = used() - begin  # on a busy machine far less than what has passed
        self._rested = now + _SHARE * took
        # What a traceback says stands at its end: look once more when its last lines have been written.
        self._due = now + _SETTLED if self._is_rung else None
        self._is_rung = False
        return report if self._is_decided(report, now) else None

    def _is_decided(self, report: Report, now: float) -> bool:
        outcomes = {match.rule["id"] for match in report.incident.outcomes}
        is_stopped = "ordered-stop" in outcomes
        is_failed = report.verdict.outcome in ("failed", "degenerate") and bool(
            report.incident.root or report.incident.endings
        )
        if self._until == "ready" and not is_failed and "server-ready" in outcomes:
            return True
        if is_stopped and not is_failed and self._until != "exit":
            return True
        if not (is_failed or is_stopped):
            self._decided_at = None
            return False
        since = self._written_at if self._until == "exit" else now
        if self._decided_at is None or (self._until == "exit" and self._decided_at < since + self._grace):
            self._decided_at = since + self._grace
        return now >= self._decided_at


_MOST_OPEN = 64 << 10
"""Bytes of a line without its end that wait for more; a longer one is looked at as it comes."""


class _Alarm:
    """Looks at new lines only as far as to tell whether they may change the verdict; tells of each new stage."""

    def __init__(
        self, rules: RuleSet, find: Callable[[bytes], list[int]], on_stage: Callable[[str], None] | None
    ) -> None:
        self._rules = rules
        self._find = find
        self._on_stage = on_stage
        self._open = b""
        self._stage = ""
        self._stages: dict[int, str] = {number: mark["stage"] for mark in rules.log["marks"] for number in mark["any"]}
        strong = ("decisive", "symptom", "outcome")
        self._watched = {number for rule in rules.rules if rule["strength"] in strong for number in rule["any"]}

    def rings(self, piece: bytes) -> bool:
        """Return whether what was written may change the verdict. A line counts as soon as it is complete."""
        text, line_feed, self._open = (self._open + piece).rpartition(b"\n")
        if len(self._open) > _MOST_OPEN:
            text, line_feed, self._open = text + line_feed + self._open, b"", b""
        data = without_escapes(text + line_feed)
        end = 0
        is_loud = False
        for offset in self._find(data):
            if offset >= end:
                start, end = data.rfind(b"\n", 0, offset) + 1, data.find(b"\n", offset) + 1 or len(data)
                is_loud = self._hears(data[start:end].decode("utf-8", "replace")) or is_loud
        return is_loud

    def _hears(self, line: str) -> bool:
        found = set(self._rules.anchored(line))
        for number in sorted(found & self._stages.keys()):
            if self._on_stage and self._stages[number] != self._stage:
                self._stage = self._stages[number]
                self._on_stage(self._stage)
        return bool(found & self._watched) or any(word in line for word in self._rules.failures)


def system_clock() -> Clock:
    """Return the clock of this machine."""
    import time

    return Clock(time.monotonic, time.sleep, time.process_time)
