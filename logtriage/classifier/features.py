"""Evidence in, weighted features out: words, groups of words, frames, stage, GPU. The same in training and use.

Pure Python and deterministic. Each feature remembers the line that gave it, so that a verdict can be explained.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.classifier import masking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.classifier.evidence import Evidence

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
_LEAST_START = 3
_A_COMMAND = 3
"""Paths from which on a line is taken for the command of a compiler: of that its beginning is enough."""

_OF_A_COMMAND = 200
_HEAD, _FOR_ARCHS = 300, 2000
"""Characters of a line in which the name of an exception, and those of architectures, are looked for."""


class Feature(NamedTuple):
    """How much a feature counts, and the line (index) and the words that it came from; -1 for no line."""

    weight: float
    at: int
    words: str


class _Token(NamedTuple):
    """A word, its groups, and the features that it gives by itself."""

    word: str
    groups: tuple[str, ...]
    names: tuple[str, ...]


class _Word(NamedTuple):
    """The tokens of a word as it stands in a line, and which of them a number worth keeping may follow."""

    tokens: list[_Token]
    code_at: int | None


class Lexicon:
    """Groups of words that mean nearly the same, as `lexicon.yaml` has them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self._whole: dict[str, list[str]] = {}
        self._starts: dict[str, list[tuple[str, str]]] = {}
        for group, words in data["groups"].items():
            for word in words:
                if word.startswith("="):
                    self._whole.setdefault(word[1:], []).append(group)
                else:
                    self._starts.setdefault(word[:_LEAST_START], []).append((word, group))
        alarming = data["alarming"]
        self._alarming = {
            "failed": _together(alarming),
            "silent": _together([*alarming, *data["alarming_when_silent"]]),
            "ready": _together(data["alarming_when_ready"]),
        }
        self._needs = {label: frozenset(groups) for label, groups in data["needs"].items()}
        self._stop = frozenset(data["stop"])
        self._codes = frozenset(data["codes"])
        self._advice = re.compile("|".join(map(re.escape, data["advice"])) or "(?!)")
        self._routine = re.compile("|".join(data["routine"]) or "(?!)")
        self._known: dict[str, _Token] = {}
        self._words: dict[str, _Word] = {}

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
        return self._token(word).groups

    def masked(self, text: str) -> str:
        """Return a line as its words are looked at: masked, without advice that fits many failures.

        Nothing is left of what only describes the machine.
        """
        if self._routine.match(text):
            return ""
        advice = self._advice.search(text)
        return masking.masked(text[: advice.start()] if advice else text)

    def is_alarm(self, text: str, *, how: str) -> bool:
        """Return whether a message has a word of alarm in it.

        `how` the launch looks: ``failed``, ``silent`` (neither failed nor ready: more words count), or ``ready`` (only
        what tells of bad answers or requests counts).
        """
        groups = {group for token in self.tokens(self.masked(text)) for group in token.groups}
        return any(own <= groups for own in self._alarming[how]) or (how == "ready" and bool(masking.oddities(text)))

    def tokens(self, masked: str) -> list[_Token]:
        """Return the words of a masked line: of a name in code the name and its parts."""
        found: list[_Token] = []
        code_at = -_CODE_REACH
        for raw in _WORD.findall(masked):
            if raw[0] in "-0123456789":
                is_code = len(found) - code_at <= _CODE_REACH and abs(int(raw[:5])) <= _MAX_CODE
                if raw in self._whole or (is_code and raw[0] != "0"):
                    found.append(self._token(raw))
                continue
            word = self._words.get(raw)
            if word is None:
                word = self._words[raw] = self._word(raw)
            if word.code_at is not None:
                code_at = len(found) + word.code_at
            found += word.tokens
            if len(found) > _MAX_WORDS:
                break
        return found

    def _word(self, raw: str) -> _Word:
        is_plain = raw.islower() and raw.isalpha() and raw.isascii()  # most are, and have no parts to look for
        parts = [raw] if is_plain else [part.lower() for part in _PIECE.findall(raw)]
        tokens = []
        if len(parts) > 1 and len(whole := raw.lower().replace("-", "_").strip("_")) > 3:
            tokens.append(self._token(whole))
        code_at = None
        for part in parts:
            code_at = len(tokens) if part in self._codes else code_at
            if part not in self._stop and not part.isdigit():
                tokens.append(self._token(part))
        return _Word(tokens, code_at)

    def _token(self, word: str) -> _Token:
        known = self._known.get(word)
        if known is None:
            groups = tuple(self._whole.get(word, ()))
            if starts := self._starts.get(word[:_LEAST_START]):
                groups = (*groups, *(group for start, group in starts if word.startswith(start)))
                groups = tuple(dict.fromkeys(groups))
            names = [f"w:{word[:24]}", f"m:{word[:_STEM]}"] if len(word) > _STEM else [f"w:{word}"]
            known = self._known[word] = _Token(word, groups, (*names, *[f"g:{group}" for group in groups]))
        return known


def extract(evidence: Evidence, lexicon: Lexicon) -> dict[str, Feature]:
    """Return the features of a launch's evidence by name."""
    found: dict[str, Feature] = {}
    groups: dict[str, float] = {}
    seen: set[str] = set()
    for item in evidence.items:
        if item.text in seen:
            continue
        is_frame = item.kind == "frame"
        masked = item.text if is_frame else lexicon.masked(item.text)
        is_command = masked.count("<path>") >= _A_COMMAND
        masked = masked[:_OF_A_COMMAND] if is_command else masked
        shape = item.text if is_frame else masking.shape_of_masked(masked)
        if shape in seen:
            continue
        seen.update((item.text, shape))
        if is_frame:
            told = _frame(item.text)
        else:
            tokens = lexicon.tokens(masked)
            told = _of_line(item.text[:_HEAD], tokens, [] if is_command else masking.oddities(masked))
            for token in tokens:
                for group in token.groups:
                    groups[group] = max(groups.get(group, 0.0), item.weight)
        weight, at = item.weight, item.at
        for name, words in told.items():
            known = found.get(name)
            if known is None or weight > known.weight:
                found[name] = Feature(weight, at, words)
    for name, weight in _circumstances(evidence, groups):
        found[name] = Feature(weight, -1, "")
    return found


def _together(items: Sequence[str | Sequence[str]]) -> list[frozenset[str]]:
    """Sets of groups: a name is a set of one."""
    return [frozenset([item] if isinstance(item, str) else item) for item in items]


def words_of(name: str) -> set[str]:
    """Return the words of a name in code, and the name, in lower case."""
    return {name.lower(), *(part.lower() for part in _PIECE.findall(name))}


def _of_line(text: str, tokens: Sequence[_Token], oddities: Sequence[str]) -> dict[str, str]:
    """The features of a line with the words that each came from."""
    told: dict[str, str] = {}
    if match := _EXCEPTION.match(text):
        told[f"e:{match[2]}"] = match[1]
    for oddity in oddities:
        told[f"o:{oddity}"] = _ODD.get(oddity, f"{oddity} again and again")
    if named := masking.names_toolkit(text):
        told["v:toolkit"] = named
    before: _Token | None = None
    grouped: list[tuple[int, _Token]] = []
    for position, token in enumerate(tokens):
        for name in token.names:
            told.setdefault(name, token.word)
        if before is not None and before.groups and token.groups:
            told.setdefault(f"b:{before.groups[0]} {token.groups[0]}", f"{before.word} {token.word}")
        before = token
        if not token.groups:
            continue
        while grouped and position - grouped[0][0] >= _WINDOW:
            del grouped[0]
        for _, earlier in grouped:
            for one in earlier.groups:
                for two in token.groups:
                    if one != two:
                        pair = f"p:{one} {two}" if one < two else f"p:{two} {one}"
                        told.setdefault(pair, f"{earlier.word} … {token.word}")
        grouped.append((position, token))
    return told


def _frame(text: str) -> dict[str, str]:
    match = _FRAME.match(text)
    if not match:
        return {}
    path, function = match.groups()
    folders = path.replace("\\", "/").split("/")
    file = folders[-1].removesuffix(".py")
    told = {f"fn:{function}": function, f"ff:{file}": f"{file}.py"}
    if len(folders) > 1:
        told[f"fd:{folders[-2]}"] = f"{folders[-2]}/{file}.py"
    return told


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
            named |= masking.archs(item.text[:_FOR_ARCHS])
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
