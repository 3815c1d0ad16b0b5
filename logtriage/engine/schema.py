"""What a rule file may say: strict pydantic models, used when rules are compiled or linted, never on the hot path."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

KebabCase = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]
Anchor = Annotated[str, StringConstraints(min_length=5)]
Text = Annotated[str, StringConstraints(min_length=1)]

Strength = Literal["decisive", "supporting", "symptom", "harmless", "outcome"]
Family = Literal["mission", "sibling", "outcome"]
Retry = Literal["never", "other-config", "same-config", "n/a"]
Action = Literal[
    "change-flag", "free-memory", "fix-environment", "fix-request", "investigate", "wait", "none"
]  # fmt: skip
Stage = Literal[
    "args", "init", "weight-load", "weight-postprocess", "kv-cache", "cuda-graph", "warmup", "serving"
]  # fmt: skip


class Strict(BaseModel):
    """Base: unknown keys and silent conversions (a version written as a number) are faults."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class Signature(Strict):
    """A fixed phrase and, where the phrase alone is not enough, a regular expression for the same line.

    ``use`` refers to a named group of signatures in ``rules/signatures.yaml`` instead. ``like`` (below ``with`` and
    ``unless``) names a fact of the rule's own match: the signature counts where what its regex captures begins that
    name, but for case and signs (``qwen2_audio`` begins ``Qwen2AudioForConditionalGeneration``).
    """

    anchor: Anchor | None = None
    regex: Text | None = None
    on: Literal["text", "frame"] = "text"
    scope: Literal["event", "log", "before"] = "event"
    use: KebabCase | None = None
    like: str = ""

    @model_validator(mode="after")
    def _anchor_or_use(self) -> Signature:
        if (self.anchor is None) == (self.use is None):
            raise ValueError("a signature has either an 'anchor' or a 'use'")
        return self


class Condition(Strict):
    """A test of one fact. All tests given must hold; a fact that is not known makes the condition unknown."""

    is_: str | int | bool | None = Field(default=None, alias="is")
    in_: list[str | int] | None = Field(default=None, alias="in")
    not_in: list[str | int] | None = None
    at_least: int | float | None = None
    below: int | float | None = None
    version: str | None = None


class Implies(Strict):
    """What the rule itself knows about the component, the flag and the value to blame; an empty flag is "none".

    `or_flag`, or the first of several, is blamed where the launch sets it and not `flag`.
    """

    component: str | None = None
    flag: str | None = None
    or_flag: str | list[str] | None = None
    value: str | None = None
    backend: str | None = None


class Hint(Strict):
    """A way out that the message itself names; ``{name}`` is replaced by a captured fact."""

    text: Text
    flag: str | None = None
    value: str | None = None
    direction: Literal["raise", "lower"] | None = None


class Hit(Strict):
    """A log excerpt in which the rule must match (and, if decisive, give its label)."""

    log: Text
    name: str | None = None
    given: dict[str, str | int] = Field(default_factory=dict)
    facts: dict[str, Any] = Field(default_factory=dict)
    stage: Stage | None = None
    verdict: KebabCase | None = None


class Miss(Strict):
    """A log excerpt in which the rule must not match."""

    log: Text
    because: Text
    name: str | None = None
    given: dict[str, str | int] = Field(default_factory=dict)
    owner: KebabCase | None = None


class Examples(Strict):
    """What must hit and what must not; a plain string is a log excerpt."""

    hit: list[str | Hit] = Field(min_length=1)
    miss: list[Miss] = Field(default_factory=list)


class Rule(Strict):
    """One mechanism: how it shows in a log, when it counts, and what it tells."""

    id: KebabCase
    was: list[KebabCase] = Field(default_factory=list)
    summary: Text
    strength: Strength
    strength_if_unknown: Strength = "supporting"
    stages: list[Stage] | None = None
    when: dict[str, Condition] = Field(default_factory=dict)
    any: list[Signature] = Field(min_length=1)
    with_: list[Signature] = Field(default_factory=list, alias="with")
    unless: list[Signature] = Field(default_factory=list)
    implies: Implies | None = None
    blocks: dict[str, str] = Field(default_factory=dict)
    explained_by: list[KebabCase] = Field(default_factory=list)
    distributed: bool = False
    shows_while_ready: bool = False
    orders_stop: bool = False
    left_by: list[KebabCase] = Field(default_factory=list)
    confidence: float | None = Field(default=None, gt=0, le=1)
    covers: Literal["line", "record"] = "line"
    action: Action | None = None
    hint: Hint | None = None
    seen_in: list[str] = Field(default_factory=list)
    references: list[Text] = Field(default_factory=list)
    examples: Examples


class Remedy(Strict):
    """What may help when the label fits: flags worth changing, best first, and one sentence."""

    flags: list[str] = Field(default_factory=list)
    advice: Text


class LabelFile(Strict):
    """One label and the rules that give it."""

    label: KebabCase
    title: Text
    about: Text
    family: Family
    retry: Retry
    action: Action
    near: list[KebabCase] = Field(default_factory=list)
    decides: str | None = None
    remedy: Remedy | None = None
    shows_while_ready: bool = False
    passes_when_served: bool = False
    platforms: list[str] = Field(default_factory=list)
    guess_when: dict[str, Condition] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)


class LabelPart(Strict):
    """A further file of a label that outgrew one file: rules only."""

    label: KebabCase
    rules: list[Rule] = Field(min_length=1)


class SignatureGroups(Strict):
    """``rules/signatures.yaml``: signatures that several rules share."""

    groups: dict[KebabCase, list[Signature]]


class Disabled(Strict):
    """``disable.yaml`` in a folder of the user: ids of rules that are not wanted."""

    disable: list[KebabCase]


class FactKind(Strict):
    """A name that a rule's named group or condition may use, and its type."""

    type: Literal["text", "int", "float", "version"]
    about: Text


class FactNames(Strict):
    """``rules/facts.yaml``: every fact there is."""

    facts: dict[str, FactKind]


class SecretKind(Strict):
    """A kind of secret: fixed phrases that announce it, the expression of the secret, what of it may stay."""

    kind: KebabCase
    anchor: str | list[str]
    shape: Text | None = None
    regex: Text
    keep: str | None = None
    keep_after: str | None = None
    example: list[Text] = Field(min_length=1)
    not_: list[Text] = Field(default_factory=list, alias="not")


class SecretKinds(Strict):
    """``rules/secrets.yaml``: what is never printed."""

    kinds: list[SecretKind]


class Wrapper(Strict):
    """One way in which other programs wrap the lines of a log.

    `regex` begins at the beginning of a line. Kind ``prefix``: the message begins where it ends; its group ``time`` is
    used where the line has no time of its own, ``number`` must rise from line to line, ``stream`` and ``partial`` tell
    that a line goes on in the next one of its stream (then `partial` is a phrase that every such line holds). Kind
    ``json``: `message` and `time` are keys of the object (the first that it has counts), and a message of `splits_at`
    bytes or more without a line feed goes on. Kind ``csv``: the message is the field that begins where the regex ends.
    Kind ``html``: the line is escaped for HTML. Kind ``fence``: the line is no part of the log. `share`: part of a
    log's lines that it must fit; 0 undoes it wherever it stands. `at_least`: lines that a log must have for it;
    `never`: how none of a log's lines may begin, `outside`: how none may that does not fit.
    `holds`: a phrase that every wrapped line holds, `begins`: the characters that one begins with; both spare looking
    further.
    """

    name: KebabCase
    kind: Literal["prefix", "json", "csv", "html", "fence"]
    regex: Text
    share: float = Field(default=0.6, ge=0, le=1)
    at_least: int = 1
    never: Text | None = None
    outside: Text | None = None
    holds: Text | None = None
    begins: Text | None = None
    message: list[Text] | None = None
    time: list[Text] | None = None
    splits_at: int | None = None
    partial: Text | None = None
    example: list[Text] = Field(min_length=1)
    not_: list[Text] = Field(min_length=1, alias="not")

    @model_validator(mode="after")
    def _is_sound(self) -> Wrapper:
        try:
            expression = re.compile(self.regex, re.ASCII)
            re.compile(self.never or "")
            re.compile(self.outside or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        unknown = set(expression.groupindex) - {"time", "stream", "partial", "origin", "number"}
        if unknown:
            raise ValueError(
                f"no such named group: {', '.join(sorted(unknown))} (time, stream, partial, origin, number)"
            )
        if self.partial and not {"stream", "partial"} <= set(expression.groupindex):
            raise ValueError("'partial' needs the named groups 'stream' and 'partial' in the regex")
        if (self.kind == "json") != (self.message is not None):
            raise ValueError("'message' names the key of the message: for the kind 'json', and for no other")
        fits = expression.fullmatch if self.kind == "fence" else expression.match
        for text in self.example:
            if not fits(text) or (self.holds or "") not in text or text[0] not in (self.begins or text[0]):
                raise ValueError(f"it does not fit its example {text!r}")
        for text in self.not_:
            if fits(text):
                raise ValueError(f"the regex matches {text!r}, which stands under 'not'")
        return self


class Wrappers(Strict):
    """``rules/wrappers.yaml``: what other programs and terminals do to a log."""

    widths: list[int] = Field(default_factory=list)
    wrappers: list[Wrapper]

    def joined(self, other: Wrappers) -> Wrappers:
        """Return both files as one."""
        return Wrappers(widths=[*self.widths, *other.widths], wrappers=[*self.wrappers, *other.wrappers])

    def compiled(self) -> dict[str, Any]:
        """Return what is needed at run time."""
        unused = {"wrappers": {"__all__": {"example", "not_"}}}
        return self.model_dump(exclude=unused, exclude_none=True, exclude_defaults=True) | {"widths": self.widths}
