"""Evidence in, weighted features out: words, groups of words, pairs, frames, stage, GPU. The same in training and use.

Pure Python and deterministic. Each feature remembers the line that gave it, so that a verdict can be explained.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.classifier import masking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.classifier.evidence import Evidence, Item

_WORD = re.compile(r"-?\d+|[A-Za-z_<][\w>]*(?:-[A-Za-z]\w*)*")
_PIECE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")
_EXCEPTION = re.compile(r"\s*([\w.]*?(\w+(?:Error|Exception|Exit|Interrupt|Failure|Timeout)))\b")
_FRAME = re.compile(r'\s*File "([^"]*)", line \d+,? in (\S+)')
_ODD = {"alphabets": "alphabets mixed", "replaced": "broken letters", "useless": "next to no right answers"}
_CODE_REACH = 6
_MAX_CODE = 999
_WINDOW = 7
_STEM = 6
_MAX_WORDS = 70
_LONGEST_PREFIX = 16


class Feature(NamedTuple):
    """How much a feature counts, and the line (index) and the words that it came from; -1 for no line."""

    weight: float
    at: int
    words: str


class _Token(NamedTuple):
    word: str
    groups: tuple[str, ...]


class Lexicon:
    """Groups of words that mean nearly the same, as `lexicon.yaml` has them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self._whole: dict[str, list[str]] = {}
        self._beginnings: dict[str, list[str]] = {}
        for group, words in data["groups"].items():
            for word in words:
                if word.startswith("="):
                    self._whole.setdefault(word[1:], []).append(group)
                else:
                    self._beginnings.setdefault(word, []).append(group)
        self._alarming = frozenset(data["alarming"])
        self._alarming_when_silent = self._alarming.union(data["alarming_when_silent"])
        self._alarming_when_ready = [frozenset(groups) for groups in data["alarming_when_ready"]]
        self._needs = {label: frozenset(groups) for label, groups in data["needs"].items()}
        self._stop = frozenset(data["stop"])
        self._codes = frozenset(data["codes"])
        self._known: dict[str, tuple[str, ...]] = {}

    def allows(self, label: str, features: Mapping[str, Feature]) -> bool:
        """Return whether features hold a word that a label needs: without any, it is no more than a resemblance."""
        needed = self._needs.get(label)
        if needed is None or any(f"g:{group}" in features for group in needed):
            return True
        return self.is_odd(label, features)

    def is_odd(self, label: str, features: Mapping[str, Feature]) -> bool:
        """Return whether it is the odd form of a text that speaks for a label: its words need not be known then."""
        return "odd" in self._needs.get(label, ()) and any(name.startswith("o:") for name in features)

    def groups(self, word: str) -> tuple[str, ...]:
        """Return the groups of a word in lower case."""
        known = self._known.get(word)
        if known is None:
            found = list(self._whole.get(word, ()))
            for length in range(3, min(len(word), _LONGEST_PREFIX) + 1):
                found += self._beginnings.get(word[:length], ())
            known = self._known[word] = tuple(dict.fromkeys(found))
        return known

    def is_alarm(self, text: str, *, how: str) -> bool:
        """Return whether a message has a word of alarm in it.

        `how` the launch looks: ``failed``, ``silent`` (neither failed nor ready: more words count), or ``ready`` (only
        what tells of bad answers or requests counts).
        """
        groups = {group for token in self.tokens(text) for group in token.groups}
        if how == "ready":
            return any(together <= groups for together in self._alarming_when_ready) or bool(masking.oddities(text))
        return not groups.isdisjoint(self._alarming_when_silent if how == "silent" else self._alarming)

    def tokens(self, text: str) -> list[_Token]:
        """Return the words of a masked line: of a name in code the name and its parts."""
        found: list[_Token] = []
        code_at = -_CODE_REACH
        for match in _WORD.finditer(masking.masked(text)):
            raw = match[0]
            if raw[0] in "-0123456789":
                is_code = len(found) - code_at <= _CODE_REACH and abs(int(raw[:5])) <= _MAX_CODE
                if self.groups(raw) or (is_code and raw[0] != "0"):
                    found.append(_Token(raw, self.groups(raw)))
                continue
            whole = raw.lower().replace("-", "_").strip("_")
            parts = [part.lower() for part in _PIECE.findall(raw)]
            if len(parts) > 1 and len(whole) > 3:
                found.append(_Token(whole, self.groups(whole)))
            for part in parts:
                if part in self._codes:
                    code_at = len(found)
                if part not in self._stop and not part.isdigit():
                    found.append(_Token(part, self.groups(part)))
            if len(found) > _MAX_WORDS:
                break
        return found


def extract(evidence: Evidence, lexicon: Lexicon) -> dict[str, Feature]:
    """Return the features of a launch's evidence by name."""
    found: dict[str, Feature] = {}

    def add(name: str, weight: float, at: int, words: str) -> None:
        known = found.get(name)
        if known is None or weight > known.weight:
            found[name] = Feature(weight, at, words)

    groups: dict[str, float] = {}
    seen: set[str] = set()
    for item in evidence.items:
        text = masking.shape(item.text)
        if text in seen:
            continue
        seen.add(text)
        if item.kind == "frame":
            for name, words in _frame(item.text):
                add(name, item.weight, item.at, words)
            continue
        tokens = lexicon.tokens(item.text)
        for name, words in _of_line(item, tokens):
            add(name, item.weight, item.at, words)
        for token in tokens:
            for group in token.groups:
                groups[group] = max(groups.get(group, 0.0), item.weight)
    for name, weight in _circumstances(evidence, groups):
        add(name, weight, -1, "")
    return found


def words_of(name: str) -> set[str]:
    """Return the words of a name in code, and the name, in lower case."""
    return {name.lower(), *(part.lower() for part in _PIECE.findall(name))}


def _of_line(item: Item, tokens: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    if match := _EXCEPTION.match(item.text):
        yield f"e:{match[2]}", match[1]
    for oddity in masking.oddities(item.text):
        yield f"o:{oddity}", _ODD.get(oddity, f"{oddity} again and again")
    for position, token in enumerate(tokens):
        yield f"w:{token.word[:24]}", token.word
        if len(token.word) > _STEM:
            yield f"m:{token.word[:_STEM]}", token.word
        for group in token.groups:
            yield f"g:{group}", token.word
        canon = token.groups[0] if token.groups else token.word[:_STEM]
        if position + 1 < len(tokens):
            after = tokens[position + 1]
            yield f"b:{canon} {after.groups[0] if after.groups else after.word[:_STEM]}", f"{token.word} {after.word}"
        for other in tokens[position + 1 : position + _WINDOW]:
            for one in token.groups:
                for two in other.groups:
                    if one != two:
                        yield f"p:{min(one, two)} {max(one, two)}", f"{token.word} … {other.word}"


def _frame(text: str) -> Iterator[tuple[str, str]]:
    match = _FRAME.match(text)
    if not match:
        return
    path, function = match.groups()
    folders = path.replace("\\", "/").split("/")
    file = folders[-1].removesuffix(".py")
    yield f"fn:{function}", function
    yield f"ff:{file}", f"{file}.py"
    if len(folders) > 1:
        yield f"fd:{folders[-2]}", f"{folders[-2]}/{file}.py"


def _circumstances(evidence: Evidence, groups: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Features that are no words: the stage, the GPU beside the architectures that are named, the exit code."""
    stage = evidence.stage or "none"
    yield f"s:{stage}", 1.0
    for group, weight in groups.items():
        yield f"sg:{stage} {group}", weight
    yield f"r:{'ready' if evidence.is_ready else 'not-ready'}", 0.5
    if not evidence.items:
        yield f"n:{'failed' if evidence.failed else 'nothing'}", 1.0
    if evidence.exit_code is not None:
        yield f"x:{evidence.exit_code}", 1.0
    named: set[int] = set()
    for item in evidence.items:
        if item.kind == "text" and item.weight == 1.0:
            named |= masking.archs(item.text)
    own = evidence.sm // 10 if evidence.sm else None
    yield f"a:own {_class(own)}", 0.5
    others = {sm // 10 for sm in named if sm // 10 != own}
    if others:
        is_datacentre = others <= {10, 11}
        yield f"a:{'only-10' if is_datacentre else 'others'} own {_class(own)}", 1.0
        if own is not None:
            yield f"a:{'above' if min(others) > own else 'below' if max(others) < own else 'around'}", 1.0
    elif named:
        yield "a:names own", 1.0


def _class(major: int | None) -> str:
    return "unknown" if major is None else "10-11" if major in (10, 11) else str(major)
