"""A progress bar on standard error; nothing where that is no terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a bar while the block runs; call what it gives with how much of `total` is done."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total)
        yield lambda done: shown.update(task, completed=done)
