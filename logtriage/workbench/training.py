"""Logs of which it is known what went wrong in, samples for the classifier out: a corpus, templates, rules' examples.

Nothing of the test half is ever used, nor the logs that were written to test the classifier.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from logtriage import choosing, classifying, pipeline, resources
from logtriage.classifier.features import Lexicon, extract
from logtriage.engine.rule_source import RuleSource
from logtriage.engine.schema import Hit
from logtriage.errors import InputError
from logtriage.verdict import LIVES
from logtriage.workbench.cases import read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from logtriage.classifier.features import Feature
    from logtriage.classifier.train import Sample
    from logtriage.engine.ruleset import RuleSet

VARIANTS = 1620
"""Logs made from the templates of the training half."""

SEED = 1
_APART = ("reworded", "foreign")
"""Folders that only test the classifier."""

_MADE = ("templates", "wordings")
"""Sources whose own texts a test holds against the tests' wordings; what surrounds them is the same on both sides."""

_WHOLE = ("logs", "templates", "wordings")
"""Sources of logs of launches; the others are single messages and excerpts."""

_OUTCOMES = ("healthy", "incomplete", "unknown")
_CUTS, _CUT_COUNTS = (0.4, 0.8, 1.0), 0.5
"""How much of a start is left where it is cut off, and how much such a sample counts."""

_CHUNK = 16
"""Logs that a process takes at once."""


class Labelled(NamedTuple):
    """A log that has a label: where it comes from, its family, its bytes, and facts that it lacks."""

    source: str
    family: str
    label: str
    text: bytes
    facts: Mapping[str, Any] = {}


def labelled(corpora: Sequence[Path], rules: RuleSet, *, examples: bool = True) -> list[Labelled]:
    """Return the logs to train with: those of the corpora and, if asked for, the examples of the rules.

    Raises InputError for a folder that holds nothing to learn from, and for a label that no rule file has.
    """
    found: list[Labelled] = []
    for corpus in corpora:
        own = _untested([*_cases(corpus), *_made(corpus), *_messages(corpus, rules)], corpora)
        if not own:
            raise InputError(
                f"{corpus}: holds no log to train with (a folder with run.log and case.yaml, split: train)"
            )
        found += own
    if examples:
        found += _untested(_examples(), corpora)
    if strange := sorted({item.label for item in found} - set(rules.labels)):
        raise InputError(f"{strange[0]!r} is no label; `logtriage rules list` names them all")
    return found


def samples(logs: Sequence[Labelled], progress: Callable[[int], None] = lambda _done: None) -> list[Sample]:
    """Return the samples of logs, which one process per processor reads.

    A log of a server that was ready is half a sample more for each place at which its start is cut off: then it is
    incomplete. A family counts more the more logs it has, but not in proportion.
    """
    from logtriage.classifier.train import Sample

    sizes = Counter(log.family for log in logs)
    made = []
    with ProcessPoolExecutor() as pool:
        for done, (log, read) in enumerate(zip(logs, pool.map(_read, logs, chunksize=_CHUNK), strict=True)):
            progress(done)
            for label, values in read:
                share = 1.0 if label == log.label else _CUT_COUNTS
                made.append(Sample(log.family, label, values, share * sizes[log.family] ** -0.5, log.source in _WHOLE))
    return made


def _read(log: Labelled) -> list[tuple[str, dict[str, float]]]:
    """The labels and features of a log, and of its start where that is cut off before the server is ready."""
    rules, words = _own()
    read = [(log.label, features(log.text, rules, words, log.facts))]
    if log.source == "logs" and log.label == "healthy":
        read += [("incomplete", features(start, rules, words, log.facts)) for start in _cut(log.text, rules)]
    return [(label, {name: feature.weight for name, feature in found.items()}) for label, found in read if found]


@cache
def _own() -> tuple[RuleSet, Lexicon]:
    """What a process reads logs with."""
    return pipeline.load_rules(), Lexicon(lexicon())


def _cut(text: bytes, rules: RuleSet) -> Iterator[bytes]:
    """The start of a launch, cut off at several places; nothing where something failed before the server was ready."""
    options = pipeline.Options(deciders=("rules",))
    judged, _ = choosing.judge(pipeline.read([text], rules, options), rules, options, None)
    built = judged.evidence
    if built is None:
        return
    ready = min((match.line for match in built.matches if match.rule["id"] in LIVES), default=0)
    if any(match.line < ready and match.strength != "harmless" for match in built.matches):
        return
    for share in _CUTS:
        yield "\n".join(line.text for line in built.lines[: int(ready * share)]).encode()


def features(text: bytes, rules: RuleSet, lexicon: Lexicon, facts: Mapping[str, Any]) -> Mapping[str, Feature]:
    """Return the features of a log as the classifier sees them; none if there is nothing to go by in it."""
    options = pipeline.Options(facts=facts, deciders=())
    judged, _ = choosing.judge(pipeline.read([text], rules, options), rules, options, None)
    if judged.evidence is None:
        return {}
    seen = classifying.gather(judged.evidence, lexicon.is_alarm, judged.launch, None)
    return extract(seen, lexicon) if seen.tells else {}


def lexicon() -> dict[str, Any]:
    """Return the groups of words of the checkout or the wheel."""
    with open(resources.lexicon_file(), encoding="utf-8") as file:
        data = yaml.safe_load(file)
    assert isinstance(data, dict)  # noqa: S101 - it is our own file
    return data


def about(logs: Sequence[Labelled]) -> dict[str, Any]:
    """Return what the card of the weights says of the logs they were trained with."""
    digest = hashlib.sha256()
    for log in logs:
        digest.update(f"{log.family}\0{log.label}\0{len(log.text)}\0".encode() + log.text)
    return {
        "logs": len(logs),
        "families": len({log.family for log in logs}),
        "sources": dict(sorted(Counter(log.source for log in logs).items())),
        "labels": dict(sorted(Counter(log.label for log in logs).items())),
        "data_sha256": digest.hexdigest(),
    }


def _untested(logs: Iterable[Labelled], corpora: Sequence[Path]) -> list[Labelled]:
    """The logs without those that hold a wording which only the test half of the templates may hold."""
    folders = [corpus / "templates" for corpus in corpora if (corpus / "templates").is_dir()]
    if not folders:
        return list(logs)
    from logtriage.workbench.duplicates import Wordings
    from logtriage.workbench.variants import wordings

    tested, trained = (
        [text for folder in folders for _, text in wordings(folder, split)] for split in ("test", "train")
    )
    held = Wordings(tested, trained)
    return [log for log in logs if log.source in _MADE or not held.are_in(log.text.decode("utf-8", "replace"))]


def _cases(corpus: Path) -> Iterator[Labelled]:
    for path in sorted(corpus.rglob("case.yaml")):
        if set(path.relative_to(corpus).parts) & set(_APART):
            continue
        case = read_labelled(path).data
        if case.get("split", "train") == "train":
            family = str(case.get("family") or path.parent.name)
            yield Labelled("logs", family, case["label"], (path.parent / "run.log").read_bytes())


def _made(corpus: Path) -> Iterator[Labelled]:
    """Logs made from templates of the training half, and one for each failure in other words."""
    folder = corpus / "templates"
    if not folder.is_dir():
        return
    from logtriage.workbench import templates
    from logtriage.workbench.variants import of_family, variants

    for variant in variants(folder, "train", VARIANTS, SEED):
        yield Labelled("templates", variant.family, variant.label, variant.text)
    if not (words := corpus / "wordings").is_dir():
        return
    shared = templates.load(folder).shared
    for label, families in templates.wordings(words, shared).items():
        for family in families:
            for number, cause in enumerate(family.cause):
                variant = of_family(family._replace(cause=[cause]), shared, number, SEED)
                yield Labelled("wordings", family.id, label, variant.text)


def _messages(corpus: Path, rules: RuleSet) -> Iterator[Labelled]:
    """Single messages that programs print, each with its label."""
    path = corpus / "messages.tsv"
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["expected"] in rules.labels and row["expected"] not in _OUTCOMES:
                yield Labelled("messages", f"message-{row['id']}", row["expected"], row["phrase"].encode())


def _examples() -> Iterator[Labelled]:
    """The examples of the rules: what a decisive rule must hit, and what belongs to another label."""
    for label, rule, _, _ in RuleSource([resources.rules_folder()]).rules:
        for hit in rule.examples.hit:
            example = Hit(log=hit) if isinstance(hit, str) else hit
            wanted = example.verdict or (label if rule.strength == "decisive" else None)
            if wanted is not None:
                yield Labelled("examples", rule.id, wanted, example.log.encode(), dict(example.given))
        for miss in rule.examples.miss:
            if miss.owner is not None:
                yield Labelled("examples", rule.id, miss.owner, miss.log.encode(), dict(miss.given))
