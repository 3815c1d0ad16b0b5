"""What else a launch meets: ports, room for kernels, shared memory, open files, and how a container is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.preflight import sizes
from logtriage.advice.preflight.finding import FAILS, GIB, OK, RISK, Finding, gib
from logtriage.environment import CONTAINER
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.preflight.finding import Question
    from logtriage.environment import PortUse

_LABEL = "host-resources"
_ENGINES = ("docker", "podman", "nerdctl")


def check(question: Question) -> Iterator[Finding]:
    """Yield what of the machine stands in the way."""
    for port in question.environment.ports:
        yield _port(port)
    if (variable := question.environment.proxy) is not None:
        what = f"{variable} sends the server's requests to itself through a proxy: set no_proxy=localhost,127.0.0.1"
        yield Finding("proxy", RISK, what, source="sglang#7341, sglang#9814", flag=variable, label="warmup-failure")
    yield from _room(question)
    yield from _shared_memory(question)
    yield from _container(question)


def _port(use: PortUse) -> Finding:
    about = Finding("port", FAILS, "", source="tried on this machine", flag=use.flag, value=str(use.port),
                    label="port-in-use")  # fmt: skip
    if use.state == "free":
        return about.replace(severity=OK, what=f"{use.flag} {use.port} is free", label=None)
    if use.state == "taken":
        who = f"by process {use.pid} ({use.process})" if use.pid else "by a process that may not be seen"
        change = Change(use.flag, str(use.port), str(use.other), "it is free", 0.7, "tried on this machine")
        what = f"{use.flag} {use.port} is taken {who}"
        return about.replace(what=what, instead=(change,) if use.other else ())
    if use.state == "refused":
        return about.replace(what=f"{use.flag} {use.port} may not be opened by this user: below 1024 that takes root")
    return about.replace(what=f"--host {use.host} is no address of this machine", flag="--host", value=use.host)


def _room(question: Question) -> Iterator[Finding]:
    rooms = [*question.known["caches"], question.known["hub"]]
    needs = {room["what"]: room["need_gib"] for room in rooms}
    for space in question.environment.spaces:
        if not space.writable:
            what = f"{space.path} cannot be written: {space.what} go there"
            yield Finding("cache-folder", RISK, what, label=_LABEL)
        elif space.free < needs.get(space.what, 0) * GIB:
            what = f"Only {gib(space.free)} are free for {space.what}"
            yield Finding("disk", RISK, what, why=space.path, label=_LABEL)
    hard = question.environment.open_files
    least = question.known["limits"]["open_files"]
    if hard is not None and hard < least:
        what = f"At most {hard} files may be open (`ulimit -Hn`), and a launch may need more: ulimit -n 65536"
        yield Finding("open-files", RISK, what, label=_LABEL)


def _shared_memory(question: Question) -> Iterator[Finding]:
    free, least = question.environment.shm, question.known["limits"]["shm_gib"]
    ranks = sizes.of(question).gpus
    if free is not None and ranks > 1 and free < least * GIB:
        what = f"/dev/shm has {gib(free)} free, and {ranks} ranks talk through it"  # noqa: S108
        yield Finding("shared-memory", RISK, what, label=_LABEL)


def _container(question: Question) -> Iterator[Finding]:
    """What `docker run` leaves out unless it is told."""
    wrapper = question.launch.wrapper
    engine = next((name for name in _ENGINES if any(word.rpartition("/")[2] == name for word in wrapper)), None)
    if question.environment.where != CONTAINER or engine is None or "run" not in wrapper:
        return
    ranks = sizes.of(question).gpus
    if ranks > 1 and not any(word.startswith(("--shm-size", "--ipc")) for word in wrapper):
        size = question.known["limits"]["container_shm_mib"]
        what = f"{engine} gives {size} MiB of /dev/shm to {ranks} ranks: add --shm-size 32g or --ipc=host"
        yield Finding("shared-memory", RISK, what, label=_LABEL)
    gives = ("--gpus", "--device", "--runtime", "--privileged")
    if question.flag("--device") != "cpu" and not any(word.startswith(gives) for word in wrapper):
        what = f"{engine} shows no GPU to the container unless it is told: add --gpus all"
        yield Finding("container-gpus", RISK, what, label=_LABEL)
