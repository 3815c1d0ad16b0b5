"""The ladder from an incident to a verdict.

A decisive failure, what the classifier is sure of, an unexplained end, outcome marks, or ``unknown``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage import guessing
from logtriage.blame import from_frames
from logtriage.records import Candidate, Record, RootCause, Verdict

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
_NOTHING = 0.6  # measured: of ten failures that nothing explains six cannot be explained
_NO_LAUNCH = 0.8
_FOREIGN = 0.65  # any program may lack a module or fill a disk
_SEEN = 0.9
_SURE_OF_GARBAGE = 0.7

_SURELY_UNKNOWN = 0.9
_DOUBTED = 0.6
"""What confidence is left where the classifier doubts that a log without a failure has none."""

_OUTCOMES = {"degenerate-output": "degenerate", "incomplete": "incomplete"}
LIVES = frozenset({"server-ready", "requests-served"})
"""Rules that hold where a server was ready."""

_REQUESTS = frozenset({"requests-served", "requests-failed"})

_RESEMBLES = "no rule knows these lines, but they look like a failure"
_NO_REASON = "the launch failed and no rule knows why"
_NO_RULE = "an error that no rule knows"
_NO_SGLANG = "nothing in it looks like an SGLang launch"
_LIVED = "the server was ready, and nothing failed"
_BAD_REQUESTS = "the server was ready, but some requests got an error 500 that nothing explains"
_COMPLAINT = "the server was ready, and nothing failed; but somebody says that its answers are garbage"
_NO_ANSWERS = "the last requests got an error 500, and nothing explains it"
_NEITHER = "neither a ready line nor a failure is in the log"
_STOPPED_EARLY = "it was stopped before it was ready"
_EMPTY = "the log is empty"
_KILLED = (-9, 137)
_STOPPED = (-2, 130, -15, 143)


def decide(
    incident: Incident,
    labels: Mapping[str, dict[str, Any]],
    finding: Finding | None,
    *,
    stage: str | None,
    recognised: bool,
    described: bool,
    foreign: bool,
    empty: bool,
    exit_code: int | None = None,
    seen: Seen | None = None,
    ask: Callable[[], Guess | None] = lambda: None,
) -> Verdict:
    """Return the verdict on one launch.

    `ask` asks the classifier, which is done only where no rule decides. `finding` is what is wrong with the server's
    answers, if any were given; `stage` the last stage that was reached; `recognised` whether this looks like the
    server's log at all, `described` whether a machine is described and no launch shown, `foreign` whether not even its
    libraries or a GPU are named; `empty` whether there is no text in it; `exit_code` that of the launch, if the caller
    knows it; `seen` what whoever launched it saw from outside.
    """
    case = _Case(labels, stage, tuple(_candidates(incident)))
    verdict = _from_log(incident, case, recognised=recognised, described=described, empty=empty, ask=ask)
    if foreign and verdict.outcome == "failed":
        verdict = verdict.replace(confidence=min(verdict.confidence, _FOREIGN))
    is_open = verdict.label in ("healthy", "incomplete", "unknown") and verdict.rule is None
    was_asked = any(match.rule["id"] == "ordered-stop" for match in incident.outcomes)
    if exit_code is not None and is_open and not was_asked:
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


class _Case(Record):
    """What every verdict on a launch takes along: the facts of labels, the stage, and what else it might be."""

    labels: Mapping[str, dict[str, Any]]
    stage: str | None
    candidates: tuple[Candidate, ...]

    def of_rule(self, match: Match, confidence: float, decided_by: str = "rule") -> Verdict:
        """The verdict that a match gives: its label, and what its rule says of it."""
        label, rule = match.label, match.rule
        outcome = _OUTCOMES.get(label, "failed")
        return self.verdict(
            label, confidence, rule["summary"], outcome=outcome, decided_by=decided_by, rule=rule["id"]
        )  # fmt: skip

    def verdict(
        self, label: str, confidence: float, because: str, *, outcome: str = "failed", decided_by: str = "none",
        rule: str | None = None, lines: tuple[int, ...] = (),
    ) -> Verdict:  # fmt: skip
        """A verdict with a label of one's own."""
        retry = self.labels[label]["retry"]
        return Verdict(
            label, confidence, decided_by, outcome, retry, rule, self.stage, because, self.candidates, lines=lines
        )


def _from_log(
    incident: Incident,
    case: _Case,
    *,
    recognised: bool,
    described: bool,
    empty: bool,
    ask: Callable[[], Guess | None],
) -> Verdict:
    root, labels = incident.root, case.labels
    if root is not None:
        costs = _UNEXPLAINED_COSTS * len(incident.unexplained)
        return case.of_rule(root, max(0.5, root.rule.get("confidence", CERTAIN) - costs))
    if not incident.endings and (request := _wrong_request(incident, labels)):
        return case.of_rule(request, _WRONG_REQUEST)
    ending = _ending(incident)
    is_ready = any(match.rule["id"] in LIVES for match in incident.outcomes)
    guess = ask() if (recognised or is_ready) and (ending is None or incident.troubles) else None
    is_hinted = any(match.rule.get("shows_while_ready") for match in incident.supporting)
    doubt, unsure = _DOUBTED if is_hinted else 1.0, _SUPPORTED if case.candidates else _NOTHING
    if guess is not None:
        if guessed := guessing.verdict(guess, incident, labels, case.stage, case.candidates):
            return guessed
        case = case.replace(candidates=guessing.considered(guess, labels, case.candidates))
        unsure = max(unsure, guess.unknown)
        doubt = _DOUBTED if guessing.doubts(guess, labels, is_ready=is_ready) else doubt
        is_silent = not (incident.endings or incident.troubles or incident.outcomes)
        if is_silent and guessing.suspects(guess, case.stage):
            return case.verdict("unknown", _SUPPORTED, _RESEMBLES, lines=guess.lines)
    if ending is not None:
        return case.of_rule(ending, _ENDING, "none")
    if incident.endings or incident.troubles:
        return case.verdict("unknown", min(unsure, _SURELY_UNKNOWN), _NO_REASON if incident.endings else _NO_RULE)
    shown = recognised and not described
    return _without_failure(incident, case, recognised=shown, empty=empty, is_ready=is_ready, doubt=doubt)


def doubted(healthy: Verdict) -> Verdict:
    """Return the verdict on a healthy log in which somebody says that the answers are garbage, and shows none."""
    return healthy.replace(confidence=min(healthy.confidence, _DOUBTED), because=_COMPLAINT)


def _ending(incident: Incident) -> Match | None:
    """The end that tells most: a partner that was lost tells least, and who stopped a launch explains that it was
    killed, but nothing else that went wrong.
    """
    endings = sorted(incident.endings, key=lambda match: bool(match.rule.get("distributed")))
    stops = [match for match in endings if match.label == "incomplete"]
    others = [match for match in endings if match.label not in ("healthy", "incomplete")]
    if stops and not incident.troubles and all(match.label == "killed-unexplained" for match in others):
        return stops[0]
    return others[0] if others else None


def _without_failure(
    incident: Incident, case: _Case, *, recognised: bool, empty: bool, is_ready: bool, doubt: float
) -> Verdict:
    """The verdict on a log in which nothing failed; `doubt` is the most confidence that is left in that."""
    ids = {match.rule["id"] for match in incident.outcomes}
    if is_ready:
        sure, because = _READY if "server-ready" in ids else _SERVED_ONLY, _LIVED
        if "requests-failed" in ids:
            last = max((m for m in incident.outcomes if m.rule["id"] in _REQUESTS), key=lambda match: match.line)
            if last.rule["id"] == "requests-failed":
                return case.verdict("unknown", _NOTHING, _NO_ANSWERS, lines=(last.line,))
            sure, because = _DOUBTED, _BAD_REQUESTS
        return case.verdict("healthy", min(sure, doubt), because, outcome="healthy", decided_by="rule")
    if recognised or empty:
        because = _EMPTY if empty else _STOPPED_EARLY if "ordered-stop" in ids else _NEITHER
        return case.verdict("incomplete", min(_INCOMPLETE, doubt), because, outcome="incomplete")
    return case.verdict("unknown", _NO_LAUNCH, _NO_SGLANG, outcome="unknown")


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
        component, flag = from_frames(at, lines, events, blame)
        hinted = (m for m in incident.supporting if m.label == verdict.label and m.event == lines[at].event)
        known: Mapping[str, str] = next((m.rule["implies"] for m in hinted if "implies" in m.rule), {})
        component, flag = known.get("component", component), known.get("flag", flag) or None
        return RootCause(at, (lines[at].start, len(lines[at].text)), component, flag, _value(flag, {}, launch))
    if match is None and verdict.decided_by != "response":
        match = next((m for m in incident.endings if m.rule["id"] == verdict.rule), None)
    if match is None or verdict.decided_by == "response":
        ended = [ending.line for ending in incident.endings]
        if verdict.label == "unknown" and (incident.troubles or ended or verdict.lines):
            at = [*incident.troubles, *ended, *verdict.lines][0]
            component, flag = from_frames(at, lines, events, blame)
            return RootCause(at, (lines[at].start, len(lines[at].text)), component, flag, _value(flag, {}, launch))
        return None
    at, span = _exception_below(match, lines, events)
    again = [item.match.line for item in incident.explained if item.match.rule is match.rule]  # maybe with more frames
    told = (from_frames(line, lines, events, blame) for line in (at, *again))
    component, flag = next(filter(any, told), (None, None))
    implied = match.rule.get("implies", {})
    flag = implied["flag"] or None if "flag" in implied else match.facts.get("flag") or flag
    flag = rules.flags["aliases"].get(flag, flag)
    if "or_flag" in implied and not _is_set(flag, launch):
        others = [implied["or_flag"]] if isinstance(implied["or_flag"], str) else implied["or_flag"]
        flag = next((other for other in others if _is_set(other, launch)), flag)
    if str(implied.get("flag")).endswith("-path"):
        flag = _flag_with_value(match.facts, launch) or flag
    component = implied.get("component") or component
    value = implied.get("value") or _value(flag, match.facts, launch)
    facts = {key: fact for key, fact in {**match.facts, **_backend(implied)}.items() if key not in ("flag", "value")}
    return RootCause(at, span, component, flag, value, facts)


def _is_set(flag: str | None, launch: Launch) -> bool:
    """Whether a launch gives a flag a value; else the server prints 0, none or, for a number of ranks, 1."""
    unset = ("0", "none", "None", *(("1",) if flag is not None and flag.endswith("p-size") else ()))
    return flag is not None and str(launch.facts.get(flag, "0")) not in unset


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
