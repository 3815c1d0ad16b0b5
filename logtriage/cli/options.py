"""Options that several commands share."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SM = r"(?a)(?:sm_?)?(?:(?P<ten>\d{2,3})|(?P<major>\d{1,2})\.(?P<minor>\d))"
_VERSION = r"(?a)v?\d{1,9}(?:\.\d{1,9})+(?:[.+-]?[a-z0-9]{1,40}){0,9}"
_LINE = r"[0-9]{1,18}"


class ComputeCapability(click.ParamType):  # type: ignore[type-arg]
    """A compute capability as people write it: 120, 12.0, SM120 or sm_120; the value is ten times the number."""

    name = "NN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the capability times ten; anything that no GPU has is a usage error."""
        if found := re.fullmatch(_SM, str(value).lower()):
            number = int(found["ten"] or found["major"] + found["minor"])
            if 50 <= number < 200:
                return number
        raise click.BadParameter(
            f"{value!r} is no compute capability; give it times ten, such as 90 for SM90 or 120 for SM120", ctx, param
        )


class ReleaseVersion(click.ParamType):  # type: ignore[type-arg]
    """A version of SGLang, such as 0.5.9 or 0.5.12.post1."""

    name = "X.Y.Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the version; what is none is a usage error."""
        if re.fullmatch(_VERSION, str(value).lower()):
            return str(value)
        raise click.BadParameter(
            f"{value!r} is no version; give it as SGLang prints it, such as 0.5.9 or 0.5.12.post1", ctx, param
        )


SM = ComputeCapability()
VERSION = ReleaseVersion()

RULES = click.option(
    "--rules", "folders", multiple=True, type=click.Path(file_okay=False), metavar="DIR",
    help="Further rule files; may be repeated. Also LOGTRIAGE_RULES.",
)  # fmt: skip


OUTCOMES = ("failed", "degenerate", "unknown", "incomplete", "healthy")


def failures_of(text: str | None, known: Any, *, has_baseline: bool) -> list[str] | None:
    """Return the labels and outcomes in a comma-separated list; an unknown one is a usage error.

    `new` is one more where there is a baseline.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name == "new" and not has_baseline:
            raise click.BadParameter("new needs a --baseline to compare with", param_hint="--fail-on")
        if name not in known and name not in OUTCOMES and name != "new":
            raise click.BadParameter(
                f"no label {name!r}; `logtriage rules list` shows them. Outcomes ({', '.join(OUTCOMES)}) will do, too",
                param_hint="--fail-on",
            )
    return names


def log_and_line(text: str) -> tuple[str, int | None]:
    """Return the two parts of LOG:LINE; the line is None if `text` has another form."""
    path, _, number = text.rpartition(":")
    if not path or not number.isascii() or not number.isdigit():
        return text, None
    if not re.fullmatch(_LINE, number):
        raise click.BadParameter(f"no log has a line with a number of {len(number)} digits", param_hint="LOG:LINE")
    check_logs([path])
    return path, int(number)


def check_logs(logs: Sequence[str]) -> None:
    """Refuse names of logs that cannot be meant, and standard input where there is none or it is named twice.

    Raises click.UsageError, and InputError where standard input is closed.
    """
    if "" in logs:
        raise click.UsageError("the name of a LOG is empty: is a variable of the shell not set?")
    if list(logs).count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only")
    if "-" in logs and sys.stdin is None:
        raise InputError("standard input is closed: name a LOG, or pipe one into the command")
