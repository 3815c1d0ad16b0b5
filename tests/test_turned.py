"""A log means the same where a terminal broke its lines, and newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from logtriage.intake import printed
from tests.wrapping import (
    FAILED,
    WRAPPERS,
    data_of,
    lines_of,
    root_of,
)

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from tests.conftest import Case


def _printed(case: Case) -> list[str]:
    """The lines as a terminal shows them."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in lines_of(case)]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", FAILED[:-1], ids=lambda case: case.folder.name)
def test_lines_that_a_terminal_broke(case: Case, rules: RuleSet, width: int) -> None:
    """Phrases cut at the edge of a terminal are whole again; the line number is that of the first part."""
    broken, numbers = [], {}
    for number, line in enumerate(_printed(case), start=1):
        numbers[number] = len(broken) + 1
        broken += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(data_of(broken), rules=rules)
    assert report.label == bare.label
    assert root_of(report) == (numbers[root_of(bare)[0]], root_of(bare)[1])
    assert f"broke at {width} columns" in report.notes[0]


def test_full_lines_alone_are_not_joined(rules: RuleSet) -> None:
    """Some lines of a terminal's width prove nothing where others are wider, or where there are few."""
    for lines in (["1234" * 20] * 3 + ["y"], ["1234" * 20] * 30 + ["y" * 81], ["=" * 80] * 30):
        assert len(pipeline.analyze(data_of(lines), rules=rules).lines) == len(lines)


@pytest.mark.parametrize("name", ["docker-time", "docker-json", "github", "cri"])
@pytest.mark.parametrize("case", [c for c in FAILED if len(lines_of(c)) > 25], ids=lambda case: case.folder.name)
def test_newest_first(case: Case, rules: RuleSet, name: str) -> None:
    """An export that begins with the newest line is read from its end; numbers are those of the file."""
    lines = [line.rpartition("\r")[2] for line in lines_of(case)]
    if name == "docker-json":
        stamps = [stamped.split("Z")[0] for stamped in WRAPPERS["docker-time"](lines)]
        wrapped = [
            json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"{stamp}Z"})
            for line, stamp in zip(lines, stamps, strict=True)
        ]
    else:
        wrapped = WRAPPERS[name](lines)
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(data_of(wrapped[::-1]), rules=rules)
    assert "newest first" in report.notes[0]
    assert report.label == bare.label
    assert root_of(report)[0] == len(lines) + 1 - root_of(bare)[0]
    assert root_of(report)[1].endswith(root_of(bare)[1])


def test_newest_record_first_with_upright_tracebacks(rules: RuleSet) -> None:
    """Where the lines of a record stand in their order, only the records are turned around."""
    record = "[2026-01-01 10:00:0{} TP0] {}"
    trace = ["Traceback (most recent call last):", '  File "/a/x.py", line 3, in f', "    f()", "RuntimeError: odd"]
    lines = [record.format(9, "end"), record.format(8, f"Scheduler hit an exception: {trace[0]}"), *trace[1:]]
    lines += [record.format(second, "x") for second in range(7, 0, -1)]
    report = pipeline.analyze(data_of(lines), rules=rules)
    assert [line.number for line in report.lines] == [12, 11, 10, 9, 8, 7, 6, 2, 3, 4, 5, 1]
    assert [line.role for line in report.lines][7:11] == ["head", "frame", "source", "exception"]


def test_a_huge_newest_first_log_is_not_turned(monkeypatch: pytest.MonkeyPatch, rules: RuleSet) -> None:
    """Above the limit a note tells what to do."""
    monkeypatch.setattr(printed, "MAX_REVERSED", 100)
    lines = [f"[2026-01-01 10:00:{second:02d}] x" for second in range(50, 0, -1)]
    report = pipeline.analyze(data_of(lines), rules=rules)
    assert "sort it by time" in report.notes[0]
    assert [line.number for line in report.lines] == list(range(1, 51))


# Files
