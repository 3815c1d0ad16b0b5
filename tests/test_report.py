"""Reports keep the published schema, and the text says on one screen what matters."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from logtriage import pipeline
from logtriage.report import json_v1, screen, text
from logtriage.report.schema import ReportV1, json_schema
from tests.conftest import ROOT, Case, cases

if TYPE_CHECKING:
    from pathlib import Path

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(data: dict[str, Any], width: int, height: int) -> list[str]:
    return ["".join(piece for _, piece in row) for row in text.on_screen(data, width, height)]


def test_no_line_ends_with_blanks(story: dict[str, Any]) -> None:
    """Neither with colours nor without; where neither rank nor stage is known nothing stands behind the root line."""
    data = json.loads(json.dumps(story))
    data["verdict"]["stage"] = data["root_cause"]["rank"] = data["root_cause"]["node"] = None
    stream = io.StringIO()
    text.print_coloured(data, stream, size=(120, 60), verbose=True)
    for shown in (stream.getvalue(), text.render(data, verbose=True)):
        lines = re.sub(r"\x1b\[[\d;]*m", "", shown).split("\n")
        assert any(line.startswith("  --> ") for line in lines)
        assert [line for line in lines if line != line.rstrip()] == []


def test_colours_only_for_a_terminal(story: dict[str, Any]) -> None:
    """On a large screen the coloured report holds the same words as the plain one, and no row is longer than it."""
    stream = Terminal()
    text.print_coloured(story, stream, size=(400, 100))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "\x1b[" in stream.getvalue()
    assert [row.rstrip() for row in plain.splitlines()] == [row.rstrip() for row in text.render(story).splitlines()]


@pytest.mark.parametrize("log", [STORY, ROOT / "corpus/recorded/moe-flashinfer-trtllm/run.log"], ids=["story", "real"])
def test_what_matters_stands_on_one_small_screen(log: Path, rules: RuleSet) -> None:
    """At 24 rows of 80 columns: label, location, root line, one row of carets, the next step and the command."""
    data = json_v1.to_dict(pipeline.analyze(log, rules=rules))
    rows = shown_on(data, 80, 24)
    assert sum(max(1, -(-len(row) // 80)) for row in rows) < 24
    assert rows[0].startswith(f"{data['verdict']['label']}: ")
    assert any(row.startswith("  --> ") and f"run.log:{data['root_cause']['line']}" in row for row in rows)
    root = next(at for at, row in enumerate(rows) if row.startswith("  > "))
    assert [set(row.split("|")[-1].strip()) == {"^"} for row in rows[root + 1 : root + 3]] == [True, False]
    assert any(row.startswith("  next      change-flag: ") for row in rows)
    assert rows[-1] == "  run       " + data["advice"]["command_text"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_prose_is_folded_and_log_lines_are_cut(story: dict[str, Any], width: int) -> None:
    """No row but the command is wider than the screen; what is folded hangs in by 12 columns, and no word is lost."""
    rows = shown_on(story, width, 100)
    assert all(len(row) <= width for row in rows if not row.startswith("  run"))
    why = next(at for at, row in enumerate(rows) if row.startswith("  why"))
    end = next(at for at, row in enumerate(rows) if row.startswith("  to blame"))
    assert end - why > 1
    assert all(row.startswith(" " * 12) and row[12] != " " for row in rows[why + 1 : end])
    folded = " ".join(row.strip() for row in rows[why:end])
    assert story["verdict"]["because"] in folded


def test_the_hit_is_in_view_of_a_narrow_screen(story: dict[str, Any]) -> None:
    """Of a long root line the part with the hit is shown, and the carets stand below it."""
    root = story["root_cause"]
    long = {**root, "text": "x" * 300 + " " + root["text"], "span": [at + 301 for at in root["span"]]}
    evidence = [{**item, "text": long["text"]} if item["role"] == "root" else item for item in story["evidence"]]
    rows = shown_on({**story, "root_cause": long, "evidence": evidence}, 90, 24)
    at = next(at for at, row in enumerate(rows) if row.startswith("  > "))
    carets = rows[at + 1]
    start, end = carets.index("^"), carets.rindex("^") + 1
    assert rows[at][start:end] == root["text"][slice(*root["span"])]


def test_wide_letters_keep_the_width(story: dict[str, Any]) -> None:
    """A line of letters that take two columns each is cut and folded by columns."""
    words = "显存不足" * 60
    evidence = [{**item, "text": words} if item["role"] == "root" else item for item in story["evidence"]]
    data = {**story, "evidence": evidence, "verdict": {**story["verdict"], "because": words}}
    rows = shown_on({**data, "root_cause": {**story["root_cause"], "span": [100, 110]}}, 80, 24)
    assert all(screen.cells(row) <= 80 for row in rows if not row.startswith("  run"))
    carets = next(row for row in rows if row.rstrip().endswith("^"))
    assert carets.count("^") == 20


@pytest.mark.parametrize("name", ["zeros", "attn-flashinfer-jit"])
def test_the_file_is_always_named(name: str, rules: RuleSet) -> None:
    """A healthy and an incomplete log are named as well, with the stage that was reached."""
    log = ROOT / "corpus/recorded" / name / "run.log"
    data = json_v1.to_dict(pipeline.analyze(log, rules=rules))
    assert f"  --> {log}  {data['verdict']['stage']}" in text.render(data).splitlines()


def test_a_log_without_a_cause_shows_its_end(rules: RuleSet, tmp_path: Path) -> None:
    """What a launch did last stands in the report, where nothing else tells how far it came."""
    log = tmp_path / "run.log"
    last = "[2025-07-28 17:40:51 TP0] Load weight begin. avail mem=78.58 GB"
    log.write_text(f"[2025-07-28 17:40:44] server_args=ServerArgs(model_path='m', tp_size=1)\n{last}\n\n")
    data = json_v1.to_dict(pipeline.analyze(log, rules=rules))
    assert data["verdict"]["label"] == "incomplete"
    assert [item["line"] for item in data["evidence"]] == [1, 2]
    assert f"    2 | {last}" in text.render(data).splitlines()


def test_several_launches_are_told_first(rules: RuleSet) -> None:
    """Which launch is judged stands directly below the headline."""
    log = ROOT / "corpus/written/first-launch-served-second-offline/run.log"
    rows = text.render(json_v1.to_dict(pipeline.analyze(log, rules=rules))).splitlines()
    assert "holds 2 launches; number 2 is judged" in rows[1]


def test_nothing_is_told_twice(story: dict[str, Any]) -> None:
    """No effect is the root line or stands there twice, no other label is the label, and blame is told once."""
    root, label = story["root_cause"], story["verdict"]["label"]
    effect = {**story["explained"][-1], "rule": "another-rule"}
    itself = {**effect, "line": root["line"], "text": root["text"], "because": "it is the root line"}
    advice = {**story["advice"], "notes": ["To blame: --moe-runner-backend flashinfer_trtllm"]}
    candidate = {"label": label, "confidence": 0.4, "because": "the same label", "line": None}
    shown = text.render(
        {
            **story,
            "explained": [*story["explained"], effect, itself],
            "advice": advice,
            "verdict": {**story["verdict"], "candidates": [candidate]},
        }
    )
    assert shown.count(f"{effect['line']}: ") == 1
    assert "it is the root line" not in shown
    assert "the same label" not in shown
    assert "To blame:" not in shown


def test_ruled_out_tells_what_is_new(story: dict[str, Any]) -> None:
    """An exclusion that repeats the failure just reported is in the data only, and none stands without a reason."""
    own = [item for item in story["advice"]["ruled_out"] if item["flag"] == "--moe-runner-backend"]
    older = {"flag": "--moe-runner-backend", "value": "cutlass", "why": "", "source": "older.log"}
    assert own
    shown = text.render({**story, "advice": {**story["advice"], "ruled_out": [*own, older]}})
    assert "  ruled out --moe-runner-backend cutlass  it has failed before (older.log)" in shown.splitlines()
    assert "flashinfer_trtllm  sm100-only-kernel" not in shown


@pytest.mark.parametrize(("action", "key"), [("change-flag", "  run       "), ("fix-environment", "  or run    ")])
def test_the_command_has_a_head(story: dict[str, Any], action: str, key: str) -> None:
    """The command is the next step, or only the other way where the environment comes first."""
    rows = text.render({**story, "advice": {**story["advice"], "action": action}}).splitlines()
    assert rows[-1] == key + story["advice"]["command_text"]


def test_a_memory_flag_has_a_direction(story: dict[str, Any]) -> None:
    """Where no number is known, the change says at least whether to raise or lower the flag."""
    change = {**story["advice"]["changes"][0], "flag": "--mem-fraction-static", "from": None, "to": None}
    advice = {**story["advice"], "summary": "Lower --mem-fraction-static.", "changes": [change]}
    assert "            lower --mem-fraction-static  (" in text.render({**story, "advice": advice})


def test_nothing_in_a_report_controls_the_terminal(story: dict[str, Any]) -> None:
    """Control characters of a log or of a name come out as replacement characters, in both forms of the report."""
    evil = {**story, "notes": ["a\x1b[2Jb\rc\u202ed"], "source": {**story["source"], "files": ["x\ny.log"]}}
    shown = text.render(evil)
    assert "a\ufffd[2Jb\ufffdc\ufffdd" in shown
    assert "\x1b" not in "".join(shown_on(evil, 80, 100))
