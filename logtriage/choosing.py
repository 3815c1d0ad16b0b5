"""Which of the launches of a log are judged: of most logs the last one that has an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import judging
from logtriage.engine import incident

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.ruleset import RuleSet
    from logtriage.judging import Judged
    from logtriage.reading import Options, Reading

_AT_ONCE = 300
"""Seconds between two launches of a log within which the later one may meet what the earlier one left behind."""


def judge(reading: Reading, rules: RuleSet, options: Options, finding: Finding | None) -> tuple[Judged, list[str]]:
    """Judge the last launch that has an outcome, of every file; mention the others."""
    chosen = choose(reading, rules, options)
    return judging.judge_launches(reading, rules, options, finding, chosen.values()), on_choice(reading, chosen)


def choose(reading: Reading, rules: RuleSet, options: Options) -> dict[tuple[int, str], int]:
    """Return the launch to judge of every file, and of every container in it: the last one that has an outcome.

    Who shows launches in blocks of a text asks about the one that failed, also where another one did well. Where the
    last one met what an earlier one had left behind, the earlier one is judged.
    """
    chosen: dict[tuple[int, str], int] = {}
    for stream, own in _servers(launches_by_stream(reading), reading, rules).items():
        chosen[stream] = own[-1]
        if len(own) > 1:  # of a single launch there is nothing to choose
            chosen[stream] = _last_that_tells(own, reading, rules, options)
    return chosen


def _last_that_tells(own: Sequence[int], reading: Reading, rules: RuleSet, options: Options) -> int:
    """The launch of one log to judge: of most logs the last that has an outcome, and no other is looked at."""
    judged = ((launch, judging.by_rules(reading, rules, options, [launch])) for launch in reversed(own))
    ended = ((launch, found) for launch, found in judged if found.verdict.label != "incomplete")
    last, found = next(ended, (own[-1], None))
    if found is None:
        return last
    if found.verdict.label == "healthy" and any(map(incident.is_markdown, reading.lines)):
        return next((launch for launch, other in ended if _is_asked_about(other, launch, reading, rules)), last)
    return _cause(last, found, ended, reading)


def _cause(last: int, found: Judged, ended: Iterator[tuple[int, Judged]], reading: Reading) -> int:
    """The launch that left behind what the last one failed of (a process that holds a port, say), or the last one."""
    launch, root = last, found.incident.root
    while root is not None and (left_by := root.rule.get("left_by")):
        before, earlier = next(ended, (launch, None))
        if earlier is None:
            return last
        if earlier.incident.root is not None and earlier.incident.root.rule is root.rule:  # it was tried more than once
            launch, root = before, earlier.incident.root
            continue
        if not {"any", earlier.verdict.label}.intersection(left_by):
            return last
        if earlier.verdict.label not in left_by and not _follows_at_once(before, launch, reading):
            return last
        launch, root = before, earlier.incident.root
    return last if root is None else launch


def _follows_at_once(one: int, other: int, reading: Reading) -> bool:
    """Whether a launch was started so soon after another that what that one left behind may still be there."""
    times: dict[int, list[float]] = {one: [], other: []}
    for event in reading.clock.events:
        if event.launch in times and event.time is not None:
            times[event.launch].append(event.time)
    return bool(times[one] and times[other]) and 0 <= min(times[other]) - max(times[one]) <= _AT_ONCE


def _servers(
    found: dict[tuple[int, str], list[int]], reading: Reading, rules: RuleSet
) -> dict[tuple[int, str], list[int]]:
    """Leave out the containers of other programs where one of the log's containers is a server.

    A job manager, around whose tasks its own name stands too, is kept; so is a client that shows what a server that is
    ready does wrong.
    """
    staged = {mark.launch for mark in reading.clock.marks}
    servers = {stream for stream, own in found.items() if stream[1] and staged.intersection(own)}
    if not servers or len(found) == 1:
        return found
    shown = {reading.clock.events[match.event].launch for match in reading.matched.matches
             if match.rule.get("shows_while_ready")}  # fmt: skip

    def counts(file: int, origin: str, own: list[int]) -> bool:
        is_around = any(file == other and name.startswith(origin) for other, name in servers)
        is_alone = all(file != other for other, _ in servers)
        return is_around or is_alone or bool(shown.intersection(own)) or _is_own(own, reading, rules)

    return {(file, origin): own for (file, origin), own in found.items() if counts(file, origin, own)}


def _is_own(launches: Sequence[int], reading: Reading, rules: RuleSet) -> bool:
    """Whether the lines of a container speak of the server's own parts."""
    own = (event for event in reading.clock.events if event.launch in launches)
    return any(rules.is_own(reading.lines[event.first : event.last + 1]) for event in own)


def on_choice(reading: Reading, chosen: Mapping[tuple[int, str], int]) -> list[str]:
    """Return notes on logs that hold several launches, one for those of which the same one is judged."""
    alike: dict[tuple[int, int], list[str]] = {}
    is_later = False
    for stream, own in launches_by_stream(reading).items():
        if len(own) > 1 and stream in chosen:
            place = own.index(chosen[stream]) + 1
            alike.setdefault((len(own), place), []).append(reading.files[stream[0]].name)
            is_later = is_later or place < len(own)
    notes = [
        f"{names[0]} {f'and {len(names) - 1} more: each ' if len(names) > 1 else ''}holds {count} launches; "
        f"number {place} is judged"
        for (count, place), names in alike.items()
    ]
    why = "a later launch did not fail, has no outcome yet, or failed of what this one left behind"
    return [*notes, why] if is_later else notes


def count_launches(reading: Reading) -> int:
    """The most launches that one container or task of one log shows; the kernel's logs show none."""
    found = launches_by_stream(reading).items()
    return max((len(own) for (file, _), own in found if file not in reading.kernel), default=0)


def launches_by_stream(reading: Reading) -> dict[tuple[int, str], list[int]]:
    """Return the launches of every file, and in it of every container or task, in order."""
    found: dict[tuple[int, str], list[int]] = {}
    for event in reading.clock.events:
        line = reading.lines[event.first]
        own = found.setdefault((line.file, line.origin), [])
        if not own or own[-1] != event.launch:
            own.append(event.launch)
    return found


def _is_asked_about(judged: Judged, launch: int, reading: Reading, rules: RuleSet) -> bool:
    """Whether a launch failed and somebody shows it in a block of its own: then the block is what the text is about."""
    root = judged.incident.root
    event = reading.clock.events[root.event] if root is not None else None
    if event is None or not rules.is_own(reading.lines[event.first : event.last + 1]):
        return False
    later = (event.first for event in reading.clock.events if event.launch > launch)
    return any(map(incident.is_markdown, reading.lines[event.last : next(later, len(reading.lines))]))
