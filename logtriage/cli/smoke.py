"""``logtriage smoke``: asks a running server known questions and says whether its answers make sense."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output
from logtriage.redact import Redactor
from logtriage.report import json_v1, plain
from logtriage.runner import client, prompts, smoke

if TYPE_CHECKING:
    from collections.abc import Iterator

EPILOG = """\b
Exit codes: 0 the answers make sense, 1 they are garbage (or not what --prompts expects), 3 the server is ready and
            does not answer, 4 it is not ready yet, 2 nothing or something else than SGLang answers, or usage.
Example:    logtriage smoke http://127.0.0.1:30000 --prompts mine.yaml
A file of prompts:
  prompts:
    - ask: Which city is the capital of France?
      expect: '\\bParis\\b'
"""
_WIDTH = 72  # characters of an answer in the text form; JSON holds all of it


@click.command("smoke", epilog=EPILOG)
@click.argument("url")
@click.option("--prompts", "path", type=click.Path(dir_okay=False), metavar="FILE",
              help="Further prompts (YAML or JSON), each with an expression that its answer must match.")  # fmt: skip
@click.option("--model", metavar="NAME", help="The model to ask for, where the server serves several.")
@click.option("--api-key-env", metavar="VAR", help="The environment variable that holds the server's API key.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-redact", is_flag=True, help="Print what looks like a secret in an answer.")
@click.pass_obj
def command(trailing: list[str] | None, /, url: str, **given: Any) -> int:
    """Ask the SGLang server at URL known questions: alone, twice, at length and several at once.

    An answer that is wrong but makes sense is only a note: the model may be small. Garbage is not.
    """
    if trailing:
        raise click.UsageError("smoke asks a server that runs already; it takes no command")
    key = _key(given["api_key_env"])
    asked = prompts.load(given["path"])
    base = client.base_of(url)
    if sys.stderr is not None and sys.stderr.isatty():
        output.complain(f"logtriage: asking {base}")
    result = smoke.run(base, prompts=asked, model=given["model"], api_key=key)
    data = _data(base, result)
    if not given["no_redact"]:
        data = dict(Redactor(pipeline.load_rules().secrets).value(data))  # type: ignore[call-overload]
    if given["form"] == "json":
        output.write(json_v1.dumps(data))
    elif result.label is None:
        output.complain(plain.one_line(f"logtriage: {base}: {data['because']}"))
    else:
        for line in _lines(data):
            output.say(line)
    return exit_codes.USAGE if result.label is None else exit_codes.of_label(result.label)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise click.BadParameter(f"the environment variable {variable} is not set", param_hint="--api-key-env")
    return os.environ[variable]


def _data(base: str, result: smoke.SmokeResult) -> dict[str, Any]:
    return {
        "schema": "logtriage/smoke/v1",
        "url": base,
        "label": result.label,
        "passed": result.passed,
        "because": result.because,
        "finding": result.finding._asdict() if result.finding else None,
        "notes": list(result.notes),
        "answers": [
            {
                "prompt": row.asked.name,
                "phase": row.phase,
                "text": row.told.text or (row.told.whole.text if row.told.whole else ""),
                "as_expected": row.as_expected,
                "finding": row.finding.kind if row.finding else None,
                "cut": row.told.is_cut,
                "tokens": row.told.tokens,
                "seconds": round(row.told.seconds, 3),
            }
            for row in result.answers
        ],
    }


def _lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"{data['label']}: {data['because']}"
    widest = max((len(row["prompt"]) for row in data["answers"]), default=0)
    for row in data["answers"]:
        worth = row["finding"] or {True: "right", False: "not expected", None: ""}[row["as_expected"]]
        text = " ".join(row["text"].split())
        shown = text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
        yield f"  {row['phase']:<8}  {row['prompt']:<{widest}}  {worth:<12}  {shown}".rstrip()
    for note in data["notes"]:
        yield f"  note: {note}"
