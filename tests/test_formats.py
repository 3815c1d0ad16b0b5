"""Every form of the report is read back by a reader of its own, and goes where the command line says."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Properties, Skipped
from markdown_it import MarkdownIt

from logtriage import pipeline
from logtriage.report import github, json_v1, markdown
from logtriage.report.schema import ReportV1, json_schema
from tests.conftest import ROOT, cases

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

RECORDED = ROOT / "corpus" / "recorded"
FAILED, HEALTHY = RECORDED / "kv-fp4/run.log", RECORDED / "parrot-moe/run.log"
INCOMPLETE = RECORDED / "moe-triton-ok-2/run.log"
STORY = ROOT / "corpus/written/story-1-sm100-only-then-killed/run.log"
SOME = cases()[::9]


def report(rules: RuleSet, log: Path = STORY) -> dict[str, Any]:
    return json_v1.to_dict(pipeline.analyze(log, rules=rules), detailed=True)


class Words(HTMLParser):
    """The text of a page, and its elements in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags = "", []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.folder.name)
def test_a_detailed_report_keeps_the_schema(case: Any, rules: RuleSet) -> None:
    """The log around the cause, the stages and the attempts are in the schema, too; times never run backwards."""
    data = report(rules, case.log)
    jsonschema.validate(json.loads(json_v1.dumps(data)), json_schema())
    ReportV1.model_validate(data)
    assert data["excerpt"] or not case.log.read_bytes().strip()
    if data["root_cause"]:
        assert [line["line"] for line in data["excerpt"] if line["role"] == "root"] == [data["root_cause"]["line"]]
    for row in (data["timeline"] or {"rows": []})["rows"]:
        places = [stage["at"] for stage in row["stages"]] + [row["end"]]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("log", "kind"), [(FAILED, Failure), (HEALTHY, None), (INCOMPLETE, Error)], ids=["failed", "healthy", "incomplete"]
)
def test_junit_is_read_by_a_junit_parser(run: Any, tmp_path: Path, log: Path, kind: type | None) -> None:
    """A launch is a case: it fails with the label and the root line, passes, or has not come to an end."""
    run("analyze", str(log), "--format", "junit", "--output", "r.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "r.xml"))
    (case,) = suite
    assert case.name == str(log)
    assert [type(result) for result in case.result] == ([kind] if kind else [])
    assert (suite.tests, suite.failures, suite.errors) == (1, int(kind is Failure), int(kind is Error))
    facts = {fact.name: fact.value for fact in case.child(Properties)}
    assert facts["label"] in {"unsupported-config", "healthy", "incomplete"}
    if kind is Failure:
        assert case.result[0].type == "unsupported-config"
        assert "fp4_e2m1 is deprecated" in case.result[0].message
        assert f"--> {log}:29" in case.result[0].text


def test_a_failure_that_is_not_known_is_an_error_in_junit(run: Any, tmp_path: Path) -> None:
    """A launch that failed for no known reason is in error, as one is that is no launch at all."""
    (tmp_path / "a.log").write_text(
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\n"
        "Traceback (most recent call last):\nQuuxError: frobnicated\n"
    )
    (tmp_path / "b.log").write_text("hello\n")
    run("analyze", "--separate", "a.log", "b.log", "--format", "junit=r.xml", "--format", "json=r.json")
    verdicts = [json.loads(line)["verdict"] for line in (tmp_path / "r.json").read_text().splitlines()]
    assert [(verdict["label"], verdict["outcome"]) for verdict in verdicts] == [
        ("unknown", "failed"), ("unknown", "unknown"),
    ]  # fmt: skip
    (suite,) = JUnitXml.fromfile(str(tmp_path / "r.xml"))
    assert [[type(result) for result in case.result] for case in suite] == [[Error], [Error]]
    assert (suite.failures, suite.errors) == (0, 2)


def test_junit_of_several_launches_agrees_with_fail_on(run: Any, tmp_path: Path) -> None:
    """Each launch is a case, and one that --fail-on does not count is skipped."""
    words = ("analyze", "--separate", str(FAILED), str(HEALTHY), "--format", "junit=r.xml", "--fail-on", "oom-host")
    assert run(*words).returncode == 0
    (suite,) = JUnitXml.fromfile(str(tmp_path / "r.xml"))
    assert [[type(result) for result in case.result] for case in suite] == [[Skipped], []]
    assert (suite.tests, suite.failures, suite.skipped) == (2, 0, 1)


def test_markdown_is_read_by_a_commonmark_renderer(rules: RuleSet) -> None:
    """Headline, root line, advice and the command come out as text, with the evidence in elements that fold."""
    data = report(rules)
    page = Words(MarkdownIt("commonmark").render(markdown.render([data])))
    for said in (
        "sm100-only-kernel: Kernel built for SM100 only",
        data["root_cause"]["text"],
        f"{data['root_cause']['file']}:{data['root_cause']['line']}",
        data["verdict"]["because"],
        data["advice"]["command_text"],
        "> 125 | RuntimeError",
        "* 375 | ./launch.sh: line 14: 48326 Killed",
    ):
        assert said in page.text
    assert page.tags.count("details") == page.tags.count("summary") == 3
    assert page.tags.count("h3") == 1
    assert page.tags.count("strong") == 3
    assert set(page.tags) <= {"h3", "p", "pre", "code", "ul", "li", "strong", "details", "summary", "sub"}


def test_the_summary_keeps_githubs_limit(rules: RuleSet) -> None:
    """Where little room is left the summary does without evidence, then without itself, and says so."""
    data = report(rules)
    whole = github.summary([data])
    brief = github.summary([data], github.LIMIT - len(whole.encode()) + 1)
    assert len(brief) < len(whole)
    assert "sm100" in brief
    assert "<details>" not in brief
    assert "is left out" in github.summary([data], github.LIMIT - 200)
    assert github.summary([data], github.LIMIT) == ""


def test_one_annotation_and_a_summary(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a job of GitHub Actions there is one command with cause, place and fix; the rest is added to the summary."""
    summary = tmp_path / "summary.md"
    summary.write_text("# Earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = run("analyze", str(FAILED), "--format", "github")
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"::error file={FAILED},line=29,title=unsupported-config%3A ")
    assert "%0ANext: Use --kv-cache-dtype fp4_mx_block16" in line
    assert summary.read_text().startswith("# Earlier\n\n### ")
    assert "--kv-cache-dtype fp4_mx_block16" in Words(MarkdownIt("commonmark").render(summary.read_text())).text


def test_without_a_summary_nothing_is_lost(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no summary, or it cannot be written, the text report follows the annotation."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert "  --> " in run("analyze", str(FAILED), "--format", "github").stdout
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/nonexistent/summary.md")
    done = run("analyze", str(FAILED), "--format", "github")
    assert "  --> " in done.stdout
    assert "/nonexistent/summary.md: cannot be written" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(("log", "level"), [(FAILED, "error"), (HEALTHY, "notice"), (INCOMPLETE, "warning")])
def test_the_level_follows_the_outcome(rules: RuleSet, log: Path, level: str) -> None:
    """A failure is an error, what is not known a warning, a healthy launch a notice; what does not count only warns."""
    assert github.annotation(report(rules, log)).startswith(f"::{level} ")
    assert github.annotation(report(rules, FAILED), counts=False).startswith("::warning ")


def test_several_forms_in_one_run(run: Any, tmp_path: Path) -> None:
    """Each form goes to its file, the one without to standard output; --output takes the form from the suffix."""
    words = ("--format", "html=a.html", "--format", "junit=b.xml", "--format", "markdown=c.md", "--format", "json")
    done = run("analyze", str(FAILED), *words)
    assert json.loads(done.stdout)["verdict"]["label"] == "unsupported-config"
    assert [(tmp_path / name).read_text()[:9] for name in ("a.html", "b.xml", "c.md")] == [
        "<!doctype", "<?xml ver", "### ❌ <co",
    ]  # fmt: skip
    run("analyze", str(FAILED), "--output", "d.html", "--format", "github=e.txt")
    assert (tmp_path / "d.html").read_text() == (tmp_path / "a.html").read_text()
    assert (tmp_path / "e.txt").read_text().startswith("::error ")
    run("analyze", str(FAILED), "--format", "json", "--output", "f")
    assert (tmp_path / "f").read_text() == done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "pdf"], "'pdf' is none of text, json, github"),
        (["--format", "html="], "'html=' is none of"),
        (["--format", "html", "--format", "json"], "html and json cannot share standard output"),
        (["--format", "github", "--output", "r.html"], "write --format github --format html=r.html"),
        (["--format", "html=r", "--format", "json=./r"], "would go to one file"),
        (["--fail-on", "new"], "new needs a --baseline"),
        (["--fail-on", "faild"], "Outcomes (failed, degenerate"),
        (["--baseline", "missing.json"], "missing.json: cannot be read"),
        (["--baseline", str(FAILED)], "is no report; --baseline takes what"),
        (["--format", f"html={FAILED}"], "is one of the files that are read"),
    ],
)
def test_what_cannot_be_meant_is_said(run: Any, words: list[str], message: str) -> None:
    """Exit code 2, and what is valid."""
    before = FAILED.read_bytes()
    done = run("analyze", str(FAILED), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in re.sub(r"\s+", " ", done.stderr)
    assert FAILED.read_bytes() == before


@pytest.mark.parametrize(
    ("log", "names", "code"),
    [
        (FAILED, "failed", 1),
        (FAILED, "degenerate,unknown", 0),
        (INCOMPLETE, "incomplete,failed", 1),
        (INCOMPLETE, "failed", 0),
        (HEALTHY, "failed", 0),
    ],
)
def test_fail_on_takes_outcomes(run: Any, log: Path, names: str, code: int) -> None:
    """--fail-on knows the outcomes beside the labels."""
    assert run("analyze", str(log), "--fail-on", names).returncode == code


def _moved(text: str) -> str:
    """The same failure an hour later on another machine."""
    return text.replace("12:1", "13:4").replace("/opt/sglang/site-packages", "/usr/lib/python3/dist-packages")


def test_the_same_failure_and_a_new_one(run: Any, tmp_path: Path) -> None:
    """--baseline tells the same failure with other times and paths from a new one, and what is mended."""
    (tmp_path / "again.log").write_text(_moved(FAILED.read_text()))
    run("analyze", str(FAILED), "--format", "json", "--output", "last.json")
    for log, status, code in [("again.log", "same", 0), (str(STORY), "new", 1), (str(HEALTHY), "fixed", 0)]:
        words = ("analyze", log, "--baseline", "last.json", "--fail-on", "new")
        done = run(*words, "--format", "json")
        compared = json.loads(done.stdout)["baseline"]
        assert (compared["status"], compared["label"], done.returncode) == (status, "unsupported-config", code)
        jsonschema.validate(json.loads(done.stdout), json_schema())
        assert compared["because"] in run(*words).stdout
    run("analyze", str(HEALTHY), "--format", "json", "--output", "last.json")
    done = run("analyze", str(FAILED), "--baseline", "last.json", "--format", "json", "--output", "last.json")
    assert done.returncode == 1
    assert json.loads((tmp_path / "last.json").read_text())["baseline"]["status"] == "new"


def test_a_baseline_of_several_launches(run: Any, tmp_path: Path) -> None:
    """Of the reports of several logs that of the same log counts."""
    done = run("analyze", "--separate", str(HEALTHY), str(FAILED), "--format", "json")
    (tmp_path / "last.json").write_text(done.stdout)
    for log, status in [(FAILED, "same"), (HEALTHY, "none")]:
        shown = json.loads(run("analyze", str(log), "--baseline", "last.json", "--format", "json").stdout)
        assert shown["baseline"]["status"] == status


def test_detail_is_only_in_what_shows_it(run: Any) -> None:
    """JSON has the log around the cause and the stages with --verbose only, so that a plain report stays small."""
    assert "excerpt" not in json.loads(run("analyze", str(FAILED), "--format", "json").stdout)
    assert json.loads(run("analyze", str(FAILED), "--format", "json", "--verbose").stdout)["timeline"]["rows"]


def test_the_readme_shows_the_reports_as_they_are() -> None:
    """The reports in the README are what the command prints now: `python tools/readme_reports.py` writes them."""
    tool = runpy.run_path(str(ROOT / "tools/readme_reports.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "ValueError: TRTLLM MHA backend" in text
    assert tool["filled"](text) == text


def test_the_page_shows_what_a_ledger_remembers(run: Any, tmp_path: Path) -> None:
    """With --ledger each value of a blamed flag stands there with the launches that had it."""
    for number, log in enumerate((RECORDED / "attn-trtllm-mha/run.log", HEALTHY), 1):
        shutil.copy(log, tmp_path / f"{number}.log")
        os.utime(tmp_path / f"{number}.log", (number, number))  # a log that is added is as old as its file
        assert run("ledger", "add", f"{number}.log", "--ledger", "tried.sqlite").returncode == 0
    run("analyze", str(RECORDED / "attn-fa3/run.log"), "--ledger", "tried.sqlite", "--output", "r.html")
    page = Words((tmp_path / "r.html").read_text())
    table = " ".join(page.text.partition("What has been tried")[2].split())
    assert "trtllm_mha1 · sm100-only-kernel" in table
    assert "fa33 · missing-dependency" in table
    assert "2: 2.log" in table
    assert page.tags.count("table") >= 1
