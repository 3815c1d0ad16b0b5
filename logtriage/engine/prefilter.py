"""Finds the lines worth looking at: those that hold a gate. In: raw bytes. Out: offsets inside such lines."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FAST = 64
"""Above this many literals the search leaves its vectorised path (ahocorasick_rs 1.0.3: Teddy)."""

MAX_KNOWN = 4 << 20
"""Bytes of different lines whose anchors are remembered."""

_DIGITS = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))
_HEX = bytes(48 if bytes((byte,)) in b"0123456789abcdef" else byte for byte in range(256))


class Prefilter(Protocol):
    """Searches bytes for gates."""

    def offsets(self, data: bytes) -> list[int]:
        """Return sorted offsets into `data`, at least one in every line that holds a gate and none in other lines."""


class Held(NamedTuple):
    """Which anchors lines hold: for each line an index into `anchors`, of which the first holds none."""

    kinds: list[int]
    anchors: Sequence[tuple[bytes, ...]]


class AnchorSearch(Protocol):
    """Searches lines for anchors, where so many of them hold a gate that gates do not help."""

    def held(self, data: bytes) -> Held:
        """Return which anchors the lines of `data` (split at line feeds) hold, sorted."""


def groups(gates: Sequence[Any]) -> list[Sequence[Any]]:
    """Return `gates` in as few groups of nearly equal size as the vectorised search allows."""
    count = -(-len(gates) // MAX_FAST)
    size = -(-len(gates) // count) if count else 1
    return [gates[start : start + size] for start in range(0, len(gates), size)]


class AhoCorasick:
    """Searches for all gates at once, in groups small enough for the vectorised search (which needs leftmost-first)."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        self._automata = [BytesAhoCorasick(group, MatchKind.LeftmostFirst) for group in groups(gates)]

    def offsets(self, data: bytes) -> list[int]:
        """See Prefilter. A gate holds no line break, so the first match of a line is never hidden by another line."""
        found = [match[1] for automaton in self._automata for match in automaton.find_matches_as_indexes(data)]
        found.sort()
        return found


class PlainSearch:
    """The same with the standard library, one gate after the other; slower."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        self._gates = gates

    def offsets(self, data: bytes) -> list[int]:
        """See Prefilter."""
        found = []
        for gate in self._gates:
            at = data.find(gate)
            while at >= 0:
                found.append(at)
                at = data.find(gate, at + 1)
        found.sort()
        return found


class AnchorAutomaton:
    """Searches each different line once: lines that only differ in digits, of which a noisy log is full, are one.

    Lines that differ in hexadecimal digits as well have the same candidates, each of which is looked for.
    """

    def __init__(self, anchors: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        self._anchors: dict[bytes, list[bytes]] = {}
        for anchor in anchors:
            self._anchors.setdefault(anchor.translate(_HEX), []).append(anchor)
        self._patterns = list(self._anchors)
        self._automaton = BytesAhoCorasick(self._patterns, MatchKind.Standard)
        self._forget()

    def held(self, data: bytes) -> Held:
        """See AnchorSearch."""
        if self._size > MAX_KNOWN:
            self._forget()
        masked = data.translate(_DIGITS).split(b"\n")
        kinds = list(map(self._known.get, masked))
        missing = [index for index, kind in enumerate(kinds) if kind is None] if None in kinds else []
        if missing:
            lines = data.split(b"\n")
            shapes = b"\n".join([masked[index] for index in missing]).translate(_HEX).split(b"\n")
            self._learn(sorted(set(shapes).difference(self._shapes)))
            for index, shape in zip(missing, shapes, strict=True):
                candidates, is_sure = self._shapes[shape]
                line = lines[index]
                anchors = tuple([anchor for anchor in candidates if anchor in line])
                kind = kinds[index] = self._kinds.setdefault(anchors, len(self._kinds))
                if is_sure:
                    self._known[masked[index]] = kind
                    self._size += len(line)
        return Held(cast("list[int]", kinds), list(self._kinds))

    def _learn(self, shapes: Sequence[bytes]) -> None:
        """Find the anchors that lines of a shape may hold, and whether all lines with the same digits hold the same."""
        data = b"\n".join(shapes)
        self._size += len(data)
        found = self._automaton.find_matches_as_indexes(data, overlapping=True)
        ends = [end for _, _, end in found]
        first = at = 0
        for shape in shapes:
            at += len(shape) + 1
            last = bisect_left(ends, at, first)
            patterns = {self._patterns[number] for number, _, _ in found[first:last]}
            anchors = sorted(anchor for pattern in patterns for anchor in self._anchors[pattern])
            self._shapes[shape] = anchors, all(anchor == anchor.translate(None, b"0123456789") for anchor in anchors)
            first = last

    def _forget(self) -> None:
        self._size = 0
        self._known: dict[bytes, int] = {}
        self._shapes: dict[bytes, tuple[Sequence[bytes], bool]] = {}
        self._kinds: dict[tuple[bytes, ...], int] = {(): 0}


class PlainAnchors:
    """The same with the standard library, one anchor after the other; slower."""

    def __init__(self, anchors: Sequence[bytes]) -> None:
        self._anchors = sorted(anchors)

    def held(self, data: bytes) -> Held:
        """See AnchorSearch."""
        present = [anchor for anchor in self._anchors if anchor in data]
        kinds: dict[tuple[bytes, ...], int] = {(): 0}
        lines = [tuple([anchor for anchor in present if anchor in line]) for line in data.split(b"\n")]
        return Held([kinds.setdefault(anchors, len(kinds)) for anchors in lines], list(kinds))


def make(gates: Sequence[str]) -> Prefilter:
    """Return the fastest search for gates that this installation has."""
    encoded = [gate.encode() for gate in gates]
    try:
        return AhoCorasick(encoded)
    except ImportError:
        return PlainSearch(encoded)


def make_anchors(anchors: Sequence[str]) -> AnchorSearch:
    """Return the fastest search for anchors that this installation has."""
    encoded = [anchor.encode() for anchor in anchors]
    try:
        return AnchorAutomaton(encoded)
    except ImportError:
        return PlainAnchors(encoded)
