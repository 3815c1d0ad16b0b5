"""The compiled rules at run time: regular expressions are compiled when their anchor first occurs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from logtriage.records import Line

TIME_LIMIT = 0.25
"""Seconds that a user's regular expression may take on one line; it counts as no hit if it takes longer."""

_DIGITS = bytes(48 if 48 <= byte < 58 else byte for byte in range(256))
_SHORT, _MAX_SEEN = 1000, 5000  # characters of a message, and messages, whose signatures are remembered


class Hit(NamedTuple):
    """A signature in a line: its number, the span in the text searched, what its named groups caught."""

    signature: int
    start: int
    end: int
    groups: dict[str, str]


class Stored(Sequence[Any]):
    """Items by number; one that is given as JSON is read when it is first asked for: a log needs a few of them."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = list(items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: Any) -> Any:
        item = self._items[number]
        if isinstance(item, bytes):
            item = self._items[number] = json.loads(item)
        return item


class RuleSet:
    """Compiled rules, ready to be asked which signatures hit a line.

    `linted` rules (the built-in ones, whose expressions the tests try on hostile text) are searched with the standard
    library's `re`, which starts faster than `regex`; rules of a user are searched with `regex` and a time limit.
    `server` reads what only advice needs, where `compiled` does not hold it.
    """

    def __init__(
        self,
        compiled: dict[str, Any],
        *,
        linted: bool = False,
        server: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self.digest: str = compiled["digest"]
        self.labels: dict[str, dict[str, Any]] = compiled["labels"]
        self.rules = Stored(compiled["rules"])
        self.log: dict[str, Any] = compiled["log"]
        self.flags: dict[str, Any] = compiled["flags"]
        self.secrets: list[dict[str, Any]] = compiled["secrets"]
        self.gates: list[str] = compiled["gates"]
        self.troubles = re.compile("|".join(f"(?:{pattern})" for pattern in self.log["troubles"]), re.ASCII)
        self.wrappers: dict[str, Any] = compiled["wrappers"]
        self._arguments = tuple(self.log["arguments"])
        self._server: dict[str, Any] | None = compiled.get("server")
        self._read_server = server
        self.failures: list[str] = compiled["failures"]
        self._facts: dict[str, str] = compiled["facts"]
        self._anchors: list[str] = compiled["anchors"]
        self._signatures = Stored(compiled["signatures"])
        self._by_gate: list[list[int]] = compiled["by_gate"]
        self._frames: list[int] = compiled["frames"]
        self._kept: list[int] = compiled["kept"]
        self._expressions: dict[int, Any] = {}
        self._seen: dict[str, list[int] | None] = {}
        self._masked: dict[int, str] = {}
        self._masked_gates: list[str] = []
        self._linted = linted

    @property
    def server(self) -> dict[str, Any]:
        """The knowledge about the server's flags and kernels; read when it is first asked for."""
        if self._server is None:
            self._server = self._read_server() if self._read_server else {}
        return self._server

    @property
    def anchors(self) -> list[str]:
        """All anchors that stand on ordinary lines, and the general words of failure, each once and sorted."""
        through_gates = (self._anchors[number] for numbers in self._by_gate for number in numbers)
        return sorted({*through_gates, *self.failures})

    def is_own(self, lines: Iterable[Line]) -> bool:
        """Return whether one of some lines speaks of the server's own parts, and not of a client that comes with it."""
        texts = (line.text[line.body :] for line in lines)
        return any(self._has_own_word(text) and not self._has_client_word(text) for text in texts)

    def is_client(self, frame: str) -> bool:
        """Return whether a frame is one of a client: of somebody's script, or of what comes with the server."""
        is_script = frame.endswith(", in <module>") and 'File "<' not in frame
        return is_script or self._has_client_word(frame)

    def rules_of(self, signatures: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yield the rules that one of the signatures may set off, in the order of the rule files."""
        for number in sorted({number for signature in signatures for number in self._signatures[signature][1]}):
            yield self.rules[number]

    def is_decisive(self, signature: int) -> bool:
        """Return whether a signature may set off a rule that decides."""
        return any(rule["strength"] == "decisive" for rule in self.rules_of([signature]))

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the signatures that hit a message (the line without its prefix).

        In the line of the server's arguments only anchors of arguments (with a ``=``) are looked for.
        """
        numbers = self._candidates(text)
        if text.startswith(self._arguments):
            numbers = [number for number in numbers if "=" in self._anchors[number]]
        yield from self._test(numbers, text)

    def anchored(self, text: str) -> Iterator[int]:
        """Yield the signatures whose anchor stands in a text, whatever their regular expressions say."""
        for gate, numbers in zip(self.gates, self._by_gate, strict=True):
            if numbers and gate in text:
                anchors = [self._anchors[number] for number in numbers]
                near = text if len(text) <= _SHORT else _around(gate, text, max(map(len, anchors)))
                yield from (number for number, anchor in zip(numbers, anchors, strict=True) if anchor in near)

    def frame_hits(self, text: str) -> Iterator[Hit]:
        """Yield the signatures that hit a frame line of a traceback."""
        yield from self._test(self._frames, text)

    def almost(self, text: str) -> Iterator[int]:
        """Yield the signatures whose anchor stands in a message that their regular expression does not match."""
        for number, anchor in enumerate(self._anchors):
            if anchor in text and self._signatures[number][0] is not None and self._search(number, text) is None:
                yield number

    def expression(self, signature: int) -> str:
        """Return the regular expression of a signature, or its fixed phrase if it has none."""
        return str(self._signatures[signature][0] or self._anchors[signature])

    def typed(self, groups: dict[str, str]) -> dict[str, Any]:
        """Return captured groups with the types of ``rules/facts.yaml``; what does not convert is left out."""
        facts: dict[str, Any] = {}
        for name, text in groups.items():
            kind = self._facts.get(name, "text")
            try:
                facts[name] = int(text) if kind == "int" else float(text) if kind == "float" else text
            except ValueError:
                continue
        if "capability" in facts and "sm" not in facts:
            facts["sm"] = _sm(facts["capability"])
        return facts

    def sm_of(self, gpu_name: str) -> int | None:
        """Return the compute capability times ten of a GPU by its name, or None if the name is not known."""
        words = gpu_name.replace("_", " ").replace("-", " ")
        return next((sm for name, sm in self.log["gpus"] if name.replace("-", " ") in words), None)

    def _has_own_word(self, text: str) -> bool:
        return any(word in text for word in self.log["own_words"])

    def _has_client_word(self, text: str) -> bool:
        return any(word in text for word in self.log["client_words"])

    def _candidates(self, text: str) -> Iterable[int]:
        """Return the signatures that may hit a message: few, if all but its digits was seen before."""
        shape = _masked(text) if len(text) <= _SHORT else ""
        if shape in self._seen:
            known = self._seen[shape]
            if known is None:
                known = self._seen[shape] = self._of_shape(shape)
            return known
        if not shape:
            return chain(self.anchored(text), self._kept)
        if len(self._seen) >= _MAX_SEEN:
            self._seen.clear()
        self._seen[shape] = None
        through_gates = (numbers for gate, numbers in zip(self.gates, self._by_gate, strict=True) if gate in text)
        return chain(chain.from_iterable(through_gates), self._kept)

    def _of_shape(self, shape: str) -> list[int]:
        """Return the signatures that may hit messages that only differ in digits."""
        self._masked_gates = self._masked_gates or [_masked(gate) for gate in self.gates]
        gates = zip(self._masked_gates, self._by_gate, strict=True)
        numbers = chain.from_iterable(numbers for gate, numbers in gates if gate in shape)
        return [number for number in chain(numbers, self._kept) if self._masked_anchor(number) in shape]

    def _masked_anchor(self, number: int) -> str:
        if number not in self._masked:
            self._masked[number] = _masked(self._anchors[number])
        return self._masked[number]

    def _test(self, numbers: Iterable[int], text: str) -> Iterator[Hit]:
        for number in numbers:
            anchor = self._anchors[number]
            at = text.find(anchor)
            if at < 0:
                continue
            if self._signatures[number][0] is None:
                yield Hit(number, at, at + len(anchor), {})
                continue
            match = self._search(number, text)
            if match is not None:
                caught = {name: value for name, value in match.groupdict().items() if value is not None}
                yield Hit(number, match.start(), match.end(), caught)

    def _search(self, number: int, text: str) -> Any:
        expression = self._expressions.get(number)
        if expression is None:
            expression = self._expressions[number] = self._compile(self._signatures[number][0])
        if self._linted:
            return expression.search(text)
        try:
            return expression.search(text, timeout=TIME_LIMIT)
        except TimeoutError:
            return None

    def _compile(self, pattern: str) -> Any:
        if self._linted:
            return re.compile(pattern)
        import regex

        return regex.compile(pattern)


def _around(gate: str, text: str, reach: int) -> str:
    """Return what stands around each place of a gate, `reach` characters on both sides; a line feed for the rest."""
    first, *between, last = text.split(gate)
    parts = [part if len(part) <= 2 * reach else f"{part[:reach]}\n{part[-reach:]}" for part in between]
    return gate.join([first[-reach:], *parts, last[:reach]])


def _masked(text: str) -> str:
    """Return a text with 0 for every digit, one character for each byte."""
    return text.encode("utf-8", "replace").translate(_DIGITS).decode("latin-1")


def _sm(capability: str) -> int:
    major, _, minor = capability.partition(".")
    return int(major) * 10 + int(minor or 0)
