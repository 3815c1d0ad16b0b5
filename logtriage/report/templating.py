"""The template engine, set up so that what comes out of data is always escaped; imported only where a form needs it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = Path(__file__).parent / "templates"


@cache
def environment(*, autoescape: bool, finalize: Callable[[object], object] | None = None) -> Environment:
    """Return an environment for our templates, which escapes HTML or leaves every value to `finalize`."""
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=autoescape,  # noqa: S701 - where it is off, `finalize` escapes every value
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def source(name: str) -> str:
    """Return the text of a file beside the templates."""
    return (_FOLDER / name).read_text(encoding="utf-8")
