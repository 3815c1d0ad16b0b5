"""A real HTTP server that behaves like SGLang's in one of many ways: `python server.py BEHAVIOUR` prints its port.

Only what a client sees is there: no log, no children. The texts were written for these tests.
"""

from __future__ import annotations

import json
import math
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from texts import BACKWARDS, KNOWN, LOOP, MIXED, SALAD, STORY, WEATHER


class Ask:
    """One request, as the behaviours see it."""

    def __init__(self, path: str, body: dict[str, Any], loaded: bool) -> None:
        self.path, self.body, self.loaded = path, body, loaded
        self.text = str(body.get("prompt") or body.get("messages", [{}])[-1].get("content"))
        self.hot = body.get("temperature", 1) > 0
        self.long = "lighthouse" in self.text

    def known(self) -> str:
        """The right answer; to what is not known, a story."""
        return next((answer for part, answer in KNOWN.items() if part in self.text), STORY)


class Raw(Exception):  # noqa: N818
    """An answer that is no completion."""

    def __init__(self, status: int, kind: str, body: bytes) -> None:
        super().__init__(status)
        self.status, self.kind, self.body = status, kind, body


Behaviour = Callable[[Ask], tuple[str, Any]]
"""The text of an answer, and its logprobs: a function of the token's number, or None for a body without any."""


def sure(number: int) -> float:
    return -0.01 - 0.001 * (number % 7)


def _sane(ask: Ask) -> tuple[str, Any]:
    return ask.known(), sure


def _tiny(ask: Ask) -> tuple[str, Any]:
    words = [WEATHER[(len(ask.text) + n) % len(WEATHER)] for n in range(6 if ask.long else 1)]
    return " ".join(words), lambda number: -0.9 - 0.1 * (number % 5)


def _unsure_salad(ask: Ask) -> tuple[str, Any]:
    return SALAD, lambda number: -4.5 - 0.3 * (number % 5)


def _nan500(ask: Ask) -> tuple[str, Any]:
    if ask.body.get("logprobs"):
        raise Raw(500, "text/plain", b"ValueError: Out of range float values are not JSON compliant: nan")
    return "!" * 64, None


def _plain500(ask: Ask) -> tuple[str, Any]:
    if ask.body.get("logprobs"):
        raise Raw(500, "text/plain", b"Internal Server Error")
    return ask.known(), None


def _base(ask: Ask) -> tuple[str, Any]:
    """No chat template; goes on writing, and at temperature 0 says the same again and again."""
    if "chat" in ask.path:
        raise Raw(400, "application/json", b'{"object": "error", "message": "no chat template is set"}')
    text = ask.known() if not ask.long else STORY[:300] + (" " + STORY[300:] if ask.hot else " and the sea" * 60)
    return text, sure


def _no_tokenizer(ask: Ask) -> tuple[str, Any]:
    raise Raw(400, "application/json", b'{"object": "error", "message": "the tokenizer was not initialised"}')


def _small_looper(ask: Ask) -> tuple[str, Any]:
    return (STORY[:200] + LOOP * 12 if ask.long and not ask.hot else ask.known()), sure


_COUNT = iter(range(10**9))


BEHAVIOURS: dict[str, Behaviour] = {
    "sane": _sane,
    "tiny": _tiny,
    "base": _base,
    "small-looper": _small_looper,
    "no-tokenizer": _no_tokenizer,
    "refuses-all": _no_tokenizer,
    "leaks": lambda ask: (f"{ask.known()} My token is hf_{'aB3dE5gH7j' * 4}.", sure),
    "refuses": lambda ask: ("I'm sorry, but I can't help with that.", sure),
    "thinks": lambda ask: (f"<think>The user wants to know: {ask.text} That is easy.</think>\n\n{ask.known()}", sure),
    "thinks-apart": lambda ask: (f"REASONING:Let me think about {ask.text}|{ask.known()}", sure),
    "cut-in-thought": lambda ask: (f"<think>Let me think about {ask.text} slowly. {STORY} {BACKWARDS}", sure),
    "undecided": lambda ask: (ask.known() + (" Yes." if next(_COUNT) % 2 else ""), sure),
    "short": lambda ask: (ask.known()[:40], sure),
    "no-logprobs": lambda ask: (ask.known(), None),
    "plain-500": _plain500,
    "one-empty": lambda ask: ("" if "German" in ask.text else ask.known(), sure),
    "flat": lambda ask: ("!" * 64, lambda number: -math.log(151936)),
    "null": lambda ask: ("!" * 64, lambda number: None),
    "nan-500": _nan500,
    "empty": lambda ask: ("", None),
    "loops": lambda ask: (LOOP * 12, sure),
    "late-loop": lambda ask: (STORY[:400] + LOOP * 12 if ask.long else ask.known(), sure),
    "collapses": lambda ask: (STORY[:400] + "!" * 200 if ask.long else ask.known(), sure),
    "replacement": lambda ask: ("caf\ufffd\ufffd\ufffd \ufffd\ufffdk \ufffdx a \ufffd b", sure),
    "salad": _unsure_salad,
    "mixed-salad": lambda ask: (MIXED, sure),
    "bad-under-load": lambda ask: ("!" * 64 if ask.loaded else ask.known(), sure),
    "loops-under-load": lambda ask: (LOOP * 12 if ask.loaded else ask.known(), sure),
    "wrong-under-load": lambda ask: (SALAD if ask.loaded else ask.known(), sure),
}


class Handler(BaseHTTPRequestHandler):
    """Answers as SGLang does, but for what the behaviour changes."""

    protocol_version = "HTTP/1.1"
    behaviour = "sane"
    key = ""
    running = 0
    lock = threading.Lock()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        name = self.behaviour
        if name == "html":
            self._send(200, "text/html", b"<html><body>Welcome to the proxy</body></html>")
        elif name == "redirect":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/login")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif name == "html-as-json":
            self._send(200, "application/json", b"<html>" + b"x" * 100)
        elif name == "silent":
            time.sleep(600)
        elif name == "drips":
            self._drip()
        elif name == "endless":
            self._endless()
        elif self.key and self.path != "/health" and self.headers.get("Authorization") != f"Bearer {self.key}":
            self._send(401, "application/json", b'{"error":"Unauthorized"}')
        elif name == "other-server" or (name == "old" and self.path == "/model_info"):
            self._send(404, "application/json", b'{"detail":"Not Found"}')
        elif self.path in ("/model_info", "/get_model_info"):
            info = {"model_path": "/models/made-up", "is_generation": name != "embeds"}
            self._send(200, "application/json", json.dumps(info).encode())
        elif self.path == "/server_info":
            info = {"model_path": "/models/made-up", "skip_tokenizer_init": name == "no-tokenizer"}
            self._send(200, "application/json", json.dumps(info).encode())
        elif self.path == "/health":
            self._send(503 if name == "warming" else 200, "text/plain", b"")
        else:
            self._send(404, "application/json", b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Handler.lock:
            Handler.running += 1
        try:
            if self.behaviour in ("hangs", "goes-away"):
                time.sleep(600 if self.behaviour == "hangs" else 0)
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            time.sleep(0.03)  # long enough for what is asked at once to be seen at once
            self._complete(Ask(self.path, body, Handler.running > 1))
        finally:
            with Handler.lock:
                Handler.running -= 1

    def _complete(self, ask: Ask) -> None:
        try:
            text, logprob = BEHAVIOURS.get(self.behaviour, _sane)(ask)
        except Raw as raw:
            self._send(raw.status, raw.kind, raw.body)
            return
        most = ask.body["max_tokens"]
        tokens = [text[at : at + 2] for at in range(0, len(text), 2)][:most]
        if ask.body.get("ignore_eos"):
            tokens = (tokens or ["x"]) * most
            tokens = tokens[:most]
        if ask.body.get("stream"):
            self._stream(ask, tokens)
            return
        whole = "".join(tokens)
        reason = "length" if len(tokens) == most else "stop"
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": None}
        if "chat" in ask.path:
            thought, _, content = whole.removeprefix("REASONING:").partition("|") if "|" in whole else ("", "", whole)
            choice["message"] = {"role": "assistant", "content": content, "reasoning_content": thought or None}
        else:
            choice["text"] = whole
        if ask.body.get("logprobs") and logprob:
            values = [logprob(number) for number in range(len(tokens))]
            if "chat" in ask.path:
                tops = [[{"token": t, "logprob": v}] for t, v in zip(tokens, values, strict=True)]
                rows = [{"token": t, "logprob": v} for t, v in zip(tokens, values, strict=True)]
                choice["logprobs"] = {
                    "content": [{**row, "top_logprobs": top} for row, top in zip(rows, tops, strict=True)]
                }
            else:
                choice["logprobs"] = {"tokens": tokens, "token_logprobs": values}
        usage = {"completion_tokens": len(tokens)}
        body = {"object": "chat.completion", "model": "default", "choices": [choice], "usage": usage}
        self._send(200, "application/json", json.dumps(body).encode())

    def _stream(self, ask: Ask, tokens: list[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for token in tokens:
            time.sleep(0.002)
            chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": token}}]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        usage = {"choices": [], "usage": {"completion_tokens": len(tokens)}}
        self.wfile.write(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        for _ in range(10_000):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.05)

    def _endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b" " * 65536)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind else "")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Quiet about clients that go away."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Handler.behaviour = sys.argv[1]
    Handler.key = sys.argv[2] if len(sys.argv) > 2 else ""
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
