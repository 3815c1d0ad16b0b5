"""What ``rules/servers/<server>/log.yaml`` and ``runner.yaml`` may say: how a log is laid out, how long to wait."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from logtriage.engine.schema import KebabCase, Signature, Stage, Strict, Text
from logtriage.records import STAGES


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
    arguments: list[Text]
    marks: list[Mark]
    together: list[Signature]
    sources: list[Source]
    answers: list[Signature]
    answer_cues: list[Text]
    repeats_asked: list[Text]
    complaints: list[Text]
    boundaries: list[Signature]
    notices: list[Signature]
    recognised_by: list[Text]
    described_by: list[Text]
    related_words: list[Text]
    own_words: list[Text]
    client_words: list[Text]
    fatal: list[Text]
    troubles: list[Text]
    failures: list[Text]
    busy: list[Text]
    blame: list[Blame]
    gpus: list[Gpu]


class StallLimit(Strict):
    """Seconds without output after which a stage is stuck: with nothing going on, and with work going on."""

    idle: float = Field(gt=0)
    busy: float = Field(gt=0)


class Activity(Strict):
    """What the processes of a launch must do to count as busy."""

    cpu_share: float = Field(gt=0)
    disk_bytes_per_s: float = Field(gt=0)
    gpu_percent: float = Field(gt=0)


class StopLimits(Strict):
    """Seconds that processes get after SIGTERM and after SIGKILL, and GPU memory and the port to be released."""

    term: float = Field(gt=0)
    kill: float = Field(gt=0)
    release: float = Field(gt=0)


class Listens(Strict):
    """Where a server listens whose command does not say so."""

    host: Text
    port: int = Field(gt=0, lt=65536)


class RunnerFile(Strict):
    """``rules/servers/<server>/runner.yaml``: how long the runner waits for this server."""

    server: KebabCase
    stall: dict[Stage, StallLimit]
    activity: Activity
    stop: StopLimits
    listens: Listens
    retry_after: list[float]

    @model_validator(mode="after")
    def _every_stage(self) -> Self:
        if missing := [stage for stage in STAGES if stage not in self.stall]:
            raise ValueError(f"stall has no limit for {', '.join(missing)}")
        return self
