"""Truths about answers: what is read from a response body, what is called garbage, and what must never be."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.answers import Answer, Finding, judge, read_response

CORPUS = Path(__file__).parent.parent / "corpus"

PROSE = (
    "The harbour was quiet when the last ferry left. A boy sat on the wall, counted the lamps along the pier and "
    "wondered how many of them his grandfather had lit by hand, back when gas was new and the town was small. "
    "Nobody had ever told him the number, so he made one up and kept it. Years later he came home with an engineer's "
    "ruler, measured the distance between two lamps, divided the pier by it, and found that he had been off by one."
)
SANE = {
    "one-word": "Paris",
    "a-number": "391",
    "a-binary-number": "11111111",
    "two-words": "Yes, certainly!",
    "excited": "Done!!!",
    "prose": PROSE,
    "chinese": "法国的首都是巴黎。它位于塞纳河畔,是该国最大的城市,也是政治、经济和文化中心。"
    "每年有数百万游客前来参观埃菲尔铁塔、卢浮宫和巴黎圣母院。城市被分为二十个区,"
    "像蜗牛壳一样由内向外排列。河的左岸以大学和书店闻名,右岸则有商店与银行。",
    "japanese": "フランスの首都はパリです。セーヌ川のほとりにあり、国内最大の都市で、"
    "政治と文化の中心でもあります。毎年たくさんの観光客がエッフェル塔やルーヴル美術館を"
    "訪れます。街は二十の区に分かれ、かたつむりの殻のように内側から外側へ並んでいます。",
    "arabic": "عاصمة فرنسا هي باريس، وهي أكبر مدن البلاد ومركزها السياسي والثقافي. "
    "تقع المدينة على ضفاف نهر السين، ويزورها ملايين السياح كل عام لمشاهدة برج إيفل ومتحف "
    "اللوفر. وتنقسم المدينة إلى عشرين دائرة مرتبة من الداخل إلى الخارج.",
    "german": "Die Hauptstadt von Frankreich ist Paris. Sie liegt an der Seine, zählt gut zwei Millionen "
    "Einwohner und ist seit dem Mittelalter der Mittelpunkt des Landes. Wer vom Eiffelturm nach Osten "
    "blickt, sieht den Louvre und dahinter die Kuppel des Panthéon.",
    "json-rows": json.dumps([{"id": n, "name": f"item {n}", "price": n * 7, "in_stock": True} for n in range(20)]),
    "json-lines": "\n".join(json.dumps({"id": n, "city": "Paris", "ok": True}) for n in range(25)),
    "python": "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + fibonacci(n - 2)\n\n\n"
    + "\n".join(f"assert fibonacci({n}) == fibonacci({n} - 1) + fibonacci({n} - 2)" for n in range(2, 22)),
    "table": "| year | city | visitors |\n|------|------|----------|\n"
    + "\n".join(f"| {1990 + n} | Paris | {n * 3} million |" for n in range(20)),
    "numbered-list": "\n".join(f"{n}. The number {n} is followed by the number {n + 1}." for n in range(1, 20)),
    "counting": ", ".join(str(n) for n in range(1, 101)),
    "zeros-matrix": "[" + ", ".join(["0"] * 200) + "]",
    "poem-with-refrain": "The river runs down to the sea,\nand nobody knows but me.\n"
    "It carried a letter, it carried a tree,\n"
    "and nobody knows but me.\nThe miller has drunk it, the miller is three,\nand nobody knows but me.\n"
    "The moon has gone under, the water is free,\nand nobody knows but me.",
    "rulers": "Title\n" + "=" * 60 + "\nFirst part\n" + "-" * 60 + "\nSome words about the first part, and a few more.",
    "leaders": "Contents\nOne " + "." * 50 + " 3\nTwo " + "." * 50 + " 14\nThree " + "." * 50 + " 15",
    "traceback": "The error points here:\n    total = sum(values\n" + " " * 8 + "^" * 30 + "\nA bracket is missing.",
    "base64": "Here you are: TVqQAAMAAAAEAAAA//8AALgAAAAAAAAAQAAA" + "A" * 50 + "gAAAAA4fug4AtAnNIbg=",
    "base64-only": "TVqQAAMAAAAEAAAA//8AALgAAAAAAAAAQAAA" + "A" * 50 + "gAAAAA4fug4AtAnNIbg=",
    "a-big-number": "A googol is 1" + "0" * 100 + ".",
    "laughter": "Ha ha ha ha ha ha ha ha! Very good.",
    "nursery-rhyme": "Row, row, row the boat, gently down the stream. Merrily merrily merrily, life is but a dream.",
    "had-had": "All the faith that he had had had had no effect on what she had had. That that is, is.",
    "cut-character": "北京\ufffd",
    "greetings": "Hello Привет 你好 مرحبا नमस्ते 안녕하세요 Bonjour Hola Ciao",
    "chat-template": "Wrap it so: <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n and wait for <|im_end|>.",
    "chorus": "Row with me, oh row with me! " * 4 + "The river is wide and the night is long, so sing me another song.",
    "names-of-programs": "Call json.loads, then pass maxTokens and top_p on; the method is named 生成 in the manual.",
    "chinese-about-a-program": "先调用torch.cuda.empty_cache()清空缓存,再把maxTokens传给model.generate()方法。",
    "base64-of-zeros": "'AAAAAAAAAAA=\\nAAAAAAAAAAAAAAAAAAAAAA==\\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='",
    "a-drawing": "+-----+\n| ### |\n+-----+\n" + " " * 6 + "\\" * 24 + "\n[" + "█" * 50 + "] 100%",
    "terminal": "Run it with \x1b[1mmake\x1b[0m and look at the last line that it prints, please.",
}
LOOP = "I am sorry, but I cannot help you with that request. "
GARBAGE = {
    "character-run": "!" * 64,
    "character-run:short": "!" * 8,
    "character-run:collapse": PROSE[:200] + "!" * 60,
    "character-run:plus": PROSE + "+" * 400,
    "loop:sentence": LOOP * 12,
    "loop:sentence-300": LOOP * 6,
    "loop:words": "lot lot pet dealer " * 30,
    "loop:one-word": "the " * 100,
    "loop:letters": "F!" * 40,
    "loop:chinese": "我不知道。" * 60,
    "loop:list-items": "- the same thing again\n" * 30,
    "late-loop:sentence": PROSE + LOOP * 12,
    "late-loop:two-words": PROSE + " and so" * 60,
    "low-diversity:two-words": "yes no yes yes no no yes yes no no yes yes no no yes yes no no yes yes no no yes no",
    "loop:sentence-and-remark": "我不知道。" * 14 + "（一直到最后）",
    "loop:long-sentence": "One moment. "
    + "Let me count once more, s-t-r-a-w, and that makes three of them in all. " * 5,
    "loop:glued-word": "The contract contract. ivement the. signed. " + "ivement" * 7,
    "loop:few-long-words": "The picture shows addCrit. " + "addCriterion" * 7,
    "reserved-tokens:padding": "<pad>" * 6,
    "reserved-tokens:template": "<|start|>assistant<|channel|>analysis<|message|><|end|>" * 3,
    "reserved-tokens:among-words": "The boat the<unused12><unused12> of the<unused12><unused12><unused12>",
    "word-salad": "Of course ourselvesrowData\u0e2d\u0e32 chez the.Formwork _PLUGIN the isempty undeferrable",
    "stutter": "First take take the and and \u7684 water seized seized.lineTo f\u00fcr f\u00fcr_join then 0 0 0 0",
    "not-text:replacement": "caf\ufffd\ufffd\ufffd \ufffd\ufffdk \ufffdx a \ufffd b",
    "not-text:control": "".join(chr(1 + n % 8) + "q" for n in range(20)),
}


@pytest.mark.parametrize("name", SANE)
def test_sane_texts_are_left_alone(name: str) -> None:
    """A correct answer in any language or format is never called garbage."""
    assert judge([Answer(SANE[name])]) is None


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_named(name: str) -> None:
    """Each way to be broken is found and gets its own kind, with the numbers that show it."""
    finding = judge([Answer(GARBAGE[name])])
    assert finding is not None
    assert finding.kind == name.split(":")[0]
    assert any(character.isdigit() for character in finding.because)
    assert 0 < finding.certainty < 1


@pytest.mark.parametrize("length", [120, 200, 300, 450, 600, 1500])
@pytest.mark.parametrize("name", ["prose", "german", "chinese", "arabic", "json-rows", "python", "table"])
def test_the_length_at_which_an_answer_is_cut_makes_no_garbage(name: str, length: int) -> None:
    """max_tokens cuts answers anywhere; a sane answer stays sane when it is cut."""
    assert judge([Answer(SANE[name][:length])]) is None


def test_the_worst_of_several_answers_counts() -> None:
    """One sane answer does not excuse a broken one."""
    finding = judge([Answer("Paris"), Answer("!" * 64), Answer(PROSE)])
    assert finding is not None
    assert finding.kind == "character-run"


def test_nothing_to_judge_is_no_finding() -> None:
    """No answer, and an empty one of unknown length, tell nothing."""
    assert judge([]) is None
    assert judge([Answer("")]) is None


def test_many_tokens_without_text_are_empty() -> None:
    """Special tokens only: counted, and nothing to read."""
    finding = judge([Answer("", tuple(range(64)))])
    assert finding is not None
    assert finding.kind == "empty"


def test_an_answer_of_blanks_is_garbage() -> None:
    """A line end, over and over until the limit, is no answer; a few at the end of none may be one."""
    finding = judge([Answer("\n" * 120)])
    assert finding is not None
    assert finding.kind == "empty"
    assert finding.certainty > 0.9
    assert judge([Answer(" \n" * 5)]) is None


def test_one_token_repeated() -> None:
    """The same id in a row is garbage whatever its text is, from the start or after a good beginning."""
    for ids in ((488,) * 16, (*range(100), *(0,) * 40), (*range(100), *(0,) * 40, 151645)):
        finding = judge([Answer("", ids)])
        assert finding is not None
        assert finding.kind == "one-token-repeated"


def test_a_body_that_was_cut_short() -> None:
    """What it says up to there counts (the first bytes of a file, say)."""
    whole = json.dumps({"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "\n" * 300}}]})
    finding = judge(read_response(whole[:400].encode()))
    assert finding is not None
    assert finding.kind == "empty"


@pytest.mark.parametrize(("piece", "kind"), [(" the", "one-token-repeated"), ("庠", "one-token-repeated"), ("7", None)])
def test_a_stream_of_one_piece(piece: str, kind: str | None) -> None:
    """A few pieces of a stream tell already: sane ones differ."""
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]}
    finding = judge(read_response(f"data: {json.dumps(chunk)}\n".encode() * 5))
    assert (finding and finding.kind) == kind


def test_a_ruler_of_equal_tokens_is_drawn_on_purpose() -> None:
    """With byte tokens a separator is one id many times over."""
    text = "Title\n" + "=" * 20 + "\nSome words that follow the ruler.\n" + "-" * 20
    assert judge([Answer(text, tuple(text.encode()))]) is None


def test_null_logprobs_are_nan_logits() -> None:
    """All null, or null from some token on to the end; a lone null (the first token of an echo) is not."""
    sane = (-0.1, -0.2, -0.3)
    for values in ((None,) * 4, (*sane, *(None,) * 8)):
        finding = judge([Answer("abc", (), values)])
        assert finding is not None
        assert finding.kind == "nan-logprobs"
    assert judge([Answer("abc", (), (None, *sane))]) is None
    assert judge([Answer("abc", (), (None,))]) is None


def test_flat_logprobs_are_equal_logits() -> None:
    """Every token as likely as any other, and the alternatives too."""
    flat = -math.log(151936)
    finding = judge([Answer("a bc", (), (flat,) * 3, (flat,) * 3)])
    assert finding is not None
    assert finding.kind == "flat-logprobs"
    assert "151936" in finding.because


@pytest.mark.parametrize(
    ("logprobs", "alternatives"),
    [
        ((0.0, 0.0, 0.0), ()),
        ((-9999.0,) * 3, ()),
        ((-math.log(4),) * 5, ()),
        ((-math.log(512),) * 2, ()),
        ((-math.log(512),) * 3, (-12.0,) * 3),
        ((-6.2, -7.9, -6.8), ()),
    ],
    ids=["certain", "placeholder", "few-choices", "too-few", "others-differ", "unsure"],
)
def test_other_logprobs_prove_nothing(logprobs: tuple[float, ...], alternatives: tuple[float, ...]) -> None:
    """Certain tokens, placeholders and a few unlikely tokens are no flat distribution."""
    assert judge([Answer("abc", (), logprobs, alternatives)]) is None


CHAT = {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hi", "reasoning_content": None, "tool_calls": None},
            "logprobs": {
                "content": [
                    {"token": "H", "logprob": -0.5, "top_logprobs": [{"logprob": -0.5}, {"logprob": -2}]},
                    {"token": "i", "logprob": None, "top_logprobs": [{"logprob": None}]},
                ]
            },
        }
    ],
}


def test_reads_a_chat_completion() -> None:
    """Text, logprobs and the lowest alternative of each token; null stays null."""
    assert read_response(json.dumps(CHAT).encode()) == [Answer("Hi", (), (-0.5, None), (-2.0, None))]


def test_reads_what_else_a_message_says() -> None:
    """Reasoning, content in parts and tool calls are part of the answer."""
    call = {"function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    message = {"reasoning_content": "Hm. ", "content": [{"type": "text", "text": "Wait."}], "tool_calls": [call]}
    (answer,) = read_response(json.dumps({"choices": [{"message": message}]}).encode())
    assert answer.text == 'Hm. Wait.weather{"city": "Paris"}'


def test_reads_a_text_completion() -> None:
    """Each choice is an answer; the old form of logprobs is read too."""
    table = {"tokens": ["a", "b"], "token_logprobs": [-0.1, float("nan")], "top_logprobs": [{"a": -0.1, "c": -3}, None]}
    body = {"choices": [{"index": 0, "text": "ab", "logprobs": table}, {"index": 1, "text": "cd", "logprobs": None}]}
    assert read_response(json.dumps(body).encode()) == [Answer("ab", (), (-0.1, None), (-3.0, None)), Answer("cd")]


def test_reads_generate_bodies() -> None:
    """One object or a list; ids come from output_ids or else from the logprob rows."""
    rows = [[-0.1, 7, "a"], [None, 9, "b"]]
    tops = [[[-0.1, 7, "a"], [-4.0, 8, "x"]], None]
    one = {"text": "ab", "meta_info": {"output_token_logprobs": rows, "output_top_logprobs": tops}}
    two = {"text": "cd", "output_ids": [1, 2], "meta_info": {}}
    expected = [Answer("ab", (7, 9), (-0.1, None), (-4.0, None)), Answer("cd", (1, 2))]
    assert read_response(json.dumps([one, two]).encode()) == expected
    assert read_response(json.dumps(one).encode()) == expected[:1]


def stream(*chunks: object) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def test_reads_a_stream_of_chat_chunks() -> None:
    """The pieces of each choice are put together; the last one holds only the usage."""
    kind = "chat.completion.chunk"
    chunks = [{"object": kind, "choices": [{"index": i % 2, "delta": {"content": c}}]} for i, c in enumerate("HYio")]
    last = {"object": kind, "choices": [], "usage": {"completion_tokens": 4}}
    assert read_response(stream(*chunks, last)) == [Answer("Hi", pieces=("H", "i")), Answer("Yo", pieces=("Y", "o"))]
    as_lines = "\n".join(json.dumps(chunk) for chunk in [*chunks, last]).encode()
    assert read_response(as_lines) == [Answer("Hi", pieces=("H", "i")), Answer("Yo", pieces=("Y", "o"))]


def test_reads_a_stream_of_generate_pieces() -> None:
    """By default each piece holds all before it; incremental streams hold only what is new, even if it is the same."""
    growing = [{"text": "Paris"[: n + 1], "output_ids": list(range(n + 1)), "meta_info": {}} for n in range(5)]
    assert read_response(stream(*growing)) == [Answer("Paris", (0, 1, 2, 3, 4))]
    same = [{"text": "!", "output_ids": [0], "meta_info": {}}] * 30
    assert read_response(stream(*same)) == [Answer("!" * 30, (0,) * 30, pieces=("!",) * 30)]


def test_reads_lines_of_bodies_headers_and_plain_text() -> None:
    """What a client saved: one body a line, a body below its headers, or just the text."""
    body = json.dumps(CHAT)
    assert [answer.text for answer in read_response(f"{body}\n{body}\n".encode())] == ["Hi", "Hi"]
    assert read_response(f"HTTP/1.1 200 OK\r\nserver: uvicorn\r\n\r\n{body}".encode())[0].text == "Hi"
    assert read_response("Paris \n".encode("utf-16")) == [Answer("Paris")]
    assert read_response(b"391") == [Answer("391")]
    assert read_response(b'"Paris"') == [Answer("Paris")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b'{"error": {"message": "no such model"}}',
        b'{"object": "error", "message": "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}',
        b'data: {"error": {"message": "aborted"}}\n\ndata: [DONE]\n',
        b"HTTP/1.1 500 Internal Server Error\r\n\r\nInternal Server Error",
        b'{"detail": "Not Found"}',
        b'{"id": "1", "choices": [{"message": {"content": "The capi',
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff!!!!!!!!",
        b'{"choices": 7}',
        b'{"choices": [null, 3, {"message": 5, "logprobs": [1]}]}',
    ],
)
def test_what_is_no_answer_gives_no_finding(data: bytes) -> None:
    """An error body, a cut body, a packed file or an odd shape is no garbage of the model."""
    assert judge(read_response(data)) is None


KEYS = [
    *("choices", "message", "delta", "content", "reasoning_content", "tool_calls", "function", "arguments", "text"),
    *("logprobs", "logprob", "token_logprobs", "top_logprobs", "object", "index", "error"),
    *("meta_info", "output_ids", "output_token_logprobs", "output_top_logprobs"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@settings(deadline=None)
@given(JSON | st.binary(max_size=200) | st.text(max_size=200))
def test_nothing_raises(value: object) -> None:
    """Whatever a file holds, reading and judging it ends in findings or in none."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    for body in (data, b"data: " + data, str(value).encode("utf-8", "replace"), b"[" * 100_000 + data):
        assert isinstance(judge(read_response(body)), (Finding, type(None)))


RECORDED = sorted(CORPUS.rglob("response-*.json"))


def test_there_are_recorded_answers() -> None:
    """The next test has something to look at: broken answers and sane ones."""
    assert len(RECORDED) >= 10
    assert len({path.parent for path in RECORDED}) >= 4


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded_answers(path: Path) -> None:
    """Answers of real servers: dummy and zero weights are garbage, a small trained model is not."""
    finding = judge(read_response(path.read_bytes()))
    case = (path.parent / "case.yaml").read_text(encoding="utf-8")
    assert ("label_with_responses: degenerate-output" in case) == (finding is not None)
