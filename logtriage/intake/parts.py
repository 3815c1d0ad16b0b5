"""Messages out of stored lines: decodes JSON and other forms, and joins messages that a container runtime cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from logtriage.intake.blocks import Block, Place, row_starts, without_escapes
from logtriage.intake.rows import Row
from logtriage.intake.wrappers import Layout, Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_JOINED = 4 << 20
_MAX_STREAMS = 4


class _Places(Sequence[Place]):
    """Where the messages of decoded lines stand, each made when it is asked for: few are."""

    def __init__(self, stored: Block, times: Sequence[Any]) -> None:
        self._stored = stored
        self._starts: Sequence[int] = ()
        self._times = times

    def __len__(self) -> int:
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> list[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | list[Place]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        self._starts = self._starts or row_starts(self._stored.data)
        place = self._stored.place(index, self._starts[index])
        return place._replace(time=str(self._times[index]), is_stored=False)


def decoded_block(block: Block, layer: Wrapper) -> Block | None:
    """Return the messages of a stored block as a block, as decoded_messages does, if all its lines are whole JSON."""
    data = block.data.removesuffix(b"\n")
    if block.places is not None or without_escapes(data) is not data:
        return None
    decoded = layer.decode_all(data.decode("utf-8", "replace"))
    if decoded is None:
        return None
    messages, times = decoded
    text = "\n".join(messages) + "\n"
    if text.count("\n") != len(messages):
        return None
    return block._replace(data=text.encode("utf-8", "replace"), places=_Places(block, times))


def decoded_messages(rows: Iterable[Row], outer: Layout, layer: Wrapper, parts: Parts) -> Iterator[Row]:
    """Yield the messages that lines hold in the form of `layer`; others pass through. What is cut waits in `parts`."""
    for row in rows:
        text = row.text(limit=None)
        placed = outer.place(text)
        decoded = layer.decode(text[placed.body :])
        if decoded is None:
            yield row
            continue
        data = decoded.message.encode("utf-8", "replace")
        place = Place(row.place.byte, row.place.number, decoded.time or placed.time or row.place.time, is_stored=False)
        goes_on = 0 < layer.splits_at <= len(data) and not data.endswith(b"\n")
        whole = Row(data.removesuffix(b"\n"), place)
        if goes_on or parts or b"\n" in whole.data:
            for message in parts.add(decoded.stream, whole, goes_on=goes_on):
                for part in message.data.split(b"\n"):
                    yield Row(part, message.place)
        else:
            yield whole


def whole_lines(rows: Iterable[Row], layout: Layout, layer: Wrapper, parts: Parts) -> Iterator[Row]:
    """Yield lines that are whole: those that `layer` marks as partial are joined. What is cut waits in `parts`."""
    before = Layout(layout.prefixes[: layout.prefixes.index(layer)])
    for row in rows:
        text = row.text(limit=None)
        match = layer.match(text, before.place(text).body)
        if match is None:
            yield row
            continue
        if parts.is_open(match["stream"]):
            row = Row(text[match.end() :].encode("utf-8"), row.place)
        yield from parts.add(match["stream"], row, goes_on=match["partial"] is not None)


class Parts:
    """Messages that go on in the next line of the same stream; of a huge one the end is dropped."""

    def __init__(self) -> None:
        self._open: dict[str, list[Row]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, stream: str, row: Row, *, goes_on: bool) -> Iterator[Row]:
        """Add a part; yield the whole message if that was its last."""
        if stream not in self._open and len(self._open) == _MAX_STREAMS:
            yield from self.finish()
        parts = self._open.setdefault(stream, [row])
        size = self._sizes[stream] = self._sizes.get(stream, 0) + len(row.data)
        if parts[0] is not row and row.data and size <= _MAX_JOINED:
            parts.append(row)
        if not goes_on:
            yield from self._close(stream)

    def is_open(self, stream: str) -> bool:
        """Return whether a message of the stream has begun and not ended."""
        return stream in self._open

    def finish(self) -> Iterator[Row]:
        """Yield messages whose end never came."""
        for stream in list(self._open):
            yield from self._close(stream)

    def copy(self) -> Parts:
        """Return a copy that may grow apart."""
        other = Parts()
        other._open = {stream: list(rows) for stream, rows in self._open.items()}
        other._sizes = dict(self._sizes)
        return other

    def _close(self, stream: str) -> Iterator[Row]:
        parts = self._open.pop(stream)
        del self._sizes[stream]
        yield Row(b"".join(part.data for part in parts), parts[0].place)

    def __bool__(self) -> bool:
        return bool(self._open)
