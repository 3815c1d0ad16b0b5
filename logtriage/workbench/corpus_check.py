"""Checks a corpus: cases complete and valid, root lines in their logs, no secret, nothing in both splits."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.redact import Redactor
from logtriage.workbench import cases, duplicates, templates, variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.workbench.cases import Case
    from logtriage.workbench.duplicates import Document

TEMPLATES = "templates"
_PER_FAMILY = 2
_SEED = 1


class Checked(NamedTuple):
    """Faults, each as ``place: what is wrong``, and how many cases and families of templates were looked at."""

    faults: list[str]
    cases: int
    families: int


def check(corpus: Path, rules: RuleSet) -> Checked:
    """Check all cases below a folder, and its templates if it has any.

    Raises InputError if there is neither a case nor a template, or where a template cannot be read.
    """
    read, faults = _read(corpus)
    documents: list[Document] = []
    for case in read:
        name = str(case.folder.relative_to(corpus))
        alone = list(cases.faults(case, rules.labels))
        if case.log.is_file():
            text = case.log.read_text(encoding="utf-8", errors="replace")
            alone += _faults_of_log(case, text, rules)
            documents.append(duplicates.Document(name, case.label, case.split, text))
        faults += [f"{name}: {fault}" for fault in alone]
    generated = list(_generated(corpus / TEMPLATES, rules, faults)) if (corpus / TEMPLATES).is_dir() else []
    if not read and not faults and not generated:
        raise InputError(f"{corpus}: holds no case.yaml and no {TEMPLATES}")
    faults += _families_on_both_sides(read)
    for pair in duplicates.pairs([*documents, *generated]):
        faults.append(
            f"{pair.train}: is in train and nearly the same as {pair.test} in test ({pair.alike:.0%} of the words); "
            "give both one family and one split"
        )
    return Checked(faults, len(read), len({document.name for document in generated}) // _PER_FAMILY)


def _read(corpus: Path) -> tuple[list[Case], list[str]]:
    read, faults = [], []
    for path in sorted(corpus.rglob(cases.VERDICT)):
        try:
            read.append(cases.read_case(path))
        except InputError as error:
            faults.append(str(error))
    told = {case.folder for case in read}
    for path in sorted(corpus.rglob(cases.LOG)):
        if path.parent not in told and not (path.parent / cases.VERDICT).exists():
            faults.append(f"{path.parent.relative_to(corpus)}: a {cases.LOG} without a {cases.VERDICT}")
    return read, faults


def _faults_of_log(case: Case, text: str, rules: RuleSet) -> Iterator[str]:
    if case.root_line and case.root_line not in text.splitlines() and not _is_printed(case, rules):
        yield f"root_line is no line of {cases.LOG}: {case.root_line[:100]!r}"
    shown = Redactor(rules.secrets).text(text)
    if shown != text:
        first = next(line for line in shown.splitlines() if "<redacted:" in line and line not in text)
        yield f"{cases.LOG} holds a secret: {first[:100]!r}"


def _is_printed(case: Case, rules: RuleSet) -> bool:
    """Say whether the root line is a line as the server printed it, before a terminal or a wrapper broke it."""
    reading = pipeline.read([case.log], rules, pipeline.Options())
    return any(line.text == case.root_line for line in reading.lines)


def _families_on_both_sides(read: Sequence[Case]) -> Iterator[str]:
    members: dict[str, dict[str, str]] = defaultdict(dict)
    for case in read:
        members[case.family].setdefault(case.split, case.folder.name)
    for family, by_split in sorted(members.items()):
        if len(by_split) > 1:
            where = " and ".join(f"{split} ({name})" for split, name in sorted(by_split.items()))
            yield f"family {family!r} is in {where}; a family belongs wholly to one of them"


def _generated(folder: Path, rules: RuleSet, faults: list[str]) -> Iterator[Document]:
    loaded = templates.load(folder)
    for label, families in loaded.families.items():
        if label not in rules.labels:
            faults.append(f"{folder / label}.yaml: no label {label!r}; `logtriage rules list` shows them")
        for family in families:
            for number in range(_PER_FAMILY):
                log = variants.of_family(family, loaded.shared, number, _SEED)
                yield duplicates.Document(f"{TEMPLATES}/{log.name}", label, log.split, log.text.decode())
