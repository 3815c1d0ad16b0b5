"""Tells a launch that is stuck from one that is slow: stuck is silent *and* idle for longer than its stage may take.

Kernel builds, autotune and weight loading print nothing for minutes; they use the CPU, a GPU or a disk meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.runner import gpu_use

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from logtriage.runner.processes import Family, Usage

LOOK = 2.0
"""Seconds between two looks at what the processes do."""


class Stall:
    """Watches one launch. Times are those of the caller's clock, in seconds."""

    def __init__(
        self,
        family: Family,
        limits: Mapping[str, Any],
        now: float,
        *,
        gpu: Callable[[set[int]], int] = gpu_use.busiest,
    ) -> None:
        self._family = family
        self._limits = limits
        self._gpu = gpu
        self._busy_at = now
        self._looked_at = now
        self._used: Usage | None = None

    def verdict(self, now: float, written_at: float, stage: str) -> str | None:
        """Return why the launch is stuck, or None. Cheap if called often: it looks at most every `LOOK` seconds."""
        if now - self._looked_at < LOOK:
            return None
        if self._is_busy(now - self._looked_at):
            self._busy_at = now
        self._looked_at = now
        limit = self._limits["stall"][stage or "args"]
        silent = now - written_at
        idle = min(silent, now - self._busy_at)
        where = f"in stage {stage}" if stage else "before its first stage"
        if idle >= limit["idle"]:
            return f"nothing was printed and nothing was done {where} for {idle:.0f} s (limit {limit['idle']:g} s)"
        if silent >= limit["busy"]:
            return f"nothing was printed {where} for {silent:.0f} s, though it is busy (limit {limit['busy']:g} s)"
        return None

    def _is_busy(self, seconds: float) -> bool:
        used, before = self._family.usage(), self._used
        self._used = used
        if before is None:
            return True
        least = self._limits["activity"]
        if used.cpu - before.cpu >= least["cpu_share"] * seconds:
            return True
        if used.disk - before.disk >= least["disk_bytes_per_s"] * seconds:
            return True
        return bool(self._gpu({process.pid for process in self._family.alive()}) >= least["gpu_percent"])
