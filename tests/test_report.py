"""Reports keep the published schema, and the text says on one screen what matters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from logtriage import pipeline
from logtriage.report import json_v1, text
from logtriage.report.schema import ReportV1, json_schema
from tests.conftest import ROOT, Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

STORY = ROOT / "corpus/written/story-1-sm100-only-then-killed/run.log"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.folder.name)
def test_every_report_keeps_the_schema(case: Case, rules: RuleSet) -> None:
    """The report of every corpus log validates, has no unplanned key, is short as text, and is the same each time."""
    data = json_v1.to_dict(pipeline.analyze(case.log, rules=rules))
    jsonschema.validate(json.loads(json_v1.dumps(data)), json_schema())
    ReportV1.model_validate(data)
    assert len(text.render(data).splitlines()) <= 45
    assert json_v1.dumps(json_v1.to_dict(pipeline.analyze(case.log, rules=rules))) == json_v1.dumps(data)


@pytest.fixture(scope="module")
def story(rules: RuleSet) -> dict[str, Any]:
    return json_v1.to_dict(pipeline.analyze(STORY, rules=rules))


def test_the_root_line_is_the_line_of_the_file(story: dict[str, Any]) -> None:
    """Line number, byte offset and text agree with the file as stored."""
    root = story["root_cause"]
    stored = STORY.read_bytes()
    assert stored.split(b"\n")[root["line"] - 1].decode() == root["text"]
    assert stored[root["byte"] :].startswith(root["text"].encode())
    assert root["rank"] == "TP0"
    assert root["facts"]["accepted"] == "[10]"


def test_text_report_of_the_story(story: dict[str, Any]) -> None:
    """Label, line with underline, blame, effects and the next step stand in the text report."""
    shown = text.render(story)
    rows = shown.splitlines()
    assert rows[0].startswith("sm100-only-kernel: ")
    marked = next(i for i, row in enumerate(rows) if row.lstrip().startswith("> "))
    assert "major versions [10]" in rows[marked]
    assert set(rows[marked + 1].split("|")[1].strip()) == {"^"}
    assert "--moe-runner-backend flashinfer_trtllm" in shown
    assert "Killed" in shown
    assert "and 6 more" in shown


def test_colours_only_for_a_terminal(story: dict[str, Any]) -> None:
    """The coloured report holds the same words as the plain one."""
    import io
    import re

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    text.print_coloured(story, stream)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert [row.rstrip() for row in plain.splitlines()] == [row.rstrip() for row in text.render(story).splitlines()]
