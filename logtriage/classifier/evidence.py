"""What of a launch may tell why it failed: its first failure, what followed, and words of alarm near the end.

It takes an incident that was built without the rules of any failure, so that what is looked at does not depend on
which rules there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from logtriage.records import Event, Incident, Line

MAX_EVENTS = 6
"""Failures looked at."""

MAX_ALARMS = 6
"""Further lines with words of alarm looked at."""

FRAMES = 5
"""Frames of a traceback looked at, the deepest ones."""

MAX_ABOVE = 3
"""Different lines with words of alarm looked at that stand just above the first failure."""

_LAST_ROWS = 40
_ROWS_ABOVE = 12
_MESSAGE_LINES = 8
_NUMBERS = frozenset("0123456789 ,.;:|-\t")
_TYPED = ("$ ", "+ ", ">>> ", "curl ")
FIRST, LATER, ALARM = 1.0, 0.5, 0.5
"""How much the lines of the first failure count, those of later ones, and words of alarm."""


class Item(NamedTuple):
    """A line to look at.

    Attributes:
        at: index of the line; `kind`: ``text`` or ``frame``; `weight`: how much it counts.
        text: the message, without the prefix of the line.
    """

    at: int
    kind: str
    weight: float
    text: str


class Evidence(Record):
    """All that the classifier looks at of one launch.

    Attributes:
        items: its lines, the first failure first.
        stage: stage at which the first failure was printed.
        sm: compute capability of the GPU times ten, if known; `exit_code`: that of the launch, if known.
        is_ready: whether the server was ready or answered requests.
        failed: whether something failed in the log, by its form (a traceback, an error line, a process that ended).
    """

    items: tuple[Item, ...]
    stage: str | None = None
    sm: int | None = None
    exit_code: int | None = None
    is_ready: bool = False
    failed: bool = False

    @property
    def tells(self) -> bool:
        """Whether there is a message to go by: frames alone prove nothing, nor does a head with nothing behind it."""
        first = (item.text.strip() for item in self.items if item.kind == "text" and item.weight == FIRST)
        return any(text and not text.endswith(":") for text in first)


class IsAlarm(Protocol):
    """Says whether a message has words of alarm in it."""

    def __call__(self, text: str, *, how: str) -> bool:
        """Answer for a launch that has ``failed``, is ``silent`` or ``ready``."""
        ...


class Seen(Record):
    """Where to look: the lines and events of the log, the launch's events, lines that say nothing of a failure."""

    lines: Sequence[Line]
    events: Sequence[Event]
    own_events: Sequence[int]
    routine: set[int]


def gather(incident: Incident, seen: Seen, is_alarm: IsAlarm, *, sm: int | None, exit_code: int | None) -> Evidence:
    """Return the evidence of a launch. `is_alarm` says whether a message has words of alarm in it."""
    lines, events = seen.lines, seen.events
    items: list[Item] = []
    taken: set[int] = set()
    first: int | None = None
    for number in dict.fromkeys(incident.trouble_events):
        if len(taken) == MAX_EVENTS:
            break
        first = number if first is None else first
        taken.add(number)
        at = incident.troubles[incident.trouble_events.index(number)]
        items += _of_event(events[number], at, lines, FIRST if number == first else LATER)
    failed = bool(incident.troubles or incident.endings)
    told = {match.rule["id"]: match.line for match in reversed(incident.outcomes)}  # the first of each
    is_ready = bool(told.keys() & {"server-ready", "requests-served"})
    how = "failed" if failed else "ready" if is_ready else "silent"
    ready, stop = told.get("server-ready", 0), told.get("ordered-stop", len(lines))
    if ready and not events[lines[ready].event].stage:  # nothing of its start is shown
        ready = 0

    def is_worth_it(at: int) -> bool:
        line = lines[at]
        if how != "failed" and line.start <= line.body and _is_by_a_person(line.text[line.body :]):
            return False
        # Of a server that lives also what it did not print itself: somebody shows its answers.
        is_by_others = how == "ready" and at >= ready and line.start == line.body and line.role == "text"
        is_by_others = is_by_others and not line.text[line.body :][:1].isspace()  # the code below a Python warning
        return at < stop and (is_by_others or is_alarm(_message(line), how=how))

    above = list(_above(incident, seen, is_worth_it))
    alarms = list(_alarms(incident, seen, taken, is_worth_it))
    if first is None and alarms:
        first = lines[alarms[0]].event
    items += [Item(at, "text", FIRST, _message(lines[at])) for at in above]
    items += [Item(at, "text", ALARM if taken else FIRST, _message(lines[at])) for at in alarms]
    ended = next((match.event for match in incident.endings), None)
    at_stage = first if first is not None else ended if ended is not None else _last(seen)
    return Evidence(
        items=tuple(items),
        stage=events[at_stage].stage if at_stage is not None else None,
        sm=sm,
        exit_code=exit_code,
        is_ready=is_ready,
        failed=failed,
    )


def _last(seen: Seen) -> int | None:
    return seen.own_events[-1] if seen.own_events else None


def _of_event(event: Event, at: int, lines: Sequence[Line], weight: float) -> Iterator[Item]:
    """The exceptions of a traceback with their messages and the frames above the last one; or a line of error."""
    if event.traceback is None:
        for index in range(at, min(event.last, at + _MESSAGE_LINES) + 1):
            if lines[index].role != "blank":
                yield Item(index, "text", weight, _message(lines[index]))
        return
    head, traceback, _ = _message(lines[event.first]).partition("Traceback")
    if traceback or head.rstrip().endswith(":"):  # else the traceback only happens to follow this record
        yield Item(event.first, "text", weight / 2, head)
    frames = [index for index in range(event.first, event.last + 1) if lines[index].role == "frame"]
    for index in frames[-FRAMES:]:
        yield Item(index, "frame", weight, lines[index].text[lines[index].body :])
    messages = 0
    for index in range(event.traceback, event.last + 1):
        role = lines[index].role
        messages = 0 if role == "exception" else messages
        if role == "exception" or (role == "message" and messages < _MESSAGE_LINES):
            messages += 1
            yield Item(index, "text", weight, _message(lines[index]))


def _above(incident: Incident, seen: Seen, is_worth_it: Callable[[int], bool]) -> Iterator[int]:
    """What a kernel or a library printed just before the first failure, if it is worth it."""
    if not incident.troubles:
        return
    lines, events = seen.lines, seen.events
    top = lines[events[incident.trouble_events[0]].first].row
    texts: set[str] = set()
    for number in reversed(seen.own_events):
        at = events[number].first
        line = lines[at]
        if line.row < top - _ROWS_ABOVE or len(texts) == MAX_ABOVE:
            return
        is_own = line.row < top and events[number].traceback is None and at not in seen.routine
        if is_own and _message(line) not in texts and is_worth_it(at):
            texts.add(_message(line))
            yield at


def _alarms(incident: Incident, seen: Seen, taken: set[int], is_worth_it: Callable[[int], bool]) -> Iterator[int]:
    """Of the last lines of the launch those that are worth it, and what rules of teardown name."""
    lines, events = seen.lines, seen.events
    if not seen.own_events:
        return
    ended = {match.line for match in incident.endings}
    newest = lines[events[seen.own_events[-1]].last].row
    found = 0
    for number in reversed(seen.own_events):
        event = events[number]
        is_old = lines[event.first].row < newest - _LAST_ROWS
        if found == MAX_ALARMS or (is_old and (not ended or event.last < min(ended))):
            return
        if number in taken or event.traceback is not None:
            continue
        at = event.first
        if at in seen.routine or (is_old and at not in ended):
            continue
        if at in ended or is_worth_it(at):
            found += 1
            yield at


def _is_by_a_person(text: str) -> bool:
    """Whether a line is a command or a question of whoever posts the log, or a row of numbers that was asked for."""
    return text.startswith(_TYPED) or text.rstrip(" )\"'").endswith("?") or _NUMBERS.issuperset(text)


def _message(line: Line) -> str:
    return line.text[line.start :] if line.start else line.text[line.body :]
