"""``logtriage ledger``: show and change what is remembered of earlier launches."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from logtriage import pipeline, whole_file
from logtriage.cli import exit_codes, output, tried
from logtriage.cli.options import RULES, SM, VERSION, check_logs
from logtriage.errors import InputError
from logtriage.runner import ledger as ledgers

_WIDEST = 240
_FILE = click.option("--ledger", "path", metavar="FILE", help="The ledger, if not the one in the state folder.")


@click.group("ledger", epilog="Example: logtriage ledger add run1.log -- python3 -m sglang.launch_server …")
def command() -> None:
    """Show and change the ledger: what was launched on this machine, and how it went.

    `logtriage run` writes it; `analyze` and `next` read it where --ledger names it.
    """


@command.command(short_help="Show the attempts of one run, or of all.")
@click.argument("run", required=False)
@_FILE
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def show(run: str | None, path: str | None, format_: str) -> int:
    """Show the attempts of RUN, or one line for each attempt of all runs."""
    book = _open(path, made=False)
    rows = book.attempts("run = ? OR id = ?", (run, run)) if run else book.attempts()
    if run and not rows:
        raise InputError(f"{book.path}: holds no run or attempt {run!r}; `logtriage ledger show` lists them")
    if format_ == "json":
        output.write(json.dumps([_opened(row) for row in rows], ensure_ascii=False, indent=1) + "\n")
        return exit_codes.HEALTHY
    if run:
        for line in tried.table([json.loads(row["entry"]) for row in rows if row["entry"]]):
            output.say(line)
        for row in (row for row in rows if not row["entry"]):
            output.say(f"{row['id']}: {row['ending'] or 'unfinished'}  log {row['log']}")
        return exit_codes.HEALTHY
    if rows:
        cells = [("started", "attempt", "result", "new in it", "what it failed of"), *map(_cells, rows)]
        for line in tried.columns(cells):
            output.say(line[:_WIDEST])
    output.say(f"{_counted(len(rows))} in {book.path}")
    return exit_codes.HEALTHY


@command.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG... [-- CMD...]")
@_FILE
@click.option("--response", "responses", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="An answer of the server; may be repeated (with one LOG).")  # fmt: skip
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten, such as 120 for SM120.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang, if the log does not tell it.")
@click.pass_obj
def add(trailing: list[str] | None, /, logs: tuple[str, ...], path: str | None, **given: Any) -> int:
    """Add launches that were made by hand, from their LOGs. CMD is the command, if the log does not show it."""
    from logtriage.cli.analyze import rule_folders
    from logtriage.runner.by_hand import row_of

    check_logs(logs)
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    options = pipeline.Options(
        command=trailing or (),
        facts={name: given[name] for name in ("sm", "server_version") if given[name] is not None},
        responses=[whole_file.read(name) for name in given["responses"]],
    )
    book = _open(path)
    for log in logs:
        row, identity = row_of(log, rules, options)
        is_new = book.add(row, identity)
        output.say(f"{row['id']}: {row['label']}" + ("" if is_new else "  (was known already)"))
    return exit_codes.HEALTHY


@command.command(short_help="Print all finished attempts as lines of JSON.")
@_FILE
def export(path: str | None) -> int:
    """Print all finished attempts as lines of JSON, for `ledger import` elsewhere."""
    book = _open(path, made=False)
    for row in book.attempts("ended IS NOT NULL"):
        line = {"identity": book.identity(row["environment"]), "attempt": row}
        output.write(json.dumps(line, ensure_ascii=False) + "\n")
    return exit_codes.HEALTHY


@command.command("import", short_help="Add the attempts that `ledger export` wrote.")
@click.argument("file", type=click.Path(dir_okay=False))
@_FILE
def import_(file: str, path: str | None) -> int:
    """Add the attempts in FILE (written by `ledger export`); those that are known already stay as they are."""
    lines = whole_file.read(file).decode("utf-8", "replace").splitlines()
    items = [_read(file, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    book = _open(path)
    new = sum(book.add(item["attempt"], item["identity"]) for item in items)
    output.say(f"{new} of {len(items)} attempts are new")
    return exit_codes.HEALTHY


@command.command(short_help="Remove a run, an attempt or an environment.")
@click.argument("what")
@_FILE
def forget(what: str, path: str | None) -> int:
    """Remove a run, an attempt, all that was seen in an environment (its key), or `all`. Logs stay."""
    book = _open(path, made=False)
    count = book.forget(what)
    if not count and what != "all":
        raise InputError(
            f"{book.path}: holds no run, attempt or environment {what!r}; `logtriage ledger show` lists them"
        )
    output.say(f"{_counted(count)} forgotten")
    return exit_codes.HEALTHY


def _open(path: str | None, *, made: bool = True) -> ledgers.Ledger:
    """Open a ledger; one that is named and not there is only `made` where something is to be added."""
    if path is not None and not made and not os.path.exists(path):
        raise InputError(f"{path}: there is no ledger; `logtriage run` and `logtriage ledger add` make one")
    return ledgers.Ledger(path or ledgers.default_path(), output.complain)


def _counted(attempts: int) -> str:
    return f"{attempts} attempt" if attempts == 1 else f"{attempts} attempts"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    result = row["label"] or "unfinished"
    result = "works" if (row["ending"], result) == ("ready", "healthy") else result
    return row["started"], row["id"], result, row["changed"] or "-", (row["root_line"] or "-").strip()


def _opened(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "entry": json.loads(row["entry"]) if row["entry"] else None}


def _read(file: str, number: int, line: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
        if isinstance(item["attempt"], dict) and isinstance(item["identity"], dict) and item["attempt"]["id"]:
            return dict(item)
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{file}:{number}: is no line that `logtriage ledger export` writes")
