"""The answers of one smoke test in, what is wrong with the server out. Pure: nothing is asked here.

One answer is judged by `answers`; here stands what only several together show: garbage under load alone, salad where
known answers should be, nothing but empty answers, and what the user expected.
"""

from __future__ import annotations

import unicodedata
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

import regex

from logtriage.answers import Finding, judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.runner.asking import Told
    from logtriage.runner.prompts import Asked

Phase = Literal["alone", "again", "parallel", "sampled"]

LOOPS = frozenset({"loop", "late-loop", "low-diversity"})
LONG = 300  # tokens; loops of real words were reported to begin after 100 and more
_FEW = 3  # known answers; fewer of them prove nothing
_SALAD = -2.0  # median logprob of chosen tokens; at temperature 0 sane models are near 0, tiny ones above -1.5
_SCRIPTS = 3  # of the world's scripts in the answer to one plain question
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "IDEOGRAPHIC", "BOPOMOFO"})
_PATIENCE_S = 5  # for a user's regular expression on one answer


class Row(NamedTuple):
    """One answer of a smoke test: when it was asked, whether it is as expected (None: open), what is wrong with it."""

    asked: Asked
    phase: Phase
    told: Told
    as_expected: bool | None
    finding: Finding | None


def row(asked: Asked, phase: Phase, told: Told) -> Row:
    """Return an answer with what it is worth by itself."""
    finding = judge([told.whole]) if told.whole else None
    return Row(asked, phase, told, _is_as_expected(asked, told) if phase != "sampled" else None, finding)


def excused(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with loops of a small, sane model: it loops at temperature 0, and no `sampled` answer does.

    What loops only with others at once is never excused.
    """
    sampled = [one for one in rows if one.phase == "sampled"]
    if not sampled or any(one.finding for one in sampled):
        return []
    loops = [one for one in rows if one.finding and one.finding.kind in LOOPS]
    alone = {one.asked.name for one in loops if one.phase != "parallel"}
    return [one for one in loops if one.asked.name in alone]


def conclude(rows: Sequence[Row]) -> Finding | None:
    """Return what is wrong with the server that gave these answers: the most certain finding, or None."""
    found = [*_garbage(rows), *_empty(rows), *_wrong_under_load(rows), *_salad(rows), *_unexpected(rows)]
    return max(found, key=lambda finding: finding.certainty, default=None)


def notes(rows: Sequence[Row]) -> list[str]:
    """Return what is worth knowing and proves nothing: known answers missed, two answers to one question, and such."""
    result = []
    known = [one for one in rows if one.phase == "alone" and one.as_expected is not None and not one.asked.required]
    missed = [one.asked.name for one in known if not one.as_expected]
    if missed and len(missed) == len(known):
        result.append(f"none of {len(known)} known answers was given: a tiny model, the wrong one, or salad; read them")
    elif missed:
        result.append(f"{len(missed)} of {len(known)} known answers were not given: {', '.join(missed)}")
    again = {one.asked.name: one.told for one in rows if one.phase == "again"}
    for one in rows:
        if one.phase == "alone" and one.asked.name in again and again[one.asked.name].text != one.told.text:
            result.append(f"{one.asked.name}: two answers at temperature 0 differ; that alone is no fault")
        if one.phase == "alone" and one.asked.prompt.long and (one.told.tokens or LONG) < LONG:
            result.append(f"{one.asked.name}: only {one.told.tokens} tokens, so that a late loop would not have shown")
        if one.phase == "alone" and one.told.is_cut and not one.told.text:
            result.append(f"{one.asked.name}: cut after {one.told.tokens or 'all'} tokens while it was still thinking")
    looping = dict.fromkeys(one.asked.name for one in excused(rows))
    return result + [f"{name}: loops at temperature 0 and not at 0.7, as small models do" for name in looping]


def _is_as_expected(asked: Asked, told: Told) -> bool | None:
    """Whether a prompt's pattern is in the answer; None where nothing is expected, or a thought was cut."""
    pattern = asked.prompt.expect
    if pattern is None or (told.is_cut and not told.text and not asked.required):
        return None
    text = told.text or (told.whole.text if told.whole and not asked.required else "")
    try:
        return regex.search(pattern, text, regex.IGNORECASE | regex.DOTALL, timeout=_PATIENCE_S) is not None
    except TimeoutError:
        return False


def _garbage(rows: Sequence[Row]) -> Iterable[Finding]:
    let_off = {id(one) for one in excused(rows)}
    bad = [(one, one.finding) for one in rows if id(one) not in let_off]
    found = [(one, finding) for one, finding in bad if finding]
    is_load = bool(found) and all(one.phase == "parallel" for one, _ in found)
    for one, finding in found:
        when = f"{_WORDS[one.phase]} (alone it is sane)" if is_load else _WORDS[one.phase]
        yield finding._replace(because=f"{one.asked.name}, {when}: {finding.because}")


_WORDS: dict[Phase, str] = {
    "alone": "asked alone", "again": "asked again", "parallel": "asked with others at once",
    "sampled": "asked at temperature 0.7",
}  # fmt: skip


def _empty(rows: Sequence[Row]) -> Iterable[Finding]:
    alone = [one for one in rows if one.phase == "alone"]
    blank = [one for one in alone if one.told.whole is None or not one.told.whole.text.strip()]
    if len(blank) >= 2 and 2 * len(blank) >= len(alone):
        yield Finding("empty", f"{len(blank)} of {len(alone)} answers hold no text", 0.85)


def _wrong_under_load(rows: Sequence[Row]) -> Iterable[Finding]:
    """Known answers that are right alone and mostly wrong with others at once: a kernel for larger batches."""
    right = {one.asked.name for one in rows if one.phase == "alone" and one.as_expected}
    loaded = [one for one in rows if one.phase == "parallel" and one.asked.name in right]
    wrong = [one for one in loaded if not one.as_expected]
    if len(loaded) >= _FEW and 2 * len(wrong) > len(loaded):
        because = f"{len(wrong)} of {len(loaded)} known answers that are right alone are wrong with others at once"
        yield Finding("wrong-under-load", because, 0.88)


def _salad(rows: Sequence[Row]) -> Iterable[Finding]:
    """Salad of real words: no known answer is given, and the model was unsure of every word or mixes scripts."""
    known = [one for one in rows if one.phase == "alone" and one.as_expected is not None and not one.asked.prompt.long]
    if len(known) < _FEW or any(one.as_expected for one in known):
        return
    middles = [median(values) for one in known if (values := _known_logprobs(one))]
    if len(middles) >= _FEW and median(middles) < _SALAD:
        because = f"none of {len(known)} known answers, and half of all tokens had logprobs below {median(middles):.1f}"
        yield Finding("word-salad", because, 0.85)
    mixed = [one for one in known if len(_scripts(one.told.text)) >= _SCRIPTS]
    if len(mixed) >= _FEW:
        scripts = ", ".join(sorted(_scripts(mixed[0].told.text)))
        because = f"none of {len(known)} known answers, and {len(mixed)} answers mix scripts ({scripts})"
        yield Finding("word-salad", because, 0.85)


def _known_logprobs(one: Row) -> list[float]:
    return [value for value in one.told.whole.logprobs if value is not None] if one.told.whole else []


def _scripts(text: str) -> set[str]:
    """The scripts of the letters in a text; those of East Asia, which are written together, count as one."""
    words = {unicodedata.name(char, "").partition(" ")[0] for char in set(text) if char.isalpha()}
    return {"East Asian" if word in _EAST_ASIAN else word.capitalize() for word in words if word}


def _unexpected(rows: Sequence[Row]) -> Iterable[Finding]:
    for one in rows:
        if one.asked.required and one.as_expected is False:
            shown = " ".join(one.told.text.split())[:120]
            cut = f" (cut after max_tokens: {one.asked.prompt.max_tokens})" if one.told.is_cut else ""
            because = f"{one.asked.name}, {_WORDS[one.phase]}: {one.asked.prompt.expect!r} is not in {shown!r}{cut}"
            yield Finding("unexpected-answer", because, 0.9)
