"""The GPUs of this machine through NVML: what they are, what is free on them, who holds the rest."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from logtriage.environment import Gpu, Holder
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


NOT_KNOWN = "The GPUs of this machine are not known"


class Found(Record):
    """What NVML tells: `gpus` is None where it does not answer, and `gaps` say why."""

    platform: str | None = None
    gpus: tuple[Gpu, ...] | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    gaps: tuple[str, ...] = ()


def read(visible: str | None, nvml: Any = None) -> Found:
    """Return the GPUs that a process with ``CUDA_VISIBLE_DEVICES=visible`` (None: not set) would see.

    `nvml` is the module to ask, by default that of nvidia-ml-py.
    """
    if nvml is None:
        try:
            import pynvml
        except ImportError:  # run from a checkout, with packages carried by hand
            return Found(gaps=("The GPUs of this machine are not known: nvidia-ml-py is not installed.",))
        nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if os.path.exists("/dev/kfd"):
            return Found("rocm", gaps=("The GPUs are AMD's: of their kernels nothing is known here.",))
        return Found(gaps=(f"{NOT_KNOWN}: NVML says {_said(error)}.",))
    try:
        return _read(visible, nvml)
    except nvml.NVMLError as error:
        return Found("cuda", gaps=(f"{NOT_KNOWN}: NVML says {_said(error)}.",))
    finally:
        nvml.nvmlShutdown()


def _said(error: Exception) -> str:
    return f"{str(error).rstrip('.')!r}"


def _read(visible: str | None, nvml: Any) -> Found:
    number = nvml.nvmlSystemGetCudaDriverVersion_v2()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    ids = [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    chosen, gaps = _visible(visible, ids)
    if any(_has_mig(handle, nvml) for handle in handles):
        gaps.append("A GPU is divided (MIG): how much of it the launch gets is not known.")
    gpus = [_gpu(index, handles[index], nvml) for index in chosen]
    if len({gpu.sm for gpu in gpus}) > 1 and visible and not visible.startswith("GPU-"):
        gaps.append("The GPUs differ, and CUDA may count them in another order than NVML (CUDA_DEVICE_ORDER).")
    return Found(
        platform="cuda",
        gpus=tuple(gpus),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        driver_cuda=f"{number // 1000}.{number % 1000 // 10}",
        gaps=tuple(gaps),
    )


def _visible(visible: str | None, ids: Sequence[str]) -> tuple[list[int], list[str]]:
    """The indexes that CUDA_VISIBLE_DEVICES leaves: it ends at the first entry that names no GPU."""
    if visible is None:
        return list(range(len(ids))), []
    chosen: list[int] = []
    for entry in (part.strip() for part in visible.split(",")):
        if entry.startswith("MIG-"):
            return chosen, [f"CUDA_VISIBLE_DEVICES names a part of a GPU ({entry}), which is not looked into."]
        index = next((place for place, name in enumerate(ids) if entry and name.startswith(entry)), -1)
        index = int(entry) if entry.isdecimal() else index
        if not 0 <= index < len(ids):
            unknown = [f"CUDA_VISIBLE_DEVICES={visible}: {entry} is none of the {len(ids)} GPUs."] if entry else []
            return chosen, unknown
        chosen.append(index)
    return chosen, []


def _gpu(index: int, handle: Any, nvml: Any) -> Gpu:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    total: int | None = None
    free: int | None = None
    with suppress(nvml.NVMLError):  # of GPUs that share the memory of the host
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        total, free = int(memory.total), int(memory.free)
    name = _text(nvml.nvmlDeviceGetName(handle))
    return Gpu(index, name, major * 10 + minor, total, free, tuple(_holders(handle, nvml)))


def _holders(handle: Any, nvml: Any) -> Iterator[Holder]:
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:
        return
    for process in sorted(processes, key=lambda item: -(item.usedGpuMemory or 0)):
        yield Holder(process.pid, _name(process.pid), process.usedGpuMemory)


def _name(pid: int) -> str | None:
    import psutil

    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:  # gone, of another user, or of another container
        return None


def _has_mig(handle: Any, nvml: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        return False


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
