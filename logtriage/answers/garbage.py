"""Answers in, one finding out: is one of them garbage, and how?

In doubt an answer is sane: a salad of real words of one alphabet cannot be told from text
alone.
"""

from __future__ import annotations

import math
import re
import zlib
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from logtriage.answers import bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from logtriage.answers.bodies import Answer

# Limits measured on sane and broken texts of 120, 300 and 600 characters, and on recorded servers.
CHARACTER_RUN = 24  # the longest run in sane prose is 3, in code 16; ten times as long for rulers and digits
WHOLE_RUN = 8  # "!!!!" and nothing else
WORDS, DISTINCT_TRIPLES = 20, 0.35  # distinct word triples: in sane texts about 1.0, in sentence loops 0.25 and less
ZLIB_LIMITS = ((120, 3.0), (300, 4.0), (600, 6.0))  # characters, ratio; the p99 of prose is 2.6, 2.8, 3.6
TAIL = 0.4  # the part of an answer in which a late loop must show
LOOP_CHARACTERS = 64  # a unit repeated 6 times or more up to the end; no source: shorter ones may be laughter
WORD_LOOP = 40  # the same where the unit is a word, or part of one, that is glued to itself
ODD_CHARACTERS, ODD_AT_LEAST = 0.05, 3  # share; one or two at the end are only a cut character
TOKEN_RUN = 16  # one id in a row; recorded servers print 64 of 64
SAME_PIECES = 4  # and no other in a stream; sane ones hardly ever bring the same piece twice in a row
FLAT_SPREAD = 1e-3  # recorded: equal logits 0, dummy weights 5e-6
GLUED, FEW_SCRIPTS = 2, 4  # letters of alphabets that no word joins, in a text of so many alphabets; none in sane texts
JUMPS, OVER_LATIN, BETWEEN = (
    3,
    2,
    2,
)  # from one foreign alphabet to another in a phrase; of these over Latin words; these
SALAD_NAMES, SALAD_LETTERS = 2, 0.05  # names out of programs, and at most so many foreign letters glued to Latin words
STUTTERED, STUTTER_SHARE = 3, 0.15  # different words said twice in a row among several alphabets, and their share
RESERVED, RESERVED_SHARE = 5, 0.4  # tokens that a template or a tokenizer keeps for itself, and their share of a text
SENTENCES = 0.6  # share of a text that is one sentence five times in a row; lyrics repeat a line four times
VOCABULARY = (256, 4_000_000)  # a flat logprob is -ln(size); 512 to 262144 are known

_RULERS = frozenset(
    "-=_*#~.+|^\\/\u2588\u2593\u2592\u2591\u2580\u2584 \t\r\n\u3000\u2500\u2501\u2550\u00b7"
)  # drawn on purpose: separators, leaders, blanks
_DRAWN = re.compile(r"([-=_*#~.+|^ \t\u2500\u2501\u2550\u00b7\d])\1{3,}")
_SENTENCE = re.compile(r"([^\n]{16,200}?)\1{4,}")
_REMARK = re.compile(r"\s*(?:\.{3}|\u2026)?\s*[(\uff08\[\u3010][^()\uff08\uff09\[\]]{1,80}[)\uff09\]\u3011]\s*\Z")
_RESERVED_TOKEN = re.compile(
    r"<\|[\w/-]{2,40}\|>|<\uff5c[^\uff5c<>]{2,40}\uff5c>|</?s>|<(?:pad|unk|mask|bos|eos|unused\d+)>|\[(?:PAD|UNK|unused\d+)\]"
)
_UNIT = re.compile(r"(.{2,40}?)\1{5,}\s*\Z", re.DOTALL)
_ENCODED = re.compile(  # base64, also of zeros, and hexadecimal digits: these repeat themselves rightly
    r"(?<![\w+/=-])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*\d)[\w+/=-]{40,}"
    r"|(?<![\w+/=-])[\w+/-]{10,}={1,2}(?![\w=])"
    r"|\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{32,}\b",
    re.ASCII,
)
_STRUCTURED = re.compile(
    r"""\s*(?:[{}\[\]"'|<`#@/]|[-*+\u2022]\s|\(?\w{1,4}[.):]\s|(?:def|class|return|import|from|for|if|else|while)\b)"""
    r"""|.*(?:[;{}(\[,:|]|\s=\s.*)\s*\Z"""
    r"""|[\W\d_]+\Z|[\w.:/-]*\d[\w.:/-]*\s*\Z"""  # rows of a matrix; paths, addresses and other ids
)
_SCRIPTS = {
    "latin": "A-Za-z\u00c0-\u024f", "cyrillic": "\u0400-\u052f", "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff", "indic": "\u0900-\u0dff", "thai": "\u0e00-\u0e7f",
    "kana": "\u3040-\u30ff", "han": "\u4e00-\u9fff", "hangul": "\uac00-\ud7af",
    "other": "\u0530-\u058f\u0e80-\u10ff\u1200-\u137f\u1780-\u17ff",
}  # fmt: skip
_RUN = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()))
_FAMILIES = {"kana": "han", "hangul": "han"}  # alphabets that one text rightly has
_SPACELESS = frozenset({"thai", "kana", "han", "hangul"})  # foreign words stand among their letters
_LETTERS = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[a-z][A-Z]\w*|[^\W\d_]_[^\W\d_]|(?<!\S)[._][A-Z]\w+|[a-z]\.[A-Z][a-z]+")
_TWICE = re.compile(r"(?<![^\W\d_])([^\W\d_]+)[ \t]+(?=\1(?![^\W\d_]))")
_CUT_CHARACTER = re.compile(r"(?<!\ufffd)\ufffd{1,3}\Z")


class Finding(NamedTuple):
    """What is wrong with an answer, a sentence with the numbers, and how certain that is (0 to 1)."""

    kind: str  # one-token-repeated, reserved-tokens, character-run, loop, low-diversity, mixed-alphabets, not-text, …
    because: str
    certainty: float


def judge(answers: Sequence[Answer]) -> Finding | None:
    """Return the most certain finding on the answers; None if they are sane or there is too little to tell."""
    findings = [finding for answer in answers for finding in _findings(answer)]
    return max(findings, key=lambda finding: finding.certainty, default=None)


def _findings(answer: Answer) -> Iterable[Finding]:
    yield from chain(_of_logprobs(answer), _of_tokens(answer))
    text = _CUT_CHARACTER.sub("", answer.text.strip())
    tokens = max(len(answer.token_ids), len(answer.logprobs))
    if not text and len(answer.text) >= CHARACTER_RUN:
        yield Finding("empty", f"{len(answer.text)} blanks and nothing else", 0.93)
    elif not text and tokens >= CHARACTER_RUN:
        yield Finding("empty", f"{tokens} tokens, and no text", 0.6)
    odd = sum(1 for c in text if (c < " " and c not in "\t\n\r") or "\x7f" <= c <= "\x9f" or c == "\ufffd")
    if odd >= ODD_AT_LEAST and odd > ODD_CHARACTERS * len(text):
        yield Finding("not-text", f"{odd} of {len(text)} characters are control or replacement characters", 0.9)
    reserved = _RESERVED_TOKEN.findall(text)
    if len(reserved) >= RESERVED and sum(map(len, reserved)) >= RESERVED_SHARE * len(text):
        yield Finding("reserved-tokens", f"{len(reserved)} tokens that are no text, such as {reserved[0]!r}", 0.9)
    text = _ENCODED.sub(" ", text).strip()
    yield from _of_runs(text)
    yield from _of_scripts(text)
    if text and not is_structured(text):
        yield from _of_names(text)
        yield from _of_loops(_DRAWN.sub(r"\1", text))
        yield from _of_stutter(text.lower())


def _of_logprobs(answer: Answer) -> Iterable[Finding]:
    values, others = answer.logprobs, [value for value in answer.alternatives if value is not None]
    known = [value for value in values if value is not None]
    nulls = next((count for count, value in enumerate(reversed(values)) if value is not None), len(values))
    if nulls >= (2 if not known else 4):
        yield Finding("nan-logprobs", f"the last {nulls} of {len(values)} logprobs are null: NaN logits", 0.98)
    if len(values) < 3 or len(known) < len(values) or max(known + others) - min(known + others) > FLAT_SPREAD:
        return
    size = math.exp(-max(known[0], -700))
    if VOCABULARY[0] * (1 - FLAT_SPREAD) <= size <= VOCABULARY[1]:
        because = f"all {len(known)} logprobs are {known[0]:.4f} = -ln({size:.0f}): every token was as likely"
        yield Finding("flat-logprobs", because, 0.97 if others else 0.85)


def _of_tokens(answer: Answer) -> Iterable[Finding]:
    runs = [(sum(1 for _ in group), token) for token, group in groupby(answer.token_ids)]
    length, token = max(runs, default=(0, 0))
    is_drawn = answer.text.strip() != "" and answer.text.rstrip()[-1] in _RULERS
    at_the_end = (length, token) in runs[-2:] and not is_drawn  # an end-of-text token may follow
    if length >= TOKEN_RUN and (2 * length >= len(answer.token_ids) or at_the_end):
        because = f"token {token} stands {length} times in a row among {len(answer.token_ids)}"
        yield Finding("one-token-repeated", because, 0.97)
    same = answer.pieces[0].strip() if len(set(answer.pieces)) == 1 else ""
    if len(answer.pieces) >= SAME_PIECES and not (same.isdigit() or _RULERS.issuperset(same)):
        yield Finding("one-token-repeated", f"all {len(answer.pieces)} pieces of the stream are {same!r}", 0.8)


def _of_runs(text: str) -> Iterable[Finding]:
    for char, group in groupby(text):
        length = sum(1 for _ in group)
        is_whole = length == len(text)  # eight ones or a row of dashes may be the right answer, eight "!" are none
        is_short_one = is_whole and length >= WHOLE_RUN and not (char in _RULERS or char.isalnum())
        is_drawn = not is_whole and (char in _RULERS or char.isdigit())
        if is_short_one or length >= CHARACTER_RUN * (10 if is_drawn else 1):
            yield Finding("character-run", f"{char!r} stands {length} times in a row", 0.96)


def _of_scripts(text: str) -> Iterable[Finding]:
    """Words in which alphabets are joined that no language joins (Arabic joins its article to Latin words)."""
    if text.isascii():
        return
    runs = _runs(text)
    joined = [(a, b) for (a, one), (b, two) in pairwise(runs) if one.end() == two.start()]
    glued = [pair for pair in joined if not _SPACELESS.intersection(pair) and set(pair) != {"latin", "arabic"}]
    scripts = {name for name, _ in runs}
    if len(glued) >= GLUED and len(scripts) >= FEW_SCRIPTS:
        because = f"{len(scripts)} alphabets, joined {len(glued)} times within a word ({' and '.join(glued[0])}, say)"
        yield Finding("mixed-alphabets", because, 0.85)
    jumps = list(_jumps(text, runs))
    if (
        len(jumps) >= JUMPS
        and sum(jumps) >= OVER_LATIN
        and len({_FAMILIES.get(name, name) for name in scripts}) >= FEW_SCRIPTS
    ):
        because = f"{len(scripts)} alphabets, with {len(jumps)} jumps between foreign ones within a phrase"
        yield Finding("mixed-alphabets", because, 0.8)


def _runs(text: str) -> list[tuple[str, re.Match[str]]]:
    """The runs of letters of one alphabet in a text, each with the alphabet's name."""
    return [(str(run.lastgroup), run) for run in _RUN.finditer(text)]


def _jumps(text: str, runs: Sequence[tuple[str, re.Match[str]]]) -> Iterator[bool]:
    """Yield for each place at which one foreign alphabet follows another one whether Latin words stand between them."""
    before, end, words = "", -1, 0
    for name, run in runs:
        own = _FAMILIES.get(name, name)
        if text[max(end, 0) : run.start()].strip(" \t") or end < 0:
            before, words = "", 0
        if own == "latin":
            words += 1
        else:
            if before and own != before and words <= BETWEEN:
                yield words > 0
            before, words = own, 0
        end = run.end()


def _of_names(text: str) -> Iterable[Finding]:
    """Names out of programs among words, and foreign letters glued to Latin ones: the salad of a whole vocabulary."""
    runs = _runs(text)
    letters = sum(len(run.group()) for _, run in runs)
    foreign = sum(len(run.group()) for name, run in runs if name != "latin")
    glued = any((a == "latin") != (b == "latin") and one.end() == two.start() for (a, one), (b, two) in pairwise(runs))
    names = _NAME.findall(text)
    if glued and foreign <= SALAD_LETTERS * letters and len(names) >= SALAD_NAMES:
        because = f"{len(names)} pieces of names as programs have them, and {foreign} foreign letters within words"
        yield Finding("word-salad", because, 0.75)


def _of_loops(text: str) -> Iterable[Finding]:
    text = _REMARK.sub("", text)  # of whoever cut the answer short
    unit = _UNIT.search(text[-2000:])
    least = WORD_LOOP if unit and unit.group(1).isalpha() else LOOP_CHARACTERS
    if unit and len(unit.group()) >= least and any(char.isalpha() for char in unit.group(1)):
        kind = "loop" if 2 * len(unit.group()) >= len(text) else "late-loop"
        yield Finding(kind, f"it ends in {len(unit.group()) // len(unit.group(1))} times {unit.group(1)!r}", 0.93)
    sentence = _SENTENCE.search(text[-2000:]) if _comes_again(text[-2000:]) else None
    if (
        sentence
        and len(sentence.group()) >= SENTENCES * len(text)
        and any(char.isalpha() for char in sentence.group(1))
    ):
        times = len(sentence.group()) // len(sentence.group(1))
        yield Finding("loop", f"{times} times in a row {sentence.group(1)!r}", 0.93)
    cut = int(len(text) * (1 - TAIL))
    tail, head, whole = (_repeats(part) for part in (text[cut:][-600:], text[:cut][:600], text[:600]))
    if tail and not head:
        yield Finding("late-loop", f"in the last {TAIL:.0%}, {tail[1]}", 0.85)
    elif whole:
        yield Finding(*whole, 0.93 if whole[0] == "loop" else 0.85)


def _comes_again(text: str) -> bool:
    """Whether the middle of a text, which what fills most of it fills too, comes again and again: soon looked up."""
    middle = len(text) // 2
    return text.count(text[max(middle - 8, 0) : middle + 8]) > 3


def _of_stutter(text: str) -> Iterable[Finding]:
    twice, words = _TWICE.findall(text), len(_LETTERS.findall(text))
    different = dict.fromkeys(twice)
    alphabets = {run.lastgroup for run in _RUN.finditer(text)}
    if len(alphabets) > 1 and len(different) >= STUTTERED and len(twice) >= STUTTER_SHARE * words:
        because = f"{len(twice)} of {words} words come twice in a row ({', '.join(map(repr, different))})"
        yield Finding("stutter", because, 0.75)


def _repeats(window: str) -> tuple[str, str] | None:
    """How a window repeats itself: the kind and the numbers."""
    numbers = {char: number for number, char in enumerate(dict.fromkeys(window))}
    raw = bytes(numbers[char] % 256 for char in window)  # UTF-8 repeats most bytes of many scripts
    ratio, limit = len(raw) / len(zlib.compress(raw)), math.inf
    for (short, low), (long, high) in pairwise(ZLIB_LIMITS):
        if short <= len(window) <= long:
            limit = low + (high - low) * (len(window) - short) / (long - short)
    if ratio > limit:
        return "loop", f"{len(window)} characters compress {ratio:.1f} times (sane text: at most {limit:.1f})"
    words = window.split()
    triples = list(zip(words, words[1:], words[2:], strict=False))
    if len(words) >= WORDS and len(set(triples)) <= DISTINCT_TRIPLES * len(triples):
        return "low-diversity", f"only {len(set(triples))} of {len(triples)} word triples differ"
    return None


def holds_data(text: str) -> bool:
    """Return whether all that a text says, or all answers in a body of JSON, are data or code (see `is_structured`)."""
    found = bodies.read_response(text.encode("utf-8", "replace"))
    return all(is_structured(answer.text) for answer in found) if found else is_structured(text)


def is_structured(text: str) -> bool:
    """Return whether a text is JSON, code, a table or a list: these repeat themselves rightly, unless the same lines
    come over and over.
    """
    if isinstance(bodies.parsed(text), (dict, list)) or not _ENCODED.sub("", text).strip("'\" \n"):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    alike = sum(1 for line in lines if _STRUCTURED.match(line))
    return (
        2 * alike >= len(lines)
        and 2 * len(set(lines)) >= len(lines)
        and (len(lines) > 2 or text.startswith(("{", "[", "|", "<")))
    )
