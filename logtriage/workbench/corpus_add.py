"""Files a log in a corpus: without names and secrets, without the lines that its verdict does not need."""

from __future__ import annotations

import getpass
import platform
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.intake.source import open_source
from logtriage.redact import Redactor
from logtriage.workbench import cases
from logtriage.workbench.scrub import Scrubber

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

ADDED = "added"
"""Folder of a corpus that new logs are filed in."""

_SHORT = 300  # lines; a log of so few stays whole
_FIRST, _LAST, _AROUND = 60, 60, 8
_WITHOUT_ROOT = ("healthy", "incomplete", "unknown")


class Wanted(NamedTuple):
    """What the user says about a log. `root_line` is a line number, from 1; `name` is the folder's."""

    label: str
    root_line: int | None = None
    name: str = ""
    split: str = "train"
    family: str = ""
    note: str = ""
    whole: bool = False


class Added(NamedTuple):
    """A log that was filed: where, how many of its lines, and how many names of each kind were replaced."""

    folder: Path
    kept: int
    lines: int
    replaced: dict[str, int]


def add(path: str, corpus: Path, wanted: Wanted, rules: RuleSet) -> Added:
    """File a log below ``<corpus>/added``.

    Raises InputError for a label that does not exist, a root line that has to be named or is none, a folder that is
    there already, and where trimming or taking out names would move the verdict.
    """
    if wanted.label not in rules.labels:
        raise InputError(f"no label {wanted.label!r}; `logtriage rules list` shows them")
    rows = _rows(path)
    text = "\n".join(rows) + "\n"
    reading = pipeline.read([text.encode()], rules, pipeline.Options())
    before = pipeline.report_on(reading, rules, pipeline.Options())
    root = _root_row(before, wanted, rows, path)
    is_whole = wanted.whole or len(rows) <= _SHORT
    marks = [mark.line for mark in reading.clock.marks]
    keep = list(range(len(rows))) if is_whole else _needed(before, marks, root, len(rows))
    redactor = Redactor(rules.secrets)
    scrubber = Scrubber(redactor, _own_names())
    shown = _redacted_across(scrubber.text("\n".join(rows[at] for at in keep) + "\n"), redactor, rules)
    options = pipeline.Options(also=[keep.index(root) + 1] if root is not None else [])
    after = pipeline.analyze(shown.encode(), rules=rules, options=options)
    if _verdict(after, scrubber) != _verdict(before, scrubber):
        raise InputError(
            f"{path}: cutting lines off moves the verdict from {before.label} to {after.label}; "
            "`--whole` files all lines"
        )
    folder = corpus / ADDED / (wanted.name or _slug(path, wanted.label))
    case = _case(before, wanted, _line_of(after, keep, root) if root is not None else "", scrubber)
    cases.write(folder, shown.encode(), case)
    return Added(folder, len(keep), len(rows), scrubber.counts)


def _rows(path: str) -> list[str]:
    source = open_source(path)
    text = b"".join(block.data for block in source.blocks()).decode("utf-8", errors="replace")
    rows = text.split("\n")
    return rows[:-1] if rows[-1] == "" else rows


def _root_row(report: Report, wanted: Wanted, rows: list[str], path: str) -> int | None:
    """Return the index of the row with the root cause; the report's own, where it has the label that is wanted."""
    if wanted.root_line is not None:
        if not 1 <= wanted.root_line <= len(rows):
            raise InputError(f"{path}: has no line {wanted.root_line}; it has {len(rows)}")
        if not rows[wanted.root_line - 1].strip():
            raise InputError(f"{path}: line {wanted.root_line} is blank; name a line that shows {wanted.label}")
        return wanted.root_line - 1
    if wanted.label in _WITHOUT_ROOT:
        return None
    if report.root is not None and report.label == wanted.label:
        return report.lines[report.root.line].number - 1
    said = f"the verdict is {report.label}"
    if report.root is not None:
        said += f", on line {report.lines[report.root.line].number}"
    raise InputError(f"{path}: {said}; say which line shows {wanted.label}, such as `--root-line 4127`")


def _needed(report: Report, marks: list[int], root: int | None, count: int) -> list[int]:
    """Return the rows to keep: beginning, end, and what lies around every line that a rule or a mark is about."""
    events, incident = report.events, report.incident
    told = [*marks, *incident.troubles, *([report.root.line] if report.root is not None else [])]
    told += [item.match.line for item in incident.explained]
    told += [m.line for m in (*incident.unexplained, *incident.supporting, *incident.endings, *incident.outcomes)]
    keep = {*range(min(_FIRST, count)), *range(max(0, count - _LAST), count)}
    for at in told:
        event = events[report.lines[at].event]
        first, last = report.lines[event.first].number - 1, report.lines[event.last].number - 1
        keep.update(range(max(0, first - _AROUND), min(count, last + _AROUND + 1)))
    if root is not None:
        keep.update(range(max(0, root - 4 * _AROUND), min(count, root + _AROUND + 1)))
    return sorted(keep)


def _redacted_across(text: str, redactor: Redactor, rules: RuleSet) -> str:
    """Take out the secrets that only the lines around them give away, such as the body of a private key."""
    rows = text.split("\n")
    lines = pipeline.read([text.encode()], rules, pipeline.Options()).lines
    for at, shown in redactor.across(lines).items():
        number = lines[at].number - 1
        rows[number] = rows[number].replace(lines[at].text, shown)
    return "\n".join(rows)


def _verdict(report: Report, scrubber: Scrubber) -> tuple[str, str | None, str | None, str]:
    verdict = report.verdict
    text = report.lines[report.root.line].text if report.root is not None else ""
    return verdict.label, verdict.rule, verdict.stage, scrubber.text(text)


def _line_of(report: Report, keep: list[int], root: int) -> str:
    number = keep.index(root) + 1
    return next((line.text for line in report.lines if line.number == number), "")


def _own_names() -> dict[str, str]:
    """The names of this machine and of whoever runs the tool."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without an entry
        user = ""
    return {name: kind for name, kind in ((user, "user"), (platform.node(), "host")) if name}


def _slug(path: str, label: str) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", re.split(r"[\\/]", path)[-1].split(".")[0].lower()).strip("-")
    return f"{label}-{stem}" if stem and stem not in ("run", "log") else label


def _case(report: Report, wanted: Wanted, root_line: str, scrubber: Scrubber) -> dict[str, Any]:
    facts = report.launch.facts
    case: dict[str, Any] = {"provenance": "added with logtriage corpus add", "split": wanted.split}
    if wanted.family:
        case["family"] = wanted.family
    if version := facts.get("server_version"):
        case["sglang_version"] = str(version)
    if gpu := facts.get("gpu_name"):
        case["gpu"] = str(gpu)
    if sm := facts.get("sm"):
        case["sm"] = sm
    return {
        **case, "label": wanted.label, "acceptable": [], "root_line": root_line, "note": scrubber.text(wanted.note),
    }  # fmt: skip
