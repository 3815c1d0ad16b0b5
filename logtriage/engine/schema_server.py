"""What ``rules/servers/<server>/log.yaml`` may say: how a server's log is laid out."""

from __future__ import annotations

from pydantic import Field

from logtriage.engine.schema import KebabCase, Signature, Stage, Strict, Text


class Mark(Strict):
    """A line that moves the stage clock of its rank."""

    stage: Stage
    any: list[Signature] = Field(min_length=1)


class Source(Strict):
    """A line that tells facts about the launch (GPU, versions) in its named groups."""

    id: KebabCase
    any: list[Signature] = Field(min_length=1)
    gives: dict[str, str | int] = Field(default_factory=dict)


class Blame(Strict):
    """A part of a traceback frame's path that names the component at work, and the flag that selects it."""

    path: Text
    component: Text
    flag: str | None = None


class Gpu(Strict):
    """A GPU family: words that occur in its name, and its compute capability times ten."""

    name: Text
    sm: int


class ServerLog(Strict):
    """``rules/servers/<server>/log.yaml``: how this server's log is laid out."""

    server: KebabCase
    prefixes: list[Text]
    marks: list[Mark]
    sources: list[Source]
    answers: list[Signature]
    boundaries: list[Signature]
    recognised_by: list[Text]
    fatal: list[Text]
    troubles: list[Text]
    failures: list[Text]
    busy: list[Text]
    blame: list[Blame]
    gpus: list[Gpu]
