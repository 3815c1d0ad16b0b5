"""Finds the lines worth looking at: those that hold a gate. In: raw bytes. Out: offsets inside such lines."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    Prefilter: TypeAlias = "AhoCorasick | PlainSearch"
    AnchorSearch: TypeAlias = "AnchorAutomaton | PlainAnchors"

MAX_FAST = 64
"""Above this many literals the search leaves its vectorised path (ahocorasick_rs 1.0.3: Teddy)."""

MAX_KNOWN = 4 << 20
"""Bytes of different lines whose anchors are remembered."""

_REMEMBERED = 8  # lines of a shape
_DIGITS = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))
_HEX = bytes(48 if bytes((byte,)) in b"0123456789abcdef" else byte for byte in range(256))


class Held(NamedTuple):
    """Which anchors lines hold: for each line an index into `anchors`, of which the first holds none.

    `present` are the indexes of all lines.
    """

    kinds: list[int]
    present: set[int]
    anchors: Sequence[tuple[bytes, ...]]


def groups(gates: Sequence[Any]) -> list[Sequence[Any]]:
    """Return `gates` in groups as large as the vectorised search allows; a small last one is searched faster."""
    return [gates[start : start + MAX_FAST] for start in range(0, len(gates), MAX_FAST)]


class AhoCorasick:
    """Searches for all gates at once, in groups small enough for the vectorised search (which needs leftmost-first)."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

        # The vectorised search stands in front of each kind of automaton; this one is made five times as fast.
        kind = Implementation.NoncontiguousNFA
        self._automata = [BytesAhoCorasick(group, MatchKind.LeftmostFirst, kind) for group in groups(gates)]

    def offsets(self, data: bytes) -> list[int]:
        """Return sorted offsets into `data`, at least one in every line that holds a gate and none in other lines.

        A gate holds no line break, so the first match of a line is never hidden by another line.
        """
        found = [match[1] for automaton in self._automata for match in automaton.find_matches_as_indexes(data)]
        found.sort()
        return found


class PlainSearch:
    """The same with the standard library, one gate after the other; slower."""

    def __init__(self, gates: Sequence[bytes]) -> None:
        self._gates = gates

    def offsets(self, data: bytes) -> list[int]:
        """See AhoCorasick."""
        found = []
        for gate in self._gates:
            at = data.find(gate)
            while at >= 0:
                found.append(at)
                at = data.find(gate, at + 1)
        found.sort()
        return found


class AnchorAutomaton:
    """Searches lines for anchors, where so many of them hold a gate that gates do not help.

    Each different line is searched once: lines that only differ in digits, of which a noisy log is full, are one.
    Of lines that differ in hexadecimal digits as well, the part in which anchors may be is looked at, each one once.
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
        """Return which anchors the lines of `data` (split at line feeds) hold, sorted."""
        if self._size > MAX_KNOWN:
            self._forget()
        masked = data.translate(_DIGITS).split(b"\n")
        kinds = list(map(self._known.get, masked))
        present = set(kinds)
        if None in present:
            missing = [index for index, kind in enumerate(kinds) if kind is None]
            lines = data.split(b"\n")
            shapes = b"\n".join([masked[index] for index in missing]).translate(_HEX).split(b"\n")
            self._learn(sorted(set(shapes).difference(self._shapes)))
            for index, text in zip(missing, shapes, strict=True):
                shape = self._shapes[text]
                part = lines[index][shape.start : shape.end]
                kind = self._parts.get(part)
                kinds[index] = kind = self._look(part, shape) if kind is None else kind
                if shape.left:
                    shape.left -= 1
                    self._known[masked[index]] = kind
            present = set(kinds)
        return Held(cast("list[int]", kinds), cast("set[int]", present), list(self._kinds))

    def _look(self, part: bytes, shape: _Shape) -> int:
        """Return the kind of lines with a part that was not seen before."""
        self._size += len(part)
        anchors = tuple([anchor for anchor in shape.candidates if anchor in part])
        kind = self._parts[part] = self._kinds.setdefault(anchors, len(self._kinds))
        return kind

    def _learn(self, shapes: Sequence[bytes]) -> None:
        """Find the anchors that lines of a shape may hold, and where."""
        data = b"\n".join(shapes)
        self._size += len(data)
        found = self._automaton.find_matches_as_indexes(data, overlapping=True)
        ends = [end for _, _, end in found]
        first = start = 0
        for shape in shapes:
            last = bisect_left(ends, start + len(shape) + 1, first)
            anchors = sorted(
                {anchor for at in range(first, last) for anchor in self._anchors[self._patterns[found[at][0]]]}
            )
            begin = min((begin for _, begin, _ in found[first:last]), default=start) - start
            end = ends[last - 1] - start if last > first else 0
            self._shapes[shape] = _Shape(begin, end, anchors)
            start += len(shape) + 1
            first = last

    def _forget(self) -> None:
        self._size = 0
        self._known: dict[bytes, int] = {}
        self._parts: dict[bytes, int] = {}
        self._shapes: dict[bytes, _Shape] = {}
        self._kinds: dict[tuple[bytes, ...], int] = {(): 0}


class _Shape:
    """Lines that only differ in hexadecimal digits: the part in which anchors may be, and which ones.

    `left`: how many of those that differ in letters may still be remembered; none where it depends on digits.
    """

    def __init__(self, start: int, end: int, candidates: Sequence[bytes]) -> None:
        self.start = start
        self.end = end
        self.candidates = candidates
        has_digits = any(anchor != anchor.translate(None, b"0123456789") for anchor in candidates)
        self.left = 0 if has_digits else _REMEMBERED


class PlainAnchors:
    """The same with the standard library, one anchor after the other; slower."""

    def __init__(self, anchors: Sequence[bytes]) -> None:
        self._anchors = sorted(anchors)

    def held(self, data: bytes) -> Held:
        """See AnchorAutomaton."""
        present = [anchor for anchor in self._anchors if anchor in data]
        kinds: dict[tuple[bytes, ...], int] = {(): 0}
        lines = [tuple([anchor for anchor in present if anchor in line]) for line in data.split(b"\n")]
        found = [kinds.setdefault(anchors, len(kinds)) for anchors in lines]
        return Held(found, set(found), list(kinds))


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
