"""What a launch would run on: the machine, what is installed there, and the model. None always means "not known".

The runner probes it, preflight judges it, the ledger keeps evidence apart by its key.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from logtriage.records import Record

HERE, CONTAINER, ELSEWHERE = "here", "container", "elsewhere"
"""Where a command runs: on this machine; in a container on it (same GPUs and driver, other files); on another one."""


class Holder(Record):
    """A process that holds memory of a GPU; `name` and `used` (bytes) are None where that may not be seen."""

    pid: int
    name: str | None = None
    used: int | None = None


class Gpu(Record):
    """A GPU that a launch may use: `index` as NVML counts, `sm` ten times the compute capability, memory in bytes."""

    index: int
    name: str | None = None
    sm: int | None = None
    memory: int | None = None
    free: int | None = None
    holders: tuple[Holder, ...] = ()


class Compiler(Record):
    """An nvcc or a ptxas: how it was found (`PATH`, `CUDA_HOME`, …), where it is, and its release, such as ``12.8``.

    Without a release it is not there, or does not run.
    """

    found: str
    path: str
    version: str | None = None


class Model(Record):
    """A model's own description and its weights.

    Attributes:
        path: the folder or file that was read.
        config: sizes and counts of the language model, by the names that ``preflight.yaml`` gives them.
        quantization: as ``--quantization`` names it, ``unquant`` for none; `method` as the model's files spell it.
        block: height and width of the blocks that share a scale, if the files tell.
        weight_bytes: of all tensors together, from the headers of the safetensors files.
        faults: why it cannot be loaded; `weight_faults` likewise, unless no weights are loaded.
        remote_code: whether it brings Python code of its own.
    """

    path: str
    architecture: str | None = None
    config: dict[str, int] = {}
    quantization: str | None = None
    method: str | None = None
    block: tuple[int, ...] = ()
    weight_bytes: int | None = None
    faults: tuple[str, ...] = ()
    weight_faults: tuple[str, ...] = ()
    remote_code: bool = False


class PortUse(Record):
    """A port that the launch wants: `state` is ``free``, ``taken``, ``refused`` or ``no-address``.

    Of one that is taken: who holds it, as far as that may be seen, and `other`, a port that is free.
    """

    flag: str
    host: str
    port: int
    state: str
    pid: int | None = None
    process: str | None = None
    other: int | None = None


class Space(Record):
    """Free bytes of the file system under a folder that the launch writes to, and whether it may write there."""

    what: str
    path: str
    free: int
    writable: bool


class Environment(Record):
    """A machine, what is installed on it, and the model, as far as a launch meets them.

    Attributes:
        where: ``here``, ``container`` or ``elsewhere``.
        gpus: those that the launch can see; None where that is not known, empty where there are none.
        driver: of the GPUs; `driver_cuda` the newest CUDA that it serves, such as ``13.0``.
        nvcc: all that were found, the one that counts first; None where nobody looked. `ptxas` are those of Triton.
        python: the interpreter that the command would run; `packages` its versions by fact name.
        missing: packages without which nothing starts, and which it does not find; None where it was not asked.
        torch_cuda: the CUDA that its PyTorch was built for.
        proxy: the variable that sends requests to the server's own address through a proxy, if one does.
        absent: flags whose value is a path that does not exist, with the path.
        shm: bytes free in ``/dev/shm``; `open_files` the hard limit of open files.
        platform: ``cuda``, ``rocm``, …
        gaps: what could not be found out, and why.
    """

    where: str = HERE
    platform: str | None = None
    gpus: tuple[Gpu, ...] | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    nvcc: tuple[Compiler, ...] | None = None
    ptxas: tuple[Compiler, ...] | None = None
    python: str | None = None
    packages: dict[str, str] | None = None
    missing: tuple[str, ...] | None = None
    torch_cuda: str | None = None
    proxy: str | None = None
    absent: tuple[tuple[str, str], ...] = ()
    model: Model | None = None
    ports: tuple[PortUse, ...] = ()
    spaces: tuple[Space, ...] = ()
    shm: int | None = None
    open_files: int | None = None
    gaps: tuple[str, ...] = ()

    @property
    def sms(self) -> tuple[int, ...]:
        """The compute capabilities of the GPUs, times ten, each once."""
        return tuple(sorted({gpu.sm for gpu in self.gpus or () if gpu.sm is not None}))

    def facts(self) -> dict[str, Any]:
        """Return what is known under the names that the facts of a launch have (`rules/facts.yaml`)."""
        found: dict[str, Any] = dict(self.packages or {})
        if len(self.sms) == 1:
            found["sm"] = self.sms[0]
        if self.gpus:
            found["gpu_count"] = len(self.gpus)
            names = {gpu.name for gpu in self.gpus}
            found |= {"gpu_name": self.gpus[0].name} if len(names) == 1 else {}
        found |= {"driver": self.driver, "platform": self.platform}
        found["toolkit"] = next((item.version for item in self.nvcc or ()), None)
        found["quantization"] = self.model.quantization if self.model else None
        return {name: value for name, value in found.items() if value is not None}

    def identity(self) -> dict[str, str | None]:
        """Return what evidence about a launch depends on: another value of any of these makes it advisory only."""
        facts = self.facts()
        names = ("driver", "toolkit", "server_version", "sgl_kernel", "flashinfer", "torch")
        model = self.model
        return {
            "gpu": "+".join(f"SM{sm}" for sm in self.sms) or None,
            **{name: str(facts[name]) if name in facts else None for name in names},
            "architecture": model.architecture if model else None,
            "quantization": model.quantization if model else None,
        }

    def key(self) -> str:
        """Return a short name of the identity: the same for the same, on every machine and in every version."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
