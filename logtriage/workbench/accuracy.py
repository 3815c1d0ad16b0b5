"""Verdicts beside the labels that logs should get in, figures out: by label, by confidence, what is taken for what."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.workbench.cases import read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

SURE = 0.7
"""A wrong label with this confidence or more is the worst result."""

NO_FAILURE = ("healthy", "incomplete", "unknown")
APART = ("reworded", "foreign", "templates", "wordings")
"""Folders of a corpus that are looked at by themselves only."""

_TEST_SEED = 7
_BINS = 10
_PRECISIONS = (0.9, 0.95, 0.99)


class Wanted(NamedTuple):
    """A log and what its verdict should be: `acceptable` are other labels that count as right."""

    name: str
    family: str
    label: str
    log: Path | bytes
    acceptable: tuple[str, ...] = ()
    root_line: str | None = None


class Given(NamedTuple):
    """What a log got beside what it should get; `root_is_right` is None where no root line is known."""

    name: str
    family: str
    wanted: str
    label: str
    confidence: float
    decided_by: str
    is_right: bool
    root_is_right: bool | None


def stored(corpus: Path, split: str = "all") -> list[Wanted]:
    """Return the logs below a folder that have a ``case.yaml`` beside them, of one split or of both.

    Raises InputError if there is none.
    """
    found = []
    for path in sorted(corpus.rglob("case.yaml")):
        if path.relative_to(corpus).parts[0] in APART:
            continue
        case = read_labelled(path).data
        if split in ("all", case.get("split", "test")):
            name = path.parent.name
            found.append(
                Wanted(
                    name,
                    str(case.get("family") or name),
                    case["label"],
                    path.parent / "run.log",
                    tuple(case.get("acceptable") or ()),
                    case.get("root_line"),
                )
            )
    if not found:
        raise InputError(f"{corpus}: holds no case.yaml" + ("" if split == "all" else f" with split: {split}"))
    return found


def generated(corpus: Path, count: int) -> list[Wanted]:
    """Return logs made from the families of templates that training never sees. Raises InputError if there are none."""
    from logtriage.workbench.variants import variants

    made = variants(corpus / "templates", "test", count, _TEST_SEED)
    return [Wanted(v.name, v.family, v.label, v.text, (), v.root_line) for v in made]


def mission(rules: RuleSet) -> list[str]:
    """Return the labels that the product exists for."""
    return [label for label, head in rules.labels.items() if head["family"] == "mission"]


def judge(
    logs: Sequence[Wanted],
    rules: RuleSet,
    options: pipeline.Options,
    progress: Callable[[int], None] = lambda _done: None,
) -> list[Given]:
    """Analyze logs. `progress` is told after each one how many are done."""
    found = []
    for done, wanted in enumerate(logs, start=1):
        report = pipeline.analyze(wanted.log, rules=rules, options=options)
        shown = report.lines[report.root.line].text if report.root else ""
        found.append(
            Given(
                wanted.name,
                wanted.family,
                wanted.label,
                report.label,
                report.verdict.confidence,
                report.verdict.decided_by,
                report.label in (wanted.label, *wanted.acceptable),
                shown.strip() == wanted.root_line.strip() if wanted.root_line else None,
            )
        )
        progress(done)
    return found


def figures(given: Sequence[Given], mission: Iterable[str]) -> dict[str, Any]:
    """Return all figures of a set of verdicts; `mission` are the labels that the product exists for."""
    labels = _by_label(given)
    mission_f1 = [labels[label]["f1"] for label in mission if label in labels]
    roots = [item.root_is_right for item in given if item.root_is_right is not None]
    return {
        "logs": len(given),
        "families": len({item.family for item in given}),
        "right": _share(sum(item.is_right for item in given), len(given)),
        "unknown": _share(sum(item.label == "unknown" and not item.is_right for item in given), len(given)),
        "wrong": _share(sum(_is_wrong(item) for item in given), len(given)),
        "wrong_and_sure": sum(_is_wrong(item) and item.confidence >= SURE for item in given),
        "root_lines_right": _share(sum(roots), len(roots)),
        "macro_f1": _mean([row["f1"] for row in labels.values()]),
        "mission_f1": _mean(mission_f1),
        "calibration_error": calibration_error(given),
        "coverage_at_precision": {str(wanted): _coverage(given, wanted) for wanted in _PRECISIONS},
        "labels": labels,
        "confusion": confusion(given),
    }


def calibration_error(given: Sequence[Given]) -> float:
    """Return the expected calibration error: how far confidence is from the share that is right, over ten bins."""
    bins: dict[int, list[Given]] = {}
    for item in given:
        bins.setdefault(min(int(item.confidence * _BINS), _BINS - 1), []).append(item)
    off = sum(abs(sum(i.is_right for i in own) - sum(i.confidence for i in own)) for own in bins.values())
    return _share(off, len(given))


def confusion(given: Iterable[Given]) -> dict[str, dict[str, int]]:
    """Return for each label that was wanted how often each label was given."""
    counts: dict[str, Counter[str]] = {}
    for item in given:
        counts.setdefault(item.wanted, Counter())[item.wanted if item.is_right else item.label] += 1
    return {wanted: dict(counts[wanted].most_common()) for wanted in sorted(counts)}


def table(found: Mapping[str, Any]) -> str:
    """Return the figures as text: a row for each label, then the sums."""
    rows = [f"{'label':<24} {'logs':>5} {'precision':>10} {'recall':>7} {'F1':>6}  taken for"]
    for label, row in found["labels"].items():
        others = [f"{name} {count}" for name, count in found["confusion"].get(label, {}).items() if name != label]
        rows.append(
            f"{label:<24} {row['logs']:>5} {row['precision']:>10.3f} {row['recall']:>7.3f} {row['f1']:>6.3f}  "
            f"{', '.join(others[:4])}".rstrip()
        )
    covered = ", ".join(f"{share:.0%} at {float(at):.0%}" for at, share in found["coverage_at_precision"].items())
    rows += [
        "",
        f"{found['logs']} logs of {found['families']} families: {found['right']:.1%} right, "
        f"{found['unknown']:.1%} unknown, {found['wrong']:.1%} wrong "
        f"({found['wrong_and_sure']} of them with confidence {SURE} or more)",
        f"macro F1 {found['macro_f1']:.3f}, of the mission labels {found['mission_f1']:.3f}; "
        f"root lines right {found['root_lines_right']:.1%}",
        f"expected calibration error {found['calibration_error']:.3f}; answered at that precision: {covered}",
    ]
    return "\n".join(rows) + "\n"


def _by_label(given: Sequence[Given]) -> dict[str, dict[str, Any]]:
    """Precision, recall and F1 of every label that was wanted; an acceptable label counts as the wanted one."""
    wanted = Counter(item.wanted for item in given)
    answered = Counter(item.wanted if item.is_right else item.label for item in given)
    right = Counter(item.wanted for item in given if item.is_right)
    return {
        label: {
            "logs": wanted[label],
            "precision": _share(right[label], answered[label]),
            "recall": _share(right[label], wanted[label]),
            "f1": _share(2 * right[label], answered[label] + wanted[label]),
        }
        for label in sorted(wanted)
    }


def _is_wrong(item: Given) -> bool:
    """Whether a log got a label that it should not get; to say unknown is not wrong."""
    return not item.is_right and item.label != "unknown"


def _coverage(given: Sequence[Given], precision: float) -> float:
    """The largest share of logs with a failure that can be answered with at least that share of right answers."""
    failed = [item for item in given if item.wanted not in NO_FAILURE]
    answers = sorted((item for item in failed if item.label != "unknown"), key=lambda item: -item.confidence)
    best = right = 0
    for count, item in enumerate(answers, start=1):
        right += item.is_right
        is_last = count == len(answers) or answers[count].confidence != item.confidence
        if is_last and right / count >= precision:
            best = count
    return _share(best, len(failed))


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _mean(values: Sequence[float]) -> float:
    return _share(sum(values), len(values))
