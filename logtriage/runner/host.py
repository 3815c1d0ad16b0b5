"""What a launch finds on this machine besides GPUs: free ports, room for its caches, shared memory, open files."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
from typing import TYPE_CHECKING, Any

from logtriage.environment import PortUse, Space
from logtriage.runner.target import expanded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_STATES = {errno.EADDRINUSE: "taken", errno.EADDRNOTAVAIL: "no-address", errno.EACCES: "refused"}
_TRIED = 100
_SHM = "/dev/shm"  # noqa: S108 - it is asked for its size


def ports(wanted: Iterable[tuple[str, str, int]]) -> Iterator[PortUse]:
    """Yield the state of ports that a launch wants, given as flag, host and port, by binding them for a moment."""
    for flag, host, port in wanted:
        state = port_state(host, port)
        pid, process = _listener(port) if state == "taken" else (None, None)
        yield PortUse(flag, host, port, state, pid, process, _other(host, port) if state == "taken" else None)


def port_state(host: str, port: int) -> str:
    """Return ``free``, ``taken``, ``refused`` or ``no-address`` (the host is not this machine)."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return "no-address"
    for family, kind, protocol, _, address in found[:1]:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            try:
                probe.bind(address)
            except OSError as error:
                return _STATES.get(error.errno or 0, "no-address")
    return "free"


def _other(host: str, port: int) -> int | None:
    return next(
        (other for other in range(port + 1, min(port + _TRIED, 65536)) if port_state(host, other) == "free"), None
    )


def _listener(port: int) -> tuple[int | None, str | None]:
    """The process that listens on a port, as far as this user may see it."""
    import psutil

    try:
        for item in psutil.net_connections("inet"):
            if item.laddr and item.laddr.port == port and item.status == psutil.CONN_LISTEN and item.pid:
                return item.pid, psutil.Process(item.pid).name()
    except psutil.Error:
        return None, None
    return None, None


def spaces(caches: Iterable[Mapping[str, Any]], env: Mapping[str, str]) -> Iterator[Space]:
    """Yield the free room in the folders that kernels are built into."""
    home = env.get("HOME") or os.path.expanduser("~")
    for cache in caches:
        given = env.get(cache["variable"])
        folder = os.path.join(expanded(given, env), cache["below"]) if given else os.path.join(home, cache["home"])
        if (found := space(cache["what"], os.path.normpath(folder))) is not None:
            yield found


def space(what: str, folder: str) -> Space | None:
    """Return the free room where a folder is or would be; None where no part of its path can be asked."""
    place = os.path.abspath(folder)
    while not os.path.exists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        return Space(what, folder, shutil.disk_usage(place).free, os.access(place, os.W_OK | os.X_OK))
    except OSError:
        return None


def absent(paths: Iterable[tuple[str, str]], env: Mapping[str, str], cwd: str) -> Iterator[tuple[str, str]]:
    """Yield the flags whose path does not exist; a value that may be another name than that of a file is left out."""
    for flag, text in paths:
        path = expanded(text.partition("=")[2] or text, env)
        if path.startswith(("/", "./", "../")) and not os.path.exists(os.path.join(cwd, path)):
            yield flag, path


def proxy_for(address: str, env: Mapping[str, str]) -> str | None:
    """Return the variable that sends requests to an address through a proxy, or None: the server asks itself first."""
    name = next((name for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY") if env.get(name)), None)
    exempt = env.get("no_proxy") or env.get("NO_PROXY") or ""
    own = "127.0.0.1" if address in ("0.0.0.0", "::", "") else address  # noqa: S104 - compared, not bound
    if name is None:
        return None
    import urllib.request

    if urllib.request.proxy_bypass_environment(own, {"no": exempt}):  # type: ignore[attr-defined]
        return None
    return name


def shared_memory() -> int | None:
    """Return the bytes free in /dev/shm, or None where there is none."""
    try:
        return shutil.disk_usage(_SHM).free
    except OSError:
        return None


def open_files() -> int | None:
    """Return how many files a process may open after it has raised its own limit; None for no limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard
