"""Sane answers in many languages and formats, cut at any length, are no garbage; loops in any script are."""

from __future__ import annotations

import pytest
import yaml

from logtriage.answers import Answer, judge
from tests.conftest import ROOT

SANE: dict[str, str] = yaml.safe_load((ROOT / "tests" / "sane_answers.yaml").read_text(encoding="utf-8"))
SENTENCES = {
    "english": "I do not know where the lamp is, but I will look for it. ",
    "chinese": "我不知道这个问题的答案是什么。",
    "japanese": "すみません、その質問の答えはわかりません。",
    "korean": "죄송하지만 그 질문에는 답할 수 없습니다. ",
    "arabic": "لا أعرف الجواب عن هذا السؤال يا صديقي. ",
    "russian": "Извините, я не знаю ответа на этот вопрос. ",
    "hindi": "माफ़ कीजिए, मुझे इस सवाल का जवाब नहीं पता। ",
    "thai": "ขอโทษครับ ผมไม่ทราบคำตอบของคำถามนี้ ",
    "code": "x = x + 1\n",
    "json": '{"city": "Paris"}\n',
}


@pytest.mark.parametrize("name", SANE)
def test_sane_answers_at_any_length(name: str) -> None:
    """Prose, refusals, thoughts, code, data, lists and counting, whole or cut by max_tokens."""
    text = SANE[name]
    assert [judge([Answer(text[:length])]) for length in (80, 120, 150, 200, 300, 450, 600, len(text))] == [None] * 8


@pytest.mark.parametrize("name", SENTENCES)
def test_loops_in_any_script(name: str) -> None:
    """The same sentence again and again, from the start or after sane text."""
    loop = SENTENCES[name] * 20
    for text in (loop, SANE["thai"] + loop, SANE["zh-poem"] + loop):
        finding = judge([Answer(text)])
        assert finding is not None
        assert finding.kind in ("loop", "late-loop", "low-diversity")


@pytest.mark.parametrize(
    "text",
    [
        "The weather 天气 ಹವಾಮಾನ reportстан is zeмля 의 forecast.приветsunny",
        "Sure, this is кодcode для 天空 вас, ответыanswer 하늘 und so weiter",
        "The harbour ثم بعد bahwa 鼎 kwargs Обычно utiliser 莊 peuvent ઓ pequeña नदी lavoro",
    ],
)
def test_a_salad_of_alphabets(text: str) -> None:
    """Letters of alphabets that no word joins stand side by side, again and again."""
    finding = judge([Answer(text)])
    assert finding is not None
    assert finding.kind == "mixed-alphabets"


@pytest.mark.parametrize(
    "text",
    [
        "Peace is мир in Russian, 平和 in Japanese, 평화 in Korean, سلام in Arabic and शांति in Hindi.",
        "在Python中使用API返回JSON，日本語のテキストとemojiも、한국어도GPU를 씁니다.",
        "الـAPI والـGPU يعملان معا، и это тоже важно, bien sûr.",
        "“和平”的俄语是мир，阿拉伯语是سلام，希伯来语是שלום，印地语是शांति，英语是peace。",
        "러시아어로는 мир라고 하고 아랍어로는 سلام이라고 하며 영어로는 peace라고 합니다.",
        "Cyrillic ы, Greek Δx and Hebrew שלום stand in one line: ы/ש.",
    ],
)
def test_many_alphabets_in_one_answer_may_be_right(text: str) -> None:
    """Translations, technical words in Chinese or Arabic, and lists of letters."""
    assert judge([Answer(text)]) is None


def test_many_replacement_characters_at_the_end_are_no_cut_character() -> None:
    """A cut leaves three at most."""
    assert judge([Answer("The capital " + "\ufffd" * 3)]) is None
    finding = judge([Answer("The capital " + "\ufffd" * 12)])
    assert finding is not None
    assert finding.kind == "not-text"
