"""Ends the processes of a launch, and only these: SIGTERM, then SIGKILL; then sees port and GPU memory released."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from logtriage.records import Record
from logtriage.runner import gpu_use, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from logtriage.following import Clock
    from logtriage.runner.processes import Family, Process

_LOOK = 0.1
"""Seconds between two looks at processes that are to end."""


class Stopped(Record):
    """How a launch was ended.

    Attributes:
        signals: names of the signals that were needed, in order.
        left: who lives on or holds GPU memory although it was killed; empty if all is well.
    """

    signals: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def stop(
    family: Family,
    group: int,
    limits: Mapping[str, Any],
    clock: Clock,
    *,
    hurry: Callable[[], bool] = lambda: False,
) -> Stopped:
    """End all processes of a launch whose process group is `group`; `hurry` says when to go to SIGKILL at once."""
    living = family.alive() or family.alive(thorough=True)  # strays are looked for once the rest has its signal
    pids = {process.pid for process in living}
    sent: list[str] = []
    for name, number, seconds in (
        ("SIGTERM", signal.SIGTERM, limits["term"]),
        ("SIGKILL", signal.SIGKILL, limits["kill"]),
    ):
        if not living:
            break
        sent.append(name)
        _send(number, group, living)
        end = clock.now() + seconds
        while living and clock.now() < end and not (number == signal.SIGTERM and hurry()):
            clock.sleep(_LOOK)
            before = {process.pid for process in living}
            living = family.alive(thorough=True)
            if new := [process for process in living if process.pid not in before]:
                _send(number, 0, new)  # it forked in between, or had gone astray
        pids |= {process.pid for process in living}
    left = [f"{processes.described(process)} does not end" for process in living]
    return Stopped(tuple(sent), (*left, *_not_released(pids, limits, clock)))


def _send(number: int, group: int, living: Iterable[Process]) -> None:
    """Signal the group as a whole, and each process that has left it."""
    inside = [one for one in living if one.group == group]
    if inside:  # the group is only as long ours as one of ours is in it
        try:
            os.killpg(group, number)
        except OSError:
            inside = []
    for one in living:
        if one not in inside:
            processes.send(number, one)


def _not_released(pids: set[int], limits: Mapping[str, Any], clock: Clock) -> list[str]:
    """Wait until no process of the launch holds GPU memory; return who still does."""
    end = clock.now() + limits["release"]
    while (held := gpu_use.held(pids)) and clock.now() < end:
        clock.sleep(_LOOK)
    return [f"pid {pid} still holds {size >> 20} MiB of GPU memory" for pid, size in sorted(held.items())]
