"""Chooses the gates: few short strings such that every anchor contains at least one, rare in a healthy log.

A log is searched for the gates alone; only lines that hold one are looked at further.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

from logtriage.engine.prefilter import groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STEM_LENGTHS = range(4, 9)
_PREFIX = 4
_LETTERS = 2
_SWEEPS = 3
# The vectorised search (Teddy) looks at the low and high halves of the first four bytes of 8 buckets of literals, or,
# for more than 32, of 16 at half the speed; the literal at index i is in bucket i modulo their number. What fits all
# halves is looked at again.
_FEW, _FEW_BUCKETS, _BUCKETS = 32, 8, 16


def choose(anchors: Iterable[str], fixed: Sequence[str], busy: Sequence[str]) -> list[str]:
    """Return gates for `anchors`, starting from the `fixed` ones, by greedy set cover, in the order to search them in.

    A stem that a line of `busy` (printed many times by a healthy server) holds or seems to hold at a first glance, or
    that any number might be, is taken only where nothing else covers an anchor. Deterministic for the same input.
    """
    gates = list(dict.fromkeys(fixed))
    glance = _Glance(busy)
    open_anchors = sorted({anchor for anchor in anchors if not any(gate in anchor for gate in gates)})
    covers = _stems(open_anchors)
    printed = "\n".join(busy)
    seen = {prefix: glance.count([prefix]) for prefix in sorted({stem[:_PREFIX] for stem in covers})}
    quiet = {stem: found for stem, found in covers.items() if stem not in printed and _is_wordy(stem)}
    silent = {stem: found for stem, found in quiet.items() if not seen[stem[:_PREFIX]]}
    done: set[int] = set()
    for usable in (silent, quiet, covers):
        gates += _cover(usable, done)
    return _arranged(gates, glance)


def _is_wordy(stem: str) -> bool:
    return sum(map(str.isalpha, stem)) >= _LETTERS


def _arranged(gates: Sequence[str], glance: _Glance) -> list[str]:
    """Order the gates so that those in one bucket together seem to be in as few places of busy lines as possible."""
    order = list(gates)
    buckets: dict[tuple[int, int], list[int]] = defaultdict(list)
    bucket_of: list[tuple[int, int]] = []
    for number, group in enumerate(groups(order)):
        count = _FEW_BUCKETS if len(group) <= _FEW else _BUCKETS
        for index in range(len(group)):
            buckets[number, index % count].append(len(bucket_of))
            bucket_of.append((number, index % count))
    counts = {bucket: glance.count([order[at] for at in places]) for bucket, places in buckets.items()}
    for _ in range(_SWEEPS):
        for one, two in combinations(range(len(order)), 2):
            first, second = bucket_of[one], bucket_of[two]
            if first == second or not (counts[first] or counts[second]):
                continue
            order[one], order[two] = order[two], order[one]
            changed = [glance.count([order[at] for at in buckets[bucket]]) for bucket in (first, second)]
            if sum(changed) < counts[first] + counts[second]:
                counts[first], counts[second] = changed
            else:
                order[one], order[two] = order[two], order[one]
    return order


class _Glance:
    """What the vectorised search sees of busy lines at a first glance: the halves of each four bytes in a row."""

    def __init__(self, busy: Sequence[str]) -> None:
        seen: set[bytes] = set()
        for line in busy:
            data = f"{line}\n{line[:_PREFIX]}".encode()
            for shift in range(10):  # digits change from line to line
                text = bytes(48 + (byte * 7 + shift * 3 + at) % 10 if 48 <= byte < 58 else byte
                             for at, byte in enumerate(data))  # fmt: skip
                seen.update(text[at : at + _PREFIX] for at in range(len(text) - _PREFIX + 1))
        self._halves: dict[tuple[int, int], int] = defaultdict(int)
        for number, four in enumerate(sorted(seen)):
            for at, byte in enumerate(four):
                self._halves[2 * at, byte & 15] |= 1 << number
                self._halves[2 * at + 1, byte >> 4] |= 1 << number
        self._known: dict[str, list[int]] = {}

    def count(self, gates: Sequence[str]) -> int:
        """Return at how many different places of the busy lines a bucket of `gates` seems to be."""
        places = -1
        for masks in zip(*map(self._masks, gates), strict=True):
            fits = 0
            for mask in masks:
                fits |= mask
            places &= fits
        return places.bit_count()

    def _masks(self, gate: str) -> list[int]:
        if gate not in self._known:
            known = []
            for at, byte in enumerate(gate.encode()[:_PREFIX]):
                known += [self._halves.get((2 * at, byte & 15), 0), self._halves.get((2 * at + 1, byte >> 4), 0)]
            self._known[gate] = known
        return self._known[gate]


def _stems(anchors: Sequence[str]) -> dict[str, set[int]]:
    covers: dict[str, set[int]] = defaultdict(set)
    for index, anchor in enumerate(anchors):
        for length in _STEM_LENGTHS:
            for start in range(len(anchor) - length + 1):
                covers[anchor[start : start + length]].add(index)
    return covers


def _cover(covers: dict[str, set[int]], done: set[int]) -> list[str]:
    """Greedy set cover with a lazy heap: a stem's gain only shrinks, so a stale top is pushed back. Adds to `done`."""
    left = set().union(*covers.values()) - done
    heap = [(-len(found), -len(stem), stem) for stem, found in covers.items()]
    heapq.heapify(heap)
    chosen: list[str] = []
    while heap and left:
        gain, length, stem = heapq.heappop(heap)
        fresh = len(covers[stem] & left)
        if fresh == 0:
            continue
        if fresh < -gain:
            heapq.heappush(heap, (-fresh, length, stem))
            continue
        chosen.append(stem)
        left -= covers[stem]
        done |= covers[stem]
    return chosen
