"""A log that grows: takes pieces as they are written, tells at any time what batch would select if it ended here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from logtriage.intake import printed
from logtriage.intake.lines import Selector
from logtriage.intake.source import Source, open_source
from logtriage.intake.windows import Windows
from logtriage.intake.wrappers import detect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from logtriage.intake.blocks import Block
    from logtriage.intake.searching import AnchorSearch
    from logtriage.records import Line

HELD = printed.MAX_BROKEN
"""Bytes up to which a log is held as a whole and read anew; a larger one is read once, and what is kept of it stays."""

_PACKED_OR_UTF16 = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff")


class State(NamedTuple):
    """What is known of a log up to here: the lines worth keeping, its size, how many lines it has, notes."""

    lines: list[Line]
    size: int
    rows: int
    notes: list[str]


class GrowingLog:
    """A log to which pieces are added. Only text is read on without being held as a whole."""

    def __init__(
        self,
        name: str,
        wrappers: Mapping[str, Any],
        find: Callable[[bytes], list[int]],
        anchors: Callable[[], AnchorSearch],
    ) -> None:
        self.name = name
        self._wrappers = wrappers
        self._find = find
        self._anchors = anchors
        self._held: list[bytes] = []
        self._size = 0
        self._streamed: _Streamed | None = None

    def add(self, data: bytes) -> None:
        """Add what was written since."""
        if self._streamed:
            self._streamed.add(data)
            return
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD and not self._held[0].startswith(_PACKED_OR_UTF16):
            self._streamed = _Streamed(self._held, self._wrappers, Selector(self._find, (), self._anchors))
            self._held = []

    def state(self) -> State:
        """Return what is known up to here; a line without its end counts as a line."""
        if self._streamed:
            return self._streamed.state()
        self._held = [b"".join(self._held)]
        source: Source = open_source(self._held[0], self._wrappers)
        source.name = self.name
        selector = Selector(self._find, (), self._anchors)
        for block in source.blocks():
            selector.add(block)
        return State(selector.lines(0), source.size, source.lines, source.notes)


class _Streamed:
    """A log that is too large to be held; its wrappers were found at its beginning."""

    def __init__(self, held: Iterable[bytes], wrappers: Mapping[str, Any], selector: Selector) -> None:
        self._selector = selector
        text = b"".join(held)
        mark = len(text) - len(text.removeprefix(b"\xef\xbb\xbf"))
        self._windows = Windows(mark)
        blocks = list(self._windows.add(text[mark:]))
        sample, _ = printed.sampled(iter(blocks))
        self._undo = printed.Undo(detect(sample, wrappers))
        self._select(blocks)

    def add(self, data: bytes) -> None:
        self._select(self._windows.add(data))

    def state(self) -> State:
        rest = self._windows.rest()
        selector, undo = self._selector.copy(), self._undo.copy()
        for block in rest:
            for part in undo.add(block):
                selector.add(part)
        for part in undo.rest():
            selector.add(part)
        total = self._windows.lines + sum(block.rows for block in rest)
        return State(selector.lines(0), self._windows.stands_for, total, [])

    def _select(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            for part in self._undo.add(block):
                self._selector.add(part)
