"""Chooses the gates: few short strings such that every anchor contains at least one, rare in a healthy log.

A log is searched for the gates alone; only lines that hold one are looked at further.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STEM_LENGTHS = range(4, 9)


def choose(anchors: Iterable[str], fixed: Sequence[str], busy: Sequence[str]) -> list[str]:
    """Return gates for `anchors`, starting from the `fixed` ones, by greedy set cover.

    A stem that occurs in one of the `busy` lines (printed many times by a healthy server) is taken only
    where nothing else covers an anchor. Deterministic for the same input.
    """
    gates = list(dict.fromkeys(fixed))
    open_anchors = sorted({anchor for anchor in anchors if not any(gate in anchor for gate in gates)})
    covers = _stems(open_anchors)
    is_busy = {stem: any(stem in line for line in busy) for stem in covers}
    for allow_busy in (False, True):
        usable = {stem: found for stem, found in covers.items() if allow_busy or not is_busy[stem]}
        gates += _cover(usable, open_anchors)
        open_anchors = [anchor for anchor in open_anchors if not any(gate in anchor for gate in gates)]
    return gates


def _stems(anchors: Sequence[str]) -> dict[str, set[int]]:
    covers: dict[str, set[int]] = defaultdict(set)
    for index, anchor in enumerate(anchors):
        for length in _STEM_LENGTHS:
            for start in range(len(anchor) - length + 1):
                covers[anchor[start : start + length]].add(index)
    return covers


def _cover(covers: dict[str, set[int]], anchors: Sequence[str]) -> list[str]:
    """Greedy set cover with a lazy heap: a stem's gain only shrinks, so a stale top is pushed back."""
    done: set[int] = {i for i, anchor in enumerate(anchors) if not any(stem in anchor for stem in covers)}
    heap = [(-len(found), -len(stem), stem) for stem, found in covers.items()]
    heapq.heapify(heap)
    chosen: list[str] = []
    while heap and len(done) < len(anchors):
        gain, length, stem = heapq.heappop(heap)
        fresh = len(covers[stem] - done)
        if fresh == 0:
            continue
        if fresh < -gain:
            heapq.heappush(heap, (-fresh, length, stem))
            continue
        chosen.append(stem)
        done |= covers[stem]
    return chosen
