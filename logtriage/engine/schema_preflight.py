"""What ``rules/servers/<server>/preflight.yaml`` may say: where to look before a launch, and from where on it fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from logtriage.engine.schema import Condition, KebabCase, Strict, Text
from logtriage.engine.schema_knowledge import Versions, every_choice, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.engine.schema_knowledge import FlagFile
    from logtriage.engine.yaml_source import Document


def _release(text: str) -> str:
    if not re.fullmatch(r"\d+(?:\.\d+)*", text):
        raise ValueError(f"not a release such as '12.8': {text!r}")
    return text


def _capability(text: str) -> str:
    if not text.isdecimal():
        raise ValueError(f"not a compute capability times ten such as 120: {text!r}")
    return text


Release = Annotated[str, AfterValidator(_release)]
Sm = Annotated[str, AfterValidator(_capability)]


class Program(Strict):
    """A program in front of a command; where it has `verbs`, one of them follows."""

    program: Text
    verbs: list[Text] = Field(default_factory=list)


class Cache(Strict):
    """A folder that kernels are built into; with the variable set, `below` it."""

    what: Text
    variable: Text
    below: str = ""
    home: Text
    need_gib: float


class Folder(Strict):
    """A folder that a variable names; `below` follows its value."""

    variable: Text
    below: str = ""


class Pins(Strict):
    """The versions that a release of the server is made with, by fact name."""

    version: Text
    packages: dict[str, Text]


class Hub(Strict):
    """Where downloaded models are: below the first variable that is set, else below the home folder."""

    what: Text
    need_gib: float
    variables: list[Folder]
    home: Text


class Quantization(Strict):
    """A quantization as a model's files spell it, and the value of the flag that it gets."""

    method: Text
    algo: Text | None = None
    value: Text


class Demand(Strict):
    """Values of a flag that start on some GPUs only, by compute capability times ten."""

    flag: Text
    values: list[Text] = Field(min_length=1)
    versions: Versions = ""
    sm: Condition
    source: Text


class ModuleFor(Strict):
    """Values of a flag that need a Python module, and the package that brings it."""

    flag: Text
    values: list[Text] = Field(min_length=1)
    module: Text
    package: Text


class Limits(Strict):
    """From where on there is a risk: shared memory, open files, the share of a GPU that is left for the KV cache."""

    shm_gib: float
    open_files: int
    container_shm_mib: int
    kv_share: float


class PreflightFile(Strict):
    """``preflight.yaml``: what is looked up before a launch, and what fails from where on."""

    server: KebabCase
    packages: dict[str, list[Text]]
    pins: list[Pins]
    pins_source: Text
    modules: list[Text]
    containers: list[Program]
    elsewhere: list[Program]
    own_python: list[Program]
    caches: list[Cache]
    hub: Hub
    config: dict[str, list[Text]]
    position_scales: list[Text]
    nested: list[Text]
    quantizations: list[Quantization]
    demands: list[Demand]
    whole_numbers: list[Text]
    ports: list[Text]
    json_: list[Text] = Field(alias="json")
    paths: list[Text]
    modules_for: list[ModuleFor]
    compiler_since: dict[Sm, Release]
    compiler_source: Text
    flashinfer_since: dict[Sm, Release]
    flashinfer_source: Text
    torch_since: dict[Sm, Release]
    torch_source: Text
    driver_since: dict[str, Release]
    driver_source: Text
    limits: Limits
    mem_fraction_guess: float = Field(gt=0, lt=1)


def cross_faults(known: PreflightFile, at: Document, flags: FlagFile) -> Iterator[str]:
    """Yield flags and values that no version has."""
    every = {name: every_choice(flag) for name, flag in flags.flags.items()}
    for index, item in enumerate(known.quantizations):
        yield from unknown(at, ("quantizations", index), "--quantization", [item.value], every)
    for index, demand in enumerate(known.demands):
        yield from unknown(at, ("demands", index), demand.flag, demand.values, every)
    for index, module in enumerate(known.modules_for):
        yield from unknown(at, ("modules_for", index), module.flag, module.values, every)
    for key, names in (("whole_numbers", known.whole_numbers), ("json", known.json_), ("paths", known.paths)):
        for index, name in enumerate(names):
            yield from unknown(at, (key, index), name, (), every)
