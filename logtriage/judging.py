"""Judges a log that was read: which launches of it count, the incident of these, and the verdict."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, TypeVar

from logtriage import classifying
from logtriage import verdict as ladder
from logtriage.engine import clock, identity, incident, launch
from logtriage.records import STAGES, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.incident import Evidence
    from logtriage.engine.ruleset import RuleSet
    from logtriage.engine.skew import Clocks, Skew
    from logtriage.node_records import Node
    from logtriage.reading import Options, Reading
    from logtriage.records import Incident, Launch, Match, RootCause, Verdict

_AT_ONCE = 300
"""Seconds between two launches of a log within which the later one may meet what the earlier one left behind."""

_Item = TypeVar("_Item")


class Judged(Record):
    """A verdict with the incident it rests on, the line that shows the cause, and what was started."""

    verdict: Verdict
    incident: Incident
    root: RootCause | None
    launch: Launch
    marks: tuple[tuple[int, str], ...]
    nodes: tuple[Node, ...] = ()
    clocks: Clocks | None = None
    evidence: Evidence | None = None


def judge(reading: Reading, rules: RuleSet, options: Options, finding: Finding | None) -> tuple[Judged, list[str]]:
    """Judge the last launch that has an outcome, of every file; mention the others."""
    chosen = choose(reading, rules, options)
    return judge_launches(reading, rules, options, finding, chosen.values()), on_choice(reading, chosen)


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
    judged = ((launch, _by_rules(reading, rules, options, [launch])) for launch in reversed(own))
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


def has_outcome(
    reading: Reading,
    rules: RuleSet,
    options: Options,
    launches: Iterable[int],
    skews: Mapping[int, Skew] | None = None,
) -> bool:
    """Return whether launches, judged as one, came to anything."""
    return _by_rules(reading, rules, options, launches, skews).verdict.label != "incomplete"


def _by_rules(
    reading: Reading,
    rules: RuleSet,
    options: Options,
    launches: Iterable[int],
    skews: Mapping[int, Skew] | None = None,
) -> Judged:
    """What rules alone say of launches, judged as one."""
    plain = options.replace(deciders=[name for name in options.deciders if name == "rules"])
    return judge_launches(reading, rules, plain, None, launches, skews)


def _is_asked_about(judged: Judged, launch: int, reading: Reading, rules: RuleSet) -> bool:
    """Whether a launch failed and somebody shows it in a block of its own: then the block is what the text is about."""
    root = judged.incident.root
    event = reading.clock.events[root.event] if root is not None else None
    if event is None or not rules.is_own(reading.lines[event.first : event.last + 1]):
        return False
    later = (event.first for event in reading.clock.events if event.launch > launch)
    return any(map(incident.is_markdown, reading.lines[event.last : next(later, len(reading.lines))]))


def judge_launches(
    reading: Reading,
    rules: RuleSet,
    options: Options,
    finding: Finding | None,
    launches: Iterable[int],
    skews: Mapping[int, Skew] | None = None,
) -> Judged:
    """Judge some launches as one; `skews` tell how far the clocks of their files are off, if these are several."""
    lines, events, matches = reading.lines, reading.clock.events, reading.matched.matches
    if "rules" not in options.deciders:
        matches = classifying.without_failures(matches)
    chosen = sorted(launches)
    own = _of(range(len(events)), chosen, lambda number: events[number].launch)
    evidence = incident.Evidence(
        lines=lines,
        events=events,
        own_events=own,
        matches=_of(matches, chosen, lambda found: events[found.event].launch),
        marks=_of(reading.clock.marks, chosen, lambda mark: mark.launch),
        covered=reading.matched.covered,
        fatal={number for number in own if clock.is_fatal(events[number], lines, rules)},
        troubles=rules.troubles,
        is_own=rules.is_own,
        is_client=rules.is_client,
        clocks=None if skews is None else _clocks(reading, own, skews),
    )
    found = incident.build(evidence)
    own_launch = events[found.root.event].launch if found.root else -1
    if not reading.launches.get(own_launch, launch.nothing({})).command:  # the kernel's log names none, say
        own_launch = next((i for i in chosen if reading.launches[i].command), chosen[0] if chosen else 0)
    started = reading.launches.get(own_launch) or launch.nothing(options.facts)
    recognised = (
        classifying.GUESS in options.deciders or bool(evidence.marks) or _says(reading, rules, own, "recognised_by")
    )
    decided = ladder.decide(
        found,
        rules.labels,
        finding,
        stage=_stage(found.root, evidence),
        recognised=recognised,
        described=not evidence.marks and _is_described(reading, rules),
        foreign=not recognised and not _says(reading, rules, own, "related_words"),
        empty=not any(line.text.strip() for line in lines),
        exit_code=options.exit_code,
        seen=options.seen,
        ask=lambda: classifying.guess(
            _of_first_node(_without_answers(evidence, reading, rules), found), started, rules.labels, options
        ),
    )
    root = ladder.root_cause(found, decided, lines, events, started, rules)
    root = root and _placed(root, started, events[lines[root.line].event].rank)
    marks = tuple((mark.line, mark.stage) for mark in evidence.marks)
    return Judged(decided, found, root, started, marks, clocks=evidence.clocks, evidence=evidence)


def _clocks(reading: Reading, own: Sequence[int], skews: Mapping[int, Skew]) -> Clocks:
    from logtriage.engine import skew  # most launches have one log

    return skew.Clocks(reading.lines, reading.clock.events, own, skews)


def _without_answers(evidence: incident.Evidence, reading: Reading, rules: RuleSet) -> incident.Evidence:
    """The evidence without the answers in it that are data or code, or that had to repeat themselves."""
    from logtriage import answers, pasted  # only where no rule decided

    right = {at for at, text in pasted.shown(reading, rules) if answers.holds_data(text)}
    return evidence.replace(covered=evidence.covered.union(right, pasted.asked_for(reading, rules)))


def _placed(root: RootCause, started: Launch, rank: str) -> RootCause:
    """The root with the node that it stands on, if the launch has several."""
    spread = identity.layout(started)
    if (spread.nodes or 1) < 2:
        return root
    place = spread.place(rank)
    if place is not None:
        return root.replace(node=place[0], local_rank=place[1])
    return root.replace(node=identity.number(started, "node_rank"))


def _of_first_node(evidence: incident.Evidence, found: Incident) -> incident.Evidence:
    """The evidence of the node that shows the first trouble, if there are several: the others show its echo."""
    if evidence.clocks is None or not found.troubles:
        return evidence
    lines, file = evidence.lines, evidence.lines[found.troubles[0]].file
    return evidence.replace(
        own_events=[number for number in evidence.own_events if lines[evidence.events[number].first].file == file],
        matches=[match for match in evidence.matches if lines[match.line].file == file],
        marks=[mark for mark in evidence.marks if lines[mark.line].file == file],
    )


def _of(items: Sequence[_Item], launches: Sequence[int], launch_of: Callable[[_Item], int]) -> list[_Item]:
    """The items that belong to some launches, all in order: launches follow each other in a log."""
    found: list[_Item] = []
    for number in launches:
        found += items[bisect_left(items, number, key=launch_of) : bisect_right(items, number, key=launch_of)]
    return found


def _stage(root: Match | None, evidence: incident.Evidence) -> str | None:
    """The stage of the root, or else the last one that was reached; of several nodes the furthest."""
    if root is not None:
        return evidence.events[root.event].stage
    stages = [mark.stage for mark in evidence.marks]
    if evidence.clocks is not None:
        return max(stages, key=STAGES.index, default=None)
    return stages[-1] if stages else None


def _is_described(reading: Reading, rules: RuleSet) -> bool:
    """Whether a text holds the table that describes a machine, and no record of a server."""
    if any(line.start > line.body for line in reading.lines):
        return False
    return any(word in line.text for line in reading.lines for word in rules.log["described_by"])


def _says(reading: Reading, rules: RuleSet, own: Sequence[int], which: str) -> bool:
    """Whether the launch's lines hold one of the words of a list in `log.yaml`."""
    words = rules.log[which]
    texts = (
        line.text[line.body :]
        for number in own
        for line in reading.lines[reading.clock.events[number].first : reading.clock.events[number].last + 1]
    )
    return any(word in text for text in texts for word in words)
