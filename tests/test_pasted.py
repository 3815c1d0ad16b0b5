"""Answers that somebody pasted into a log as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

LOOP = "The capital is Paris. " * 14
SERVED = '[2026-01-01 10:05:01] INFO:     127.0.0.1:60014 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
HEALTHY = "[2026-01-01 10:05:00] The server is fired up and ready to roll!"


@pytest.mark.parametrize(
    "pasted",
    [
        [">>> print(r.choices[0].message.content)", LOOP],
        [f'output: "{LOOP}"'],
        ["输出:", "", LOOP],
        ["Answer:", "", "```", LOOP, "```"],
        [">>> r.choices[0].message.content", f"'{LOOP}'"],
        [">>> r.choices[0].message.reasoning_content[-420:]", f"'{LOOP}'"],
        ["Output with tp=4:", f'"{LOOP}"'],
        ["$ curl -s http://127.0.0.1:30000/generate -d @q.json | jq -r .text", LOOP],
        ["问：法国的首都是哪里？", f"答：{LOOP}"],
        ["Ответ:", LOOP],
        ["Every single reply is just", "", f"> {LOOP}"],
        [f"+answer: {LOOP}"],
        [f'"content": "{LOOP}", "finish_reason": "length"'],
        ["which prints", "```", LOOP, "```"],
        ["返回内容（最后一部分）：", f"> {LOOP}"],
        [f"> **some-model:** {LOOP}"],
        ["> **some-model:** Well", *[f"> {LOOP[:100]}"] * 8],
        [">>> ask(document + 'Who signed?')  # the second time", f"'{LOOP}'"],
        [f"Out[8]: '{LOOP}'"],
        [f"ChatCompletion(id='1', choices=[Choice(message=ChatCompletionMessage(content='{LOOP}', refusal=None))])"],
        [f"[client] answer: {LOOP}"],
        [f'step=1 reward=0.0 sample: "{LOOP}"'],
    ],
    ids=lambda pasted: pasted[0][:24],
)
def test_garbage_that_was_pasted_as_text(pasted: list[str], rules: RuleSet) -> None:
    """An answer below the log of a healthy server counts, whatever way it was shown; the line is the root."""
    report = pipeline.analyze([HEALTHY, *pasted], rules=rules)
    assert report.label == "degenerate-output"
    assert report.root is not None
    assert LOOP[:90] in "".join(line.text for line in report.lines[report.root.line : report.root.line + 2])


def test_a_sane_answer_is_no_failure(rules: RuleSet) -> None:
    """What a cue announces is judged, not just found."""
    sane = "output: Paris is the capital of France, and has been since the year 987."
    assert pipeline.analyze([HEALTHY, sane], rules=rules).label == "healthy"


def test_a_sane_body_is_no_evidence_of_anything(rules: RuleSet) -> None:
    """What was judged as an answer is not looked at again as a line of the log, whatever words it has."""
    said = "挪威的首都是奥斯陆（Oslo）🇳🇴。它位于奥斯陆峡湾的北端，人口约七十万。 It never failed: no garbage ✨"
    body = f'{{"object":"chat.completion","choices":[{{"message":{{"role":"assistant","content":"{said}"}}}}]}}'
    report = pipeline.analyze([HEALTHY, SERVED, body], rules=rules)
    assert (report.label, report.verdict.confidence >= 0.9) == ("healthy", True)


@pytest.mark.parametrize("pasted", [LOOP, f"notes {LOOP}"])
def test_a_text_that_nobody_asked_for_is_never_sure(pasted: str, rules: RuleSet) -> None:
    """A loop without a cue may be an answer or anything."""
    report = pipeline.analyze([HEALTHY, pasted], rules=rules)
    assert report.label == "healthy" or report.verdict.confidence < 0.7


GARBAGE = "{'text': '" + "the the of of " * 20 + "', 'output_ids': [1, 2], 'meta_info': {'id': 'a'}}"
HALF = "of the " * 20
HALVES = f"{{'text': '{HALF}' ... '{HALF}', 'output_ids': [1, 2] ... [3], 'meta_info': {{'logprob': nan}}}}"
SANE = "{'text': ' Paris, which lies on the Seine.', 'output_ids': [1, 2], 'meta_info': {'id': 'b'}}"


def test_a_logged_answer_that_was_asked_for(rules: RuleSet) -> None:
    """The request stands in the same line; of a benchmark that ignores the last word nothing is judged."""
    for asked in ("text='Repeat the word the 40 times'", "sampling_params={'ignore_eos': True}"):
        line = f"[2026-01-01 10:05:02] Finish: obj=GenerateReqInput(rid='7', {asked}), out={GARBAGE}"
        assert pipeline.analyze([HEALTHY, line], rules=rules).label == "healthy"


@pytest.mark.parametrize(
    "said", ["Anyone else getting junk from it?", "서버는 정상인데 답이 말이 안 됩니다", "回答乱码"]
)
def test_somebody_says_that_the_answers_are_garbage(said: str, rules: RuleSet) -> None:
    """Without an answer to see the log is healthy still, but not surely."""
    sure, doubted = (pipeline.analyze([HEALTHY, SERVED, text], rules=rules) for text in ("How fast is it?", said))
    assert (sure.label, doubted.label) == ("healthy", "healthy")
    assert doubted.verdict.confidence < 0.7 < sure.verdict.confidence


def test_words_at_a_temperature_of_eight(rules: RuleSet) -> None:
    """Who draws words at random gets them; the same server's other answer is sane."""
    salad = "Seine кодcode для 天空 вас, ответыanswer 하늘 und so weiter"
    asked = (
        """$ curl -s localhost:30000/generate -d '{"text": "Three rivers?", "sampling_params": {"temperature": %s}}'"""
    )
    report = pipeline.analyze([HEALTHY, SERVED, asked % "8.0", salad], rules=rules)
    assert report.label == "healthy"
    assert pipeline.analyze([HEALTHY, SERVED, asked % "0.8", salad], rules=rules).label == "degenerate-output"


def test_a_report_that_answers_repeat_is_no_request(rules: RuleSet) -> None:
    """Who complains of repetition did not ask for it; who asks may do so in the command."""
    report = pipeline.analyze([HEALTHY, "The answers repeat the same sentence:", "Answer:", LOOP], rules=rules)
    assert report.label == "degenerate-output"
    curl = """$ curl localhost:30000/generate -d '{"text": "Repeat the sentence 14 times"}'"""
    body = f'{{"text": "{LOOP}", "meta_info": {{"id": "a"}}}}'
    assert pipeline.analyze([HEALTHY, curl, body], rules=rules).label == "healthy"


@pytest.mark.parametrize(
    ("answers", "label"),
    [
        ([GARBAGE], "degenerate-output"),
        ([HALVES], "degenerate-output"),
        ([SANE, GARBAGE, SANE], "degenerate-output"),
        ([SANE, GARBAGE, SANE, SANE], "healthy"),
        ([SANE], "healthy"),
    ],
    ids=["one", "halves", "a-third", "a-fourth", "sane"],
)
def test_answers_that_the_server_logged(answers: list[str], label: str, rules: RuleSet) -> None:
    """With --log-requests; a single one among many may be what its request asked for."""
    request = "[2026-01-01 10:05:02] Finish: obj=GenerateReqInput(rid='7', text='Tell me more'), out="
    report = pipeline.analyze([HEALTHY, *(f"{request}{answer}" for answer in answers)], rules=rules)
    assert report.label == label
