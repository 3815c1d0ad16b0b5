"""Which rules fired on a line of a log, which almost did and what they missed, and what a label means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage import pipeline
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Line


AROUND = 3
"""Lines before and after the one asked for that are read as well: they tell whether it holds a secret."""


class Answer(NamedTuple):
    """One line, as index into the log's lines: where it stands, what fired (rule, strength, facts), what almost did.

    What almost fired is given as rule and why it did not. `rank` is that of the event which the line is part of.
    """

    lines: Sequence[Line]
    at: int
    rank: str
    stage: str | None
    fired: list[tuple[dict[str, Any], str, dict[str, Any]]]
    almost: list[tuple[dict[str, Any], str]]

    @property
    def line(self) -> Line:
        """The line itself."""
        return self.lines[self.at]


def explain_line(path: str, number: int, rules: RuleSet, options: pipeline.Options) -> list[Answer]:
    """Return an answer for each segment of line `number` of a log.

    Raises InputError if the log cannot be read or has no such line.
    """
    reading = pipeline.read([path], rules, options.replace(also=range(number - AROUND, number + AROUND + 1)))
    answers = []
    for index, line in enumerate(reading.lines):
        if line.number != number or line.file != 0:
            continue
        fired = [(m.rule, m.strength, m.facts) for m in reading.matched.matches if m.line == index]
        almost = [(miss.rule, miss.because) for miss in pipeline.near_misses(reading, index)]
        known = {rule["id"] for rule, _, _ in fired} | {rule["id"] for rule, _ in almost}
        almost += list(_expressions(line, rules, known))
        event = reading.clock.events[line.event]
        answers.append(Answer(reading.lines, index, line.rank or event.rank, event.stage, fired, almost))
    if not answers:
        raise InputError(f"{path}: has no line {number}")
    return answers


def _expressions(line: Line, rules: RuleSet, known: set[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Rules whose fixed phrase stands in the line while the expression around it does not match."""
    missed = set(rules.almost(line.text[line.start :]))
    for rule in rules.rules:
        if rule["id"] in known:
            continue
        for number in rule["any"]:
            if number in missed:
                yield rule, f"its phrase is there, its expression does not match: {rules.expression(number)}"
                break


def label_rows(label: str, rules: RuleSet) -> list[str]:
    """Return what a label means, as lines. Raises InputError for an unknown label."""
    head = rules.labels.get(label)
    if head is None:
        from difflib import get_close_matches

        near = get_close_matches(label, rules.labels, n=3, cutoff=0.4) or sorted(rules.labels)
        raise InputError(f"no label {label!r}; did you mean {' or '.join(near[:3])}? `logtriage rules list` shows all")
    own = [rule for rule in rules.rules if rule["label"] == label]
    parts = [f"{label}: {head['title']}", "", f"  {' '.join(head['about'].split())}", ""]
    if head.get("decides"):
        parts += [f"  what decides  {' '.join(head['decides'].split())}"]
    if head.get("near"):
        parts += [f"  near          {', '.join(head['near'])}"]
    parts += [f"  retry         {head['retry']}", f"  action        {head['action']}"]
    if head.get("remedy"):
        parts += [f"  remedy        {head['remedy']['advice']}"]
    if own:
        parts += ["", f"  {len(own)} rules:"]
        parts += [f"    {rule['id']} ({rule['strength']}): {rule['summary']}" for rule in own]
    return parts
