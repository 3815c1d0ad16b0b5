"""Which node of a launch a log belongs to: by its arguments, its ranks, or its name; and which ranks run where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.records import Launch

_NAMED = r"(?i)(?:node|worker|rank|host|pod|nr|sglang)[-_.]?(?:rank)?[-_.]?(\d{1,4})(?!\d)"
_TAG = r"(?<![A-Z_])(DP|PP|TP)(\d{1,5})"
_MOST = 10_000  # nodes, ranks


class Layout(Record):
    """How the ranks of a launch are spread over its nodes; sizes that are not known are None."""

    nodes: int | None = None
    tensor: int | None = None
    pipeline: int = 1

    def place(self, rank: str) -> tuple[int, int] | None:
        """Return the node on which a rank such as ``TP9`` or ``PP1 TP3`` runs, and its number there."""
        ranks = {kind: int(number) for kind, number in re.findall(_TAG, rank)}
        if "TP" not in ranks or not self.nodes or not self.tensor or ("PP" not in ranks and self.pipeline > 1):
            return None
        nodes_per_stage = max(self.nodes // self.pipeline, 1)
        stages_per_node = max(self.pipeline // self.nodes, 1)
        width = self.tensor // nodes_per_stage
        if not width or ranks["TP"] >= self.tensor or ranks.get("PP", 0) >= self.pipeline:
            return None
        stage, along = divmod(ranks.get("PP", 0), stages_per_node)
        return stage * nodes_per_stage + ranks["TP"] // width, along * width + ranks["TP"] % width

    @property
    def ranks_per_node(self) -> int | None:
        """How many ranks run on each node."""
        return self.tensor * self.pipeline // self.nodes if self.tensor and self.nodes else None


def layout(launch: Launch) -> Layout:
    """Return the layout that a launch's arguments give."""
    return Layout(number(launch, "nnodes"), number(launch, "tp_size"), number(launch, "pp_size") or 1)


def number(launch: Launch, name: str) -> int | None:
    """Return an argument that is a number, as the server resolved it or as the command has it (not a variable)."""
    for text in (launch.resolved.get(name), launch.flags.get(f"--{name.replace('_', '-')}")):
        if text is not None and text.isascii() and text.isdigit() and int(text) < _MOST:
            return int(text)
    return None


def node_of(launch: Launch, ranks: Iterable[str], spread: Layout) -> int | None:
    """Return the number of the node that a launch's own lines tell, or None."""
    if (told := number(launch, "node_rank")) is not None:
        return told
    places = {place[0] for rank in ranks if (place := spread.place(rank)) is not None}
    return places.pop() if len(places) == 1 else None


def by_name(names: Sequence[str], nodes: int | None) -> list[int | None]:
    """Return the numbers of nodes that the names of logs give, where all of them differ and are possible."""
    found = [_in_name(name) for name in names]
    told = [number for number in found if number is not None]
    if len(set(told)) < len(told) or (nodes is not None and any(number >= nodes for number in told)):
        return [None] * len(names)
    return found


def _in_name(name: str) -> int | None:
    """The last number behind a word for a node in the name of a file, or else in that of its folders."""
    for part in reversed(re.split(r"[/\\!:]", name)):
        if found := re.findall(_NAMED, part):
            return int(found[-1])
    return None


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a key that sorts names and ranks as people do: ``node2`` before ``node10``."""
    return tuple((word, int(digits or -1)) for word, digits in re.findall(r"(\D*)(\d{0,18})", text))
