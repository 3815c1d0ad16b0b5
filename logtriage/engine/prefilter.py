"""Finds the lines worth looking at: those that hold a gate. In: raw bytes. Out: offsets inside such lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FAST = 48
"""Above this many literals the search leaves its vectorised path (measured with ahocorasick_rs 1.0.3)."""


class Prefilter(Protocol):
    """Searches bytes for gates."""

    def offsets(self, data: bytes) -> list[int]:
        """Return sorted offsets into `data`, at least one in every line that holds a gate and none in other lines."""


class AhoCorasick:
    """Searches for all gates at once, in groups small enough for the vectorised search (which needs leftmost-first)."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        groups = [gates[start : start + MAX_FAST] for start in range(0, len(gates), MAX_FAST)]
        self._automata = [BytesAhoCorasick(group, MatchKind.LeftmostFirst) for group in groups]

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


def make(gates: Sequence[str]) -> Prefilter:
    """Return the fastest prefilter that this installation has."""
    encoded = [gate.encode() for gate in gates]
    try:
        return AhoCorasick(encoded)
    except ImportError:
        return PlainSearch(encoded)
