"""Prints the text report: plain, or with colours through rich. Log text is never taken as markup."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from logtriage.report import layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logtriage.report.layout import Row

STYLES = {
    "plain": "", "dim": "dim", "key": "cyan", "strong": "bold",
    "good": "bold green", "warn": "bold yellow", "bad": "bold red",
}  # fmt: skip


def render(data: dict[str, Any], *, verbose: bool = False) -> str:
    """Return the report as plain text."""
    return "".join("".join(text for _, text in row).rstrip() + "\n" for row in layout.rows(data, verbose=verbose))


def print_coloured(data: dict[str, Any], stream: IO[str], *, verbose: bool = False) -> None:
    """Print the report with colours, folded to the terminal's width."""
    _print_rows(layout.rows(data, verbose=verbose), stream)


def _print_rows(rows: Iterable[Row], stream: IO[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for row in rows:
        console.print(Text.assemble(*((text, STYLES[style]) for style, text in row)))
