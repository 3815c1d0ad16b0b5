"""Is the server up, and is it SGLang that answers? And who holds a port?

A status 200 proves nothing: a proxy, another server or a dummy of a multi-node launch gives it too. Ready is only what
shows SGLang's own model information and then says that it is healthy.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Literal, NamedTuple

from logtriage.runner import client

State = Literal["down", "warming", "ready", "foreign"]

_ANY = {"", "0.0.0.0", "::", "*"}  # noqa: S104


class Readiness(NamedTuple):
    """How far a server is.

    Attributes:
        state: `down` (nothing listens), `warming` (it listens and is not ready), `ready`, or `foreign`: what answers is
            no SGLang server.
        model: the path or name of the model, where SGLang has told it.
        detail: one sentence that shows it.
        generates: False for an embedding or reward model, which answers no prompt.
    """

    state: State
    model: str | None
    detail: str
    generates: bool = True


class Holder(NamedTuple):
    """Who listens on a port; both are None where the system does not tell (another user's process, say)."""

    pid: int | None
    name: str | None

    def __str__(self) -> str:
        """Return it in words."""
        return "a process that the system does not name" if self.pid is None else f"process {self.pid} ({self.name})"


def check(base_url: str, *, timeout_s: float = 2.0, api_key: str | None = None) -> Readiness:
    """Ask the server at `base_url` how far it is; takes at most three times `timeout_s`.

    Raises InputError where `base_url` is no URL.
    """
    found = client.run(_check(client.base_of(base_url), timeout_s, api_key))
    assert found is not None  # noqa: S101 - nothing stops it
    return found


def port_holder(host: str, port: int) -> Holder | None:
    """Return who listens on a TCP port of this machine, or None if a server can bind it.

    `host` is the address that the server is to listen on; a name is resolved. Raises OSError for one that this
    machine does not have.
    """
    addresses = _addresses(host, port)
    if not any(_is_taken(family, address, alone=len(addresses) == 1) for family, address in addresses):
        return None
    import psutil

    wanted = {address[0] for _, address in addresses}
    with contextlib.suppress(psutil.Error, OSError):
        for one in psutil.net_connections(kind="tcp"):
            if not one.laddr or one.status != psutil.CONN_LISTEN or not one.pid:
                continue
            if one.laddr.port == port and (one.laddr.ip in _ANY | wanted or wanted & _ANY):
                with contextlib.suppress(psutil.Error):
                    return Holder(one.pid, psutil.Process(one.pid).name())
    return Holder(None, None)


async def _check(base: str, timeout_s: float, api_key: str | None) -> Readiness:
    async with client.Client(base, api_key) as server:
        reply = await server.call("GET", "/model_info", timeout_s=timeout_s)
        if isinstance(reply, client.Reply) and reply.status == 404:
            reply = await server.call("GET", "/get_model_info", timeout_s=timeout_s)  # up to 0.5.5; deprecated later
        if isinstance(reply, client.Silence):
            return _silent(reply)
        info = reply.json()
        if reply.status != 200 or not isinstance(info, dict) or not isinstance(info.get("model_path"), str):
            return Readiness("foreign", None, _foreign(reply))
        model, generates = info["model_path"], info.get("is_generation") is not False
        health = await server.call("GET", "/health", timeout_s=timeout_s)
    if isinstance(health, client.Silence):
        state: State = "down" if health.kind == "refused" else "warming"
        return Readiness(state, model, f"SGLang listens, /health: {health.detail}", generates)
    if health.status == 200:
        return Readiness("ready", model, f"SGLang serves {model}, /health answers 200", generates)
    return Readiness("warming", model, f"SGLang serves {model}, /health answers {health.status}", generates)


def _silent(silence: client.Silence) -> Readiness:
    states: dict[str, State] = {"refused": "down", "broken": "warming", "timeout": "warming"}
    return Readiness(states.get(silence.kind, "foreign"), None, silence.detail)


def _foreign(reply: client.Reply) -> str:
    if reply.status in (401, 403):
        return f"asked for its model, it answers {reply.status}: it wants another API key (or is no SGLang)"
    return f"asked for its model, it answers as no SGLang server does: {reply.shown()}"


def _addresses(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return sorted({(int(family), (str(address[0]), int(address[1]))) for family, _, _, _, address in found})


def _is_taken(family: int, address: tuple[str, int], *, alone: bool) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: what has closed is free
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
            one.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return True
        if alone or error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # localhost without IPv6, say
            raise
    return False
