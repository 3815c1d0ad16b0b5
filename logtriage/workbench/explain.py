"""Which rules fired on a line of a log, which almost did and what they missed; what a label or a rule means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from logtriage import pipeline, resources
from logtriage.engine.rule_source import RuleSource
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.engine.schema import Rule, Signature
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


def rows(word: str, rules: RuleSet, folders: Sequence[Path]) -> list[str]:
    """Return what a label, or a rule of the built-in ones and those in `folders`, means, as lines.

    Raises InputError for a word that is neither.
    """
    if word in rules.labels:
        return label_rows(word, rules)
    found = RuleSource([resources.rules_folder(), *folders]).rules
    for label, rule, document, place in found:
        if word in (rule.id, *rule.was):
            return rule_rows(label, rule, document.fault((*place, "id"), "").rstrip(": "))
    from difflib import get_close_matches

    near = get_close_matches(word, [*rules.labels, *(rule.id for _, rule, _, _ in found)], n=3, cutoff=0.5)
    raise InputError(
        f"no label and no rule {word!r}; did you mean {' or '.join(near or sorted(rules.labels)[:3])}? "
        "`logtriage rules list` shows the labels, `logtriage rules list LABEL` the rules of one"
    )


def rule_rows(label: str, rule: Rule, place: str) -> list[str]:
    """Return what a rule knows and how it shows in a log, as lines; `place` is where it is written."""
    parts = [f"{rule.id}: {rule.summary}", "", f"  label         {label}", f"  strength      {rule.strength}"]
    if rule.stages:
        parts.append(f"  stages        {', '.join(rule.stages)}")
    for name, condition in rule.when.items():
        tests = condition.model_dump(by_alias=True, exclude_none=True)
        parts.append(f"  when          {name} {' and '.join(f'{test} {value}' for test, value in tests.items())}")
    if rule.hint is not None:
        parts.append(f"  hint          {rule.hint.text}")
    parts.append(f"  written in    {place}")
    for title, signatures in (("any of", rule.any), ("with one of", rule.with_), ("unless one of", rule.unless)):
        if signatures:
            parts += ["", f"  {title}:", *(f"    {_signature(signature)}" for signature in signatures)]
    if rule.references:
        parts += ["", "  references:", *(f"    {' '.join(reference.split())}" for reference in rule.references)]
    for number, hit in enumerate(rule.examples.hit):
        parts += ["", *(["  examples:"] if number == 0 else [])]
        parts += _quoted(hit if isinstance(hit, str) else hit.log)
    for miss in rule.examples.miss:
        parts += ["", f"  must not hit, because {miss.because}:", *_quoted(miss.log)]
    return parts


def _signature(signature: Signature) -> str:
    if signature.use is not None:
        return f"the group {signature.use} of signatures.yaml"
    where = {"log": "anywhere in the log", "before": "before it"}.get(signature.scope, "")
    parts = [
        f'"{signature.anchor}"',
        f"as {signature.regex}" if signature.regex else "",
        "in a frame" if signature.on == "frame" else "",
        where,
        f"of what begins {signature.like}" if signature.like else "",
    ]
    return "  ".join(part for part in parts if part)


def _quoted(log: str) -> list[str]:
    return [f"    | {line}" for line in log.rstrip("\n").split("\n")]


def label_rows(label: str, rules: RuleSet) -> list[str]:
    """Return what a label means, as lines."""
    head = rules.labels[label]
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
