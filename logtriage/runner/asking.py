"""Asks a server one prompt in the form that it understands: a chat or a text to go on with, with logprobs if it can.

In: a prompt. Out: the answer as it came, and its readable part; what it is worth is judged elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage.answers import read_response
from logtriage.runner.client import Reply, Silence

if TYPE_CHECKING:
    from logtriage.answers import Answer
    from logtriage.engine.schema_smoke import Prompt
    from logtriage.runner.client import Client

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
SHORT = 24  # tokens of a text completion: a base model that has said its sentence says it again, and rightly so
_NOT_JSON = b"Out of range float values are not JSON compliant"  # NaN logprobs, in older versions of SGLang
_THOUGHT = re.compile(r".*</think>|<think>.*", re.DOTALL)


class Told(NamedTuple):
    """One answer.

    Attributes:
        text: what a user reads: content without reasoning.
        whole: everything that was generated, as `answers.judge` takes it; None if the body holds no answer.
        is_cut: it ended because max_tokens was reached.
        tokens: how many tokens the server says it has generated; None if it does not say.
        body: the response as it came.
        seconds: how long it took.
    """

    text: str
    whole: Answer | None
    is_cut: bool
    tokens: int | None
    body: bytes
    seconds: float


class Refused(NamedTuple):
    """No answer: `kind` is that of a Silence, `status`, `no-answer`, `nan` (logprobs no JSON holds) or `no-text`."""

    kind: str
    detail: str


class Form(NamedTuple):
    """How this server is asked."""

    path: str = CHAT
    logprobs: bool = True
    model: str = "default"

    def body(self, prompt: Prompt, *, temperature: float = 0.0, seed: int | None = None) -> dict[str, Any]:
        """Return the body of a request."""
        body: dict[str, Any] = {"model": self.model, "temperature": temperature, "max_tokens": prompt.max_tokens}
        if seed is not None:
            body["seed"] = seed
        if self.path == CHAT:
            body["messages"] = [{"role": "user", "content": prompt.ask}]
            return body | ({"logprobs": True, "top_logprobs": 2} if self.logprobs else {})
        body["prompt"] = prompt.complete or prompt.ask
        if not prompt.long and prompt.complete:
            body["max_tokens"] = min(SHORT, prompt.max_tokens)
        return body | ({"logprobs": 2} if self.logprobs else {})


class Found(NamedTuple):
    """The form in which a server answers, its first answer, and what it refused before that; '' for nothing."""

    form: Form
    told: Told
    refused: str


async def find_form(server: Client, prompt: Prompt, model: str | None, answer_s: float) -> Found | Refused:
    """Return the first form in which the server answers: chat before text, with logprobs before without."""
    first: Refused | None = None
    for path in (CHAT, TEXT):
        for logprobs in (True, False):
            form = Form(path, logprobs, model or "default")
            told = await ask(server, form, prompt, answer_s)
            if isinstance(told, Told):
                return Found(form, told, first.detail if first else "")
            if told.kind not in ("status", "no-answer"):
                return told
            first = first or told
    assert first is not None  # noqa: S101 - four forms were tried
    return first


async def takes_no_text(server: Client, answer_s: float) -> bool:
    """Return whether the server says that it runs without a tokenizer: then it takes and gives token ids only."""
    for path in ("/server_info", "/get_server_info"):  # up to 0.5.5 only the second is known
        reply = await server.call("GET", path, timeout_s=answer_s)
        if isinstance(reply, Reply) and isinstance(info := reply.json(), dict) and "skip_tokenizer_init" in info:
            return info["skip_tokenizer_init"] is True
    return False


async def ask(
    server: Client, form: Form, prompt: Prompt, answer_s: float, *, temperature: float = 0.0, seed: int | None = None
) -> Told | Refused:
    """Ask once and return the answer, or why there is none; takes at most `answer_s` seconds."""
    body = form.body(prompt, temperature=temperature, seed=seed)
    reply = await server.call("POST", form.path, data=body, timeout_s=answer_s)
    if isinstance(reply, Silence):
        return Refused(reply.kind, reply.detail)
    return _told(reply, form)


def _told(reply: Reply, form: Form) -> Told | Refused:
    if reply.status != 200:
        kind = "nan" if reply.status == 500 and _NOT_JSON in reply.body else "status"
        return Refused(kind, f"{form.path} answers {reply.shown()}")
    data = reply.json()
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Refused("no-answer", f"{form.path} answers without an answer: {reply.shown()}")
    usage, message = data.get("usage"), choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else choices[0].get("text")
    is_thought = isinstance(message, dict) and isinstance(message.get("reasoning_content"), str)
    if not isinstance(text, str | list) and not (text is None and is_thought):
        return Refused("no-answer", f"{form.path} answers without a text: {reply.shown()}")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    whole = read_response(reply.body)
    return Told(
        text=_THOUGHT.sub("", text).strip() if isinstance(text, str) else "",
        whole=whole[0] if whole else None,
        is_cut=choices[0].get("finish_reason") == "length",
        tokens=tokens if isinstance(tokens, int) else None,
        body=reply.body,
        seconds=reply.seconds,
    )
