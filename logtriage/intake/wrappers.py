"""What other programs put around the lines of a log: which of it a log shows, and where each line's message begins.

The wrappers are data (``rules/wrappers.yaml``). One counts only if it fits most of a log's first lines, so that an
ordinary line that happens to look like one is left alone.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_LAYERS = 4
"""Wrappers undone at most, one around the other."""

CODED = ("json", "csv", "html")
"""Kinds of wrappers whose lines hold the message in another form."""

USUAL_SHARE = 0.6
"""Part of the lines that a wrapper must fit where its data say nothing else."""

_REPEATED = ("prefix", "json")  # kinds that are put around themselves: a collector of what another one collected
_MARK = "NaN"  # what JSON can hold and a wrapper does not


class Wrapper:
    """One way to wrap lines; the fields are described in ``engine.schema``. Its regex is compiled when first needed."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.name: str = item["name"]
        self.kind: str = item["kind"]
        self.share: float = item.get("share", USUAL_SHARE)
        self.at_least: int = item.get("at_least", 1)
        self.never: str = item.get("never", "")
        self.outside: str = item.get("outside", "")
        self.partial: str = item.get("partial", "")
        self.splits_at: int = item.get("splits_at", 0)
        self.holds: str = item.get("holds", "")
        self._begins: str = item.get("begins", "")
        self._keys: tuple[Sequence[str], Sequence[str]] = (item.get("message", ()), item.get("time", ()))
        self._expression: str = item["regex"]
        self._regex: re.Pattern[str] | None = None

    def candidates(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the lines that may have the wrapper: far cheaper than to try its regex on each."""
        holding = [text for text in texts if self.holds in text] if self.holds else texts
        return [text for text in holding if text[:1] in self._begins] if self._begins else holding

    def may_be_in(self, text: str, start: int = 0) -> bool:
        """Return whether a line holds what every line with the wrapper holds, and begins as it does."""
        return self.holds in text and (not self._begins or text[start : start + 1] in self._begins)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Return the wrapper at `start` of a line, or None."""
        return self._compiled().match(text, start) if self.may_be_in(text, start) else None

    def is_all(self, text: str, start: int = 0) -> bool:
        """Return whether the line is nothing but the wrapper from `start` on."""
        return self.may_be_in(text, start) and self._compiled().fullmatch(text, start) is not None

    def _compiled(self) -> re.Pattern[str]:
        if self._regex is None:
            self._regex = re.compile(self._expression, re.ASCII)
        return self._regex

    def decode(self, text: str) -> Decoded | None:
        """Return what a line of a kind that holds its message in another form stands for, or None if it is not one."""
        match = self.match(text)
        if match is None:
            return None
        if self.kind == "html":
            import html  # hardly any log needs it

            return Decoded(html.unescape(text), "", "")
        if self.kind == "csv":
            return Decoded(_field(text[match.end() :]), match.groupdict().get("time") or "", "")
        try:
            record = json.loads(text.rstrip().removesuffix(","))  # one of an array
            message = _value(record, self._keys[0], None)
            if isinstance(message, list):  # journald: bytes that are no plain text
                message = bytes(message).decode("utf-8", "replace")
        except (ValueError, TypeError, RecursionError):
            return None
        if not isinstance(message, str):
            return None
        return Decoded(message, str(_value(record, self._keys[1], "")), str(record.get("stream", "")))

    def decode_all(self, text: str) -> tuple[list[str], list[Any]] | None:
        """Return messages and times of lines of JSON, all of which are decoded at once: far cheaper than one by one.

        None if one of them is not of this kind, or might be a part of a longer message.
        """
        lines = text.split("\n")
        if self.kind != "json" or _MARK in text or len(self.candidates(lines)) < len(lines):
            return None
        if not all(map(self._compiled().match, lines)):
            return None
        mark = object()  # stands between the lines, so that broken ones cannot complete each other
        constants = {_MARK: mark, "Infinity": float("inf"), "-Infinity": float("-inf")}
        try:
            found = json.loads(f"[{f',{_MARK},'.join(lines)}]", parse_constant=constants.__getitem__)
            if len(found) != 2 * len(lines) - 1 or found.count(mark) != len(lines) - 1:
                return None
            records = found[::2]
            messages = [message.removesuffix("\n") for message in _values(records, self._keys[0], None)]
            times = _values(records, self._keys[1], "")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        if self.splits_at and 4 * max(map(len, messages)) >= self.splits_at:
            return None
        return messages, times


def _value(record: Mapping[str, Any], keys: Sequence[str], default: Any) -> Any:
    """Return what stands under the first of some keys that a record has."""
    for key in keys:
        if key in record:
            return record[key]
    return default


def _values(records: Sequence[Mapping[str, Any]], keys: Sequence[str], default: Any) -> list[Any]:
    """Return the same for all records. Raises KeyError where they differ in which of the keys they have."""
    has = [key for key in keys if key in records[0]]
    for key in keys[: keys.index(has[0]) if has else None]:
        if any(key in record for record in records):
            raise KeyError(key)
    return [record[has[0]] for record in records] if has else [default] * len(records)


def _field(text: str) -> str:
    """The first field of what is left of a row of comma-separated values."""
    if not text.startswith('"'):
        return text.partition(",")[0]
    quoted = re.match(r'"((?:[^"]|"")*)', text)
    return quoted[1].replace('""', '"') if quoted else text


class Decoded(Record):
    """The message that a line holds in another form, its time as printed, and the stream that it went to."""

    message: str
    time: str
    stream: str


class Placed(Record):
    """Where the message of a line begins, the wrapper's time as printed, whether the line is no part of the log, and
    the process or container that the wrapper names.
    """

    body: int
    time: str
    is_fence: bool
    origin: str


class Layout:
    """The wrappers around the lines of a log, outermost first."""

    def __init__(self, prefixes: Sequence[Wrapper] = (), fences: Sequence[Wrapper] = ()) -> None:
        self.prefixes = tuple(prefixes)
        self._fences = tuple(fences)

    def __bool__(self) -> bool:
        return bool(self.prefixes or self._fences)

    def place(self, text: str) -> Placed:
        """Place a line; `text` is without escape sequences."""
        body, time, origin = 0, "", ""
        for prefix in self.prefixes:
            if prefix.holds in text and (match := prefix.match(text, body)):
                body = match.end()
                named = match.groupdict()
                time = named.get("time") or time
                origin += named.get("origin") or ""
        is_fence = any(fence.holds in text and fence.is_all(text, body) for fence in self._fences)
        return Placed(body, time, is_fence, origin)


PLAIN = Layout()
"""The layout of a log that nothing wraps."""


class Found(Record):
    """The wrappers of a log: those around each stored line, the form inside them that must be decoded (JSON, say), and
    those around the messages.

    `names` are those that fit most lines, outermost first. `then` is what must be decoded in the messages in turn.
    """

    outer: Layout
    coded: Wrapper | None
    inner: Layout
    names: tuple[str, ...]
    then: Found | None = None


def detect(sample: Iterable[str], wrappers: Mapping[str, Any]) -> Found:
    """Return the wrappers of a log, judged by a sample of its lines (without escape sequences).

    Those whose `share` is zero are so unlike anything else that they are undone on every line that has them.
    """
    known = [Wrapper(item) for item in wrappers["wrappers"]]
    fences = [wrapper for wrapper in known if wrapper.kind == "fence"]
    known = [wrapper for wrapper in known if wrapper.kind != "fence"]
    texts: Sequence[str] = [text for text in sample if text.strip()]
    for fence in fences:
        texts = [text for text in texts if fence.holds not in text or not fence.is_all(text)]
    layers: list[Wrapper] = []
    while len(layers) < MAX_LAYERS and texts:
        rest = [wrapper for wrapper in known if wrapper.kind in _REPEATED or wrapper not in layers]
        found = next((wrapper for wrapper in rest if _fits(wrapper, texts)), None)
        if found is None:
            break
        layers.append(found)
        texts = [message for text in texts for message in _messages(found, text) if message.strip()]
    anywhere = [wrapper for wrapper in known if wrapper.kind == "prefix" and not wrapper.share]
    return _arranged(layers, [wrapper for wrapper in anywhere if wrapper not in layers], fences)


def _arranged(layers: Sequence[Wrapper], anywhere: Sequence[Wrapper], fences: Sequence[Wrapper]) -> Found:
    """Arrange the wrappers around what must be decoded; those of `anywhere` may stand around any message."""
    names = tuple(layer.name for layer in layers)
    at = next((index for index, layer in enumerate(layers) if layer.kind in CODED), len(layers))
    if at == len(layers):
        whole = Layout([*layers, *anywhere], fences)
        return Found(whole, None, whole, names)
    within = _arranged(layers[at + 1 :], anywhere, fences)
    then = within if within.coded else None
    return Found(Layout(layers[:at]), layers[at], PLAIN if then else within.inner, names, then)


def _fits(wrapper: Wrapper, texts: Sequence[str]) -> bool:
    allowed = len(texts) * (1 - (wrapper.share or USUAL_SHARE))
    if len(texts) < wrapper.at_least or not wrapper.candidates(texts[: int(allowed) + 1]):
        return False
    if len(wrapper.candidates(texts)) < len(texts) - allowed:
        return False
    if wrapper.never and any(re.match(wrapper.never, text) for text in texts):
        return False
    misses, numbers = 0, []
    for text in texts:
        match = wrapper.match(text)
        if match is None:
            misses += 1
            if misses > allowed or (wrapper.outside and re.match(wrapper.outside, text)):
                return False
        elif number := match.groupdict().get("number"):
            numbers.append(int(number))
    return _rise(numbers, allowed)


def _rise(numbers: Sequence[int], misses: float) -> bool:
    """Whether numbers rise, with few exceptions: those of lines do, those of tasks do not."""
    return sum(later <= earlier for earlier, later in pairwise(numbers)) <= misses


def _messages(wrapper: Wrapper, text: str) -> Sequence[str]:
    match = wrapper.match(text)
    if match is None:
        return (text,)
    if wrapper.kind == "prefix":
        return (text[match.end() :],)
    decoded = wrapper.decode(text)
    return decoded.message.split("\n") if decoded else ()
