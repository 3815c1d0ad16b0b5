"""HTTP to a server under test: every call bounded in time and in size, and no proxy from the environment ever answers.

In: a base URL and paths. Out: what came back, or why nothing did; nothing here judges.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import httpx

from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Stop = Callable[[], bool]
    """Asked several times a second; True ends what is being done."""
    OnPiece = Callable[[bytes], None]

LARGEST = 8 << 20  # bytes of one body; a long answer with logprobs takes some 300 KB
_SHOWN = 120
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server listens is not where it is asked

_Value = TypeVar("_Value")


class Reply(NamedTuple):
    """What came back: `kind` is the media type without parameters, `seconds` the whole time it took."""

    status: int
    kind: str
    body: bytes
    seconds: float

    def json(self) -> Any:
        """Return the body as data where it says that it is JSON and is; else None."""
        if self.kind != "application/json":
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def shown(self) -> str:
        """Return the status, the media type and the beginning of the body, in one line."""
        text = " ".join(self.body[: 4 * _SHOWN].decode("utf-8", "replace").split())
        return f"{self.status} {self.kind or 'without a media type'}" + (f": {text[:_SHOWN]}" if text else "")


_JSON = {"content-type": "application/json"}


class Silence(NamedTuple):
    """Why nothing came back: `refused`, `timeout`, `broken` (cut off), `not-http`, `tls` or `too-large`."""

    kind: str
    detail: str


def base_of(url: str) -> str:
    """Return the base URL that `url` means: with a scheme, without a trailing `/v1`, and never "any address".

    Raises InputError for what is no address of a server.
    """
    text = url.strip()
    if not re.match(r"[a-z][a-z0-9+.-]*://", text, re.IGNORECASE):
        text = f"http://{text}"
    try:
        parsed = httpx.URL(text)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise InputError(f"{url!r} is no URL ({error}); give one such as http://127.0.0.1:30000") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError(f"{url!r} is no URL of an HTTP server; give one such as http://127.0.0.1:30000")
    if parsed.port is not None and not 0 < parsed.port < 1 << 16:
        raise InputError(f"{url!r}: there is no port {parsed.port}; give one from 1 to 65535, such as 30000")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise InputError("a URL with a user, a query or a fragment is no base URL; give the key with --api-key-env")
    host = _ANY_ADDRESS.get(parsed.host, parsed.host)
    path = re.sub(r"/v1/?\Z", "", parsed.path).rstrip("/")
    return str(parsed.copy_with(host=host, path=path or "/")).rstrip("/")


class Client:
    """A connection pool to one server; use it as an asynchronous context manager."""

    def __init__(self, base_url: str, api_key: str | None = None, most: int = 64) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=base_url, headers=headers, trust_env=False, timeout=None,  # noqa: S113 - each call has its own
            verify=base_url.startswith("https:"), limits=httpx.Limits(max_connections=most),
        )  # fmt: skip

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def call(
        self, method: str, path: str, *, timeout_s: float, data: Any = None, on_piece: OnPiece | None = None
    ) -> Reply | Silence:
        """Send `data` as JSON and return the whole answer, at the latest after `timeout_s`; `on_piece` sees it grow."""
        begin = time.monotonic()
        kept = bytearray()
        body = None if data is None else json.dumps(data).encode()  # all of it ASCII: a name may be no UTF-8
        try:
            async with asyncio.timeout(timeout_s):
                async with self._http.stream(method, path, content=body, headers=_JSON if body else None) as response:
                    async for piece in response.aiter_bytes():
                        kept += piece
                        if on_piece:
                            on_piece(piece)
                        if len(kept) > LARGEST:
                            return Silence("too-large", f"more than {LARGEST >> 20} MiB came back from {path}")
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                return Reply(response.status_code, kind, bytes(kept), time.monotonic() - begin)
        except TimeoutError:
            return Silence("timeout", f"no whole answer from {path} within {timeout_s:g} s")
        except httpx.ConnectError as error:
            is_tls = isinstance(_first_cause(error), ssl.SSLError)
            return Silence("tls" if is_tls else "refused", f"cannot connect: {error}")
        except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
            kind = "broken" if kept or "disconnected" in str(error) else "not-http"
            return Silence(kind, f"{path}: {error}")
        except httpx.HTTPError as error:
            return Silence("broken", f"{path}: {error or type(error).__name__}")


def run(work: Coroutine[Any, Any, _Value], stop: Stop | None = None) -> _Value | None:
    """Do asynchronous work and return its value; None as soon as `stop` says so."""
    return asyncio.run(_until(stop, work))


async def _until(stop: Stop | None, work: Coroutine[Any, Any, _Value]) -> _Value | None:
    task = asyncio.ensure_future(work)
    while not task.done():
        if stop and stop():
            task.cancel()
        await asyncio.wait({task}, timeout=0.1 if stop else None)
    return None if task.cancelled() else task.result()


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return error
