"""Logs in, their lines with the rules that hold on them out: everything that comes before judging."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from logtriage.engine import clock, launch, matching, prefilter
from logtriage.intake import events as intake_events
from logtriage.intake import lines as intake_lines
from logtriage.intake import streams
from logtriage.intake.source import open_source
from logtriage.records import InputFile, Line, Record, Seen

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.matching import Matched
    from logtriage.engine.ruleset import Hit, RuleSet
    from logtriage.intake import growing
    from logtriage.records import Attempt, Launch, NearMiss

    Log = str | os.PathLike[str] | bytes | Iterable[str | bytes]
    Searches = tuple[prefilter.Prefilter, Callable[[], prefilter.AnchorSearch]]
UNCOUNTED_ABOVE = 64 << 20
"""Bytes above which the number of lines of a file is not told."""


class Options(Record):
    """What a caller may add to a log.

    Attributes:
        command: the command that was launched, as words, if the log does not show it.
        facts: facts that the log lacks or has wrong, such as ``{"sm": 120, "server_version": "0.5.9"}``.
        responses: bodies of the server's answers, as bytes.
        response_names: their names, as notes are to show them.
        finding: what is wrong with the answers, where the caller has judged them (several together show more than one).
        exit_code: exit code of the launch; negative for a signal.
        kernel_logs: further inputs that hold the kernel's log of the same time.
        also: numbers of lines to keep whatever they hold (counted in every log).
        after: earlier attempts, the oldest first.
        pinned: flags that advice must not change.
        seen: what whoever launched it saw and a log cannot tell; it counts where the log shows no failure.
    """

    command: Sequence[str] = ()
    facts: Mapping[str, Any] = {}
    responses: Sequence[bytes] = ()
    response_names: Sequence[str] = ()
    finding: Finding | None = None
    exit_code: int | None = None
    kernel_logs: Sequence[Any] = ()
    also: Sequence[int] = ()
    after: Sequence[Attempt] = ()
    pinned: Sequence[str] = ()
    seen: Seen | None = None


class Reading(Record):
    """A log as read and matched, before it is judged."""

    files: tuple[InputFile, ...]
    lines: Sequence[Line]
    clock: clock.Clock
    hits: Mapping[int, list[Hit]]
    launches: Mapping[int, Launch]
    matched: Matched
    notes: tuple[str, ...] = ()


def searches(rules: RuleSet) -> Searches:
    """Return the search for gates, and what makes the search for anchors when that is first needed."""
    return prefilter.make(rules.gates), cache(lambda: prefilter.make_anchors(rules.anchors))


def read(logs: Sequence[Log], rules: RuleSet, options: Options) -> Reading:
    """Read logs and match the rules on them."""
    reader = _Reader(rules, options)
    for log in (*logs, *options.kernel_logs):
        reader.read(log)
    return reader.reading()


def read_growing(log: growing.GrowingLog, notes: Sequence[str], rules: RuleSet, options: Options) -> Reading:
    """Match the rules on a log that grows as if it ended here."""
    state = log.state()
    reader = _Reader(rules, options)
    reader.add(state.lines, _input_file(log.name, state.size, state.rows), [*state.notes, *notes])
    for kernel_log in options.kernel_logs:
        reader.read(kernel_log)
    return reader.reading()


class _Reader:
    """Gathers the lines worth keeping of several logs."""

    def __init__(self, rules: RuleSet, options: Options) -> None:
        self._rules = rules
        self._options = options
        self._searches: Searches | None = None
        self._lines: list[Line] = []
        self._files: list[InputFile] = []
        self._notes: list[str] = []

    def read(self, log: Log) -> None:
        """Read a log from beginning to end."""
        self._searches = self._searches or searches(self._rules)
        find, anchors = self._searches
        source = open_source(log, self._rules.wrappers)
        lines = intake_lines.select(source.blocks(), find.offsets, len(self._files), self._options.also, anchors)
        self.add(lines, _input_file(source.name, source.size, source.lines), source.notes)

    def add(self, lines: Sequence[Line], file: InputFile, notes: Sequence[str]) -> None:
        """Add the lines that were selected of a log."""
        self._lines += streams.apart(lines)
        self._files.append(file)
        self._notes += notes

    def reading(self) -> Reading:
        """Match the rules on all lines."""
        return _match(self._lines, self._files, self._notes, self._rules, self._options)


def _input_file(name: str, size: int, lines: int) -> InputFile:
    return InputFile(name, size, lines if size <= UNCOUNTED_ABOVE else None)


def _match(
    selected: Sequence[Line], files: Sequence[InputFile], notes: Sequence[str], rules: RuleSet, options: Options
) -> Reading:
    lines, grouped = intake_events.group(selected, rules.log["prefixes"])
    hits = matching.scan(lines, rules)
    ticked = clock.run(lines, grouped, hits, rules)
    launches = launch.describe(lines, ticked.events, hits, rules, options.facts, options.command)
    facts = {index: item.facts for index, item in launches.items()}
    matched = matching.match(lines, ticked.events, hits, rules, facts)
    return Reading(tuple(files), lines, ticked, hits, launches, matched, tuple(notes))


def near_misses(reading: Reading, line: int) -> list[NearMiss]:
    """Return the rules that almost held at a line (index into the reading's lines), with what they missed."""
    return [miss for miss in reading.matched.near_misses if miss.line == line]
