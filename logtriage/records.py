"""The frozen records that travel through the pipeline, from a line of the log to the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, dataclass_transform

if TYPE_CHECKING:
    from logtriage.node_records import Node

STAGES = (
    "args", "init", "weight-load", "weight-postprocess", "kv-cache", "cuda-graph", "warmup", "serving",
)  # fmt: skip
"""The stages of a launch, in order."""


@dataclass_transform(frozen_default=True)
class Record:
    """Base of frozen records: fields are the annotated names, defaults the values given in the class.

    It is what dataclasses and named tuples do, without the half millisecond that each of their classes costs at
    start-up. Lines and events, of which there are many, are named tuples.
    """

    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=False), **named)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({inner})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}


class Line(NamedTuple):
    """One line of a log; of a line with carriage returns, one segment of it.

    Attributes:
        file: index of the input file.
        number: line number, from 1, counted at ``\\n`` in the file as stored.
        byte: offset of the segment's first byte in the file as stored; of a compressed file or one in UTF-16 in its
            text after unpacking, in UTF-8.
        text: the segment without escape sequences; of a line of JSON the message in it.
        start: index in `text` at which the message begins (after wrapper, time and ranks).
        time: seconds since an arbitrary origin, or None; its own, else its wrapper's.
        rank: rank tags as printed, such as ``DP0 TP3``; empty if there are none.
        role: ``text``, ``head``, ``frame``, ``source``, ``exception``, ``message``, ``blank``, or ``fence`` for a line
            that is no part of the log.
        event: index of the event it belongs to.
        body: index in `text` at which the line as the server printed it begins; what other programs put before it
            (time stamps, names of containers) ends there.
        row: whole lines of the file (or of its origin) up to this one, in the order in which they were printed.
        origin: the process, container or task that the wrapper names; empty if it names none.
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
    body: int = 0
    row: int = 0
    origin: str = ""


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


class Match(Record):
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


class NearMiss(Record):
    """A rule whose signature hit a line but that did not hold, and why."""

    rule: dict[str, Any]
    line: int
    because: str


class Explained(Record):
    """A match that only follows from something else."""

    match: Match
    because: str


class Candidate(Record):
    """A label that was considered and not given."""

    label: str
    confidence: float
    because: str
    line: int | None = None


class Incident(Record):
    """What went wrong first, what only followed, and what nobody accounts for.

    Attributes:
        root: the decisive match that everything else is measured against, or None.
        explained: matches that follow from the root (or from an ordered stop).
        unexplained: later failures that nothing accounts for.
        supporting: matches that point at a label without proving it.
        endings: symptoms of an ended process that nothing explains.
        troubles: indexes of lines that look like failures and that no rule knows, and of their events.
        outcomes: matches of outcome rules, in order.
    """

    root: Match | None
    explained: tuple[Explained, ...]
    unexplained: tuple[Match, ...]
    supporting: tuple[Match, ...]
    endings: tuple[Match, ...]
    troubles: tuple[int, ...]
    trouble_events: tuple[int, ...]
    outcomes: tuple[Match, ...]


class Launch(Record):
    """What was started, as far as the log or the caller tells; an unknown thing is absent.

    Attributes:
        command: words of the server's own command; `wrapper` those before it, `redirect` the shell's tail.
        env: variables set for it; those set inside the wrapper stand in both.
        flags: flags of the command; `resolved`: what the server made of them; `facts`: all that is known.
        text: the line that showed the command.
    """

    command: tuple[str, ...] | None = None
    wrapper: tuple[str, ...] = ()
    env: dict[str, str] = {}
    flags: dict[str, str] = {}
    resolved: dict[str, str] = {}
    facts: dict[str, Any] = {}
    redirect: str = ""
    text: str | None = None


class Verdict(Record):
    """The label, how sure it is, and what decided.

    Attributes:
        confidence: from 0 to 1.
        decided_by: ``rule``, ``classifier``, ``response`` or ``none``.
        outcome: ``failed``, ``healthy``, ``incomplete``, ``degenerate`` or ``unknown``.
        lines: indexes of the lines that weighed most, where the classifier decided; `words`: their words that did.
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
    lines: tuple[int, ...] = ()
    words: tuple[str, ...] = ()


class RootCause(Record):
    """The line that shows the cause, and what is to blame; of several nodes which one, and the rank's number there."""

    line: int
    span: tuple[int, int]
    component: str | None = None
    flag: str | None = None
    value: str | None = None
    facts: dict[str, Any] = {}
    node: int | None = None
    local_rank: int | None = None


class Seen(Record):
    """What whoever launched a server saw from outside and a log cannot tell: a label and a sentence that says why."""

    label: str
    because: str


class Attempt(Record):
    """An earlier launch and how it ended, as far as advice needs it.

    Attributes:
        source: where it comes from, such as the name of its log.
        rule, text: the rule that decided and the line that shows the cause.
        flag, value: what was to blame; `blocks`: what the rule rules out, as a partial description.
        hint: the way out that the message named; `facts`: what the message told.
    """

    source: str
    label: str
    retry: str
    action: str
    outcome: str
    launch: Launch
    rule: str | None = None
    text: str = ""
    flag: str | None = None
    value: str | None = None
    component: str | None = None
    blocks: dict[str, str] = {}
    hint: dict[str, str] = {}
    facts: dict[str, Any] = {}


class Change(Record):
    """One value of one flag to change; `new` is None where only a direction is known, or the flag is `removed`."""

    flag: str
    old: str | None
    new: str | None
    why: str
    confidence: float
    source: str
    forced: bool = False
    removed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it can be made to a command as it is."""
        return self.removed or self.new is not None

    @property
    def told(self) -> str:
        """What the command has afterwards, for a row or a sentence."""
        return f"{self.flag} removed" if self.removed else f"{self.flag} {self.new}"


class Advice(Record):
    """What to do next."""

    action: str
    summary: str
    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] | None = None
    command_text: str | None = None
    ruled_out: tuple[dict[str, str | None], ...] = ()
    notes: tuple[str, ...] = ()


class InputFile(Record):
    """A log that was read: its name as shown, its size in bytes, its lines (None if not counted)."""

    name: str
    size: int
    lines: int | None


class Report(Record):
    """Everything a report shows. Texts are not redacted yet: every output does that last.

    Attributes:
        marks: the index of each line that opens a stage of the judged launch, and that stage.
        fingerprint: of a launch that failed: the same for the same failure with other numbers, paths, ranks and times.
    """

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
    marks: tuple[tuple[int, str], ...] = ()
    nodes: tuple[Node, ...] = ()
    fingerprint: str | None = None

    @property
    def label(self) -> str:
        """What went wrong first, as a label of ``rules/labels``."""
        return self.verdict.label
