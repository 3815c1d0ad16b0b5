"""Rows onto a screen: how much of a report is shown on one of a given size, and prose folded to its width."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Piece = tuple[str, str]
"""A style name and the text that has it."""

Row = list[Piece]

INDENT = 12
"""Columns that prose hangs in by, below the keys."""

COMMAND = "command"
"""The style of what is to be copied: the terminal may fold it, we do not."""

_LEAST = 40


class Detail(NamedTuple):
    """How much is shown.

    Attributes:
        frames: of the traceback above the root line; `context` lines around it.
        effects, ruled_out, notes: at most so many; None is all.
        facts: what is known of the launch, and the rule's name.
    """

    frames: int = 3
    context: int = 2
    effects: int | None = 6
    ruled_out: int | None = 6
    notes: int | None = None
    facts: bool = True


FULL = Detail()
ALL = Detail(effects=None, ruled_out=None)
_SMALLER = (FULL, Detail(2, 1, 3, 2), Detail(1, 0, 1, 1, 2), Detail(0, 0, 1, 0, 1), Detail(0, 0, 0, 0, 0, facts=False))


def fitted(rows: Callable[[Detail], Iterable[Row]], width: int, height: int) -> list[Row]:
    """Return the folded rows of the most detailed report that fits; of the least detailed one if none does."""
    width = max(width, _LEAST)
    shown: list[Row] = []
    for detail in _SMALLER:
        shown = [line for row in rows(detail) for line in folded(row, width)]
        if sum(_height(row, width) for row in shown) < height:
            break
    return shown


def folded(row: Row, width: int) -> Iterator[Row]:
    """Fold a row of prose at spaces, hanging in below its key; a row with a command stays as it is."""
    width = max(width, _LEAST)
    if any(style == COMMAND for style, _ in row):
        yield row
        return
    text, start, indent = "".join(piece for _, piece in row), 0, 0
    while cells(text[start:]) > width - indent:
        end = start + reach(text[start:], width - indent)
        space = text.rfind(" ", start + (0 if indent else INDENT), end + 1)
        cut = space if space > start else end
        yield _part(row, start, cut, indent)
        start = cut + (len(text[cut:]) - len(text[cut:].lstrip(" ")))
        indent = INDENT
    if start < len(text) or not text:
        yield _part(row, start, len(text), indent)


def cells(text: str) -> int:
    """Return how many columns a text takes."""
    return len(text) if text.isascii() else sum(_cell(letter) for letter in text)


def reach(text: str, width: int) -> int:
    """Return how many letters of a text fit into `width` columns, at least one."""
    if text.isascii():
        return max(1, width)
    used = 0
    for place, letter in enumerate(text):
        used += _cell(letter)
        if used > width:
            return max(1, place)
    return len(text)


def _cell(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _height(row: Row, width: int) -> int:
    lines = "".join(piece for _, piece in row).split("\n")
    return sum(max(1, -(-cells(line) // width)) for line in lines)


def _part(row: Row, start: int, end: int, indent: int) -> Row:
    """The letters from `start` to `end` of a row, with their styles."""
    part: Row = [("plain", " " * indent)] if indent else []
    at = 0
    for style, piece in row:
        inside = piece[max(0, start - at) : max(0, end - at)]
        if inside:
            part.append((style, inside))
        at += len(piece)
    return part
