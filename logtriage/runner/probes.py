"""What an attempt asks about its server from outside: a seam, so that it can be driven without a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable


class Probes(Record):
    """What looks outside: whether a server answers, who holds a port, whether answers are sane, how fast they come."""

    check: Callable[..., Any]
    holder: Callable[[str, int], Any]
    smoke: Callable[..., Any]
    speed: Callable[..., Any]


def system_probes(
    prompts: str | None = None, python: str | None = None, stop: Callable[[], bool] | None = None
) -> Probes:
    """Return the probes that ask real servers.

    `prompts` is a file for the smoke test, `python` the interpreter of the server, whose own benchmark measures the
    speed if it has one; `stop` ends a question early. Raises InputError for the file.
    """
    from functools import partial

    from logtriage.runner import readiness, smoke, speed
    from logtriage.runner.prompts import load

    return Probes(
        check=readiness.check,
        holder=readiness.port_holder,
        smoke=partial(smoke.run, prompts=load(prompts), stop=stop),
        speed=partial(speed.measure, python=python, stop=stop),
    )
