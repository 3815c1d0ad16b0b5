"""Bodies of responses in, the answers in them out. Never raises on odd input."""

from __future__ import annotations

import ast
import json
import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What Python's account of an answer has that is no literal: the halves of a long text or list, numbers that are none.
_UNPRINTED = ((r"(?<=['\"]) \.\.\. (?=['\"])", " "), (r"[\])] \.\.\. [\[(]", ", "), (r"\bnan\b", "None"))
_SAID = re.compile(r'"(?:reasoning_content|content|text)": ?"((?:[^"\\]|\\.)*)')
_CUT_BODY = re.compile(r"""[{\[].*["'](?:choices|meta_info|output_ids)["']""", re.DOTALL)


class Answer(NamedTuple):
    """One answer: its text (reasoning and tool calls included), and ids and logprobs where the body has them.

    A logprob is None where the body says null or NaN; `alternatives` holds the lowest of each token's top logprobs;
    `pieces` what a stream brought at a time.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    alternatives: tuple[float | None, ...] = ()
    pieces: tuple[str, ...] = ()


def read_response(data: bytes) -> list[Answer]:
    """Return the answers in a chat or text completion, a /generate body, a stream or lines of these, or plain text."""
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "ignore").strip()
    if text.startswith("HTTP/"):  # saved with its headers (curl -i)
        head, _, text = text.replace("\r\n", "\n").partition("\n\n")
        text = text.strip() if re.match(r"HTTP/\S+ 2\d\d\b", head) else ""
    whole = parsed(text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    events = [line[5:] for line in lines if line.startswith("data:")]
    values = [whole] if isinstance(whole, (dict, list)) else [parsed(line) for line in events or lines]
    if events or (values and all(isinstance(value, (dict, list)) for value in values)):
        bodies = _bodies(values)
        is_stream = events or any(str(body.get("object")).endswith("chunk") for body in bodies)
        return [answer for part in ([bodies] if is_stream else [[b] for b in bodies]) for answer in _assemble(part)]
    if _CUT_BODY.match(text):
        return [Answer(_unescaped(said[1])) for said in _SAID.finditer(text) if said[1]]
    if not text or "\0" in text:
        return []
    return [Answer(whole if isinstance(whole, str) else text)]


def _unescaped(text: str) -> str:
    """The text within the quotes of a JSON string, or as it stands where it is none."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def parsed(text: str) -> Any:
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
    ids, logprobs, alternatives = (
        tuple(chain.from_iterable(column)) for column in zip(*(part[1:4] for part in parts), strict=True)
    )
    pieces = tuple(filter(None, texts)) if len(texts) > 1 else ()
    return Answer("".join(texts), ids, logprobs, alternatives, pieces)


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
