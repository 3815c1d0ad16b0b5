"""What a traceback's frames tell about the part of the server at work, and the flag that selects it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.records import Event, Line

_IMPORTERS = ("<frozen ", "/importlib/", "/multiprocessing/")
"""Frames of the interpreter between one module and the next that it imports."""

_ARGUMENTS = "/server_args.py"


def from_frames(
    at: int, lines: Sequence[Line], events: Sequence[Event], blame: Sequence[Sequence[str | None]]
) -> tuple[str | None, str | None]:
    """Component and flag by the deepest frame, above the line, whose path is known to belong to one."""
    event = events[lines[at].event]
    for index in range(at, event.first - 1, -1):
        line = lines[index]
        if line.role == "frame":
            for path, component, flag in blame:
                if path and path in line.text:
                    return (None, None) if _is_start_import(index, lines, events) else (component, flag)
    return None, None


def _is_start_import(at: int, lines: Sequence[Line], events: Sequence[Event]) -> bool:
    """Whether a frame runs while the program imports itself: nothing has read the flags yet, so none is to blame.

    What the check of the arguments imports is the same on every launch, too.
    """
    above = [line.text for line in lines[events[lines[at].event].first : at + 1] if line.role == "frame"]
    own = [text for text in above if not any(name in text for name in _IMPORTERS)]
    callers = [text for text in own if not text.rstrip().endswith("in <module>")]
    is_of_arguments = bool(callers) and callers[-1] is not own[-1] and _ARGUMENTS in callers[-1]
    return len(own) < len(above) and (not callers or is_of_arguments)
