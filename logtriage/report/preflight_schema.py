"""The published shape of what preflight found, as pydantic models; imported only to print or check the schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from logtriage.report.schema import Part, open_schema

Severity = Literal["will-fail", "known-garbage", "risk", "unknown", "ok"]


class Tool(Part):
    """The program that made it; `rules` is a digest of the rule files."""

    version: str
    rules: str


class Launched(Part):
    """What would be started; `sm` is the compute capability that it is judged for, times ten."""

    server: str
    version: str | None
    command: list[str] | None
    env: dict[str, str]
    flags: dict[str, str]
    sm: int | None


class Holder(Part):
    """A process that holds memory of a GPU, in bytes."""

    pid: int
    name: str | None
    used: int | None


class Gpu(Part):
    """A GPU that the launch may use; `sm` is the compute capability times ten, memory in bytes."""

    index: int
    name: str | None
    sm: int | None
    memory: int | None
    free: int | None
    holders: list[Holder]


class Compiler(Part):
    """A program of the CUDA toolkit; without a version it is not there."""

    found: str
    path: str
    version: str | None


class Cuda(Part):
    """Driver, toolkit and the CUDA that PyTorch is built for; null where nobody could look."""

    driver: str | None
    driver_cuda: str | None
    torch_cuda: str | None
    nvcc: list[Compiler] | None
    ptxas: list[Compiler] | None


class Model(Part):
    """What the model's files tell; `weight_bytes` of all tensors together."""

    path: str
    architecture: str | None
    quantization: str | None
    weight_bytes: int | None
    sizes: dict[str, int]


class Machine(Part):
    """What the launch would run on; `key` is the same for the same GPUs, versions and model."""

    where: Literal["here", "container", "elsewhere"]
    platform: str | None
    gpus: list[Gpu] | None
    cuda: Cuda
    python: str | None
    packages: dict[str, str] | None
    model: Model | None
    key: str


class Change(Part):
    """A value to use instead; `to` is null where only the direction is known."""

    flag: str
    from_: str | None = Field(alias="from")
    to: str | None
    why: str
    confidence: float = Field(ge=0, le=1)
    source: str


class Found(Part):
    """One thing that was looked at. `flag` is a flag or an environment variable, `label` what analyze would call it."""

    check: str
    severity: Severity
    what: str
    why: str
    source: str
    flag: str | None
    value: str | None
    label: str | None
    confidence: float | None = Field(ge=0, le=1)
    instead: list[Change]


class PreflightV1(Part):
    """What will become of a launch, ``logtriage/preflight/v1``. Keys may be added; none is renamed or removed in v1."""

    schema_: Literal["logtriage/preflight/v1"] = Field(alias="schema")
    tool: Tool
    launch: Launched
    environment: Machine
    outlook: Severity
    findings: list[Found]
    changes: list[Change]
    command: list[str] | None
    command_text: str | None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of what preflight found."""
    return open_schema(PreflightV1)
