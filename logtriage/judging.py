"""Judges a log that was read: which launches of it count, the incident of these, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import verdict as ladder
from logtriage.engine import clock, incident, launch
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.answers import Finding
    from logtriage.engine.ruleset import RuleSet
    from logtriage.reading import Options, Reading
    from logtriage.records import Event, Incident, Launch, Match, RootCause, Verdict


class Judged(Record):
    """A verdict with the incident it rests on, the line that shows the cause, and what was started."""

    verdict: Verdict
    incident: Incident
    root: RootCause | None
    launch: Launch
    marks: tuple[tuple[int, str], ...]


def judge(reading: Reading, rules: RuleSet, options: Options, finding: Finding | None) -> tuple[Judged, list[str]]:
    """Judge the last launch that has an outcome, of every file; mention the others."""
    notes: list[str] = []
    chosen: list[int] = []
    for (file, _), own in _launches_by_stream(reading).items():
        picked = own[-1]
        if len(own) > 1:  # of a single launch there is nothing to choose
            picked = next((i for i in reversed(own) if _has_outcome(reading, rules, options, i)), picked)
        chosen.append(picked)
        if len(own) > 1:
            notes.append(
                f"{reading.files[file].name} holds {len(own)} launches; number {own.index(picked) + 1} is judged"
            )
        if picked != own[-1]:
            notes.append("a later launch has no outcome yet")
    return _judge_launches(reading, rules, options, finding, chosen), notes


def count_launches(reading: Reading, kernel_logs: int) -> int:
    """The most launches that one container or task of one log shows; the kernel's logs show none."""
    logs = len(reading.files) - kernel_logs
    return max((len(own) for (file, _), own in _launches_by_stream(reading).items() if file < logs), default=0)


def _launches_by_stream(reading: Reading) -> dict[tuple[int, str], list[int]]:
    """The launches of every file, and in it of every container or task, in order."""
    found: dict[tuple[int, str], list[int]] = {}
    for event in reading.clock.events:
        line = reading.lines[event.first]
        own = found.setdefault((line.file, line.origin), [])
        if event.launch not in own:
            own.append(event.launch)
    return found


def _has_outcome(reading: Reading, rules: RuleSet, options: Options, launch_index: int) -> bool:
    return _judge_launches(reading, rules, options, None, [launch_index]).verdict.label != "incomplete"


def _judge_launches(
    reading: Reading, rules: RuleSet, options: Options, finding: Finding | None, chosen: Sequence[int]
) -> Judged:
    lines, events = reading.lines, reading.clock.events
    own = [number for number, event in enumerate(events) if event.launch in chosen]
    evidence = incident.Evidence(
        lines=lines,
        events=events,
        own_events=own,
        matches=[found for found in reading.matched.matches if events[found.event].launch in chosen],
        marks=[mark for mark in reading.clock.marks if mark.launch in chosen],
        covered=reading.matched.covered,
        fatal={number for number in own if clock.is_fatal(events[number], lines, rules)},
        troubles=rules.troubles,
    )
    found = incident.build(evidence)
    decided = ladder.decide(
        found,
        rules.labels,
        finding,
        stage=_stage(found.root, events, evidence.marks),
        recognised=bool(evidence.marks) or _recognised(reading, rules, own),
        empty=not any(line.text.strip() for line in lines),
        exit_code=options.exit_code,
        seen=options.seen,
    )
    own_launch = events[found.root.event].launch if found.root else -1
    if not reading.launches.get(own_launch, launch.nothing({})).command:  # the kernel's log names none, say
        own_launch = next((i for i in chosen if reading.launches[i].command), chosen[0] if chosen else 0)
    started = reading.launches.get(own_launch) or launch.nothing(options.facts)
    root = ladder.root_cause(found, decided, lines, events, started, rules)
    return Judged(decided, found, root, started, tuple((mark.line, mark.stage) for mark in evidence.marks))


def _stage(root: Match | None, events: Sequence[Event], marks: Sequence[clock.Mark]) -> str | None:
    if root is not None:
        return events[root.event].stage
    return marks[-1].stage if marks else None


def _recognised(reading: Reading, rules: RuleSet, own: Sequence[int]) -> bool:
    words = rules.log["recognised_by"]
    texts = (
        line.text[line.body :]
        for number in own
        for line in reading.lines[reading.clock.events[number].first : reading.clock.events[number].last + 1]
    )
    return any(word in text for text in texts for word in words)
