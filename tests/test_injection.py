"""Nothing that a log, a path or a flag says is a command, markup or a control character in any form of the report.

The logs with hostile text are written for these tests.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Tree

import pytest
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from logtriage import pipeline
from logtriage.report import json_v1
from tests.conftest import ROOT
from tests.forms import FORMS, Page, forms
from tests.test_redact import KINDS, secret_of

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

STORY = ROOT / "corpus/written/story-1-sm100-only-then-killed/run.log"
SHORT = ROOT / "corpus/recorded/kv-fp4/run.log"
COMMAND = ["python3", "-m", "sglang.launch_server", "--model-path", "/models/dense", "--kv-cache-dtype", "fp4_e2m1"]

HOSTILE = {
    "workflow command": "::set-env name=PATH::/tmp/evil",
    "mask": "::add-mask::a",
    "stopped commands": "\n::stop-commands::x\r\n::error::pwned",
    "encoded line feed": "%0A::error file=x,line=1::pwned%0D%0A",
    "old command": "##[set-env name=PATH;]/tmp/evil",
    "other systems": "##vso[task.setvariable variable=a]b ##teamcity[buildStop comment='x']",
    "properties": ",line=1,title=a::b,endLine=5",
    "markdown": "](javascript:alert(1)) **bold** _it_ ~~x~~ ![i](http://evil.example/i.png) <http://evil.example>",
    "fences": "```\n~~~\n# Heading\n> quote\n- item\n1. one\n---\n| a | b |",
    "mentions": "@octocat @org/team #1 org/repo#2 &lt;b&gt; $x^2$",
    "markup": "</code></pre></details><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"' onload='",
    "templates": "{{ 7 * 7 }}{% include 'x' %}{# x #}${7*7}",
    "xml": "]]><!-- <!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;<?pi?>\x00\x0b\x0c\x1f\ufffe\uffff",
    "ansi": "\x1b[31mred\x1b[2J\x1b]8;;http://evil.example\x07link\x1b]0;title\x1b\\ \x9b31m \x90q",
    "bidi": "\u202edlrow\u2066 olleh\u2069\u200f\u061c\u2028\u2029",
    "surrogate": "\udcff\ud800",
}

FIXED = ("schema", "outcome", "decided_by", "stage", "unit", "role", "action", "retry", "status")
"""Keys whose values are words of ours."""


def hostile(value: Any, text: str, key: str = "") -> Any:
    """Report data with `text` at the end of every text and of every name of a flag or variable."""
    if isinstance(value, str):
        return value if key in FIXED else value + text
    if isinstance(value, dict):
        named = key in ("flags", "env", "resolved", "libraries")
        return {(name + text if named else name): hostile(item, text, name) for name, item in value.items()}
    return [hostile(item, text, key) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def story(rules: RuleSet) -> dict[str, Any]:
    """A report that has something in every field."""
    earlier = [pipeline.attempt(SHORT, rules)]
    options = pipeline.Options(facts={"sm": 120}, after=earlier)
    data = json_v1.to_dict(pipeline.analyze(STORY, rules=rules, options=options), detailed=True, earlier=earlier)
    data["verdict"]["candidates"] = [{"label": "oom-gpu", "confidence": 0.1, "because": "it may be", "line": 3}]
    data["unexplained"] = [{**data["explained"][0], "because": None}]
    data["baseline"] = {"file": "last.json", "status": "new", "label": "oom-gpu", "because": "A new failure."}
    data["launch"]["gpu"] = {"name": "NVIDIA RTX", "sm": None, "count": 8}
    data["launch"]["libraries"] = {"torch": "2.9"}
    data["notes"] = ["run.log holds 2 launches; number 2 is judged", "a note"]
    return data


_RENDERED: dict[str, dict[str, str]] = {}


def rendered(story: dict[str, Any], text: str) -> dict[str, str]:
    """All forms of the report with a text in every field."""
    if text not in _RENDERED:
        _RENDERED[text] = forms(hostile(story, text))
    return _RENDERED[text]


def commands(shown: str) -> list[str]:
    """The lines that GitHub's runner, Azure's agent or TeamCity would carry out."""
    return [line for line in shown.splitlines() if line.lstrip().startswith("::") or re.search(r"##\w*\[", line)]


def controls(shown: str) -> list[str]:
    """What steers a terminal, turns the direction of text, or is no character at all."""
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_in_every_field_is_inert(story: dict[str, Any], form: str, kind: str) -> None:
    """With hostile text in every field, a form has the structure it has with harmless text, and shows the text."""
    shown, plain = (rendered(story, text)[form] for text in (HOSTILE[kind], " harmless"))
    assert controls(shown) == []
    assert len(commands(shown)) == (1 if form == "github" else 0)
    CHECKS[form](shown, plain, HOSTILE[kind])


def _text(shown: str, plain: str, text: str) -> None:
    assert "�" in shown or text in shown


def _json(shown: str, plain: str, text: str) -> None:
    data, other = json.loads(shown), json.loads(plain)
    found, expected = data["root_cause"]["text"], other["root_cause"]["text"].removesuffix(" harmless")
    assert found == expected + re.sub(r"[\ud800-\udfff]", "\ufffd", text)
    assert list(data) == list(other)


def _github(shown: str, plain: str, text: str) -> None:
    """Read back as the runner reads it: one line, one command, three properties, our level."""
    command = re.fullmatch(r"::(\w+) ([^:\r\n]*)::([^\r\n]*)\n", shown)
    assert command
    assert command[1] == "error"
    assert [part.partition("=")[0] for part in command[2].split(",")] == ["file", "line", "title"]
    message = command[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
    other = plain.rpartition("::")[2].replace("%0A", "\n")
    if "\n" not in text:
        assert message.count("\n") == other.count("\n") - 1


def _xml(shown: str, plain: str, text: str) -> None:
    (suite,) = JUnitXml.fromstring(shown)
    (case,) = suite
    trees = [Tree.fromstring(text) for text in (shown, plain)]  # noqa: S314 - that it does no harm is what is tested
    assert [element.tag for element in trees[0].iter()] == [element.tag for element in trees[1].iter()]
    assert case.result[0].type
    if text.isprintable() and text.isascii():
        assert text in case.result[0].message or "##" in text


def _markdown(shown: str, plain: str, text: str) -> None:
    renderer = MarkdownIt("commonmark")
    page, other = Page(renderer.render(shown)), Page(renderer.render(plain))
    assert page.elements == other.elements
    if text.isprintable() and text.isascii():
        assert text in page.text.replace("\u200b", "")


def _html(shown: str, plain: str, text: str) -> None:
    page, other = Page(shown), Page(plain)
    assert page.elements == other.elements
    assert [element[0] for element in page.elements].count("script") == 1
    if text.isprintable() and text.isascii():
        assert text in page.text


CHECKS = {"text": _text, "json": _json, "github": _github, "summary": _markdown, "junit": _xml,
          "markdown": _markdown, "html": _html}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind, text in HOSTILE.items() if "\x00" not in text])
def test_hostile_log_path_and_flag(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The same through the real command in a job: in lines of the log, its name, the command and a name of a file."""
    text = (
        HOSTILE[kind].encode("utf-8", "surrogateescape" if kind != "surrogate" else "replace").decode(errors="replace")
    )
    name = text.replace("/", "_")[:60] + ".log"
    lines = SHORT.read_text().splitlines()
    lines[28] += text.replace("\n", " ")
    (tmp_path / name).write_text("\n".join([*lines[:28], text, *lines[28:], text]))
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = {"junit": "r.xml", "markdown": "r.md", "html": "r.html", "json": "r.json", "text": "r.txt"}
    words = [word for form, path in files.items() for word in ("--format", f"{form}={path}")]
    done = run("analyze", name, *words, "--format", "github", "--", *COMMAND, "--served-model-name", text)
    assert done.returncode == 1
    assert len(commands(done.stdout)) == 1 == len(done.stdout.splitlines())
    assert commands(done.stderr) == []
    for path in ("summary.md", *files.values()):
        shown = (tmp_path / path).read_text()
        assert controls(shown) == []
        if path != "r.txt":
            assert commands(shown) == []
    printed = run("analyze", name, "--", *COMMAND, "--served-model-name", text)
    assert commands(printed.stdout) == []
    assert JUnitXml.fromfile(str(tmp_path / "r.xml"))
    assert json.loads((tmp_path / "r.json").read_text())["verdict"]["label"] == "unsupported-config"
    missing = run("analyze", f"no{name}")
    assert missing.returncode == 2
    assert commands(missing.stderr) == controls(missing.stderr) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["kind"])
def test_secrets_are_gone_from_every_form(rules: RuleSet, kind: dict[str, Any]) -> None:
    """Secrets of each kind beside the root line, behind it, at the end and in the command stand in no form."""
    lines = SHORT.read_text().splitlines()
    planted = [f"load: {example}" for example in kind["example"]]
    text = "\n".join([*lines[:27], *planted, *lines[27:29], *planted, *lines[29:], *kind["example"]])
    options = pipeline.Options(
        command=[*COMMAND, *kind["example"]], after=[pipeline.attempt(SHORT, rules)]
    )  # fmt: skip
    report = pipeline.analyze(text.encode(), rules=rules, options=options)
    data = json_v1.to_dict(report, detailed=True, earlier=options.after)
    assert data["root_cause"]["text"] == lines[28]
    assert "<redacted:" in json.dumps(data["excerpt"])
    least = 16 if kind["kind"] == "private-key" else 4  # the words of a BEGIN line are no secret
    words = [word for example in kind["example"] for word in secret_of(example) if len(word) >= least]
    assert words
    for form, shown in forms(data).items():
        assert [word for word in words if word in shown or escape(word) in shown] == [], form
