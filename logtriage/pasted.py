"""Answers of the server that somebody pasted into its log: bodies of JSON, and text below what asks for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.answers import judge, read_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from logtriage.answers import Finding
    from logtriage.engine.ruleset import RuleSet
    from logtriage.reading import Reading
    from logtriage.records import Line

_ID = r"""["']id["']: ?["'][^"']+"""
"""What the pieces of one stream have in common."""

_LEAST = 32
"""Characters of a pasted text that is judged; shorter ones may be anything."""

_NEAR, _LONGEST = 3, 40  # lines below a request or a cue; those of an answer

_QUOTED = re.compile("^> ?", re.MULTILINE)
_PROGRESS = "%|"
_PROMPTS = (">>>", "In [", "Out[", "$ ")


def body(reading: Reading, places: Iterable[int], rules: RuleSet) -> tuple[int, Finding] | None:
    """Return the first of some lines, each with an answer of the server as JSON or a piece of a streamed one, whose
    answer is garbage, and how.
    """
    streams: dict[str, tuple[int, list[str]]] = {}
    for at in sorted({*places}.difference(asked_for(reading, rules))):
        text = reading.lines[at].text[reading.lines[at].start :]
        name = re.search(_ID, text) if text.startswith("data:") else None
        streams.setdefault(name[0] if name else str(at), (at, []))[1].append(text)
    for at, pieces in streams.values():
        if finding := _judged("\n".join(pieces)):
            return at, finding
    return None


def logged(answers: Sequence[tuple[int, str]], reading: Reading, rules: RuleSet) -> tuple[int, Finding] | None:
    """Return the first of the answers that the server logged, each with its line, that is garbage, and how.

    Only if at least a third of them are: a request may have asked for what only looks so, and not all garbage is seen.
    """
    asks = _asks(rules)
    own = [(at, answer) for at, answer in answers if not asks.search(reading.lines[at].text.replace(answer, ""))]
    found = [(at, finding) for at, answer in own if (finding := _judged(answer))]
    return found[0] if found and 3 * len(found) >= len(own) else None


def text(reading: Reading, rules: RuleSet) -> tuple[int, Finding] | None:
    """Return the first line of garbage that stands behind or below a cue (`answer_cues`: a prompt, a print), and how
    it is. Only for logs in which nothing failed: each line that was kept is looked at.
    """
    right = set(asked_for(reading, rules))
    found = ((place, _judged(answer)) for place, answer in shown(reading, rules) if place not in right)
    return next(((place, finding) for place, finding in found if finding), None)


def shown(reading: Reading, rules: RuleSet) -> Iterator[tuple[int, str]]:
    """Yield the lines that show an answer behind or below a cue, and the answer, if it is long enough to be judged."""
    cue = re.compile("|".join(f"(?:{pattern})" for pattern in rules.log["answer_cues"]))
    for at, line in enumerate(reading.lines):
        match = None if line.time is not None else cue.match(line.text, line.start)
        if match is None:
            continue
        place, found = at, line.text[match.end() :].strip()
        if not found:
            place, found = _below(reading.lines, at, cue)
        elif line.text.startswith(">"):  # a quotation goes on
            found = "\n".join([found, *_quoted(reading.lines, at, cue)])
        if len(found) >= _LEAST:
            yield place, found


def asked_for(reading: Reading, rules: RuleSet) -> Iterator[int]:
    """Yield the lines below those in which somebody asks for the same thing again and again."""
    asks = _asks(rules)
    left = 0
    for at, line in enumerate(reading.lines):
        if line.role == "text" and left and line.text.strip():
            left -= 1
            yield at
        if line.role == "text" and asks.search(line.text, line.start):
            left = _NEAR


def _asks(rules: RuleSet) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in rules.log["repeats_asked"]))


def _quoted(lines: Sequence[Line], at: int, cue: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines of a quotation below one of it, up to another cue."""
    for line in lines[at + 1 : at + _LONGEST]:
        if not line.text.startswith(">") or cue.match(line.text, line.start):
            return
        yield line.text[line.start :].lstrip("> ")


def complaint(reading: Reading, rules: RuleSet) -> int | None:
    """Return the first line in which somebody says that the answers are garbage, or None."""
    says = re.compile("|".join(f"(?:{pattern})" for pattern in rules.log["complaints"]))
    lines = enumerate(reading.lines)
    return next((at for at, line in lines if line.time is None and says.search(line.text, line.start)), None)


def _below(lines: Sequence[Line], at: int, cue: re.Pattern[str]) -> tuple[int, str]:
    """The next lines with a text, up to a blank one or another cue, below a blank line and the fence of a block."""
    first = at
    said: list[str] = []
    for place in range(at + 1, min(at + _LONGEST, len(lines))):
        line = lines[place]
        text = line.text[line.start :].strip()
        is_said = text and line.role != "fence" and not text.startswith("```")
        if line.time is not None or line.file != lines[at].file or _PROGRESS in text or text.startswith(_PROMPTS):
            break
        if cue.match(line.text, line.start):
            break
        if is_said:
            first = first if said else place
            said.append(text)
        elif said or place > at + _NEAR:
            break
    return first, "\n".join(said)


def _judged(found: str) -> Finding | None:
    found = _QUOTED.sub("", found)
    if found[:1] == found[-1:] == "'":  # as Python shows a string
        found = found[1:-1]
    return judge(read_response(found.encode("utf-8", "replace")))
