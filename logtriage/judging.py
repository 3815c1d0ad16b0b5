"""Launches of a log that was read in; their incident and the verdict on it out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, TypeVar

from logtriage import classifying
from logtriage import verdict as ladder
from logtriage.engine import clock, identity, incident, launch
from logtriage.records import STAGES, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.incident import Evidence
    from logtriage.engine.ruleset import RuleSet
    from logtriage.engine.skew import Clocks, Skew
    from logtriage.node_records import Node
    from logtriage.reading import Options, Reading
    from logtriage.records import Incident, Launch, Match, RootCause, Verdict

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


def has_outcome(
    reading: Reading,
    rules: RuleSet,
    options: Options,
    launches: Iterable[int],
    skews: Mapping[int, Skew] | None = None,
) -> bool:
    """Return whether launches, judged as one, came to anything."""
    return by_rules(reading, rules, options, launches, skews).verdict.label != "incomplete"


def by_rules(
    reading: Reading,
    rules: RuleSet,
    options: Options,
    launches: Iterable[int],
    skews: Mapping[int, Skew] | None = None,
) -> Judged:
    """Return what rules alone say of launches, judged as one."""
    plain = options.replace(deciders=[name for name in options.deciders if name == "rules"])
    return judge_launches(reading, rules, plain, None, launches, skews)


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
