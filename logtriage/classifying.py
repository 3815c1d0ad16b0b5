"""Launches of a log in, what the classifier makes of them out. It is asked, and read, only where no rule decided."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from logtriage import resources
from logtriage.engine import conditions, incident

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.classifier import evidence
    from logtriage.classifier.predict import Guess, Model
    from logtriage.reading import Options
    from logtriage.records import Launch, Match


GUESS = "guess"
"""The decider that always answers, for measuring the classifier."""


def guess(
    built: incident.Evidence, started: Launch, labels: Mapping[str, dict[str, Any]], options: Options
) -> Guess | None:
    """Return what the classifier makes of launches, or None if there is nothing to go by.

    Raises InputError for a weights file of the caller that cannot be read.
    """
    if "classifier" not in options.deciders and GUESS not in options.deciders:
        return None
    from logtriage.classifier.features import extract

    path = options.weights or resources.weights_file()
    if path is None:
        return None
    model = _model(path)
    seen = gather(built, model.lexicon.is_alarm, started, options.exit_code)
    if not seen.tells:
        return None
    found = fitting(model.guess(extract(seen, model.lexicon)), labels, started.facts)
    told = (number for number in reversed(built.own_events) if built.lines[built.events[number].first].text.strip())
    is_last = bool(found.lines) and built.lines[found.lines[0]].event == next(told, None)
    is_behind = bool(found.lines) and found.lines[0] > max((mark.line for mark in built.marks), default=-1)
    is_forced, is_alone = GUESS in options.deciders, "rules" not in options.deciders
    return found.replace(is_forced=is_forced, is_alone=is_alone, is_last=is_last, is_behind=is_behind)


def fitting(found: Guess, labels: Mapping[str, dict[str, Any]], facts: dict[str, Any]) -> Guess:
    """Return a guess without the labels that by their meaning cannot be, such as a kernel for other GPUs than this one.

    What is left becomes no more likely by that: without its first label the guess is ``unknown``.
    """

    def is_possible(label: str) -> bool:
        return conditions.holds(labels.get(label, {}).get("guess_when", {}), facts) is not False

    candidates = tuple(other for other in found.candidates if is_possible(other.label))
    label = found.label if is_possible(found.label) else "unknown"
    return found.replace(label=label, candidates=candidates)


def gather(
    built: incident.Evidence, is_alarm: evidence.IsAlarm, started: Launch, exit_code: int | None
) -> evidence.Evidence:
    """Return what the classifier looks at of the launches that an incident is built of.

    Rules of failures take no part, so that it sees the same whichever rules there are; what is harmless, what an ended
    process leaves behind and the signs of a server that is ready do.
    """
    from logtriage.classifier import evidence

    found = incident.build(built.replace(matches=without_failures(built.matches)))
    routine = built.covered | {mark.line for mark in built.marks} | {match.line for match in found.outcomes}
    seen = evidence.Seen(built.lines, built.events, built.own_events, routine)
    return evidence.gather(found, seen, is_alarm, sm=started.facts.get("sm"), exit_code=exit_code)


def without_failures(matches: Sequence[Match]) -> list[Match]:
    """Return the matches of rules that name no failure: harmless, outcome, and those of the label healthy."""
    return [match for match in matches if match.strength in ("harmless", "outcome") or match.label == "healthy"]


@cache
def _model(path: str) -> Model:
    from logtriage.classifier import predict

    return predict.load(path)
