"""The frozen records that travel through the pipeline, from a line of the log to the report."""

from __future__ import annotations

from typing import Any, NamedTuple

STAGES = (
    "args", "init", "weight-load", "weight-postprocess", "kv-cache", "cuda-graph", "warmup", "serving",
)  # fmt: skip
"""The stages of a launch, in order."""


class Line(NamedTuple):
    """One line of a log; of a line with carriage returns, one segment of it.

    Attributes:
        file: index of the input file.
        number: line number, from 1, counted at ``\\n`` in the file as stored.
        byte: offset of the segment's first byte in the file as stored.
        text: the segment without escape sequences.
        start: index in `text` at which the message begins (after time and ranks).
        time: seconds since an arbitrary origin, or None.
        rank: rank tags as printed, such as ``DP0 TP3``; empty if there are none.
        role: ``text``, ``head``, ``frame``, ``source``, ``exception``, ``message`` or ``blank``.
        event: index of the event it belongs to.
    """

    file: int
    number: int
    byte: int
    text: str
    start: int = 0
    time: float | None = None
    rank: str = ""
    role: str = "text"
    event: int = 0


class Event(NamedTuple):
    """A log record with its continuation lines: a traceback with its whole chain, a block, or a single line.

    Attributes:
        first, last: indexes of its first and last line (inclusive).
        traceback: index of the first line of the traceback in it, or None.
        stage: stage of its rank when it was printed, or None if the log does not tell.
        launch: index of the launch it belongs to.
    """

    first: int
    last: int
    rank: str = ""
    time: float | None = None
    traceback: int | None = None
    stage: str | None = None
    launch: int = 0


class Match(NamedTuple):
    """A rule that holds at a line.

    Attributes:
        rule: the compiled rule.
        line: index of the line that the signature hit.
        span: start and end of the hit in the line's text.
        strength: the rule's strength, lowered where a condition could not be checked.
        facts: typed facts captured by the signature.
    """

    rule: dict[str, Any]
    line: int
    event: int
    span: tuple[int, int]
    strength: str
    facts: dict[str, Any]

    @property
    def label(self) -> str:
        """The label that the rule gives."""
        return str(self.rule["label"])


class NearMiss(NamedTuple):
    """A rule whose signature hit a line but that did not hold, and why."""

    rule: dict[str, Any]
    line: int
    because: str


class Explained(NamedTuple):
    """A match that only follows from something else."""

    match: Match
    because: str


class Candidate(NamedTuple):
    """A label that was considered and not given."""

    label: str
    confidence: float
    because: str
    line: int | None = None


class Incident(NamedTuple):
    """What went wrong first, what only followed, and what nobody accounts for.

    Attributes:
        root: the decisive match that everything else is measured against, or None.
        explained: matches that follow from the root (or from an ordered stop).
        unexplained: later failures that nothing accounts for.
        supporting: matches that point at a label without proving it.
        endings: symptoms of an ended process that nothing explains.
        troubles: indexes of lines that look like failures and that no rule knows.
        outcomes: matches of outcome rules, in order.
    """

    root: Match | None
    explained: tuple[Explained, ...]
    unexplained: tuple[Match, ...]
    supporting: tuple[Match, ...]
    endings: tuple[Match, ...]
    troubles: tuple[int, ...]
    outcomes: tuple[Match, ...]


class Launch(NamedTuple):
    """What was started, as far as the log or the caller tells; an unknown thing is absent."""

    command: tuple[str, ...] | None = None
    wrapper: tuple[str, ...] = ()
    env: dict[str, str] = {}
    flags: dict[str, str] = {}
    resolved: dict[str, str] = {}
    facts: dict[str, Any] = {}


class Verdict(NamedTuple):
    """The label, how sure it is, and what decided.

    Attributes:
        confidence: from 0 to 1.
        decided_by: ``rule``, ``classifier``, ``response`` or ``none``.
        outcome: ``failed``, ``healthy``, ``incomplete``, ``degenerate`` or ``unknown``.
    """

    label: str
    confidence: float
    decided_by: str
    outcome: str
    retry: str
    rule: str | None = None
    stage: str | None = None
    because: str = ""
    candidates: tuple[Candidate, ...] = ()


class RootCause(NamedTuple):
    """The line that shows the cause, and what is to blame."""

    line: int
    span: tuple[int, int]
    component: str | None = None
    flag: str | None = None
    value: str | None = None
    facts: dict[str, Any] = {}


class Change(NamedTuple):
    """One value of one flag to change."""

    flag: str
    old: str | None
    new: str | None
    why: str
    confidence: float
    source: str
    forced: bool = False


class Advice(NamedTuple):
    """What to do next."""

    action: str
    summary: str
    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] | None = None
    command_text: str | None = None
    ruled_out: tuple[dict[str, str | None], ...] = ()
    notes: tuple[str, ...] = ()


class InputFile(NamedTuple):
    """A log that was read: its name as shown, its size in bytes, its lines (None if not counted)."""

    name: str
    size: int
    lines: int | None


class Report(NamedTuple):
    """Everything a report shows. Texts are not redacted yet: every output does that last."""

    files: tuple[InputFile, ...]
    lines: tuple[Line, ...]
    events: tuple[Event, ...]
    launches: int
    launch: Launch
    verdict: Verdict
    root: RootCause | None
    incident: Incident
    advice: Advice
    rules_digest: str
    label_title: str
    secrets: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What went wrong first, as a label of ``rules/labels``."""
        return self.verdict.label
