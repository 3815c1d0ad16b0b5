"""Finds the lines worth looking at: those that hold a gate. In: raw bytes. Out: offsets inside such lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FAST = 64
"""Above this many literals the search leaves its vectorised path (ahocorasick_rs 1.0.3: Teddy)."""

_DIGITS = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))


class Prefilter(Protocol):
    """Searches bytes for gates."""

    def offsets(self, data: bytes) -> list[int]:
        """Return sorted offsets into `data`, at least one in every line that holds a gate and none in other lines."""


class AnchorSearch(Protocol):
    """Searches bytes for anchors, where so many lines hold a gate that gates do not help."""

    def present(self, data: bytes) -> list[bytes]:
        """Return the anchors that `data` holds, sorted."""


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
    """Looks at each different line once: lines that only differ in digits, of which a noisy log is full, are one."""

    def __init__(self, anchors: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        self._anchors: dict[bytes, list[bytes]] = {}
        for anchor in anchors:
            self._anchors.setdefault(anchor.translate(_DIGITS), []).append(anchor)
        self._patterns = list(self._anchors)
        self._automaton = BytesAhoCorasick(self._patterns, MatchKind.Standard)

    def present(self, data: bytes) -> list[bytes]:
        """See AnchorSearch."""
        different = b"\n".join(set(data.translate(_DIGITS).split(b"\n")))
        found = {match[0] for match in self._automaton.find_matches_as_indexes(different, overlapping=True)}
        candidates = [anchor for number in found for anchor in self._anchors[self._patterns[number]]]
        return sorted(anchor for anchor in candidates if anchor in data)


class PlainAnchors:
    """The same with the standard library, one anchor after the other; slower."""

    def __init__(self, anchors: Sequence[bytes]) -> None:
        self._anchors = sorted(anchors)

    def present(self, data: bytes) -> list[bytes]:
        """See AnchorSearch."""
        return [anchor for anchor in self._anchors if anchor in data]


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
