"""The options with which a growing log is followed, and how following is shown on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import following
from logtriage.cli import output
from logtriage.report import plain

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.pipeline import Options
    from logtriage.records import Report


def follow(name: str, rules: RuleSet, options: Options, given: dict[str, Any]) -> tuple[Report, bool]:
    """Follow a log; return the report, and whether following was interrupted (the report is then on what there was)."""
    if name != "-" and not os.path.exists(name):
        output.complain(plain.one_line(f"logtriage: waiting for {name}: there is no such file yet"))
    is_shown = sys.stderr.isatty()
    follower = following.Follower(
        name, rules, options, following.system_clock(), given["until"], given["grace"], _show if is_shown else None
    )
    try:
        return follower.run(), False
    except KeyboardInterrupt:
        return follower.report(), True
    finally:
        if is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)


def _show(stage: str) -> None:
    click.echo(f"\r\x1b[K{stage} ...", err=True, nl=False)
