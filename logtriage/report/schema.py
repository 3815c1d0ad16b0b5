"""The published shape of the report, as pydantic models; imported only to print or check the schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """Base of all parts of a published document: strict when it is checked."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Tool(Part):
    """The program that made the report; `rules` is a digest of the rule files."""

    version: str
    rules: str


class Source(Part):
    """What was read; `lines` is null above 64 MiB."""

    files: list[str]
    bytes: int
    lines: int | None
    launches: int


class Gpu(Part):
    """The GPUs of the launch; `sm` is the compute capability times ten."""

    name: str | None
    sm: int | None
    count: int | None


class Cuda(Part):
    """Versions of the CUDA toolkit and of the driver."""

    toolkit: str | None
    driver: str | None


class Launched(Part):
    """What was started, as far as it is known."""

    server: str
    version: str | None
    command: list[str] | None
    env: dict[str, str]
    flags: dict[str, str]
    resolved: dict[str, str]
    gpu: Gpu | None
    cuda: Cuda
    libraries: dict[str, str]


class OtherLabel(Part):
    """A label that was considered and not given."""

    label: str
    confidence: float
    because: str
    line: int | None


class Decision(Part):
    """The label, and what decided.

    `fingerprint` is the same for the same failure with other numbers, paths, ranks and times; `words` are those that
    weighed most where the classifier decided.
    """

    label: str
    title: str
    confidence: float = Field(ge=0, le=1)
    decided_by: Literal["rule", "classifier", "response", "none"]
    rule: str | None
    outcome: Literal["failed", "healthy", "incomplete", "degenerate", "unknown"]
    stage: str | None
    retry: Literal["never", "other-config", "same-config", "n/a"]
    because: str
    fingerprint: str | None
    words: list[str]
    candidates: list[OtherLabel]


class Root(Part):
    """The line that shows the cause; `line` counts from 1 in the file as stored, `span` is the hit in `text`.

    Of several nodes, `node` tells which one, and `local_rank` the number of the rank there.
    """

    file: str
    line: int
    byte: int
    text: str
    span: tuple[int, int]
    rank: str | None
    node: int | None
    local_rank: int | None
    component: str | None
    flag: str | None
    value: str | None
    facts: dict[str, Any]


class Evidence(Part):
    """A line to read."""

    file: str
    line: int
    text: str
    role: Literal["root", "frame", "context", "supporting", "trouble", "outcome"]


class OtherMatch(Part):
    """A rule that held elsewhere; `because` says what it follows from."""

    file: str
    line: int
    rule: str
    label: str
    rank: str | None
    text: str
    because: str | None = None


class Change(Part):
    """One value of one flag to change."""

    flag: str
    from_: str | None = Field(alias="from")
    to: str | None
    forced: bool
    removed: bool = False
    why: str
    confidence: float
    source: str


class NextStep(Part):
    """What to do next."""

    action: Literal["change-flag", "free-memory", "fix-environment", "fix-request", "investigate", "wait", "none"]
    summary: str
    changes: list[Change]
    command: list[str] | None
    command_text: str | None
    ruled_out: list[dict[str, str | None]]
    notes: list[str]


class Excerpt(Part):
    """A line of the log as a large report shows it; `because` says what it follows from."""

    file: str
    line: int
    text: str
    role: Literal["root", "effect", "unclear", "supporting", "trouble", "outcome", "frame", "context"]
    rank: str | None
    because: str | None


class Stage(Part):
    """When a rank reached a stage, and the line that tells."""

    stage: str
    at: float
    line: int


class RankStages(Part):
    """The stages of a rank of one file, and how far its lines reach; `is_root`: the cause is one of its lines."""

    file: str
    rank: str | None
    stages: list[Stage]
    end: float
    is_root: bool


class Timeline(Part):
    """Stages over time: seconds since the first one, or numbers of lines where time stamps lack."""

    unit: Literal["seconds", "lines"]
    root: float | None
    rows: list[RankStages]


class Tried(Part):
    """A launch with its flags, how it ended, and what was to blame."""

    source: str
    label: str
    outcome: str
    flags: dict[str, str]
    flag: str | None
    value: str | None


class Compared(Part):
    """How this report compares with an earlier one (`--baseline`), whose label is `label`."""

    file: str
    status: Literal["same", "new", "fixed", "none"]
    label: str
    because: str


class Node(Part):
    """One of several nodes: what its log alone tells. `skew_s` is how far its clock is ahead of the others'.

    `file` is null for a node that no log was given of; `because` says why it counts as silent.
    """

    file: str | None
    node: int | None
    first_time: str | None
    last_time: str | None
    skew_s: float | None
    stage: str | None
    label: str | None
    outcome: str | None
    silent: bool
    because: str | None


class ReportV1(Part):
    """A report on one launch, ``logtriage/report/v1``. Keys may be added; none is renamed or removed in v1."""

    schema_: Literal["logtriage/report/v1"] = Field(alias="schema")
    tool: Tool
    source: Source
    launch: Launched
    verdict: Decision
    root_cause: Root | None
    evidence: list[Evidence]
    explained: list[OtherMatch]
    unexplained: list[OtherMatch]
    advice: NextStep
    nodes: list[Node]
    notes: list[str]
    excerpt: list[Excerpt] = Field(default=[], description="Only in a detailed report (--verbose).")
    timeline: Timeline | None = Field(default=None, description="Only in a detailed report (--verbose).")
    baseline: Compared | None = None
    attempts: list[Tried] = Field(default=[], description="The launches so far; only in a detailed report.")


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a report."""
    return open_schema(ReportV1)


def open_schema(document: type[Part]) -> dict[str, Any]:
    """Return the JSON schema of a document. It allows further keys, since a version may gain some."""
    schema = document.model_json_schema(by_alias=True)
    for part in [schema, *schema["$defs"].values()]:
        part.pop("additionalProperties", None)
    return schema
