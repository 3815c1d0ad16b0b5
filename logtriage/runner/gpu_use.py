"""What NVML tells of the processes of a launch: GPU memory that they hold, and whether they use a GPU.

Without a GPU or without NVML everything is empty. Process ids in a container may differ from those that NVML knows:
then nothing is claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection


def held(pids: Collection[int]) -> dict[int, int]:
    """Return the bytes of GPU memory that each of some processes holds, for those that hold any."""
    found: dict[int, int] = {}
    for nvml, gpu in _gpus():
        for process in _asked(nvml.nvmlDeviceGetComputeRunningProcesses, gpu) or ():
            if process.pid in pids:
                found[process.pid] = found.get(process.pid, 0) + int(process.usedGpuMemory or 0)
    return found


def busiest(pids: Collection[int]) -> int:
    """Return the highest utilisation in percent that any of some processes causes on a GPU."""
    highest = 0
    for nvml, gpu in _gpus():
        for sample in _asked(nvml.nvmlDeviceGetProcessUtilization, gpu, 0) or ():
            if sample.pid in pids:
                highest = max(highest, int(sample.smUtil), int(sample.memUtil))
    return highest


def _gpus() -> list[tuple[Any, Any]]:
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        return [(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count)]
    except Exception:  # no package, no driver, no GPU: each has an error of its own
        return []


def _asked(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception:  # not supported by this GPU or driver
        return None
