"""``logtriage next``: just the next command, for scripts."""

from __future__ import annotations

from typing import Any

import click

from logtriage import pipeline, whole_file
from logtriage.advice import pins
from logtriage.cli import exit_codes, output
from logtriage.cli.after import LEDGER, SeveralAfter, attempts
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, SM, VERSION, check_logs
from logtriage.report import json_v1, plain

EPILOG = """\b
Exit codes: 0 a command was printed; 3 there is none, and standard error says why.
Example:    sh -c "$(logtriage next run2.log --after run1.log --pin --tp)"
"""


@click.command("next", cls=SeveralAfter, epilog=EPILOG)
@click.argument("logs", nargs=-1, required=True, metavar="LOG... [-- CMD...]")
@click.option("--after", multiple=True, type=click.Path(), metavar="OLDLOG...",
              help="Logs of earlier launches, the oldest first: what they rule out is not advised.")  # fmt: skip
@click.option("--response", "responses", multiple=True, type=click.Path(dir_okay=False), metavar="FILE",
              help="An answer of the server; may be repeated.")  # fmt: skip
@click.option("--after-response", "after_responses", multiple=True, metavar="OLDLOG=FILE",
              help="An answer of the server of an earlier launch; may be repeated.")  # fmt: skip
@LEDGER
@click.option("--pin", "pinned", multiple=True, metavar="FLAG", help="A flag that must stay; may be repeated.")
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten, such as 120 for SM120.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang, if the log does not tell it.")
@click.option("--no-redact", is_flag=True, help="Print secrets instead of variables that stand for them.")
@click.pass_obj
def command(trailing: list[str] | None, /, logs: tuple[str, ...], **given: Any) -> int:
    """Print the command to try next after the failed launch in LOG, with its wrapper, environment and redirection.

    A secret in it is replaced by a variable such as $API_KEY. CMD is the command that was launched, if the log does
    not show it.
    """
    check_logs(logs)
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    facts = {name: given[name] for name in ("sm", "server_version") if given[name] is not None}
    options = pipeline.Options(
        command=trailing or (),
        facts=facts,
        responses=[whole_file.read(path) for path in given["responses"]],
        after=attempts(given, rules, facts),
        pinned=pins.checked(given["pinned"], rules),
    )
    data = json_v1.to_dict(pipeline.analyze(*logs, rules=rules, options=options), redact=not given["no_redact"])
    advice = data["advice"]
    if advice["command_text"]:
        output.write(plain.lines(advice["command_text"]) + "\n")
        return exit_codes.HEALTHY
    for line in (f"{data['verdict']['label']}: {advice['summary']}", *advice["notes"]):
        output.complain(plain.one_line(f"logtriage: {line}"))
    return exit_codes.UNKNOWN
