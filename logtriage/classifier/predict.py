"""Features in, a label with its probability out, and the lines and words that weighed most; needs no other library.

The weights are plain data: a list of features, for each a whole number for every label and what one unit of it is.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from array import array
from operator import itemgetter, mul
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage import whole_file
from logtriage.classifier.evidence import FIRST
from logtriage.classifier.features import Lexicon, words_of
from logtriage.errors import InputError
from logtriage.records import Candidate, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.classifier.features import Feature

FORMAT = "logtriage/weights/v2"
WORDS = 5
"""Words that a guess names."""

LINES = 3
"""Lines that a guess names."""

_NO_FAILURE = ("healthy", "incomplete")
_OTHERS = 2
_LEAST = 0.1
_ODD = 0.4  # the threshold for texts that are odd by their form


class Guess(Record):
    """What the classifier makes of a launch that no rule explains.

    Attributes:
        is_sure: whether it is sure enough to give the label: of a familiar log, with words that the label needs.
        is_odd: whether a text in the log is odd by its form, which speaks for the label by itself.
        lines: indexes of the lines that weighed most; `words`: their words that did.
        candidates: the labels next to it; `unknown`: how likely it is that no label fits;
            `failure`: that something failed at all.
        is_forced: whether the label is to be given however unlikely it is; `is_alone`: whether no rules took part;
            `is_last`: whether the launch says nothing more behind the line that weighed most; `is_behind`: whether no
            stage of it begins there.
    """

    label: str
    confidence: float
    is_sure: bool
    is_odd: bool = False
    lines: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    unknown: float = 0.0
    failure: float = 0.0
    is_forced: bool = False
    is_alone: bool = False
    is_last: bool = False
    is_behind: bool = False


class Scored(Record):
    """Probabilities of all labels, and which share of the features the model knows."""

    probabilities: tuple[float, ...]
    familiarity: float


class _Vector(NamedTuple):
    """The known features: their names and normalised values, their weights by label, and their share of all."""

    names: list[str]
    values: list[float]
    weights: list[tuple[int, ...]]
    familiarity: float


class Model:
    """A trained classifier, read from the data of a weights file.

    Raises InputError (by way of `load`) for data of another shape.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.card: dict[str, Any] = data["card"]
        self.labels: list[str] = data["labels"]
        self.threshold: float = data["threshold"]
        self.least_familiarity: float = data["least_familiarity"]
        self.lexicon = Lexicon(data["lexicon"])
        names = data["features"].split("\n")
        self._row = dict(zip(names, range(len(names)), strict=True))
        self._idf = _unpacked("f", data["idf"])
        self._scale = _unpacked("f", data["scale"])
        self._bias: list[float] = data["bias"]
        self._unknown_idf: float = data["unknown_idf"]
        weights = _unpacked("b", data["weights"])
        if not len(self._idf) == len(self._scale) == len(names) == len(weights) / len(self.labels):
            raise ValueError("the weights do not fit the features")
        self._weights = [weights[at : at + len(names)] for at in range(0, len(weights), len(names))]
        self._check()

    def _check(self) -> None:
        """Raise ValueError or TypeError for what would fail later, when a log is looked at."""
        numbers = (self.threshold, self.least_familiarity, self._unknown_idf, *self._bias, *self._idf, *self._scale)
        if not all(map(math.isfinite, numbers)):
            raise ValueError("a number in it is not finite")
        if not isinstance(self.labels, list) or not all(isinstance(label, str) for label in self.labels):
            raise TypeError("its labels are no list of names")
        if len(self._bias) != len(self.labels):
            raise ValueError("the bias does not fit the labels")

    def score(self, features: Mapping[str, Feature]) -> Scored:
        """Return the probability of every label."""
        return self._scored(self._vector(features))

    def guess(self, features: Mapping[str, Feature]) -> Guess:
        """Return the likeliest label, what speaks for it, and the labels next to it."""
        vector = self._vector(features)
        scored = self._scored(vector)
        ranked = sorted(range(len(self.labels)), key=lambda label: (-scored.probabilities[label], label))
        best = ranked[0]
        by_line, by_words = self._reasons(features, vector, best)
        lines = tuple(sorted(by_line, key=lambda at: (-by_line[at], at))[:LINES])
        is_odd = self.lexicon.is_odd(self.labels[best], features)
        threshold = min(self.threshold, _ODD) if is_odd else self.threshold
        is_sure = (
            scored.probabilities[best] >= threshold
            and (is_odd or (scored.familiarity >= self.least_familiarity and self._understands(features)))
            and self.lexicon.allows(self.labels[best], features)
        )
        others = [label for label in ranked[1 : _OTHERS + 1] if scored.probabilities[label] >= _LEAST]
        return Guess(
            label=self.labels[best],
            confidence=scored.probabilities[best],
            is_sure=is_sure,
            is_odd=is_odd,
            failure=1 - sum(scored.probabilities[at] for at, label in enumerate(self.labels) if label in _NO_FAILURE),
            unknown=scored.probabilities[self.labels.index("unknown")] if "unknown" in self.labels else 0.0,
            lines=lines,
            words=tuple(_distinct(sorted(by_words, key=lambda words: (-by_words[words], words)))),
            candidates=tuple(
                Candidate(self.labels[label], round(scored.probabilities[label], 2), "the words in it resemble it too")
                for label in others
            ),
        )

    def _understands(self, features: Mapping[str, Feature]) -> bool:
        """Whether the words of the first failure are known for the greater part, the name of the exception aside."""
        names = {word for name in features if name.startswith("e:") for word in words_of(name[2:])}
        told = [name for name, feature in features.items() if name.startswith("w:") and feature.weight == FIRST]
        content = [name for name in told if name[2:] not in names]
        return sum(name in self._row for name in content) * 2 >= max(1, len(content))

    def _vector(self, features: Mapping[str, Feature]) -> _Vector:
        """What is known of the features. Sorted, so that sums do not depend on the order of the lines."""
        names, rows, values = [], [], []
        square = unknown = 0.0
        for name in sorted(features):
            row, weight = self._row.get(name), features[name].weight
            if row is None:
                unknown += (weight * self._unknown_idf) ** 2
                continue
            value = weight * self._idf[row]
            names.append(name)
            rows.append(row)
            values.append(value * self._scale[row])
            square += value * value
        length = math.sqrt(square) or 1.0
        # One call for each label is twice as fast as one for each of its weights.
        pick = itemgetter(*rows) if len(rows) > 1 else lambda own: tuple(own[row] for row in rows)
        return _Vector(
            names,
            [value / length for value in values],
            [pick(own) for own in self._weights],
            square / (square + unknown) if square else 0.0,
        )

    def _scored(self, vector: _Vector) -> Scored:
        sums = [bias + sum(map(mul, vector.values, own)) for bias, own in zip(self._bias, vector.weights, strict=True)]
        top = max(sums)
        powers = [math.exp(value - top) for value in sums]
        total = sum(powers)
        return Scored(tuple(power / total for power in powers), vector.familiarity)

    def _reasons(
        self, features: Mapping[str, Feature], vector: _Vector, label: int
    ) -> tuple[dict[int, float], dict[str, float]]:
        """How much each line and each word speaks for a label and against the other ones."""
        by_line: dict[int, float] = {}
        by_words: dict[str, float] = {}
        totals = map(sum, zip(*vector.weights, strict=True))
        for name, value, own, total in zip(vector.names, vector.values, vector.weights[label], totals, strict=True):
            speaks = value * (own - total / len(self.labels))
            _, at, words = features[name]
            if at >= 0:
                by_line[at] = by_line.get(at, 0.0) + speaks
            if words and speaks > 0:
                by_words[words] = by_words.get(words, 0.0) + speaks
        return by_line, by_words


def load(path: str) -> Model:
    """Read a weights file. Raises InputError if it cannot be read or is none."""
    try:
        data = json.loads(whole_file.read(path))
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}")
        return Model(data)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{path}: is no weights file ({FORMAT}), as `logtriage train --output {path}` writes: {error}"
        ) from error


def _unpacked(code: str, text: str) -> array[Any]:
    """Numbers of a weights file: little-endian, in base64, which is read ten times faster than digits."""
    numbers = array(code, base64.b64decode(text))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _distinct(words: Sequence[str]) -> list[str]:
    """The first few words, without those that only repeat a part of another one."""
    chosen: list[str] = []
    for word in words:
        parts = set(word.split(" … ") if " … " in word else word.split())
        if all(not parts & set(other.replace(" … ", " ").split()) for other in chosen):
            chosen.append(word)
        if len(chosen) == WORDS:
            break
    return chosen
