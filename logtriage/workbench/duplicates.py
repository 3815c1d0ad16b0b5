"""Finds logs of the training half that are nearly the same as logs of the test half, numbers and names aside.

Two logs are compared by what only few logs say: a line that stands in logs of three labels tells nothing about any.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ALIKE = 0.8
"""Share of common word triples (Jaccard) from which on two logs are nearly the same."""

_MASKED = re.compile(
    r"""(?x)
    \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,Z]*      # a time
    |(?<![\w.])~?/[\w.@+~-]+(?:/[\w.@+~-]*)+           # a path
    |\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b              # an address, a digest
    |\d+(?:[.,:]\d+)*(?:\ ?[KMG]i?B\b)?                # a number, a size
    """
)
_LONGEST = 300  # what follows in a line (the arguments of the server, say) is no wording
_LABELS = 3
_WORDS = 3


class Document(NamedTuple):
    """A log to compare."""

    name: str
    label: str
    split: str
    text: str


class Pair(NamedTuple):
    """Two logs of different splits that are nearly the same."""

    train: str
    test: str
    alike: float


HELD = 0.7
"""Share of the word triples of a wording from which on a text says the same."""


class Wordings:
    """Lines that only the test half may hold, to keep single messages and examples out of the training half."""

    def __init__(self, tests: Iterable[str], training: Iterable[str] = ()) -> None:
        """Take the wordings of the tests; what the training half's own wordings say too is no secret of theirs."""
        own = [_shingles(_masked_lines(text)) for text in training]
        kept = (_shingles(_masked_lines(text)) for text in tests)
        self._kept = [words for words in kept if words and not any(_is_held(words, known) for known in own)]

    def __len__(self) -> int:
        return len(self._kept)

    def are_in(self, text: str) -> bool:
        """Say whether a text holds one of them, numbers and names aside."""
        told = _shingles(_masked_lines(text))
        return any(_is_held(words, told) for words in self._kept)


def pairs(documents: Iterable[Document]) -> list[Pair]:
    """Return all pairs of a training and a test log whose masked texts are alike, the most alike first."""
    documents = list(documents)
    masked = [_masked_lines(document.text) for document in documents]
    common = _common([document.label for document in documents], masked)
    shingles = [_shingles([line for line in lines if line not in common]) for lines in masked]
    tests = defaultdict(list)
    for at, document in enumerate(documents):
        if document.split == "test":
            for shingle in shingles[at]:
                tests[shingle].append(at)
    found = []
    for at, document in enumerate(documents):
        if document.split != "train":
            continue
        shared = Counter(other for shingle in shingles[at] for other in tests[shingle])
        for other, count in shared.items():
            alike = count / (len(shingles[at]) + len(shingles[other]) - count)
            if alike >= ALIKE:
                found.append(Pair(document.name, documents[other].name, alike))
    return sorted(found, key=lambda pair: (-pair.alike, pair.train, pair.test))


def _is_held(words: set[tuple[str, ...]], told: set[tuple[str, ...]]) -> bool:
    return len(words & told) >= HELD * len(words)


def _masked_lines(text: str) -> list[str]:
    return list(dict.fromkeys(_MASKED.sub("#", line).strip()[:_LONGEST] for line in text.splitlines()))


def _common(labels: Sequence[str], masked: Sequence[list[str]]) -> set[str]:
    said_by: dict[str, set[str]] = defaultdict(set)
    for label, lines in zip(labels, masked, strict=True):
        for line in lines:
            said_by[line].add(label)
    return {line for line, owners in said_by.items() if len(owners) >= _LABELS}


def _shingles(lines: Sequence[str]) -> set[tuple[str, ...]]:
    words = [word for line in lines for word in line.split()]
    return {tuple(words[at : at + _WORDS]) for at in range(max(1, len(words) - _WORDS + 1))} if words else set()
