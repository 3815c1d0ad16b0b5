"""The ladder from an incident to a verdict.

A decisive failure, what the classifier is sure of, an unexplained end, outcome marks, or ``unknown``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage import guessing
from logtriage.records import Candidate, RootCause, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from logtriage.answers import Finding
    from logtriage.classifier.predict import Guess
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Event, Incident, Launch, Line, Match, Seen

CERTAIN = 0.97
"""Confidence in a decisive match that nothing speaks against."""

_UNEXPLAINED_COSTS = 0.15
_ENDING = 0.69  # right nine times in ten, but never as sure as what is explained: what was cut off may explain it
_WRONG_REQUEST = 0.85
_READY = 0.95
_SERVED_ONLY = 0.85
_INCOMPLETE = 0.9
_SUPPORTED = 0.4
_NOTHING = 0.35
_NO_LAUNCH = 0.8
_SEEN = 0.9
_SURE_OF_GARBAGE = 0.7

_SURELY_UNKNOWN = 0.9
_DOUBTED = 0.6
"""What confidence is left where the classifier doubts that a log without a failure has none."""

_LIVES = frozenset({"server-ready", "requests-served"})

_RESEMBLES = "no rule knows these lines, but they look like a failure"
_NEITHER = "neither a ready line nor a failure is in the log"
_KILLED = (-9, 137)
_STOPPED = (-2, 130, -15, 143)


def decide(
    incident: Incident,
    labels: Mapping[str, dict[str, Any]],
    finding: Finding | None,
    *,
    stage: str | None,
    recognised: bool,
    empty: bool,
    exit_code: int | None = None,
    seen: Seen | None = None,
    ask: Callable[[], Guess | None] = lambda: None,
) -> Verdict:
    """Return the verdict on one launch.

    `ask` asks the classifier, which is done only where no rule decides. `finding` is what is wrong with the server's
    answers, if any were given; `stage` the last stage that was reached; `recognised` whether this looks like the
    server's log at all; `empty` whether there is no text in it; `exit_code` that of the launch, if the caller knows it;
    `seen` what whoever launched it saw from outside.
    """
    verdict = _from_log(incident, labels, stage=stage, recognised=recognised, empty=empty, ask=ask)
    if exit_code is not None and verdict.label in ("incomplete", "unknown"):
        verdict = _with_exit_code(verdict, exit_code, labels)
    if seen is not None and verdict.label in ("healthy", "incomplete", "unknown"):
        verdict = verdict.replace(
            label=seen.label, confidence=_SEEN, decided_by="none", outcome="failed", rule=None,
            retry=labels[seen.label]["retry"], because=seen.because,
        )  # fmt: skip
    if finding is not None and finding.certainty >= _SURE_OF_GARBAGE and incident.root is None:
        return Verdict(
            "degenerate-output", finding.certainty, "response", "degenerate", labels["degenerate-output"]["retry"],
            stage="serving", because=finding.because, candidates=verdict.candidates,
        )  # fmt: skip
    return verdict


def _from_log(
    incident: Incident,
    labels: Mapping[str, dict[str, Any]],
    *,
    stage: str | None,
    recognised: bool,
    empty: bool,
    ask: Callable[[], Guess | None],
) -> Verdict:
    candidates = tuple(_candidates(incident))
    root = incident.root
    if root is not None:
        confidence = max(0.5, root.rule.get("confidence", CERTAIN) - _UNEXPLAINED_COSTS * len(incident.unexplained))
        outcome = "degenerate" if root.label == "degenerate-output" else "failed"
        return Verdict(
            root.label, confidence, "rule", outcome, labels[root.label]["retry"], root.rule["id"], stage,
            root.rule["summary"], candidates,
        )  # fmt: skip
    endings = sorted(incident.endings, key=lambda match: bool(match.rule.get("distributed")))
    ending = next((match for match in endings if match.label != "healthy"), None)
    if not incident.endings and (request := _wrong_request(incident, labels)):
        return Verdict(
            request.label, _WRONG_REQUEST, "rule", "failed", labels[request.label]["retry"], request.rule["id"], stage,
            request.rule["summary"], candidates,
        )  # fmt: skip
    ids = {match.rule["id"] for match in incident.outcomes}
    guess = ask() if recognised and (ending is None or incident.troubles) else None
    is_hinted = any(match.rule.get("shows_while_ready") for match in incident.supporting)
    doubt, unsure = _DOUBTED if is_hinted else 1.0, _SUPPORTED if candidates else _NOTHING
    if guess is not None:
        if guessed := guessing.verdict(guess, incident, labels, stage, candidates):
            return guessed
        candidates = guessing.considered(guess, labels, candidates)
        doubt = _DOUBTED if guessing.doubts(guess, labels, is_ready=bool(ids & _LIVES)) else doubt
        silent = not (incident.endings or incident.troubles or incident.outcomes)
        if silent and guessing.suspects(guess):
            return Verdict("unknown", _SUPPORTED, "none", "failed", labels["unknown"]["retry"], stage=stage,
                           because=_RESEMBLES, candidates=candidates, lines=guess.lines)  # fmt: skip
    if ending is not None:
        return Verdict(
            ending.label, _ENDING, "none", "failed", labels[ending.label]["retry"], ending.rule["id"], stage,
            ending.rule["summary"], candidates,
        )  # fmt: skip
    if incident.endings or incident.troubles:
        because = "the launch failed and no rule knows why" if incident.endings else "an error that no rule knows"
        sure = max(unsure, guess.unknown if guess is not None else 0.0)
        return Verdict("unknown", min(sure, _SURELY_UNKNOWN), "none", "failed", labels["unknown"]["retry"],
                       stage=stage, because=because, candidates=candidates)  # fmt: skip
    if ids & _LIVES:
        sure = _READY if "server-ready" in ids else _SERVED_ONLY
        because = "the server was ready, and nothing failed"
        if "requests-failed" in ids:
            sure, because = (
                _DOUBTED,
                "the server was ready, but some requests got an error 500 that nothing explains",
            )
        return Verdict("healthy", min(sure, doubt), "rule", "healthy", labels["healthy"]["retry"], stage=stage,
                       because=because, candidates=candidates)  # fmt: skip
    if recognised or empty:
        because = "it was stopped before it was ready" if "ordered-stop" in ids else _NEITHER
        because = "the log is empty" if empty else because
        return Verdict("incomplete", min(_INCOMPLETE, doubt), "none", "incomplete", labels["incomplete"]["retry"],
                       stage=stage, because=because, candidates=candidates)  # fmt: skip
    return Verdict("unknown", _NO_LAUNCH, "none", "unknown", labels["unknown"]["retry"], stage=stage,
                   because="nothing in it looks like an SGLang launch", candidates=candidates)  # fmt: skip


def _wrong_request(incident: Incident, labels: Mapping[str, dict[str, Any]]) -> Match | None:
    """The request that was wrong, if all trouble that is left comes from requests and the server lives on."""
    if not incident.troubles:
        return None
    requests = [match for match in incident.supporting if labels[match.label]["action"] == "fix-request"]
    known = {match.event for match in requests}
    return requests[0] if requests and all(event in known for event in incident.trouble_events) else None


def _with_exit_code(verdict: Verdict, exit_code: int, labels: Mapping[str, dict[str, Any]]) -> Verdict:
    """What the exit code adds where the log shows no failure; a stop on request (SIGINT, SIGTERM) adds nothing."""
    if exit_code in _STOPPED or exit_code == 0 or verdict.label == "unknown":
        return verdict
    because = f"the process ended with exit code {exit_code}, and nothing in the log explains it"
    label = "killed-unexplained" if exit_code in _KILLED else "unknown"
    return verdict.replace(
        label=label, confidence=_ENDING, outcome="failed", retry=labels[label]["retry"], because=because
    )


def _candidates(incident: Incident) -> list[Candidate]:
    """The labels that supporting matches point at, the one with most matches first."""
    by_label: dict[str, list[Match]] = {}
    for match in incident.supporting:
        by_label.setdefault(match.label, []).append(match)
    ranked = sorted(by_label.items(), key=lambda item: (-len(item[1]), item[1][0].line))
    return [
        Candidate(label, round(_SUPPORTED / position, 2), matches[0].rule["summary"], matches[0].line)
        for position, (label, matches) in enumerate(ranked, start=1)
    ]


def root_cause(
    incident: Incident,
    verdict: Verdict,
    lines: Sequence[Line],
    events: Sequence[Event],
    launch: Launch,
    rules: RuleSet,
) -> RootCause | None:
    """Return the line that shows the cause and what is to blame; None where there is no such line."""
    blame: Sequence[Sequence[str | None]] = rules.log["blame"]
    match = incident.root
    if verdict.decided_by == "classifier":
        if not verdict.lines:
            return None
        at = next((at for at in verdict.lines if lines[at].role != "frame"), verdict.lines[0])
        component, flag = _from_frames(at, lines, events, blame)
        return RootCause(at, (lines[at].start, len(lines[at].text)), component, flag, _value(flag, {}, launch))
    if match is None and verdict.decided_by != "response":
        match = next((m for m in incident.endings if m.rule["id"] == verdict.rule), None)
    if match is None or verdict.decided_by == "response":
        ended = [ending.line for ending in incident.endings]
        if verdict.label == "unknown" and (incident.troubles or ended or verdict.lines):
            at = [*incident.troubles, *ended, *verdict.lines][0]
            component, flag = _from_frames(at, lines, events, blame)
            return RootCause(at, (lines[at].start, len(lines[at].text)), component, flag, _value(flag, {}, launch))
        return None
    at, span = _exception_below(match, lines, events)
    component, flag = _from_frames(at, lines, events, blame)
    implied = match.rule.get("implies", {})
    flag = implied["flag"] or None if "flag" in implied else match.facts.get("flag") or flag
    flag = rules.flags["aliases"].get(flag, flag)
    if (other := implied.get("or_flag")) and _is_set(other, launch) and not _is_set(flag, launch):
        flag = other
    if str(implied.get("flag")).endswith("-path"):
        flag = _flag_with_value(match.facts, launch) or flag
    component = implied.get("component") or component
    value = implied.get("value") or _value(flag, match.facts, launch)
    facts = {key: fact for key, fact in {**match.facts, **_backend(implied)}.items() if key not in ("flag", "value")}
    return RootCause(at, span, component, flag, value, facts)


def _is_set(flag: str | None, launch: Launch) -> bool:
    """Whether a launch gives a flag a value; the server prints 0 for a size that is not set."""
    return flag is not None and str(launch.facts.get(flag, "0")) != "0"


def _flag_with_value(facts: Mapping[str, Any], launch: Launch) -> str | None:
    """The one flag of the command that has the path or name that the message gives: it beats what is usual."""
    named = {str(facts[name]) for name in ("path", "model") if name in facts}
    flags = [flag for flag, value in launch.flags.items() if value in named]
    return flags[0] if len(flags) == 1 else None


def _backend(implied: Mapping[str, str]) -> dict[str, str]:
    return {"backend": implied["backend"]} if "backend" in implied else {}


def _value(flag: str | None, facts: Mapping[str, Any], launch: Launch) -> str | None:
    """The value of the blamed flag: as the message names it, as the command has it, or as the server resolved it."""
    if facts.get("value") is not None:
        return str(facts["value"])
    known = launch.facts.get(flag) if flag else None
    if known is None and flag in launch.env:
        known = launch.env[flag]
    return None if known is None else str(known)


def _exception_below(match: Match, lines: Sequence[Line], events: Sequence[Event]) -> tuple[int, tuple[int, int]]:
    """The matched line, or if that is a frame, the exception line below it."""
    if lines[match.line].role == "frame":
        for at in range(match.line, events[match.event].last + 1):
            if lines[at].role == "exception":
                return at, (lines[at].start, len(lines[at].text))
    return match.line, match.span


def _from_frames(
    at: int, lines: Sequence[Line], events: Sequence[Event], blame: Sequence[Sequence[str | None]]
) -> tuple[str | None, str | None]:
    """Component and flag by the deepest frame, above the line, whose path is known to belong to one."""
    event = events[lines[at].event]
    for index in range(at, event.first - 1, -1):
        line = lines[index]
        if line.role == "frame":
            for path, component, flag in blame:
                if path and path in line.text:
                    return component, flag
    return None, None
