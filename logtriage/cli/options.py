"""Options that several commands share."""

from __future__ import annotations

from typing import Any

import click


class ComputeCapability(click.ParamType):  # type: ignore[type-arg]
    """A compute capability as people write it: 120, 12.0, SM120 or sm_120; the value is ten times the number."""

    name = "NN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the capability times ten; anything that no GPU has is a usage error."""
        text = str(value).lower().removeprefix("sm").lstrip("_")
        major, dot, minor = text.partition(".")
        if major.isdigit() and (minor.isdigit() if dot else True):
            number = int(major) * 10 + int(minor) if dot else int(text)
            if 50 <= number < 200 and (not dot or len(minor) == 1):
                return number
        self.fail(
            f"{value!r} is no compute capability; give it times ten, such as 90 for SM90 or 120 for SM120", param, ctx
        )


SM = ComputeCapability()

RULES = click.option(
    "--rules", "folders", multiple=True, type=click.Path(file_okay=False), metavar="DIR",
    help="Further rule files; may be repeated. Also LOGTRIAGE_RULES.",
)  # fmt: skip


def labels_of(text: str | None, known: Any) -> list[str] | None:
    """Return the labels in a comma-separated list; an unknown one is a usage error."""
    if text is None:
        return None
    for name in text.split(","):
        if name not in known:
            raise click.BadParameter(f"no label {name!r}; `logtriage rules list` shows them", param_hint="--fail-on")
    return text.split(",")
