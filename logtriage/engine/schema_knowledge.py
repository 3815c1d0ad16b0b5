"""What the knowledge about a server may say (`rules/servers/<server>/flags.yaml` and `kernels.yaml`): strict models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from logtriage.engine.schema import Condition, KebabCase, Strict, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.engine.yaml_source import Document

Scalar = str | int | float | bool | None
Known = Literal["sm", "server_version", "flashinfer", "format"]
Confidence = Literal["high", "medium", "low"]


def _clauses(text: str) -> str:
    if not re.fullmatch(r"(?:(?:>=|<|==)\d+(?:\.\w+)*(?:,(?=.))?)*", text):
        raise ValueError(f"not a range of versions such as '>=0.5.9,<0.5.16': {text!r}")
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Versions = Annotated[str, AfterValidator(_clauses)]


class Step(Strict):
    """What a version added to, or removed from, the choices of a flag."""

    since: Text
    added: list[Text] = Field(default_factory=list)
    removed: list[Text] = Field(default_factory=list)


class ServerFlag(Strict):
    """A flag: where it exists, its choices (none: free), and its default from a version on (null: at launch)."""

    kind: Text
    versions: Versions = ""
    deprecated: Versions = ""
    defaults: dict[str, Scalar] = Field(default_factory=dict)
    choices: list[Text] = Field(default_factory=list)
    history: list[Step] = Field(default_factory=list)


class Rename(Strict):
    """A flag or variable that has another name now."""

    old: Text
    new: Text
    since: Text | None = None
    deprecated_since: Text | None = None
    removed_since: Text | None = None


class ValueRename(Strict):
    """A value that has another name now, or (without `new`) is gone."""

    flag: Text
    old: Text
    new: Text | None = None
    since: Text | None = None
    removed_since: Text | None = None


class Auto(Strict):
    """What `auto`, or leaving a flag out, resolves to: a value, or kernels that no value names."""

    flag: Text
    when: dict[Known, Condition] = Field(default_factory=dict)
    model: Text | None = None
    value: Text | None = None
    kernels: KebabCase | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _names_one(self) -> Auto:
        if (self.value is None) == (self.kernels is None):
            raise ValueError("an 'auto' has either a 'value' or 'kernels'")
        return self


class Equivalent(Strict):
    """Values of a flag that run the same code."""

    flag: Text
    when: dict[Known, Condition]
    values: list[Text] = Field(min_length=2)
    why: Text


class MemoryFlag(Strict):
    """A flag that tunes memory, for which labels, in which direction and how far."""

    flag: Text
    versions: Versions = ""
    labels: list[KebabCase] = Field(min_length=1)
    direction: Literal["raise", "lower"]
    step: float | None = None
    factor: int | float | None = None
    least: int | float
    most: int | float | None = None
    only_if_set: bool = False
    fits: Literal["size", "factor"] | None = None
    needs: Text | None = None
    why: Text


class FlagFile(Strict):
    """``flags.yaml``: how the server is launched, and every flag by version.

    `aliases` are other spellings of a flag; `modules` and `commands` start the server. These four are needed to read
    a log, the rest only to give advice.
    """

    server: KebabCase
    modules: list[Text]
    commands: list[list[str]]
    aliases: dict[str, str]
    switches: list[str] = Field(default_factory=list)
    versions: list[Text] = Field(default_factory=list)
    flags: dict[str, ServerFlag] = Field(default_factory=dict)
    renames: list[Rename] = Field(default_factory=list)
    value_renames: list[ValueRename] = Field(default_factory=list)
    env_renames: list[Rename] = Field(default_factory=list)
    auto: list[Auto] = Field(default_factory=list)
    equivalent: list[Equivalent] = Field(default_factory=list)
    memory: list[MemoryFlag] = Field(default_factory=list)


class Kernels(Strict):
    """A kernel library: for which SMs it exists at all, what it shares with others, what a start of it needs.

    `repacks`: it rearranges the weights after loading, which takes a second copy of a layer.
    """

    id: KebabCase
    name: Text
    family: KebabCase
    only: list[int] = Field(default_factory=list)
    needs: list[KebabCase]
    repacks: bool = False
    source: list[Text] = Field(min_length=1)


class ValueKernels(Strict):
    """The kernel library that values of a flag run, or the platform or kind of model that they are for."""

    flag: Text
    values: list[Text] = Field(min_length=1)
    when: dict[Known, Condition] = Field(default_factory=dict)
    kernels: KebabCase | None = None
    platform: Literal["rocm", "npu", "xpu", "cpu"] | None = None
    model: KebabCase | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ValueKernels:
        if self.kernels is None and self.platform is None and self.model is None:
            raise ValueError("names neither 'kernels' nor 'platform' nor 'model'")
        return self


class Cell(Strict):
    """What is known of a kernel library on some GPUs, how sure, and from where."""

    sm: list[int] = Field(min_length=1)
    when: dict[Known, Condition] = Field(default_factory=dict)
    status: Literal["works", "refused", "garbage"]
    confidence: Confidence
    source: list[Text] = Field(min_length=1)
    note: Text | None = None
    disputed: Text | None = None


class Row(Strict):
    """The cells of one kernel library under one flag and for one format of weights."""

    flag: Text
    format: Text | None = None
    kernels: KebabCase
    cells: list[Cell] = Field(min_length=1)


class Ranking(Strict):
    """Which values of a flag to try first."""

    flag: Text
    format: Text | None = None
    sm: list[int] = Field(default_factory=list)
    order: list[Text] = Field(min_length=1)


class KernelFile(Strict):
    """``kernels.yaml``: which kernel a value runs, where it works, and what to try first."""

    server: KebabCase
    sms: list[int]
    formats: dict[str, Text]
    format_names: dict[str, list[Annotated[str, AfterValidator(_expression)]]] = Field(default_factory=dict)
    moe_names: list[Annotated[str, AfterValidator(_expression)]]
    kernels: list[Kernels]
    values: list[ValueKernels]
    same_as: dict[str, str]
    components: dict[str, str]
    broken_by: dict[str, KebabCase]
    matrix: list[Row]
    ranking: list[Ranking]


def cross_faults(
    flags: FlagFile, flags_at: Document, kernels: KernelFile, kernels_at: Document, blocks: dict[str, str]
) -> Iterator[str]:
    """Yield what no file shows alone. `blocks` maps kernel ids that rules block to the place of such a rule."""
    ids = {item.id for item in kernels.kernels}
    if len(ids) != len(kernels.kernels):
        yield kernels_at.fault(("kernels",), "a kernel id is used twice")
    every = {name: every_choice(flag) for name, flag in flags.flags.items()}
    for index, value in enumerate(kernels.values):
        yield from unknown(kernels_at, ("values", index), value.flag, value.values, every)
        if value.kernels and value.kernels not in ids:
            yield kernels_at.fault(("values", index, "kernels"), f"no kernel library {value.kernels!r}")
    formats = {None, "bf16", *kernels.formats.values()}
    for index, row in enumerate(kernels.matrix):
        yield from unknown(kernels_at, ("matrix", index), row.flag, (), every)
        if row.kernels not in ids:
            yield kernels_at.fault(("matrix", index, "kernels"), f"no kernel library {row.kernels!r}")
        if row.format not in formats:
            yield kernels_at.fault(("matrix", index, "format"), f"no format {row.format!r}")
        for number, cell in enumerate(row.cells):
            for sm in set(cell.sm) - set(kernels.sms):
                yield kernels_at.fault(("matrix", index, "cells", number, "sm"), f"SM {sm} is not in 'sms'")
    for index, ranking in enumerate(kernels.ranking):
        yield from unknown(kernels_at, ("ranking", index), ranking.flag, ranking.order, every)
    for flag, other in kernels.same_as.items():
        yield from unknown(kernels_at, ("same_as", flag), flag, (), every)
        yield from unknown(kernels_at, ("same_as", flag), other, (), every)
    for component, flag in kernels.components.items():
        yield from unknown(kernels_at, ("components", component), flag, (), every)
    for index, auto in enumerate(flags.auto):
        yield from unknown(flags_at, ("auto", index), auto.flag, [auto.value] if auto.value else (), every)
        if auto.kernels and auto.kernels not in ids:
            yield flags_at.fault(("auto", index, "kernels"), f"no kernel library {auto.kernels!r}")
    for index, same in enumerate(flags.equivalent):
        yield from unknown(flags_at, ("equivalent", index), same.flag, same.values, every)
    for name, entry in flags.flags.items():
        for since in [*entry.defaults, *(step.since for step in entry.history)]:
            if since not in flags.versions:
                yield flags_at.fault(("flags", name), f"version {since!r} is not in 'versions'")
    for blocked, place in sorted(blocks.items()):
        if blocked not in ids:
            yield f"{place}no kernel library {blocked!r} in servers/{kernels.server}/kernels.yaml"


def every_choice(flag: ServerFlag) -> set[str]:
    """Return the choices of a flag in any version."""
    return {*flag.choices, *(value for step in flag.history for value in step.added)}


def unknown(
    at: Document, place: tuple[str | int, ...], flag: str, values: Any, every: dict[str, set[str]]
) -> Iterator[str]:
    """Yield a fault where a flag is in no version, or has a value in none; `every` maps flags to all their choices."""
    if flag not in every:
        yield at.fault(place, f"no flag {flag!r} in flags.yaml")
        return
    for value in values:
        if every[flag] and value not in every[flag]:
            yield at.fault(place, f"{flag} has no choice {value!r} in any version")
