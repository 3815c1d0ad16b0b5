"""Prints the text report: plain, or with colours through rich. Log text is never taken as markup."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from logtriage.report import layout, plain, screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from logtriage.report.screen import Row

STYLES = {
    "plain": "", "dim": "dim", "key": "cyan", "strong": "bold", screen.COMMAND: "",
    "good": "bold green", "warn": "bold yellow", "bad": "bold red",
}  # fmt: skip


def render(data: dict[str, Any], *, verbose: bool = False) -> str:
    """Return the report as plain text, which nothing folds."""
    return as_text(layout.rows(data, verbose=verbose))


def as_text(rows: Iterable[Row]) -> str:
    """Return rows as plain text, which nothing folds."""
    return "".join("".join(text for _, text in row).rstrip() + "\n" for row in _harmless(rows))


def print_coloured(
    data: dict[str, Any], stream: IO[str], *, verbose: bool = False, size: tuple[int, int] | None = None
) -> None:
    """Print the report with colours, as much of it as fits on the screen; all of it if `verbose`.

    `size` is the width and the height of the screen; by default they are found out.
    """
    _print(stream, size, lambda width, height: on_screen(data, width, height, verbose=verbose))


def print_rows(rows: Iterable[Row], stream: IO[str]) -> None:
    """Print all rows with colours, folded to the width of the screen."""
    _print(stream, None, lambda width, _: [line for row in _harmless(rows) for line in screen.folded(row, width)])


def on_screen(data: dict[str, Any], width: int, height: int, *, verbose: bool = False) -> list[Row]:
    """Return the rows of a report as a screen of that size shows them."""
    if verbose:
        rows = _harmless(layout.rows(data, verbose=True, width=width))
        return [line for row in rows for line in screen.folded(row, width)]
    return screen.fitted(lambda detail: _harmless(layout.rows(data, detail=detail, width=width)), width, height)


def _print(stream: IO[str], size: tuple[int, int] | None, shown: Callable[[int, int], Iterable[Row]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for row in shown(*(size or (console.size.width, console.size.height))):
        line = Text.assemble(*((text, STYLES[style]) for style, text in row))
        line.rstrip()
        console.print(line)


def _harmless(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows without what controls a terminal or forges a line; a command may have several lines."""
    for row in rows:
        yield [(style, plain.lines(text) if style == screen.COMMAND else plain.one_line(text)) for style, text in row]
