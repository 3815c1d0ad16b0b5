"""What only a large report shows: the log around the cause, the stages of every rank over time, what was tried before.

In: the record of an analysis. Out: JSON-like data, not redacted yet.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from logtriage.engine.clock import FOR_ALL_RANKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from logtriage.records import Attempt, Match, Report

AROUND = 12
"""Lines shown before and after the root-cause line; one beside each other line."""

_FRAMES = 30
_EACH = 12  # effects, and other lines of one kind
_OUTCOMES = 3
_NO_CAUSE = 3  # lines around each line to read where no cause is known
_NEXT = 200  # lines in which a time stamp is looked for
_STAGES = 24  # of one rank: a draft model passes some of them again


def excerpt(report: Report) -> list[dict[str, Any]]:
    """Return the lines of the log to show, in order: what each is to the cause, and why.

    `role` is root, effect, unclear, supporting, trouble, outcome, frame or context.
    """
    roles = dict(_roles(report))
    near = AROUND if report.root is not None else _NO_CAUSE
    shown = dict(roles)
    if not roles:
        shown = dict.fromkeys(range(max(0, len(report.lines) - AROUND), len(report.lines)), ("context", None))
    for at, (role, _) in roles.items():
        reach = near if role == "root" or report.root is None else 1
        for other in _beside(report, at, reach):
            shown.setdefault(other, ("context", None))
    if report.root is not None:
        event = report.events[report.lines[report.root.line].event]
        for at in range(max(event.first, report.root.line - _FRAMES), report.root.line):
            shown.setdefault(at, ("context", None))
    return [_shown(report, at, *shown[at]) for at in _unrepeated(report, sorted(shown), roles)]


def timeline(report: Report) -> dict[str, Any] | None:
    """Return when each rank reached each stage: in seconds since the first mark, in lines where time stamps lack.

    None if the log has no mark of a stage.
    """
    if not report.marks:
        return None
    is_timed = all(_time(report, at) is not None for at, _ in report.marks)
    first = min(_time(report, at) or 0.0 for at, _ in report.marks) if is_timed else 0.0

    def place(at: int) -> float:
        if not is_timed:
            return report.lines[at].number
        return round((_time(report, at) or first) - first, 3)

    ends = _ends(report, is_timed=is_timed)
    root = report.root
    rows = []
    for file, rank in _rows(report):
        marks: list[dict[str, Any]] = [
            {"stage": stage, "at": place(at), "line": report.lines[at].number}
            for at, stage in report.marks
            if report.lines[at].file == file and (stage in FOR_ALL_RANKS or _rank(report, at) in ("", rank))
        ]
        for before, mark in pairwise(marks):
            mark["at"] = max(mark["at"], before["at"])  # a clock that was set back
        last = max((at for (of, _), at in ends.items() if of == file), default=report.marks[0][0])
        end = last if marks[-1]["stage"] == "serving" else ends.get((file, rank), last)
        rows.append(
            {
                "file": report.files[file].name,
                "rank": rank or None,
                "stages": _passed(marks),
                "end": max(place(end), marks[-1]["at"]),
                "is_root": root is not None
                and (report.lines[root.line].file, _rank(report, root.line)) == (file, rank),
            }
        )
    return {
        "unit": "seconds" if is_timed else "lines",
        "root": None if root is None else place(root.line),
        "rows": rows,
    }


def attempts(report: Report, earlier: Iterable[Attempt]) -> list[dict[str, Any]]:
    """Return the earlier launches and this one, oldest first: flags, blame and outcome of each."""
    found = [
        {
            "source": attempt.source,
            "label": attempt.label,
            "outcome": attempt.outcome,
            "flags": dict(attempt.launch.flags),
            "flag": attempt.flag,
            "value": attempt.value,
        }
        for attempt in earlier
    ]
    if not found:
        return []
    this = {
        "source": report.files[0].name,
        "label": report.label,
        "outcome": report.verdict.outcome,
        "flags": dict(report.launch.flags),
        "flag": report.root.flag if report.root else None,
        "value": report.root.value if report.root else None,
    }
    return [*found, this]


def _roles(report: Report) -> Iterator[tuple[int, tuple[str, str | None]]]:
    """The lines that mean something, each once: the last one that is yielded for a line counts."""
    incident = report.incident
    for match in incident.outcomes[:_OUTCOMES]:
        yield match.line, ("outcome", None)
    for at in incident.troubles[:_EACH]:
        yield at, ("trouble", None)
    for match in incident.supporting[:_EACH]:
        yield match.line, ("supporting", None)
    for match in incident.unexplained[:_EACH]:
        yield match.line, ("unclear", None)
    for match, because in _firsts(report)[:_EACH]:
        yield match.line, ("effect", because)
    if report.root is not None:
        yield report.root.line, ("root", None)


def _firsts(report: Report) -> list[tuple[Match, str]]:
    """The first effect of each rule."""
    found: dict[str, tuple[Match, str]] = {}
    for item in report.incident.explained:
        found.setdefault(item.match.rule["id"], (item.match, item.because))
    return list(found.values())


def _beside(report: Report, at: int, reach: int) -> Iterator[int]:
    line = report.lines[at]
    for other in range(max(0, at - 4 * reach), min(len(report.lines), at + 4 * reach + 1)):
        found = report.lines[other]
        if found.file == line.file and abs(found.row - line.row) <= reach and found.role != "fence":
            yield other


def _unrepeated(report: Report, indexes: Sequence[int], roles: dict[int, Any]) -> Iterator[int]:
    """Of the many states of a progress bar, which share a line of the file, the last one only."""
    numbers = [(report.lines[at].file, report.lines[at].number) for at in indexes]
    for position, at in enumerate(indexes):
        if at in roles or position + 1 == len(indexes) or numbers[position] != numbers[position + 1]:
            yield at


def _shown(report: Report, at: int, role: str, because: str | None) -> dict[str, Any]:
    line = report.lines[at]
    if role == "context" and line.role == "frame":
        role = "frame"
    return {
        "file": report.files[line.file].name,
        "line": line.number,
        "text": line.text,
        "role": role,
        "rank": _rank(report, at) or None,
        "because": because,
    }


def _rows(report: Report) -> list[tuple[int, str]]:
    """The file and rank of each row, in order; a file whose marks name no rank has one row."""
    found: dict[int, set[str]] = {}
    for at, _ in report.marks:
        found.setdefault(report.lines[at].file, set()).add(_rank(report, at))
    return [
        (file, rank)
        for file, ranks in sorted(found.items())
        for rank in sorted(ranks - {""} or {""}, key=_natural)
    ]  # fmt: skip


def _ends(report: Report, *, is_timed: bool) -> dict[tuple[int, str], int]:
    """The last line of each rank of the judged launch, with a time stamp where there are some."""
    launches = {report.events[report.lines[at].event].launch for at, _ in report.marks}
    found: dict[tuple[int, str], int] = {}
    for event in report.events:
        if event.launch in launches and (event.time is not None or not is_timed):
            found[report.lines[event.first].file, event.rank] = event.first
    return found


def _passed(marks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [mark for number, mark in enumerate(marks) if not number or mark["stage"] != marks[number - 1]["stage"]]
    return kept[:_STAGES]


def _time(report: Report, at: int) -> float | None:
    """The time of a line on the clock of all nodes: its own, its record's, or that of the next line that has one."""
    name = report.files[report.lines[at].file].name
    ahead = next((node.skew or 0.0 for node in report.nodes if node.file == name), 0.0)
    for line in (report.lines[number] for number in range(at, min(at + _NEXT, len(report.lines)))):
        if line.file != report.lines[at].file:
            return None
        time = line.time if line.time is not None else report.events[line.event].time
        if time is not None:
            return time - ahead
    return None


def _rank(report: Report, at: int) -> str:
    return report.lines[at].rank or report.events[report.lines[at].event].rank


def _natural(rank: str) -> list[tuple[bool, int, str]]:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", rank)]
