"""What the classifier guesses in, a verdict or a candidate out: when a guess counts, and for how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.records import Candidate, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.classifier.predict import Guess
    from logtriage.records import Incident

_DISAGREES = 0.8
"""What is left of the confidence where the classifier and supporting rules point at different labels."""
_LESS_SURE = 0.69
"""What no rule knows is stranger than what the classifier was calibrated with: a guess is never as sure as a rule."""
_OUTCOMES = {"degenerate-output": "degenerate", "healthy": "healthy", "incomplete": "incomplete", "unknown": "failed"}
_BARE_KILL = "killed-unexplained"
_MOST_FOR_BARE_KILL = 0.6
_SURE_OF_SILENT = 0.75
_SURE_OF_READY = 0.97
_WORTH_SAYING = 0.4
_DOUBTS, _DOUBTS_ANSWERS, _DOUBTS_READY = 0.3, 0.2, 0.5
"""How sure it must be of a failure to doubt a log without one: of any; of bad answers, or of another, when ready."""
_LAST_STAGE = "warmup"
_FAILURE = 0.8
_LABEL = 0.6
"""How sure it must be that something failed, or of a label, for a silent log to be no launch that is still going on."""


def verdict(
    guess: Guess,
    incident: Incident,
    labels: Mapping[str, dict[str, Any]],
    stage: str | None,
    candidates: tuple[Candidate, ...],
) -> Verdict | None:
    """The verdict by the classifier, or None where it is not sure or the log shows no failure of that kind.

    A server that is ready has not failed, whatever its log resembles: only its answers may be bad.
    """
    head = labels.get(guess.label)
    if head is not None and guess.is_forced:
        outcome = _OUTCOMES.get(guess.label, "failed")
        return Verdict(
            guess.label, guess.confidence, "classifier", outcome, head["retry"], stage=stage, lines=guess.lines
        )
    if head is None or head["family"] == "outcome":
        return None
    if guess.label == _BARE_KILL and (incident.troubles or (incident.endings and not guess.is_alone)):
        return None  # by its meaning: what is printed explains the end, even if nobody knows what it says
    failed = bool(incident.troubles or incident.endings)
    if not failed and incident.outcomes and not (head.get("shows_while_ready") and _is_plain(guess, incident)):
        return None
    ends_so = guess.is_last or (head.get("shows_while_ready") and _knows_best(guess, incident))
    if not failed and not incident.outcomes and not (ends_so and guess.confidence >= _SURE_OF_SILENT):
        return None  # nothing in it has the form of a failure, or it goes on
    if not incident.troubles and any(match.rule.get("distributed") for match in incident.endings):
        return None  # of a rank that lost its partner the other one's log tells why
    if not guess.is_alone and guess.lines and _is_ending(guess.lines[0], incident):
        return None  # rules know what it rests on: that a process ended, and not why
    supported = [candidate.label for candidate in candidates]
    if len(supported) > 1 or not guess.is_sure:
        return None  # rules know the line, and that it means one or the other
    if supported and guess.label not in supported:
        return _as_supported(candidates[0], guess, labels, stage)
    confidence = guess.confidence * (1.0 if guess.is_alone else _LESS_SURE)
    if guess.label == _BARE_KILL:
        confidence = min(confidence, _MOST_FOR_BARE_KILL)
    words = ", ".join(f"“{word}”" for word in guess.words)
    outcome = _OUTCOMES.get(guess.label, "failed")
    return Verdict(
        guess.label, round(confidence, 2), "classifier", outcome,
        head["retry"], stage=stage, because=f"no rule knows this line yet; it resembles others of this kind by {words}",
        candidates=(*candidates, *(other for other in guess.candidates if other.label not in supported)),
        lines=guess.lines, words=guess.words,
    )  # fmt: skip


def _as_supported(
    candidate: Candidate, guess: Guess, labels: Mapping[str, dict[str, Any]], stage: str | None
) -> Verdict | None:
    """The verdict where rules know the line, and the classifier takes it for something else: of what it means rules
    know more, but they asked for a second opinion.
    """
    head = labels[candidate.label]
    if head.get("shows_while_ready") or head["action"] == "fix-request":
        return None
    others = [other for other in guess.candidates if other.label != candidate.label]
    return Verdict(
        candidate.label, round(guess.failure * _LESS_SURE * _DISAGREES, 2), "classifier", "failed", head["retry"],
        stage=stage, because=candidate.because, candidates=(*considered(guess, labels, ()), *others),
        lines=() if candidate.line is None else (candidate.line,),
    )  # fmt: skip


def _is_ending(line: int, incident: Incident) -> bool:
    event_of = dict(zip(incident.troubles, incident.trouble_events, strict=True))
    ends = {match.line: match.event for match in incident.endings}
    return line in ends or event_of.get(line) in ends.values()


def _is_plain(guess: Guess, incident: Incident) -> bool:
    """Whether what a ready server's log shows needs no second look: an odd answer, or what it is very sure of."""
    return (guess.is_odd or guess.confidence >= _SURE_OF_READY) and _knows_best(guess, incident)


def _knows_best(guess: Guess, incident: Incident) -> bool:
    """Whether no rule knows what the line is worth that a guess rests on most."""
    return all(match.line not in guess.lines[:1] for match in incident.supporting)


def doubts(guess: Guess, labels: Mapping[str, dict[str, Any]], *, is_ready: bool) -> bool:
    """Whether the classifier tends to a failure in a log in which nothing failed.

    Of a server that is ready it must be a certain one: that some are not ruled out says nothing.
    """
    if not is_ready:  # a server at work is none that is still starting
        return guess.failure >= _DOUBTS or (guess.label == "healthy" and bool(guess.lines))
    likely = [(guess.label, guess.confidence), *((other.label, other.confidence) for other in guess.candidates)]
    return any(
        share >= (_DOUBTS_ANSWERS if labels[label].get("shows_while_ready") else _DOUBTS_READY)
        for label, share in likely
        if label in labels and labels[label]["family"] != "outcome"
    )


def suspects(guess: Guess, stage: str | None) -> bool:
    """Whether lines that no rule takes for a failure tell of one all the same: then nobody should wait.

    What a launch dies of it says last; what it goes on after was a warning. A server at work (`healthy`), of which no
    rule knows the ready line, is not still starting, and what it said last may be wrong. Behind the last stage of a
    start the ready line is all that is still to come.
    """
    if guess.is_odd or guess.label in ("unknown", "incomplete"):
        return guess.is_odd
    if guess.is_behind and stage == _LAST_STAGE:
        return True
    if not guess.is_last:
        return False
    if guess.label == "healthy":
        return guess.failure >= _DOUBTS
    return guess.failure >= _FAILURE or guess.confidence >= _LABEL


def considered(
    guess: Guess, labels: Mapping[str, dict[str, Any]], candidates: tuple[Candidate, ...]
) -> tuple[Candidate, ...]:
    """The candidates with the failure that the classifier tends to, if no rule points there already."""
    head = labels.get(guess.label)
    if head is None or head["family"] == "outcome" or guess.confidence < _WORTH_SAYING:
        return candidates
    if any(candidate.label == guess.label for candidate in candidates):
        return candidates
    words = ", ".join(f"“{word}”" for word in guess.words)
    line = guess.lines[0] if guess.lines else None
    likely = Candidate(guess.label, round(guess.confidence / 2, 2), f"other logs of this kind have {words}", line)
    return (*candidates, likely)
