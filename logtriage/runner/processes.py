"""The processes of a launch, found wherever they have gone, and what they do. Nothing else is ever touched.

A process belongs to a launch if it is a descendant of its first process, is in its session, carries its marker in its
environment, or was seen as one of these before.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil

from logtriage.records import Record
from logtriage.runner.launcher import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator


class Usage(Record):
    """What the processes of a launch have used since they began: CPU seconds, bytes read from and written to disk."""

    cpu: float
    disk: float


class Family:
    """The processes of one launch: `root` is the id of its first process, `born` what `birth` said of that one.

    A process id that was given to another process since is told apart by its birth.
    """

    def __init__(self, root: int, born: str | None, marker: str) -> None:
        self._root = root
        self._born = born
        self._marker = marker
        self._seen: dict[int, psutil.Process] = {}
        self._used: dict[int, Usage] = {}

    def alive(self, *, thorough: bool = False) -> list[psutil.Process]:
        """Return its processes that live; `thorough` also reads the environment of every process of this user."""
        for process in self._found(thorough):
            self._seen.setdefault(process.pid, process)
        self._seen = {pid: process for pid, process in self._seen.items() if is_alive(process)}
        return list(self._seen.values())

    def holds(self, pid: int) -> bool:
        """Return whether a process belongs to the launch."""
        return any(process.pid == pid for process in self.alive(thorough=True))

    def usage(self) -> Usage:
        """Return what all processes, also those that have ended, have used so far."""
        for process in self.alive():
            try:
                times = process.cpu_times()
                self._used[process.pid] = Usage(times.user + times.system, _disk(process))
            except psutil.Error:
                continue
        used = self._used.values()
        return Usage(sum(item.cpu for item in used), sum(item.disk for item in used))

    def _found(self, thorough: bool) -> Iterator[psutil.Process]:
        reborn = birth(self._root) not in (None, self._born)  # another process has the first one's id now
        for root in [*self._seen, *([] if reborn else [self._root])]:
            try:
                process = self._seen.get(root) or psutil.Process(root)
                yield process
                yield from process.children(recursive=True)
            except psutil.Error:
                continue
        for pid in psutil.pids():
            try:
                in_session = not reborn and os.getsid(pid) == self._root
                if in_session or (thorough and marker_of(pid) == self._marker):
                    yield psutil.Process(pid)
            except (OSError, psutil.Error):
                continue


def birth(pid: int) -> str | None:
    """Return what tells a process apart from any other that ever has its id: boot and ticks since; None if it is gone.

    The wall clock plays no part in it: it may jump.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            ticks = file.read().rpartition(")")[2].split()[19]
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}:{ticks}"
    except (OSError, IndexError):
        return None


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process lives; one that has ended and was not fetched by its parent does not."""
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def marked() -> dict[str, list[psutil.Process]]:
    """Return all living processes of this user that carry a marker, by their marker."""
    found: dict[str, list[psutil.Process]] = {}
    for pid in psutil.pids():
        if marker := marker_of(pid):
            try:
                process = psutil.Process(pid)
            except psutil.Error:
                continue
            if is_alive(process):
                found.setdefault(marker, []).append(process)
    return found


def described(process: psutil.Process) -> str:
    """Return who a process is, for people: its id, its name and the first words of its command."""
    try:
        words = " ".join(process.cmdline())[:120] or process.name()
    except psutil.Error:
        return f"pid {process.pid}"
    return f"pid {process.pid} ({words})"


def marker_of(pid: int) -> str | None:
    """Return the marker in a process's environment, or None. A process that rewrites its title may have lost it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    head = f"{MARKER}=".encode()
    return next((item[len(head) :].decode(errors="replace") for item in variables if item.startswith(head)), None)


def _disk(process: psutil.Process) -> float:
    try:
        counters = process.io_counters()
    except (psutil.Error, OSError, AttributeError):
        return 0.0
    return float(counters.read_bytes + counters.write_bytes)
