"""What each of several logs alone tells of its node, for the report and for who is silent."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from logtriage import judging
from logtriage.engine import silence
from logtriage.node_records import Node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.engine import skew
    from logtriage.engine.ruleset import RuleSet
    from logtriage.judging import Judged
    from logtriage.parts import Part
    from logtriage.reading import Options, Reading

STOPPED = (0, -2, 130, -15, 143)
"""Exit codes of an end that somebody asked for."""

_WAITS = ("hang-timeout", "distributed-init", "killed-unexplained")
_NAMED = 6  # clocks named in a note


def nodes(
    logs: Sequence[Part], skews: Mapping[int, skew.Skew], reading: Reading, rules: RuleSet, options: Options
) -> list[silence.Told]:
    """Return what each node's log alone tells.

    A log that shows neither a launch nor its node's number is left out, and so is one without a number (the other half
    of a node's output, say) where the others have one.
    """
    lines = reading.lines
    counted = {number for part in logs for number in part.launches}
    times: dict[int, list[float]] = defaultdict(list)
    for event in reading.clock.events:
        if event.time is not None and event.launch in counted:
            times[lines[event.first].file].append(event.time)
    ranks: dict[int, dict[str, str]] = defaultdict(dict)
    for mark in (mark for mark in reading.clock.marks if mark.launch in counted):
        own = ranks[lines[mark.line].file]
        own[mark.rank] = silence.further(own.get(mark.rank), mark.stage)
    with_text = {line.file for line in lines if line.text.strip()}
    are_numbered = any(part.node is not None for part in logs)
    found = []
    for part in logs:
        alone = judging.judge_launches(reading, rules, options.replace(exit_code=None), None, part.launches)
        is_empty = part.file not in with_text
        verdict = alone.verdict
        if (verdict.outcome == "unknown" or are_numbered) and part.node is None and not is_empty:
            continue
        ahead = skews[part.file].ahead if part.file in skews else None
        end = max(times[part.file], default=None)
        node = Node(
            file=reading.files[part.file].name,
            number=part.node,
            first_time=min(times[part.file], default=None),
            last_time=end,
            skew=ahead,
            stage=silence.furthest(ranks[part.file].values()),
            label="incomplete" if is_empty else verdict.label,
            outcome="incomplete" if is_empty else verdict.outcome,
        )
        shared = None if end is None else end - (ahead or 0.0)
        found.append(silence.Told(node, part.spread, ranks[part.file], shared, is_empty))
    return found


def failure(judged: Judged, reading: Reading) -> silence.Failure:
    """Return what the verdict says that matters for who is silent."""
    found, lines = judged.incident, reading.lines
    matches = [*([found.root] if found.root else []), *found.unexplained, *found.endings]
    at = [match.line for match in matches] + list(found.troubles)
    at += [item.match.line for item in found.explained if item.match.strength != "harmless"]
    says = frozenset(
        (reading.files[lines[line].file].name, reading.clock.events[lines[line].event].rank) for line in at
    )
    rule = found.root.rule if found.root else {}
    is_wait = judged.verdict.outcome == "failed" and (
        found.root is None or bool(rule.get("distributed")) or judged.verdict.label in _WAITS
    )
    first = judged.clocks.at(at[0]) if at and judged.clocks else None
    return silence.Failure(judged.verdict.outcome, first, is_wait, says)


def on_clocks(found: Sequence[Node]) -> list[str]:
    """Return a note on clocks that are off."""
    off = [node for node in found if node.skew]
    told = [f"{node.name} {abs(node.skew or 0):.0f} s {'ahead' if (node.skew or 0) > 0 else 'behind'}" for node in off]
    return [f"clocks differ ({_some(told)}); what came first was told without that"] if told else []


def on_exit_codes(logs: Sequence[Part], names: Sequence[str]) -> list[str]:
    """Return a note on the exit codes of nodes that nobody asked to end; `names` are those of all logs."""
    told = [
        f"node {part.node}: {part.exit_code}" if part.node is not None else f"{names[part.file]}: {part.exit_code}"
        for part in logs
        if part.exit_code is not None and part.exit_code not in STOPPED
    ]
    return [f"exit codes ({_some(told)})"] if told else []


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
