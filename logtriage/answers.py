"""Response bodies in, one finding out: is an answer of the server garbage, and how?

Never raises on odd input. In doubt an answer is sane: a salad of real words of one alphabet cannot be told from text
alone.
"""

from __future__ import annotations

import ast
import json
import math
import re
import zlib
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Limits measured on sane and broken texts of 120, 300 and 600 characters, and on recorded servers.
CHARACTER_RUN = 24  # the longest run in sane prose is 3, in code 16; ten times as long for rulers and digits
WHOLE_RUN = 8  # "!!!!" and nothing else
WORDS, DISTINCT_TRIPLES = 20, 0.35  # distinct word triples: in sane texts about 1.0, in sentence loops 0.25 and less
ZLIB_LIMITS = ((120, 3.0), (300, 4.0), (600, 6.0))  # characters, ratio; the p99 of prose is 2.6, 2.8, 3.6
TAIL = 0.4  # the part of an answer in which a late loop must show
LOOP_CHARACTERS = 64  # a unit repeated 8 times or more up to the end; no source: shorter ones may be laughter
ODD_CHARACTERS, ODD_AT_LEAST = 0.05, 3  # share; one or two at the end are only a cut character
TOKEN_RUN = 16  # one id in a row; recorded servers print 64 of 64
FLAT_SPREAD = 1e-3  # recorded: equal logits 0, dummy weights 5e-6
GLUED, FEW_SCRIPTS = 2, 4  # letters of alphabets that no word joins, in a text of so many alphabets; none in sane texts
STUTTERED, STUTTER_SHARE = 3, 0.15  # different words said twice in a row among several alphabets, and their share
VOCABULARY = (256, 4_000_000)  # a flat logprob is -ln(size); 512 to 262144 are known

_RULERS = frozenset("-=_*#~.+|^ \t\r\n\u3000\u2500\u2501\u2550\u00b7")  # drawn on purpose: separators, leaders, blanks
_DRAWN = re.compile(r"([-=_*#~.+|^ \t\u2500\u2501\u2550\u00b7\d])\1{3,}")
_UNIT = re.compile(r"(.{2,40}?)\1{7,}\s*\Z", re.DOTALL)
_BASE64 = re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*\d)[\w+/=-]{40,}", re.ASCII)
_STRUCTURED = re.compile(
    r"""\s*(?:[{}\[\]"'|<`#@/]|[-*+\u2022]\s|\(?\w{1,4}[.):]\s|(?:def|class|return|import|from|for|if|else|while)\b)"""
    r"""|.*(?:[;{}(\[,:|]|\s=\s.*)\s*\Z"""
    r"""|[\W\d_]+\Z|[\w.:/-]*\d[\w.:/-]*\s*\Z"""  # rows of a matrix; paths, addresses and other ids
)
_SCRIPTS = {
    "latin": "A-Za-z\u00c0-\u024f", "cyrillic": "\u0400-\u052f", "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff", "indic": "\u0900-\u0dff", "thai": "\u0e00-\u0e7f",
    "kana": "\u3040-\u30ff", "han": "\u4e00-\u9fff", "hangul": "\uac00-\ud7af",
}  # fmt: skip
_RUN = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()))
_SPACELESS = frozenset({"thai", "kana", "han", "hangul"})  # foreign words stand among their letters
_LETTERS = re.compile(r"[^\W\d_]+")
_TWICE = re.compile(r"(?<![^\W\d_])([^\W\d_]+)[ \t]+(?=\1(?![^\W\d_]))")
_CUT_CHARACTER = re.compile(r"(?<!\ufffd)\ufffd{1,3}\Z")
# What Python's account of an answer has that is no literal: the halves of a long text or list, numbers that are none.
_UNPRINTED = ((r"(?<=['\"]) \.\.\. (?=['\"])", " "), (r"[\])] \.\.\. [\[(]", ", "), (r"\bnan\b", "None"))
_CUT_BODY = re.compile(r"""[{\[].*["'](?:choices|meta_info|output_ids)["']""", re.DOTALL)


class Answer(NamedTuple):
    """One answer: its text (reasoning and tool calls included), and ids and logprobs where the body has them.

    A logprob is None where the body says null or NaN; `alternatives` holds the lowest of each token's top logprobs.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    alternatives: tuple[float | None, ...] = ()


class Finding(NamedTuple):
    """What is wrong with an answer, a sentence with the numbers, and how certain that is (0 to 1)."""

    kind: str  # one-token-repeated character-run loop late-loop low-diversity mixed-alphabets not-text empty …-logprobs
    because: str
    certainty: float


def read_response(data: bytes) -> list[Answer]:
    """Return the answers in a chat or text completion, a /generate body, a stream or lines of these, or plain text."""
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "ignore").strip()
    if text.startswith("HTTP/"):  # saved with its headers (curl -i)
        head, _, text = text.replace("\r\n", "\n").partition("\n\n")
        text = text.strip() if re.match(r"HTTP/\S+ 2\d\d\b", head) else ""
    whole = _json(text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    events = [line[5:] for line in lines if line.startswith("data:")]
    values = [whole] if isinstance(whole, (dict, list)) else [_json(line) for line in events or lines]
    if events or (values and all(isinstance(value, (dict, list)) for value in values)):
        bodies = _bodies(values)
        is_stream = events or any(str(body.get("object")).endswith("chunk") for body in bodies)
        return [answer for part in ([bodies] if is_stream else [[b] for b in bodies]) for answer in _assemble(part)]
    if not text or "\0" in text or _CUT_BODY.match(text):
        return []
    return [Answer(whole if isinstance(whole, str) else text)]


def judge(answers: Sequence[Answer]) -> Finding | None:
    """Return the most certain finding on the answers; None if they are sane or there is too little to tell."""
    findings = [finding for answer in answers for finding in _findings(answer)]
    return max(findings, key=lambda finding: finding.certainty, default=None)


def _json(text: str) -> Any:
    """The value of a JSON text, or of what Python prints for one; None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not text.startswith(("{'", "[{'")):
        return None
    try:
        for pattern, literal in _UNPRINTED:
            text = re.sub(pattern, literal, text)
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _bodies(values: Iterable[Any]) -> list[dict[str, Any]]:
    """The objects among the values, lists opened, error bodies left out."""
    flat = chain.from_iterable(value if isinstance(value, list) else [value] for value in values)
    return [b for b in flat if isinstance(b, dict) and not b.get("error") and b.get("object") != "error"]


def _assemble(bodies: Sequence[dict[str, Any]]) -> list[Answer]:
    """One answer for each choice; the bodies are one whole response or the pieces of one stream."""
    pieces: dict[str, list[Answer]] = {}
    is_generate = not any("choices" in body for body in bodies)
    for body in bodies:
        for choice in [body] if is_generate else _list(body.get("choices")):
            if isinstance(choice, dict) and choice.keys() & {"message", "delta", "text", "output_ids"}:
                read = _generated if is_generate else _choice
                pieces.setdefault(str(choice.get("index")), []).append(read(choice))
    return [_join(parts, is_generate) for parts in pieces.values()]


def _join(parts: Sequence[Answer], is_generate: bool) -> Answer:
    """The pieces as one answer; in SGLang's own streams, unless incremental, each piece holds all before it."""
    texts = [part.text for part in parts]
    if is_generate and len(texts[-1]) > len(texts[0]) and all(b.startswith(a) for a, b in pairwise(texts)):
        return parts[-1]
    _, *columns = zip(*parts, strict=True)
    return Answer("".join(texts), *(tuple(chain.from_iterable(column)) for column in columns))


def _choice(choice: dict[str, Any]) -> Answer:
    """A choice of a chat completion, of a text completion, or of a piece of either."""
    message = _dict(choice.get("message") or choice.get("delta"))
    calls = [_dict(_dict(call).get("function")) for call in _list(message.get("tool_calls"))]
    texts = [message.get("reasoning_content"), message.get("content"), choice.get("text")]
    texts += [call.get(key) for call in calls for key in ("name", "arguments")]
    table = _dict(choice.get("logprobs"))
    rows = [_dict(row) for row in _list(table.get("content"))]
    chosen = _list(table.get("token_logprobs")) or [row.get("logprob") for row in rows]
    tops = [_lowest(_dict(top).values()) for top in _list(table.get("top_logprobs"))]
    tops += [_lowest(_dict(top).get("logprob") for top in _list(row.get("top_logprobs"))) for row in rows]
    return Answer("".join(map(_text, texts)), (), tuple(map(_number, chosen)), tuple(tops))


def _generated(body: dict[str, Any]) -> Answer:
    """A body of SGLang's /generate; its logprobs are rows of logprob, id and text."""
    meta = _dict(body.get("meta_info"))
    rows = [row for row in _list(meta.get("output_token_logprobs")) if isinstance(row, list) and len(row) > 1]
    ids = [token for token in _list(body.get("output_ids")) or [row[1] for row in rows] if isinstance(token, int)]
    tops = [[_list(row)[:1] for row in _list(top)] for top in _list(meta.get("output_top_logprobs"))]
    lowest = [_lowest(chain.from_iterable(top)) for top in tops]
    return Answer(_text(body.get("text")), tuple(ids), tuple(_number(row[0]) for row in rows), tuple(lowest))


def _text(value: Any) -> str:
    if isinstance(value, list):  # a content of several parts
        return "".join(_text(_dict(part).get("text")) for part in value)
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None  # NaN compares false


def _lowest(values: Iterable[Any]) -> float | None:
    return min((number for number in map(_number, values) if number is not None), default=None)


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
    text = _BASE64.sub(" ", text).strip()
    yield from _of_runs(text)
    yield from _of_scripts(text)
    if text and not is_structured(text):
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
    runs = [(str(run.lastgroup), run) for run in _RUN.finditer(text)]
    joined = [(a, b) for (a, one), (b, two) in pairwise(runs) if one.end() == two.start()]
    glued = [pair for pair in joined if not _SPACELESS.intersection(pair) and set(pair) != {"latin", "arabic"}]
    scripts = {name for name, _ in runs}
    if len(glued) >= GLUED and len(scripts) >= FEW_SCRIPTS:
        because = f"{len(scripts)} alphabets, joined {len(glued)} times within a word ({' and '.join(glued[0])}, say)"
        yield Finding("mixed-alphabets", because, 0.85)


def _of_loops(text: str) -> Iterable[Finding]:
    unit = _UNIT.search(text[-2000:])
    if unit and len(unit.group()) >= LOOP_CHARACTERS and any(char.isalpha() for char in unit.group(1)):
        kind = "loop" if 2 * len(unit.group()) >= len(text) else "late-loop"
        yield Finding(kind, f"it ends in {len(unit.group()) // len(unit.group(1))} times {unit.group(1)!r}", 0.93)
    cut = int(len(text) * (1 - TAIL))
    tail, head, whole = (_repeats(part) for part in (text[cut:][-600:], text[:cut][:600], text[:600]))
    if tail and not head:
        yield Finding("late-loop", f"in the last {TAIL:.0%}, {tail[1]}", 0.85)
    elif whole:
        yield Finding(*whole, 0.93 if whole[0] == "loop" else 0.85)


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
    found = read_response(text.encode("utf-8", "replace"))
    return all(is_structured(answer.text) for answer in found) if found else is_structured(text)


def is_structured(text: str) -> bool:
    """Return whether a text is JSON, code, a table or a list: these repeat themselves rightly, unless the same lines
    come over and over.
    """
    if isinstance(_json(text), (dict, list)):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    alike = sum(1 for line in lines if _STRUCTURED.match(line))
    return (
        2 * alike >= len(lines)
        and 2 * len(set(lines)) >= len(lines)
        and (len(lines) > 2 or text.startswith(("{", "[", "|", "<")))
    )
