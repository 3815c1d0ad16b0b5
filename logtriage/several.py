"""Judges several logs: the nodes of one launch as one incident, logs of different launches each on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import choosing, judging, parts, telling
from logtriage.engine import identity, silence, skew
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.ruleset import RuleSet
    from logtriage.judging import Judged
    from logtriage.parts import Part
    from logtriage.reading import Options, Reading
    from logtriage.records import RootCause

_SEVERITY = ("failed", "degenerate", "incomplete", "healthy", "unknown")
_BELIEVED = 600.0  # seconds by which the clocks of logs differ that do not say that they are of one launch
_ZONE, _IN_ZONE = 900.0, 120.0
_KILLED = (-9, 137)
_SHOWN = 4  # logs and launches named in a note


class _Group(Record):
    """The logs of one launch, and the verdict on it."""

    parts: tuple[Part, ...]
    judged: Judged
    skews: Mapping[int, skew.Skew]
    kernel: Mapping[int, int | None]


def judge(reading: Reading, rules: RuleSet, options: Options, finding: Finding | None) -> tuple[Judged, list[str]]:
    """Judge several logs; return the verdict, with what is known of each node, and notes.

    Logs of different launches (their arguments say so) are judged apart; the verdict is that on the one that failed, or
    else on the one that got least far.
    """
    chosen = _chosen(reading, rules, options)
    notes = choosing.on_choice(reading, chosen)
    found = parts.grouped(parts.of(reading, chosen, options))
    groups = [_judged(group, chosen, reading, rules, options, finding) for group in found]
    groups.sort(key=lambda group: _order(group, reading))
    first = groups[0]
    notes += _on_launches(groups, reading)
    judged = first.judged
    if len(first.parts) < 2 or _is_one_node(first.parts):
        return judged, notes
    told = telling.nodes(first.parts, first.skews, reading, rules, options)
    nodes, silent = silence.describe(told, telling.failure(judged, reading))
    notes += [
        *silent,
        *telling.on_exit_codes(first.parts, [file.name for file in reading.files]),
        *telling.on_clocks(nodes),
    ]
    return judged.replace(nodes=nodes, root=judged.root and _placed(judged.root, first, reading)), notes


def _chosen(reading: Reading, rules: RuleSet, options: Options) -> dict[tuple[int, str], int]:
    """The last launch of every log if these came to something together: only the first node tells that it is ready."""
    streams = choosing.launches_by_stream(reading)
    if all(len(own) == 1 for own in streams.values()):
        return {stream: own[0] for stream, own in streams.items()}
    last = {stream: own[-1] for stream, own in streams.items()}
    if judging.has_outcome(reading, rules, options, last.values(), {}):
        return last
    return choosing.choose(reading, rules, options)


def _placed(root: RootCause, group: _Group, reading: Reading) -> RootCause:
    """The root on the node that its log is of; a kernel's log of an unknown node tells none."""
    file = reading.lines[root.line].file
    owner = group.kernel.get(file, file)
    node = next((part.node for part in group.parts if part.file == owner), None)
    if file in group.kernel:
        return root.replace(node=node, local_rank=None)
    return root if node is None else root.replace(node=node)


def _judged(
    logs: Sequence[Part],
    chosen: Mapping[tuple[int, str], int],
    reading: Reading,
    rules: RuleSet,
    options: Options,
    finding: Finding | None,
) -> _Group:
    files = [part.file for part in logs]
    kernel = {file: owner for file, owner in _owners(reading, logs).items() if owner is None or owner in files}
    launches = [number for part in logs for number in part.launches]
    skews = _skews(logs, launches, reading, rules)
    for file, owner in kernel.items():
        own = skews.get(owner) if owner is not None else None
        if own is not None:
            skews[file] = own.replace(unsure=own.unsure + skew.NOISE)
    launches += [number for (file, _), number in chosen.items() if file in kernel]
    codes = [part.exit_code for part in logs if part.exit_code is not None]
    if codes:
        worst = min(codes, key=lambda code: (code not in _KILLED, code in telling.STOPPED))
        options = options.replace(exit_code=worst)
    clocks = skews if len(logs) + len(kernel) > 1 else None
    judged = judging.judge_launches(_heads_only(reading, logs), rules, options, finding, launches, clocks)
    return _Group(tuple(logs), judged, skews, kernel)


def _owners(reading: Reading, logs: Sequence[Part]) -> dict[int, int | None]:
    """The kernel's logs, and of each the log of the same node: as told, by its number, or the only one."""
    if len(reading.logs) == 1:
        return dict.fromkeys(reading.kernel, reading.logs[0])
    by_node = {part.node: part.file for part in logs if part.node is not None}
    numbers = identity.by_name([reading.files[file].name for file in reading.kernel], None)
    return {
        file: owner if owner is not None else by_node.get(-1 if number is None else number)
        for (file, owner), number in zip(reading.kernel.items(), numbers, strict=True)
    }


def _skews(
    logs: Sequence[Part], launches: Sequence[int], reading: Reading, rules: RuleSet
) -> dict[int, skew.Skew]:  # fmt: skip
    if len(logs) == 1 or _is_one_node(logs):
        return {part.file: skew.Skew(0.0, 0.0) for part in logs}
    times = skew.shown_together(reading.lines, reading.clock.events, reading.hits, rules.log["together"], launches)
    found = skew.estimate(times)
    certain = {part.file for part in logs if (part.spread.nodes or 1) > 1}
    return {file: item for file, item in found.items() if file in certain or _is_plausible(item.ahead)}


def _is_one_node(logs: Sequence[Part]) -> bool:
    """Whether the logs are pieces of one (rotated, or standard error apart): the launch has one node."""
    return any(part.spread.nodes == 1 for part in logs)


def _is_plausible(ahead: float) -> bool:
    """Whether a clock may be so far ahead: a little, or as far as time zones are apart."""
    return abs(ahead) <= _BELIEVED or abs(ahead - round(ahead / _ZONE) * _ZONE) <= _IN_ZONE


def _heads_only(reading: Reading, logs: Sequence[Part]) -> Reading:
    """Without the answers of nodes other than the first: their /health is that of a dummy that is always well."""
    if not any(part.node == 0 for part in logs):
        return reading
    others = {part.file for part in logs if part.node}
    lines = reading.lines
    kept = [
        match
        for match in reading.matched.matches
        if match.rule["id"] != "requests-served" or lines[match.line].file not in others
    ]
    return reading.replace(matched=reading.matched.replace(matches=kept))


def _order(group: _Group, reading: Reading) -> tuple[object, ...]:
    """Failed launches first, the earliest before the others; then those that got least far."""
    judged = group.judged
    at = reading.clock.events[reading.lines[judged.root.line].event].time if judged.root else None
    is_unproven = judged.verdict.decided_by == "none"
    return (_SEVERITY.index(judged.verdict.outcome), is_unproven, at is None, at or 0.0, group.parts[0].file)


def _on_launches(groups: Sequence[_Group], reading: Reading) -> list[str]:
    if len(groups) < 2:
        return []
    told = [
        f"{_named([reading.files[part.file].name for part in group.parts])}: {group.judged.verdict.label}"
        for group in groups[:_SHOWN]
    ]
    more = f"; and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    return [
        f"these logs are of {len(groups)} launches; the first is judged ({'; '.join(told)}{more}); "
        "--separate judges each"
    ]


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
