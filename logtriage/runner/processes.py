"""The processes of a launch, found wherever they have gone, and what they do. Nothing else is ever touched.

A process belongs to a launch if it is a descendant of its first process, is in its session, carries its marker in its
environment, or was seen as one of these before. All is read from Linux's /proc, in one pass for each look.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from logtriage.records import Record
from logtriage.runner.launcher import MARKER

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_DEAD = "ZX"


class Process(NamedTuple):
    """A process as it was when it was looked at; `born` are the ticks from boot to its start, `cpu` seconds."""

    pid: int
    parent: int
    group: int
    session: int
    born: int
    cpu: float


class Usage(Record):
    """What the processes of a launch have used since they began: CPU seconds, bytes read from and written to disk."""

    cpu: float
    disk: float


class Family:
    """The processes of one launch: `root` is the id of its first process, `born` what `birth` said of that one.

    A process id that was given to another process since is told apart by its birth. Where the first process is not
    known (None), only the marker tells.
    """

    def __init__(self, root: int | None, born: str | None, marker: str) -> None:
        self._root = root
        self._born = born
        self._marker = marker
        self._seen: dict[int, Process] = {}
        self._used: dict[tuple[int, int], Usage] = {}

    def alive(self, *, thorough: bool = False) -> list[Process]:
        """Return its processes that live; `thorough` also reads the environment of every process of this user."""
        running = _running()
        mine = {pid for pid, before in self._seen.items() if pid in running and running[pid].born == before.born}
        if self._root is not None and birth(self._root) in (None, self._born):
            mine |= {pid for pid, one in running.items() if self._root in (pid, one.session)}
        if thorough:
            mine |= {pid for pid in running.keys() - mine if marker_of(pid) == self._marker}
        children: dict[int, list[int]] = {}
        for one in running.values():
            children.setdefault(one.parent, []).append(one.pid)
        found = list(mine)
        for pid in found:  # grows while it is gone through
            found += [child for child in children.get(pid, ()) if child not in mine]
            mine.update(children.get(pid, ()))
        self._seen = {pid: running[pid] for pid in sorted(mine) if pid in running}
        return list(self._seen.values())

    def holds(self, pid: int) -> bool:
        """Return whether a process belongs to the launch."""
        return any(one.pid == pid for one in self.alive(thorough=True))

    def usage(self) -> Usage:
        """Return what all processes, also those that have ended, have used so far."""
        for one in self.alive():
            self._used[one.pid, one.born] = Usage(one.cpu, _disk(one.pid))
        used = self._used.values()
        return Usage(sum(item.cpu for item in used), sum(item.disk for item in used))


def birth(pid: int) -> str | None:
    """Return what tells a process apart from any other that ever has its id: boot and ticks since; None if it is gone.

    The wall clock plays no part in it: it may jump.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return None
    found = _read(pid)
    return f"{boot}:{found.born}" if found else None


def send(number: int, process: Process) -> None:
    """Send a signal to a process; not if its id is another's by now, and silently if it has ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = _read(process.pid)
        if now is not None and now.born == process.born:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


def words_of(process: Process) -> list[str]:
    """Return the words of a process's command; none if it has ended."""
    try:
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def described(process: Process) -> str:
    """Return who a process is, for people: its id and the first words of its command."""
    words = " ".join(words_of(process))[:2000]
    shown = " ".join("".join(char if char.isprintable() else " " for char in words).split())[:120]
    return f"pid {process.pid} ({shown})" if shown else f"pid {process.pid}"


def marked() -> dict[str, list[Process]]:
    """Return all living processes of this user that carry a marker, by their marker."""
    found: dict[str, list[Process]] = {}
    for one in _running().values():
        if marker := marker_of(one.pid):
            found.setdefault(marker, []).append(one)
    return found


def marker_of(pid: int) -> str | None:
    """Return the marker in a process's environment, or None. A process that rewrites its title may have lost it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    head = f"{MARKER}=".encode()
    return next((item[len(head) :].decode(errors="replace") for item in variables if item.startswith(head)), None)


def _running() -> dict[int, Process]:
    """All processes that live, by their id."""
    found = (_read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {one.pid: one for one in found if one is not None}


def _read(pid: int) -> Process | None:
    """One process, or None if it does not live (one that its parent has not fetched yet does not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0].decode() in _DEAD:
            return None
        cpu = (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
        return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), cpu)
    except (OSError, IndexError, ValueError):
        return None


def _disk(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            told = dict(line.split(": ") for line in file.read().splitlines())
        return float(told["read_bytes"]) + float(told["write_bytes"])
    except (OSError, ValueError, KeyError):
        return 0.0
