"""What a server's answers are worth: real requests to a real process that behaves in one of many ways."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.runner import asking, client, prompts, smoke
from tests.conftest import ROOT
from tests.fake_http import serving

if TYPE_CHECKING:
    from pathlib import Path

SANE = {  # behaviour → what is noted
    "sane": "",
    "tiny": "none of 9 known answers",
    "base": "since as a chat",
    "small-looper": "loops at temperature 0 and not at 0.7",
    "refuses": "none of 9 known answers",
    "thinks": "",
    "thinks-apart": "",
    "cut-in-thought": "still thinking",
    "undecided": "two answers at temperature 0 differ",
    "short": "days-of-the-week",
    "no-logprobs": "",
    "plain-500": "without logprobs",
    "one-empty": "hello-in-german",
}
GARBAGE = {
    "flat": "flat-logprobs",
    "null": "nan-logprobs",
    "nan-500": "nan-logprobs",
    "empty": "empty",
    "loops": "loop",
    "late-loop": "late-loop",
    "collapses": "character-run",
    "replacement": "not-text",
    "salad": "word-salad",
    "mixed-salad": "mixed-alphabets",
    "bad-under-load": "character-run",
    "loops-under-load": "loop",
    "wrong-under-load": "wrong-under-load",
}
HEALTHY_LOG = ROOT / "corpus" / "recorded" / "parrot-moe" / "run.log"


@pytest.mark.parametrize("behaviour", SANE)
def test_sane_servers_pass(behaviour: str) -> None:
    """Tiny, base and thinking models, refusals, wrong, differing and lone empty answers are notes and no garbage."""
    with serving(behaviour) as url:
        result = smoke.run(url)
    assert (result.passed, result.finding, result.label) == (True, None, "healthy"), result.because
    assert {row.phase for row in result.answers} >= {"alone", "again", "parallel"}
    assert SANE[behaviour] in " ".join(result.notes)
    assert bool(SANE[behaviour]) == bool(result.notes)
    assert pipeline.analyze(HEALTHY_LOG, options=pipeline.Options(responses=result.bodies)).verdict.label == "healthy"


@pytest.mark.parametrize("behaviour", GARBAGE)
def test_garbage_is_found_and_told_apart(behaviour: str) -> None:
    """Whatever way a healthy server answers garbage, it fails, and the kind says how."""
    with serving(behaviour) as url:
        result = smoke.run(url)
    assert not result.passed
    assert result.finding is not None
    assert (result.finding.kind, result.label) == (GARBAGE[behaviour], "degenerate-output")
    assert ("alone it is sane" in result.because) == (behaviour in ("bad-under-load", "loops-under-load"))
    options = pipeline.Options(responses=result.bodies, finding=result.finding)
    report = pipeline.analyze(HEALTHY_LOG, options=options)
    assert (report.verdict.label, report.verdict.decided_by) == ("degenerate-output", "response")


def test_what_is_asked() -> None:
    """Several languages, one answer of 300 tokens or more, one prompt twice, eight and more at once, with logprobs."""
    with serving("sane") as url:
        result = smoke.run(url)
    alone = [row for row in result.answers if row.phase == "alone"]
    assert {row.asked.prompt.language for row in alone} >= {"English", "German", "Chinese", "Japanese", "Arabic"}
    assert max(row.told.tokens or 0 for row in alone) >= 300
    assert sum(1 for row in result.answers if row.phase == "parallel") >= 8
    assert all(row.told.whole and row.told.whole.logprobs for row in result.answers)
    assert result.notes == ()


@pytest.mark.parametrize(
    ("behaviour", "label", "because"),
    [
        ("warming", "incomplete", "503"),
        ("html", None, "text/html"),
        ("goes-away", "unknown", "capital-of-france"),
        ("hangs", "unknown", "within 1 s"),
    ],
)
def test_a_server_that_does_not_answer(behaviour: str, label: str | None, because: str, tmp_path: Path) -> None:
    """It fails without a finding, in bounded time, and the reason says what happened."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("limits: {answer_s: 1, total_s: 5}\nprompts: [{id: capital-of-france, ask: hi}]\n")
    with serving(behaviour) as url:
        result = smoke.run(url, prompts=mine)
    assert (result.passed, result.finding, result.label) == (False, None, label)
    assert because in result.because


def test_the_whole_test_is_bounded(tmp_path: Path) -> None:
    """A server that takes for ever over each answer ends at the limit for all."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("limits: {answer_s: 600, total_s: 0.5}\nprompts: [{ask: hi}]\n")
    with serving("hangs") as url:
        result = smoke.run(url, prompts=mine)
    assert "0.5 s" in result.because


def test_a_stop_ends_it_at_once() -> None:
    """Whoever drives the test can end it while an answer is awaited."""
    asked = threading.Event()
    with serving("hangs") as url:
        timer = threading.Timer(0.5, asked.set)
        timer.start()
        result = smoke.run(url, stop=asked.is_set)
        timer.join()
    assert (result.passed, result.label, result.because) == (False, "incomplete", "stopped before the end")


def test_an_embedding_model_is_not_asked() -> None:
    """There is nothing to judge, and nothing failed."""
    with serving("embeds") as url:
        result = smoke.run(url)
    assert (result.passed, result.answers) == (True, ())


def test_a_server_without_a_tokenizer_is_not_judged() -> None:
    """It takes token ids only, and says so itself; one that just refuses everything fails."""
    with serving("no-tokenizer") as url:
        result = smoke.run(url)
    assert (result.passed, result.answers) == (True, ())
    assert "without a tokenizer" in result.because
    with serving("refuses-all") as url:
        result = smoke.run(url)
    assert (result.passed, result.label) == (False, "unknown")
    assert "not initialised" in result.because


def test_own_prompts(tmp_path: Path) -> None:
    """A user's prompt is asked first; a miss fails with its own reason, in a file that may leave out the others."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("builtin: false\nprompts: [{ask: What is the capital of France?, expect: '\\bparis\\b'}]\n")
    with serving("thinks") as url:
        result = smoke.run(url, prompts=mine)
        assert result.passed
        assert {row.asked.name for row in result.answers} == {"prompt-1"}
        mine.write_text("prompts: [{id: mayor, ask: What is the capital of France?, expect: '^Lyon'}]\n")
        result = smoke.run(url, prompts=mine)
    assert not result.passed
    assert result.finding is not None
    assert result.finding.kind == "unexpected-answer"
    assert "mayor" in result.because
    assert "'^Lyon' is not in 'The capital of France is Paris.'" in result.because
    assert len({row.asked.name for row in result.answers}) > 8


def test_a_thought_is_no_answer_to_a_users_prompt(tmp_path: Path) -> None:
    """What is expected must stand in the answer itself."""
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"builtin": False, "prompts": [{"ask": "capital of France", "expect": "That is easy"}]}))
    with serving("thinks") as url:
        assert not smoke.run(url, prompts=mine).passed


def test_the_example_in_the_documentation(tmp_path: Path) -> None:
    """It is a file of prompts as it stands."""
    text = (ROOT / "docs" / "runner.md").read_text(encoding="utf-8")
    mine = tmp_path / "mine.yaml"
    mine.write_text(text.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    (one, *others) = prompts.load(mine).asked
    assert (one.name, one.required, len(others)) == ("our-mayor", True, 10)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("prompts: []", "mine.yaml:1: prompts:"),
        (
            "prompts:\n  - ask: hi\n    expect: '('",
            "mine.yaml:3: prompts.0.expect: Value error, is no regular expression",
        ),
        ("prompts:\n  - ask: hi\n    expct: x", "mine.yaml:3: prompts.0.expct"),
        ("prompts:\n  - {ask: hi}\n  - {expect: x}", "mine.yaml:3: prompts.1.ask: Field required"),
        ("prompts: [", ": not valid YAML"),
        ("", "mine.yaml:1:"),
        (None, "mine.yaml:1: cannot be read"),
    ],
)
def test_faults_in_a_file_of_prompts(text: str | None, fault: str, tmp_path: Path) -> None:
    """Each is named with its file and line, with an example of what is right, before anything is asked."""
    mine = tmp_path / "mine.yaml"
    if text is not None:
        mine.write_text(text)
    with pytest.raises(InputError) as caught:
        prompts.load(mine)
    assert fault in str(caught.value)
    assert "looks like this" in str(caught.value)


def test_a_hostile_expression_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backtracking without an end counts as a miss."""
    monkeypatch.setattr("logtriage.runner.findings._PATIENCE_S", 0.2)
    mine = tmp_path / "mine.yaml"
    mine.write_text("builtin: false\nprompts: [{ask: lighthouse, expect: '([a-z ,.]+)+(?=#)x'}]\n")
    with serving("sane") as url:
        assert not smoke.run(url, prompts=mine).passed


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ("sane", 0, "healthy: 21 answers"),
        ("flat", 1, "degenerate-output: capital-of-france"),
        ("warming", 4, "incomplete: not ready yet"),
        ("goes-away", 3, "unknown:"),
    ],
)
def test_the_command(run: Any, behaviour: str, code: int, words: str) -> None:
    """The exit code follows the label, and every answer is shown."""
    with serving(behaviour) as url:
        done = run("smoke", url)
    assert (done.returncode, done.stderr) == (code, "")
    assert words in done.stdout.splitlines()[0]
    assert ("Paris" in done.stdout) == (behaviour == "sane")


def test_the_command_without_a_server(run: Any, tmp_path: Path) -> None:
    """Nothing there, no URL, a broken file of prompts, a key that is not set: exit code 2 and one message."""
    (tmp_path / "bad.yaml").write_text("prompts: 7")
    with serving("html") as url:
        calls = [(url,), ("ftp://x",), (url, "--prompts", "bad.yaml"), (url, "--api-key-env", "NOT_SET")]
        done = [run("smoke", *words) for words in calls]
    for one, words in zip(done, ["text/html", "ftp://x", "bad.yaml:1", "NOT_SET"], strict=True):
        assert (one.returncode, one.stdout) == (2, "")
        assert words in one.stderr


def test_the_command_as_json(run: Any) -> None:
    """All answers with their worth; what looks like a secret is taken out."""
    with serving("leaks") as url:
        done = run("smoke", url, "--format", "json")
    assert "hf_" not in done.stdout
    data = json.loads(done.stdout)
    assert (data["schema"], data["label"], data["passed"]) == ("logtriage/smoke/v1", "healthy", True)
    paris = next(row for row in data["answers"] if row["prompt"] == "capital-of-france")
    assert "<redacted:" in paris["text"]
    assert (paris["as_expected"], paris["finding"]) == (True, None)


@pytest.mark.parametrize(
    "choice",
    ["null", '{"message": null}', '{"message": {}}', '{"message": {"content": {"text": "Paris"}}}', '{"text": 3}'],
)
def test_an_answer_of_another_shape_is_none(choice: str) -> None:
    """What holds no text is no garbled text: the server does not answer."""
    reply = client.Reply(200, "application/json", f'{{"choices": [{choice}]}}'.encode(), 0.1)
    told = asking._told(reply, asking.Form())
    assert isinstance(told, asking.Refused)
    assert told.kind == "no-answer"


def test_an_answer_that_is_all_thought_is_one() -> None:
    """A model that was cut while it thought has no content yet."""
    body = b'{"choices": [{"message": {"content": null, "reasoning_content": "Let me see."}}]}'
    assert isinstance(asking._told(client.Reply(200, "application/json", body, 0.1), asking.Form()), asking.Told)
