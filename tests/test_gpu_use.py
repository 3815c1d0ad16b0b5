"""What NVML says of a launch's processes is taken as it is, and its silence claims nothing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from logtriage import following
from logtriage.runner import cleanup, gpu_use
from logtriage.runner.processes import Family, Process

if TYPE_CHECKING:
    import pytest


class Nvml(ModuleType):
    """Two GPUs: process 7 holds memory on both until it has been asked for it three times."""

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.asked = 0

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own name
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        self.asked += handle
        return [] if self.asked > 3 else [SimpleNamespace(pid=7, usedGpuMemory=3 << 30)]

    def nvmlDeviceGetProcessUtilization(self, handle: int, since: int) -> list[Any]:  # noqa: N802
        if handle:
            raise RuntimeError("not supported")
        return [SimpleNamespace(pid=7, smUtil=41, memUtil=12), SimpleNamespace(pid=8, smUtil=90, memUtil=0)]


class Gone(Family):
    """A family that was alive when it was first looked at."""

    def alive(self, *, thorough: bool = False) -> list[Process]:
        self.looks = getattr(self, "looks", 0) + 1
        return [Process(7, 1, 7, 7, 1, 0.0)] if self.looks == 1 else []


def test_only_our_processes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and use of other tenants are never ours."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert gpu_use.held({7, 9}) == {7: 6 << 30}
    assert gpu_use.held({9}) == {}
    assert gpu_use.busiest({7}) == 41
    assert gpu_use.busiest({9}) == 0


def test_without_nvml_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package, no driver: nothing is held and nothing is busy."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_use.held({7}) == {}
    assert gpu_use.busiest({7}) == 0


def test_memory_is_seen_to_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the processes have ended, the GPU is asked until it has let go; if it does not, it is said who holds it."""
    times = iter(range(1000))
    clock = following.Clock(lambda: float(next(times)), lambda seconds: None)
    monkeypatch.setattr("logtriage.runner.cleanup.processes.send", lambda number, process: None)
    monkeypatch.setattr("logtriage.runner.cleanup.os.killpg", lambda group, number: None)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    limits = {"term": 5, "kill": 5, "release": 50}
    assert cleanup.stop(Gone(7, None, "m"), 7, limits, clock).left == ()
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    left = cleanup.stop(Gone(7, None, "m"), 7, limits | {"release": 1}, clock).left
    assert left == ("pid 7 still holds 6144 MiB of GPU memory",)
