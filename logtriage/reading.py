"""Logs in, their lines with the rules that hold on them out: everything that comes before judging."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from logtriage.engine import clock, identity, launch, matching, prefilter
from logtriage.errors import InputError, NoLogError
from logtriage.intake import events as intake_events
from logtriage.intake import inputs, streams
from logtriage.intake import lines as intake_lines
from logtriage.intake.source import Source, open_source
from logtriage.records import InputFile, Line, Record, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.matching import Matched
    from logtriage.engine.ruleset import Hit, RuleSet
    from logtriage.intake import growing
    from logtriage.intake.gathered import Passed
    from logtriage.records import Attempt, Launch, NearMiss

    Log = str | os.PathLike[str] | bytes | Iterable[str | bytes]
    Searches = tuple[prefilter.Prefilter, Callable[[], prefilter.AnchorSearch]]
UNCOUNTED_ABOVE = 64 << 20
"""Bytes above which the number of lines of a file is not told."""

MAX_KEPT = 512 << 20
"""Characters of lines kept of all logs together; one log stays far below it."""


class Options(Record):
    """What a caller may add to a log.

    Attributes:
        command: the command that was launched, as words, if the log does not show it.
        facts: facts that the log lacks or has wrong, such as ``{"sm": 120, "server_version": "0.5.9"}``.
        responses: bodies of the server's answers, as bytes.
        response_names: their names, as notes are to show them.
        finding: what is wrong with the answers, where the caller has judged them (several together show more than one).
        exit_code: exit code of the launch; negative for a signal.
        exit_codes: exit codes of single nodes, by the name of their log.
        kernel_logs: further inputs that hold the kernel's log of the same time.
        kernel_logs_of: those of single nodes, by the name of their log.
        also: numbers of lines to keep whatever they hold (counted in every log).
        after: earlier attempts, the oldest first.
        pinned: flags that advice must not change.
        seen: what whoever launched it saw and a log cannot tell; it counts where the log shows no failure.
        weights: path of the classifier's weights, if not those that are shipped.
        deciders: what may decide that something failed: ``rules``, ``classifier``, or both; ``guess`` is the classifier
            without its doubts, for measuring it.
    """

    command: Sequence[str] = ()
    facts: Mapping[str, Any] = {}
    responses: Sequence[bytes] = ()
    response_names: Sequence[str] = ()
    finding: Finding | None = None
    exit_code: int | None = None
    exit_codes: Mapping[str, int] = {}
    kernel_logs: Sequence[Any] = ()
    kernel_logs_of: Mapping[str, Sequence[Any]] = {}
    also: Sequence[int] = ()
    after: Sequence[Attempt] = ()
    pinned: Sequence[str] = ()
    seen: Seen | None = None
    weights: str | None = None
    deciders: Sequence[str] = ("rules", "classifier")


class Reading(Record):
    """A log as read and matched, before it is judged.

    `kernel` tells which files are kernel's logs, and for each the file whose node it is of (None if that is not known).
    """

    files: tuple[InputFile, ...]
    lines: Sequence[Line]
    clock: clock.Clock
    hits: Mapping[int, list[Hit]]
    launches: Mapping[int, Launch]
    matched: Matched
    notes: tuple[str, ...] = ()
    kernel: Mapping[int, int | None] = {}

    @property
    def logs(self) -> list[int]:
        """The files that are no kernel's logs."""
        return [file for file in range(len(self.files)) if file not in self.kernel]


def searches(rules: RuleSet) -> Searches:
    """Return the search for gates, and what makes the search for anchors when that is first needed."""
    return prefilter.make(rules.gates), cache(lambda: prefilter.make_anchors(rules.anchors))


def read(logs: Sequence[Log], rules: RuleSet, options: Options) -> Reading:
    """Read logs and match the rules on them. Raises InputError for what cannot be read."""
    reader = _Reader(rules, options)
    for log in logs:
        reader.read(log)
    reader.read_kernel_logs()
    return reader.reading()


def read_each(log: Log, rules: RuleSet, options: Options) -> Iterator[Reading]:
    """Read each log of a folder, a pattern or an archive (or the one that `log` is) as if it were given alone."""
    notes: list[str] = []
    for opened in _opened(log, rules, notes):
        reader = _Reader(rules, options)
        with opened.passing_over():
            reader.read_source(opened.source, is_kernel=opened.is_kernel)
            reader.read_kernel_logs()
            reading = reader.reading()
            if reading.logs:
                yield reading


def read_growing(log: growing.GrowingLog, notes: Sequence[str], rules: RuleSet, options: Options) -> Reading:
    """Match the rules on a log that grows as if it ended here."""
    state = log.state()
    reader = _Reader(rules, options)
    reader.add(state.lines, _input_file(log.name, state.size, state.rows), [*state.notes, *notes])
    reader.read_kernel_logs()
    return reader.reading()


class _Opened(Record):
    """A log that is open. One of several that turns out to be none is passed over."""

    source: Source
    is_kernel: bool = False
    passed: Passed | None = None

    @contextmanager
    def passing_over(self) -> Iterator[None]:
        try:
            yield
        except NoLogError as error:
            if self.passed is None:
                raise
            self.passed.add(self.source.name, error.why, was_log=True)


def _opened(log: Log, rules: RuleSet, notes: list[str]) -> Iterator[_Opened]:
    """Open a log, or one after the other those that a folder, a pattern or an archive holds."""
    path, member = inputs.member_of(os.fspath(log)) if isinstance(log, str | os.PathLike) else ("", "")
    kind = inputs.kind_of(path) if path else ""
    if not kind:
        yield _Opened(open_source(log, rules.wrappers))
        return
    from logtriage.intake import gathered  # most logs are files

    passed = gathered.Passed(path)
    for found in gathered.logs_in(path, kind, passed, member):
        yield _Opened(Source(found.name, found.open(), rules.wrappers), found.is_kernel, passed)
    passed.check()
    notes += passed.notes()


class _Input(Record):
    """What was read of one log; `node_of` names the log of the node that a kernel's log is of."""

    lines: Sequence[Line]
    file: InputFile
    notes: Sequence[str]
    is_kernel: bool
    node_of: str | None

    def order(self) -> tuple[Any, ...]:
        """Return a key that sorts inputs in the same order however they were given."""
        return (self.is_kernel, identity.natural(self.file.name), [line.text for line in self.lines])


class _Reader:
    """Gathers the lines worth keeping of several logs."""

    def __init__(self, rules: RuleSet, options: Options) -> None:
        self._rules = rules
        self._options = options
        self._searches: Searches | None = None
        self._inputs: list[_Input] = []
        self._notes: list[str] = []
        self._kept = 0

    def read(self, log: Log, *, is_kernel: bool = False, node_of: str | None = None) -> None:
        """Read a log, or all logs of a folder, a pattern or an archive, from beginning to end."""
        notes: list[str] = []
        for opened in _opened(log, self._rules, notes):
            with opened.passing_over():
                self.read_source(opened.source, is_kernel=is_kernel or opened.is_kernel, node_of=node_of)
        self._notes += notes

    def read_source(self, source: Source, *, is_kernel: bool = False, node_of: str | None = None) -> None:
        """Read what was opened from beginning to end."""
        self._searches = self._searches or searches(self._rules)
        find, anchors = self._searches
        lines = intake_lines.select(source.blocks(), find.offsets, 0, self._options.also, anchors)
        file = _input_file(source.name, source.size, source.lines)
        self.add(lines, file, source.notes, is_kernel=is_kernel, node_of=node_of)

    def read_kernel_logs(self) -> None:
        """Read the kernel's logs that the options name."""
        for log in self._options.kernel_logs:
            self.read(log, is_kernel=True)
        for node_of, logs in self._options.kernel_logs_of.items():
            for log in logs:
                self.read(log, is_kernel=True, node_of=node_of)

    def add(
        self, lines: Sequence[Line], file: InputFile, notes: Sequence[str], *,
        is_kernel: bool = False, node_of: str | None = None,
    ) -> None:  # fmt: skip
        """Add the lines that were selected of a log."""
        self._kept += sum(len(line.text) for line in lines)
        if self._kept > MAX_KEPT:
            raise InputError(f"{file.name}: the logs up to this one hold too many failures to look at them together")
        self._inputs.append(_Input(streams.apart(lines), file, notes, is_kernel, node_of))

    def reading(self) -> Reading:
        """Match the rules on all lines."""
        if len(self._inputs) > 1:
            self._inputs.sort(key=_Input.order)
        files = [item.file for item in self._inputs]
        lines = [
            line if number == 0 else line._replace(file=number)
            for number, item in enumerate(self._inputs)
            for line in item.lines
        ]
        notes = [*self._notes, *(note for item in self._inputs for note in item.notes)]
        logs = [item.file.name for item in self._inputs if not item.is_kernel]
        kernel = {
            number: log_named(item.node_of, logs) if item.node_of is not None else None
            for number, item in enumerate(self._inputs)
            if item.is_kernel
        }
        return _match(lines, files, notes, self._rules, self._options).replace(kernel=kernel)


def log_named(name: str, logs: Sequence[str]) -> int:
    """Return the place of the log that has a name, or the last part of its path; raise InputError if none has."""
    for found in (
        [place for place, log in enumerate(logs) if log == name],
        [place for place, log in enumerate(logs) if log.rpartition("/")[2] == name],
    ):
        if len(found) == 1:
            return found[0]
    raise InputError(f"{name}: is none of the logs, or several of them: {', '.join(logs)}")


def _input_file(name: str, size: int, lines: int) -> InputFile:
    return InputFile(name, size, lines if size <= UNCOUNTED_ABOVE else None)


def _match(
    selected: Sequence[Line], files: Sequence[InputFile], notes: Sequence[str], rules: RuleSet, options: Options
) -> Reading:
    lines, grouped = intake_events.group(selected, rules.log["prefixes"])
    hits = matching.scan(lines, rules)
    ticked = clock.run(lines, grouped, hits, rules)
    launches = launch.describe(lines, ticked.events, hits, rules, options.facts, options.command)
    if clock.ends_with_a_mention(ticked):
        whole = clock.without_the_mention(ticked)
        if launches[whole.launches - 1].command is None and _is_one_log(lines, ticked):
            ticked = whole
            launches = launch.describe(lines, ticked.events, hits, rules, options.facts, options.command)
    facts = {index: item.facts for index, item in launches.items()}
    matched = matching.match(lines, ticked.events, hits, rules, facts)
    return Reading(tuple(files), lines, ticked, hits, launches, matched, tuple(notes))


def _is_one_log(lines: Sequence[Line], ticked: clock.Clock) -> bool:
    """Whether the last two launches stand in the same log and container."""
    last = ticked.launches - 1
    return len({(lines[event.first].file, lines[event.first].origin) for event in ticked.events
                if event.launch >= last - 1}) == 1  # fmt: skip


def near_misses(reading: Reading, line: int) -> list[NearMiss]:
    """Return the rules that almost held at a line (index into the reading's lines), with what they missed."""
    return [miss for miss in reading.matched.near_misses if miss.line == line]
