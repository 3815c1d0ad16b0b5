"""Names the nodes and ranks of a launch that fell silent: no log, no lines, or none from long before the others' on."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from logtriage.records import STAGES, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from logtriage.engine.identity import Layout
    from logtriage.node_records import Node

LONG = 30.0
"""Seconds of silence that mean something where the others wait or went on."""

_NAMED = 6  # nodes and ranks named in one note


class Told(Record):
    """What the log of one node tells: the node, its ranks with the last stage of each, when it ends by shared time."""

    node: Node
    spread: Layout
    ranks: Mapping[str, str]
    end: float | None
    is_empty: bool

    @property
    def has_failed(self) -> bool:
        """Whether the log alone shows a failure, or the echo of one."""
        return self.node.outcome in ("failed", "degenerate")


class Failure(Record):
    """What is known of the failure: the verdict's outcome, when it began, and which ranks say anything about it.

    `is_wait` where a node only lost another or waited in vain for it: then a silent node may be the cause.
    """

    outcome: str
    at: float | None
    is_wait: bool
    ranks: frozenset[tuple[str, str]]


def describe(told: Sequence[Told], failure: Failure) -> tuple[tuple[Node, ...], list[str]]:
    """Return the nodes, with those that no log was given of, and notes on silent nodes and ranks."""
    nodes: list[Node] = []
    notes = []
    for item in told:
        because = _why_silent(item, [other for other in told if other is not item], failure)
        nodes.append(item.node.replace(silent=because))
        if because:
            hint = "; it may be the cause: look at that machine first" if failure.is_wait else ""
            notes.append(f"{_name(item.node)} is silent: {because}{hint}")
    if failure.outcome != "healthy":
        absent = _absent(told)
        nodes += [type(node)(file=None, number=node.number, silent="no log of it was given") for node in absent]
        if absent:
            notes.append(f"no log was given of {_numbers([node.number or 0 for node in absent])}")
        heard = [item for item, node in zip(told, nodes, strict=False) if not node.silent]
        notes += _silent_ranks(heard, failure)
    return tuple(nodes), notes


def further(one: str | None, other: str) -> str:
    """Return the later of two stages."""
    return other if one is None or STAGES.index(other) > STAGES.index(one) else one


def furthest(stages: Iterable[str]) -> str | None:
    """Return the last of some stages, None of none."""
    return max(stages, key=STAGES.index, default=None)


def _why_silent(item: Told, others: Sequence[Told], failure: Failure) -> str:
    if item.is_empty:
        return "its log is empty"
    if failure.outcome == "healthy" or item.has_failed:
        return ""
    since = f"nothing after {_clock(item.node.last_time)}" if item.node.last_time is not None else "nothing"
    ends = [other.end for other in others if other.end is not None]
    ended_early = item.end is None or not ends or item.end < median(ends) - LONG
    ahead = [other for other in others if _reached(other) > _reached(item)]
    if ended_early and ahead and 4 * len(ahead) >= 3 * len(others):
        least = min(ahead, key=_reached).node.stage
        return f"{since}, and it got no further than {item.node.stage or 'its start'} (the others: {least})"
    failing = [other for other in others if other.has_failed]
    before = None if failure.at is None or item.end is None else failure.at - item.end
    is_alone = len(failing) > 1 and 2 * len(failing) >= len(others) and (before is None or before > 1)
    if is_alone or (failure.is_wait and failing and before is not None and before >= LONG):
        early = f", {before:.0f} s before the first failure" if before is not None else ""
        return f"{since}{early}, and no error"
    return ""


def _reached(item: Told) -> int:
    """How far a node came; only the first one can tell that the server serves."""
    return min(STAGES.index(item.node.stage), STAGES.index("warmup")) if item.node.stage else -1


def _absent(told: Sequence[Told]) -> list[Node]:
    """The nodes that the launch has and of which there is no log, if the number of each log is known."""
    numbers = {item.node.number for item in told}
    count = max((item.spread.nodes or 0 for item in told), default=0)
    if None in numbers:
        return []
    like = told[0].node
    return [like.replace(number=number) for number in range(count) if number not in numbers]


def _silent_ranks(heard: Sequence[Told], failure: Failure) -> Iterator[str]:
    """Notes on ranks that a node's log lacks, and where ranks wait, on those that lag behind most others."""
    for item in heard:
        if missing := _missing_ranks(item):
            yield f"{_name(item.node)} prints nothing of {_some(missing)}"
    if not failure.is_wait and failure.outcome != "incomplete":
        return
    reached = [(item.node, rank, stage) for item in heard for rank, stage in item.ranks.items() if "TP" in rank]
    if not reached:
        return
    common = Counter(stage for _, _, stage in reached).most_common(1)[0][0]
    behind = [
        (node, rank, stage)
        for node, rank, stage in reached
        if STAGES.index(stage) < STAGES.index(common) and (str(node.file), rank) not in failure.ranks
    ]
    if behind and 4 * len(behind) <= len(reached):
        named = _some([f"{rank} of {_name(node)} ({stage})" for node, rank, stage in behind])
        yield f"silent since long before the other ranks, which reached {common}: {named}"


def _missing_ranks(item: Told) -> list[str]:
    """Ranks that must run on a node and that its log never shows, where it shows most of the others."""
    expected = item.spread.ranks_per_node
    if item.node.number is None or not expected or item.spread.pipeline > 1:
        return []
    places = [place for rank in item.ranks if (place := item.spread.place(rank))]
    seen = {local for node, local in places if node == item.node.number}
    if 2 * len(seen) < expected or 2 * len(seen) == expected == 2:
        return []
    return [f"TP{item.node.number * expected + local}" for local in range(expected) if local not in seen]


def _name(node: Node) -> str:
    return f"node {node.number} ({node.file})" if node.number is not None else str(node.file)


def _numbers(numbers: Sequence[int]) -> str:
    """Numbers as words: ``node 3``, ``nodes 2-5, 9``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    shown = _some([f"{span[0]}-{span[1]}" if len(span) > 1 else str(span[0]) for span in spans])
    return f"node{'s' if len(numbers) > 1 else ''} {shown}"


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more


def _clock(seconds: float) -> str:
    second = int(seconds % 86400)
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
