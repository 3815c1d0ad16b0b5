"""The HTTP side of the fake server: health, model information, and answers that are sensible or garbage."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent


class Service:
    """What the server knows: its model, whether it is warm, how it answers, how fast."""

    def __init__(self, model: str, version: str, garbage: str | None, tokens_per_s: float, say: Any) -> None:
        self.model, self.version, self.garbage, self.tokens_per_s = model, version, garbage, tokens_per_s
        self.is_warm = False
        self.say = say
        self.page: bytes | None = None  # a proxy's page, sent in place of every answer
        self._answers = yaml.safe_load((HERE / "answers.yaml").read_text(encoding="utf-8"))
        self._story = (HERE / "story.txt").read_text(encoding="utf-8").strip()

    def answer(self, question: str, limit: int) -> tuple[str, list[tuple[float | None, int, str]], str]:
        """The text, its tokens as (logprob, id, text), and why it ended."""
        if self.garbage:
            words = ["!"] * limit
            logprob = None if self.garbage == "nans" else -6.238324642181396
            return "".join(words), [(logprob, 0, word) for word in words], "length"
        text = next((answer for words, answer in self._answers if words in question), self._story)
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
        tokens = [(-0.02 - (len(piece) * (place % 7)) / 40, 1000 + sum(piece.encode()), piece)
                  for place, piece in enumerate(pieces[:limit])]  # fmt: skip
        return "".join(pieces[:limit]), tokens, "stop" if len(pieces) <= limit else "length"

    def work(self, count: int) -> None:
        """Take the time that so many tokens take."""
        time.sleep(count / self.tokens_per_s)


def serve(host: str, port: int, service: Service) -> ThreadingHTTPServer:
    """Bind and answer in threads. Raises OSError if the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            info = {"model_path": service.model, "tokenizer_path": service.model, "is_generation": True}
            if service.page is not None:
                return self._send(200, service.page, "text/html")
            if path in ("/health", "/health_generate"):
                return self._send(200 if service.is_warm else 503, b"")
            if path == "/get_model_info" or (path == "/model_info" and service.version != "0.5.5"):
                return self._json(200, info)
            if path in ("/get_server_info", "/server_info"):
                return self._json(200, {**info, "version": service.version})
            if path == "/v1/models":
                return self._json(200, {"object": "list", "data": [{"id": service.model, "object": "model"}]})
            return self._json(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            path = self.path.partition("?")[0]
            if service.page is not None:
                return self._send(200, service.page, "text/html")
            if path == "/v1/chat/completions":
                question = str(data.get("messages", [{}])[-1].get("content"))
                return self._answer(data, question, data.get("max_tokens") or 128, _chat)
            if path == "/v1/completions":
                return self._answer(data, str(data.get("prompt")), data.get("max_tokens") or 16, _completion)
            if path == "/generate":
                sampling = data.get("sampling_params") or {}
                return self._answer(data, str(data.get("text")), sampling.get("max_new_tokens") or 128, _generate)
            return self._json(404, {"detail": "Not Found"})

        def _answer(self, data: dict[str, Any], question: str, limit: int, form: Any) -> None:
            text, tokens, finish = service.answer(question, int(limit))
            if data.get("stream"):
                self._stream(text, tokens, finish, form, service)
                return
            wants = bool(data.get("logprobs") or data.get("return_logprob"))
            self._json(200, form(text, tokens if wants else None, finish, service.model, len(tokens)))

        def _stream(self, text: str, tokens: list[Any], finish: str, form: Any, service: Service) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for place in range(0, len(tokens), 16):
                some = tokens[place : place + 16]
                service.work(len(some))
                piece = "".join(item[2] for item in some)
                so_far = "".join(item[2] for item in tokens[: place + 16])
                body = form(so_far if form is _generate else piece, None, finish, service.model, len(some))
                for choice in body.get("choices", ()):
                    if "message" in choice:
                        choice["delta"] = choice.pop("message")
                        body["object"] = "chat.completion.chunk"
                self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def _json(self, status: int, body: Any) -> None:
            self._send(status, json.dumps(body).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            text = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
            peer = f"{self.client_address[0]}:{self.client_address[1]}"
            service.say(f'INFO:     {peer} - "{self.command} {self.path} HTTP/1.1" {status} {text}')
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True
        request_queue_size = 128

    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _logprobs(tokens: list[Any] | None) -> Any:
    if tokens is None:
        return None
    content = [{"token": text, "logprob": logprob, "top_logprobs": [{"token": text, "logprob": logprob},
                {"token": "x", "logprob": logprob if logprob is None or logprob < -5 else logprob - 3.1}]}
               for logprob, _, text in tokens]  # fmt: skip
    return {"content": content}


def _chat(text: str, tokens: list[Any] | None, finish: str, model: str, count: int) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish,
              "logprobs": _logprobs(tokens)}  # fmt: skip
    usage = {"prompt_tokens": 9, "completion_tokens": count, "total_tokens": 9 + count}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}


def _completion(text: str, tokens: list[Any] | None, finish: str, model: str, count: int) -> dict[str, Any]:
    body = _chat(text, tokens, finish, model, count)
    body["object"] = "text_completion"
    body["choices"][0]["text"] = body["choices"][0].pop("message")["content"]
    return body


def _generate(text: str, tokens: list[Any] | None, finish: str, model: str, count: int) -> dict[str, Any]:
    meta: dict[str, Any] = {"id": "1", "finish_reason": {"type": finish}, "prompt_tokens": 9,
                            "completion_tokens": count, "e2e_latency": 0.1}  # fmt: skip
    if tokens is not None:
        meta["output_token_logprobs"] = [list(item) for item in tokens]
        meta["output_top_logprobs"] = [
            [list(item), [item[0] if item[0] is None or item[0] < -5 else item[0] - 3.1, 5, "x"]] for item in tokens
        ]
    return {"text": text, "output_ids": [item[1] for item in tokens or ()], "meta_info": meta}
