"""Samples in, the data of a weights file out. The one module that uses scikit-learn and numpy.

A multinomial logistic regression on normalised TF-IDF values. Families of logs are kept together: the scale of the
probabilities, the threshold and the familiarity that is asked for come from families that the model did not see.
"""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.classifier.predict import FORMAT
from logtriage.errors import InputError

try:
    import numpy as np
    import sklearn
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression
except ImportError as error:
    raise InputError(f"training needs scikit-learn: pip install 'logtriage[train]' ({error})") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STRENGTH = 30.0
"""Inverse of the regularisation of the regression."""

FOLDS = 4
MAX_FEATURES = 16_000
_FAMILIES = 2
_DIGITS = 4
_PRECISION = 0.91
_FAMILIAR = 0.005
_NONE = ("healthy", "incomplete", "unknown")
_SEED = "logtriage"


class Sample(NamedTuple):
    """The features of one log that it is known of what went wrong in it.

    `weight`: how much it counts; `is_launch`: whether it is the log of a launch, as those that are to be judged, or a
    message only.
    """

    family: str
    label: str
    features: Mapping[str, float]
    weight: float = 1.0
    is_launch: bool = True


class _Space(NamedTuple):
    """Features that several families share, and how rare they are."""

    names: list[str]
    idf: Any
    unknown_idf: float

    def vectors(self, samples: Sequence[Sample]) -> tuple[Any, Any]:
        """Return normalised vectors, and the known share of each sample's features."""
        index = {name: column for column, name in enumerate(self.names)}
        rows, columns, values, familiar = [], [], [], []
        for row, sample in enumerate(samples):
            found = [(index[name], weight) for name, weight in sorted(sample.features.items()) if name in index]
            scaled = [weight * self.idf[column] for column, weight in found]
            square = sum(value * value for value in scaled)
            strange = [weight for name, weight in sorted(sample.features.items()) if name not in index]
            unknown = sum((weight * self.unknown_idf) ** 2 for weight in strange)
            familiar.append(square / (square + unknown) if square else 0.0)
            length = square**0.5 or 1.0
            rows += [row] * len(found)
            columns += [column for column, _ in found]
            values += [value / length for value in scaled]
        shape = (len(samples), len(self.names))
        return sparse.csr_matrix((values, (rows, columns)), shape=shape, dtype=np.float32), np.array(familiar)


def fit(
    samples: Sequence[Sample],
    lexicon: Mapping[str, Any],
    about: Mapping[str, Any],
    progress: Callable[[str, float], None] = lambda _stage, _share: None,
) -> dict[str, Any]:
    """Train on samples and return the data of a weights file.

    `lexicon` are the groups of words that the features were made with, `about` what the card is to say of the samples;
    `progress` is told what is done, and which share of it. Raises InputError for samples that teach nothing.
    """
    labels = sorted({sample.label for sample in samples})
    if len(labels) < 2:
        raise InputError(f"training needs logs of two labels or more; there are {len(samples)} of {labels or 'none'}")
    held_out, familiar, is_judged = _held_out(samples, labels, progress)
    truth = np.array([labels.index(sample.label) for sample in samples])
    weights = np.array([sample.weight for sample in samples])
    launches = np.array([sample.is_launch for sample in samples])
    if launches.any():
        held_out, familiar, truth, weights, is_judged = (
            column[launches] for column in (held_out, familiar, truth, weights, is_judged)
        )
    scale = _scale(held_out, truth, weights)
    probabilities = _softmax(held_out * scale)
    threshold = _threshold(probabilities, truth, weights, labels)
    known = familiar[np.array([labels[label] not in _NONE for label in truth])]
    least = float(np.quantile(known, _FAMILIAR)) if len(known) else 0.0
    progress("fitting all", 0.9)
    space = _space(samples)
    matrix, _ = space.vectors(samples)
    coefficients, bias = _regression(matrix, samples, labels)
    units = (np.abs(coefficients * scale).max(axis=0) / 127).astype("<f4")
    units[units == 0] = 1.0
    whole = np.rint(coefficients * scale / units).astype("i1")
    figures = _figures(probabilities[is_judged], truth[is_judged], weights[is_judged], labels, threshold)
    body = {
        "format": FORMAT,
        "labels": labels,
        "threshold": round(threshold, _DIGITS),
        "least_familiarity": round(least, _DIGITS),
        "unknown_idf": round(space.unknown_idf, _DIGITS),
        "bias": [round(float(value), _DIGITS) for value in bias * scale],
        "idf": _packed(space.idf.astype("<f4")),
        "scale": _packed(units),
        "lexicon": dict(lexicon),
        "features": "\n".join(space.names),
        "weights": _packed(whole),
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    progress("done", 1.0)
    card = {**about, "scikit-learn": sklearn.__version__, "held_out_families": figures, "sha256": digest}
    return {"format": FORMAT, "card": card, **body}


def _packed(numbers: Any) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _held_out(
    samples: Sequence[Sample], labels: list[str], progress: Callable[[str, float], None]
) -> tuple[Any, Any, Any]:
    """Return the scores of each sample by a model that has not seen its family, how familiar it was, and whether
    there was such a model: without the family two labels must be left.
    """
    folds = np.array([_fold(sample.family) for sample in samples])
    scores = np.zeros((len(samples), len(labels)))
    familiar = np.zeros(len(samples))
    is_judged = np.zeros(len(samples), dtype=bool)
    for fold in range(FOLDS):
        progress(f"held-out families, part {fold + 1} of {FOLDS}", fold / FOLDS * 0.9)
        rest = [sample for sample, own in zip(samples, folds, strict=True) if own != fold]
        held = [sample for sample, own in zip(samples, folds, strict=True) if own == fold]
        own_labels = sorted({sample.label for sample in rest})
        if not held or len(own_labels) < 2:
            continue
        space = _space(rest)
        coefficients, bias = _regression(space.vectors(rest)[0], rest, own_labels)
        matrix, known = space.vectors(held)
        found = np.full((len(held), len(labels)), -30.0)
        found[:, [labels.index(label) for label in own_labels]] = matrix @ coefficients.T + bias
        scores[folds == fold], familiar[folds == fold], is_judged[folds == fold] = found, known, True
    return scores, familiar, is_judged


def _fold(family: str) -> int:
    return hashlib.sha256(f"{_SEED} {family}".encode()).digest()[0] % FOLDS


def _space(samples: Sequence[Sample]) -> _Space:
    """The features that two families or more have; the most widespread ones if they are too many."""
    families: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for sample in samples:
        for name in sample.features:
            counts[name] += 1
            if len(families[name]) < _FAMILIES:
                families[name].add(sample.family)
    shared = [name for name in sorted(counts) if len(families[name]) >= _FAMILIES]
    names = sorted(sorted(shared, key=lambda name: (-counts[name], name))[:MAX_FEATURES])
    if not names:
        raise InputError("the logs to train with have no words in common; more logs of each label are needed")
    idf = np.round([np.log((1 + len(samples)) / (1 + counts[name])) + 1 for name in names], _DIGITS)
    return _Space(names, idf, float(np.log(1 + len(samples)) + 1))


def _regression(matrix: Any, samples: Sequence[Sample], labels: list[str]) -> tuple[Any, Any]:
    """Return coefficients (labels by features) and biases. Each label counts the same, whatever its samples are."""
    totals: Counter[str] = Counter()
    for sample in samples:
        totals[sample.label] += sample.weight  # type: ignore[assignment]
    mean = sum(totals.values()) / len(labels)
    weights = [sample.weight * mean / totals[sample.label] for sample in samples]
    model = LogisticRegression(C=STRENGTH, max_iter=200, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early is still the same fit each time
        model.fit(matrix, [sample.label for sample in samples], sample_weight=weights)
    coefficients, bias = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    if len(labels) == 2:  # scikit-learn keeps one row for two labels
        coefficients, bias = np.vstack([-coefficients, coefficients]) / 2, np.concatenate([-bias, bias]) / 2
    return coefficients, bias


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _scale(scores: Any, truth: Any, weights: Any) -> float:
    """The factor on scores under which the probabilities of unseen families are as large as they are right."""

    def loss(scale: float) -> float:
        probabilities = _softmax(scores * scale)[np.arange(len(truth)), truth]
        return float(-(weights * np.log(np.maximum(probabilities, 1e-9))).sum())

    return min((round(0.1 + 0.02 * step, 2) for step in range(96)), key=loss)


def _threshold(probabilities: Any, truth: Any, weights: Any, labels: list[str]) -> float:
    """The least probability at which failure labels of unseen families are right often enough."""
    best, given = probabilities.max(axis=1), probabilities.argmax(axis=1)
    failures = np.array([labels[label] not in _NONE for label in given])
    for step in range(30, 96):
        chosen = failures & (best >= step / 100)
        total = weights[chosen].sum()
        if total and weights[chosen & (given == truth)].sum() / total >= _PRECISION:
            return step / 100
    return 0.96


def _figures(probabilities: Any, truth: Any, weights: Any, labels: list[str], threshold: float) -> dict[str, Any]:
    best, given = probabilities.max(axis=1), probabilities.argmax(axis=1)
    failures = np.array([labels[label] not in _NONE for label in truth], dtype=bool)
    sure = failures & (best >= threshold)
    right = given == truth

    def share(chosen: Any, among: Any) -> float:
        total = weights[among].sum()
        return round(float(weights[chosen & among].sum() / total), 3) if total else 0.0

    return {
        "samples": len(truth),
        "failures": int(failures.sum()),
        "right": share(right, failures),
        "answered": share(sure, failures),
        "right_of_answered": share(right, sure),
    }
