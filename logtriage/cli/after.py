"""The options of commands that take earlier launches into account."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline, whole_file
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Attempt


LEDGER = click.option(
    "--ledger", metavar="FILE", help="A ledger of earlier launches (`logtriage ledger`): they count as with --after."
)


class SeveralAfter(click.Command):
    """A command whose ``--after`` takes every word up to the next option; the last one is the LOG if none is left."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write ``--after a b`` as ``--after a --after b`` before the options are read."""
        return super().parse_args(ctx, _spread(list(args), self.params))


def attempts(given: Mapping[str, Any], rules: RuleSet, facts: Mapping[str, Any]) -> list[Attempt]:
    """Return the earlier launches of the ledger and those that ``--after`` names, analyzed. Raises InputError."""
    answers: dict[str, list[bytes]] = {}
    for pair in given["after_responses"]:
        log, equals, path = pair.partition("=")
        if not equals or log not in given["after"]:
            raise InputError(f"--after-response {pair}: needs OLDLOG=FILE with one of the logs given to --after")
        answers.setdefault(log, []).append(whole_file.read(path))
    return _remembered(given["ledger"]) + [
        pipeline.attempt(log, rules, pipeline.Options(facts=facts, responses=answers.get(log, ())))
        for log in given["after"]
    ]


def _remembered(path: str | None) -> list[Attempt]:
    if path is None:
        return []
    if not os.path.exists(path):
        raise InputError(f"{path}: there is no ledger; `logtriage run` and `logtriage ledger add` write one")
    from logtriage.runner.ledger import Ledger  # SQLite is needed for nothing else

    return list(Ledger(path).evidence())


def _spread(args: list[str], params: list[click.Parameter]) -> list[str]:
    valued = {name for param in params if isinstance(param, click.Option) and not param.is_flag for name in param.opts}
    result: list[str] = []
    logs = 0
    collecting = takes_value = False
    for word in args:
        if takes_value:
            takes_value = False
        elif word == "--after":
            collecting = True
            continue
        elif word.startswith("-") and word != "-":
            collecting = False
            takes_value = word in valued
        elif collecting:
            result += ["--after", word]
            continue
        else:
            logs += 1
        result.append(word)
    last = max((place for place, word in enumerate(result) if word == "--after"), default=-1)
    if logs == 0 and last >= 0 and result.count("--after") > 1:
        result[last : last + 1] = []
    return result
