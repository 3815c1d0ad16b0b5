"""How fast is a running server? Tokens per second and the time to the first token, at 1 and at 32 requests at once.

SGLang's own benchmark measures where the server's Python has it; else a small closed loop of streamed answers does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.runner import asking, bench_serving, client

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_ONCE = (1, 32)
TOKENS = 128  # of one answer
_ROUNDS = {1: 3, 32: 2}  # answers of each client
_WARM_TOKENS = 8
_LEVEL_S = 120.0  # for all answers of one level
_QUESTION = "Count from {start} to {end} in words, without a pause."


class Speed(NamedTuple):
    """What was measured; None where nothing could be.

    Attributes:
        tokens_per_s_1, tokens_per_s_32: generated tokens per second of all requests together, at 1 and at 32 at once.
        first_token_s_1, first_token_s_32: median seconds until the first token.
        method: `sglang.bench_serving` or `closed loop`.
        note: why something was not measured, or not in the better way; '' for nothing.
    """

    tokens_per_s_1: float | None
    tokens_per_s_32: float | None
    first_token_s_1: float | None
    first_token_s_32: float | None
    method: str
    note: str = ""


class Level(NamedTuple):
    """What one number of requests at once gave: tokens per second, and the median seconds to the first token."""

    tokens_per_s: float
    first_token_s: float


def measure(
    base_url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    python: str | None = None,
    environment: Mapping[str, str] | None = None,
    stop: client.Stop | None = None,
) -> Speed:
    """Measure the server at `base_url`; takes seconds as a rule, and some minutes at most.

    `python` is the interpreter that runs the server, with its `environment`; without it the closed loop measures.
    Raises InputError where `base_url` is no URL.
    """
    base = client.base_of(base_url)
    note = ""
    if python is not None:
        levels: list[Level] = []
        for at_once in AT_ONCE:
            found = bench_serving.measure(base, python, at_once, model, api_key, environment, stop)
            if isinstance(found, str):
                note = f"sglang.bench_serving did not measure: {found}"
                break
            levels.append(Level(*found))
        else:
            return _speed(levels, "sglang.bench_serving", "")
    measured = client.run(_closed_loop(base, model or "default", api_key), stop)
    if measured is None:
        return _speed([], "closed loop", "stopped before the end")
    levels, trouble = measured
    return _speed(levels, "closed loop", "; ".join(filter(None, (note, trouble))))


def _speed(levels: list[Level], method: str, note: str) -> Speed:
    one, many = [*levels, None, None][:2]
    return Speed(
        one.tokens_per_s if one else None,
        many.tokens_per_s if many else None,
        one.first_token_s if one else None,
        many.first_token_s if many else None,
        method,
        note,
    )


async def _closed_loop(base: str, model: str, api_key: str | None) -> tuple[list[Level], str]:
    levels: list[Level] = []
    async with client.Client(base, api_key) as server:
        for at_once in AT_ONCE:
            await _level(server, model, at_once, 1, _WARM_TOKENS)  # builds the kernels for so many at once
            found = await _level(server, model, at_once, _ROUNDS[at_once], TOKENS)
            if isinstance(found, str):
                return levels, f"{at_once} at once: {found}"
            levels.append(found)
    return levels, ""


async def _level(server: client.Client, model: str, at_once: int, rounds: int, tokens: int) -> Level | str:
    begin = time.monotonic()
    clients = [_one_client(server, model, number, rounds, tokens, begin + _LEVEL_S) for number in range(at_once)]
    answers = [answer for answers in await asyncio.gather(*clients) for answer in answers]
    took = time.monotonic() - begin
    good = [answer for answer in answers if isinstance(answer, _Stream)]
    firsts = [answer.first_s for answer in good if answer.first_s is not None]
    if len(good) < len(answers) or not firsts:
        return next((answer for answer in answers if isinstance(answer, str)), "no token came")
    return Level(sum(answer.tokens for answer in good) / took, median(firsts))


async def _one_client(
    server: client.Client, model: str, number: int, rounds: int, tokens: int, until: float
) -> list[_Stream | str]:
    answers: list[_Stream | str] = []
    for turn in range(rounds):
        start = 1000 * number + 17 * turn  # different for each request: a cached prompt would flatter the first token
        question = _QUESTION.format(start=start, end=start + 500)
        body = {
            "model": model, "messages": [{"role": "user", "content": question}], "max_tokens": tokens,
            "temperature": 0.0, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        stream = _Stream()
        timeout_s = max(1.0, until - time.monotonic())
        reply = await server.call("POST", asking.CHAT, data=body, timeout_s=timeout_s, on_piece=stream.feed)
        if isinstance(reply, client.Silence):
            return [*answers, reply.detail]
        if reply.status != 200:
            return [*answers, f"it answers {reply.shown()}"]
        answers.append(stream)
    return answers


class _Stream:
    """The events of one streamed answer as they come: when the first token came, and how many there were."""

    def __init__(self) -> None:
        self.first_s: float | None = None
        self.tokens = 0
        self._begin = time.monotonic()
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                with contextlib.suppress(ValueError, AttributeError, TypeError):  # an event of another shape
                    self._event(json.loads(line[6:]))

    def _event(self, event: dict[str, Any]) -> None:
        usage = event.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self.tokens = usage["completion_tokens"]
        deltas = [choice.get("delta") or {} for choice in event.get("choices") or []]
        if any(delta.get("content") or delta.get("reasoning_content") for delta in deltas):
            self.tokens += 0 if usage else 1  # an event for each token, until the usage says how many there were
            if self.first_s is None:
                self.first_s = time.monotonic() - self._begin
