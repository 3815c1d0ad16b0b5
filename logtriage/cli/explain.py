"""``logtriage explain``: what a label or a rule means, or what the rules see in one line."""

from __future__ import annotations

import os
from typing import Any

import click

from logtriage import pipeline
from logtriage.cli import output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, SM, VERSION, log_and_line
from logtriage.redact import Redactor
from logtriage.workbench import explain


@click.command(
    "explain",
    epilog="Examples: logtriage explain oom-kv-cache, logtriage explain shell-says-killed, "
    "logtriage explain run.log:4127",
)
@click.argument("what", metavar="LABEL|RULE|LOG:LINE")
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang.")
def command(what: str, folders: tuple[str, ...], **given: Any) -> int:
    """Say what a LABEL or a RULE means, or which rules fired on a LINE of a LOG, which almost did, and why not."""
    own = rule_folders(folders)
    rules = pipeline.load_rules(own)
    path, number = log_and_line(what)
    if number is None:
        if os.path.exists(what):
            raise click.BadParameter(f"which line? Give LOG:LINE, such as {what}:12", param_hint="LABEL|RULE|LOG:LINE")
        for row in explain.rows(what, rules, own):
            output.say(row)
        return 0
    facts = {name: value for name, value in given.items() if value is not None}
    redact = Redactor(rules.secrets)
    for answer in explain.explain_line(path, number, rules, pipeline.Options(facts=facts)):
        line = answer.line
        shown = redact.across(answer.lines).get(answer.at, line.text)
        output.say(f"{path}:{line.number}: {redact.text(shown)}")
        output.say(f"  {line.role} line, rank {answer.rank or '-'}, stage {answer.stage or 'not known'}")
        for rule, strength, caught in answer.fired:
            told = f"  {redact.value(caught)}" if caught else ""
            output.say(f"  fired   {rule['id']} ({rule['label']}, {strength}): {rule['summary']}{told}")
        for rule, because in answer.almost:
            output.say(f"  almost  {rule['id']} ({rule['label']}): {redact.text(because)}")
        if not answer.fired and not answer.almost:
            output.say("  no rule knows this line")
    return 0
