"""What other programs put around the lines of a log: which of it a log shows, and where each line's message begins.

The wrappers are data (``rules/wrappers.yaml``). One counts only if it fits most of a log's first lines, so that an
ordinary line that happens to look like one is left alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.intake.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_LAYERS = 4
"""Wrappers undone at most, one around the other."""

USUAL_SHARE = 0.6
"""Part of the lines that a wrapper must fit where its data say nothing else."""


class Wrapper(NamedTuple):
    """One way to wrap lines; the fields are described in ``engine.schema``."""

    name: str
    kind: str
    regex: re.Pattern[str]
    share: float
    message: str
    time: str
    splits_at: int
    partial: str

    def decode(self, text: str) -> Decoded | None:
        """Return what a line of JSON holds, or None if it is not of this kind."""
        if not self.regex.match(text):
            return None
        try:
            record = json.loads(text)
            message = record[self.message]
            if isinstance(message, list):  # journald: bytes that are no plain text
                message = bytes(message).decode("utf-8", "replace")
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if not isinstance(message, str):
            return None
        return Decoded(message, seconds(str(record.get(self.time, ""))), str(record.get("stream", "")))


class Decoded(NamedTuple):
    """The message in a line of JSON, its time, and the stream that it was printed to."""

    message: str
    time: float | None
    stream: str


class Placed(NamedTuple):
    """Where the message of a line begins, the wrapper's time, and whether the line is no part of the log at all."""

    body: int
    time: float | None
    is_fence: bool


class Layout:
    """The wrappers around the lines of a log, outermost first."""

    def __init__(self, prefixes: Sequence[Wrapper] = (), fences: re.Pattern[str] | None = None) -> None:
        self.prefixes = tuple(prefixes)
        self._fences = fences

    def __bool__(self) -> bool:
        return bool(self.prefixes) or self._fences is not None

    def place(self, text: str) -> Placed:
        """Place a line; `text` is without escape sequences."""
        body, time = 0, None
        for prefix in self.prefixes:
            if match := prefix.regex.match(text, body):
                body = match.end()
                printed = match["time"] if "time" in prefix.regex.groupindex else None
                time = seconds(printed) if printed else time
        return Placed(body, time, self._fences is not None and self._fences.fullmatch(text, body) is not None)


PLAIN = Layout()
"""The layout of a log that nothing wraps."""


class Found(NamedTuple):
    """The wrappers of a log: those around each stored line, JSON inside them, those around the messages.

    `names` are those that fit most lines, outermost first.
    """

    outer: Layout
    json: Wrapper | None
    inner: Layout
    names: tuple[str, ...]


def detect(sample: Iterable[str], wrappers: Mapping[str, Any]) -> Found:
    """Return the wrappers of a log, judged by a sample of its lines (without escape sequences).

    Those whose `share` is zero are so unlike anything else that they are undone on every line that has them.
    """
    known = [_wrapper(item) for item in wrappers["wrappers"]]
    fences = _fences(known)
    known = [wrapper for wrapper in known if wrapper.kind != "fence"]
    texts = [text for text in sample if text.strip() and not (fences and fences.fullmatch(text))]
    layers: list[Wrapper] = []
    while len(layers) < MAX_LAYERS and texts:
        rest = [wrapper for wrapper in known if wrapper not in layers]
        found = next((wrapper for wrapper in rest if _fits(wrapper, texts)), None)
        if found is None:
            break
        layers.append(found)
        texts = [message for text in texts for message in _messages(found, text) if message.strip()]
    at = next((index for index, layer in enumerate(layers) if layer.kind == "json"), len(layers))
    anywhere = [wrapper for wrapper in known if wrapper.kind == "prefix" and not wrapper.share]
    inner = layers[at + 1 :] + [wrapper for wrapper in anywhere if wrapper not in layers]
    names = tuple(layer.name for layer in layers)
    if at == len(layers):
        whole = Layout([*layers, *inner], fences)
        return Found(whole, None, whole, names)
    return Found(Layout(layers[:at]), layers[at], Layout(inner, fences), names)


def _wrapper(item: Mapping[str, Any]) -> Wrapper:
    return Wrapper(
        name=item["name"],
        kind=item["kind"],
        regex=re.compile(item["regex"], re.ASCII),
        share=item.get("share", USUAL_SHARE),
        message=item.get("message", ""),
        time=item.get("time", ""),
        splits_at=item.get("splits_at", 0),
        partial=item.get("partial", ""),
    )


def _fences(known: Iterable[Wrapper]) -> re.Pattern[str] | None:
    expressions = [wrapper.regex.pattern for wrapper in known if wrapper.kind == "fence"]
    return re.compile("|".join(f"(?:{expression})" for expression in expressions), re.ASCII) if expressions else None


def _fits(wrapper: Wrapper, texts: Sequence[str]) -> bool:
    allowed = len(texts) * (1 - (wrapper.share or USUAL_SHARE))
    misses = 0
    for text in texts:
        if not wrapper.regex.match(text):
            misses += 1
            if misses > allowed:
                return False
    return True


def _messages(wrapper: Wrapper, text: str) -> Sequence[str]:
    match = wrapper.regex.match(text)
    if match is None:
        return (text,)
    if wrapper.kind == "prefix":
        return (text[match.end() :],)
    decoded = wrapper.decode(text)
    return decoded.message.split("\n") if decoded else ()
