"""``logtriage preflight``: what will fail before a command is launched."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, SM, VERSION

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.environment import Environment

EPILOG = """\b
Exit codes: 0 nothing was found that will fail, 1 something will fail (or is known to give garbage), 2 usage.
Example:    logtriage preflight --sm 120 --gpus 8 --server-version 0.5.9 -- \\
              python3 -m sglang.launch_server --model-path /models/m --tp 8 --moe-runner-backend flashinfer_trtllm
"""
_GIB = 1 << 30
_NO_COMMAND = """give the command to look at behind --, such as
  logtriage preflight -- python3 -m sglang.launch_server --model-path /models/m --tp 2"""
_OTHER_COMMAND = """this command starts no SGLang server (`python3 -m sglang.launch_server …` or `sglang serve …`).
  A script is not looked into: give its text, -- "$(cat launch.sh)"."""


@click.command("preflight", epilog=EPILOG, options_metavar="[OPTIONS] -- CMD...")
@click.option("--sm", type=SM, help="Compute capability of the GPUs times ten, such as 120 for SM120.")
@click.option("--gpus", type=click.IntRange(1, 4096), metavar="N", help="How many GPUs one machine has.")
@click.option("--gpu-memory", type=click.FloatRange(0, min_open=True), metavar="GIB", help="Memory of each GPU.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang.")
@click.option("--model-config", type=click.Path(exists=True), metavar="PATH",
              help="Folder of the model, or its config.json, where --model-path is not here.")  # fmt: skip
@click.option("--here/--elsewhere", default=None,
              help="Whether CMD will run on this machine: unless --sm names a GPU that is not here.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@RULES
@click.option("--no-redact", is_flag=True, help="Leave secrets in the report.")
@click.option("--verbose", "-v", is_flag=True, help="Show what is in order line by line.")
@click.pass_obj
def command(trailing: list[str] | None, /, **given: Any) -> int:
    """Say what will fail if the command behind -- is launched, what to use instead, and what is not known.

    Looked at are the GPUs, the driver, the CUDA toolkit, the packages of the Python that CMD runs, the model's own
    files, ports, folders and limits. Nothing is launched, downloaded or changed. What is given as an option beats
    what is found.
    """
    if not trailing:
        raise click.UsageError(_NO_COMMAND)
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    from logtriage.advice.preflight.judge import judge
    from logtriage.engine import launch as launches

    facts = {name: given[name] for name in ("sm", "server_version") if given[name] is not None}
    launch = launches.from_command(trailing, rules, facts)
    if launch.command is None:
        raise click.UsageError(_OTHER_COMMAND)
    environment = _environment(trailing, rules, given)
    outlook = judge(launch, environment, rules)
    _show(outlook, rules, given)
    return exit_codes.FAILED if outlook.fails else exit_codes.HEALTHY


def _environment(words: list[str], rules: RuleSet, given: dict[str, Any]) -> Environment:
    """What is found here, with what the options say in its place."""
    from logtriage.environment import ELSEWHERE, HERE
    from logtriage.runner.environment import elsewhere, probe

    is_here, model = given["here"], given["model_config"]
    found = None if is_here is False else probe(words, rules, model=model)
    if found is None or (is_here is None and found.where == HERE and given["sm"] not in (None, *found.sms)):
        why = "" if is_here is False else f": no SM{given['sm']} is here (--here looks at this one)"
        found = elsewhere(words, rules, f"The machine that will run this is not looked at{why}.", model=model)
    return _described(found, given, keep=found.where != ELSEWHERE)


def _described(found: Environment, given: dict[str, Any], *, keep: bool) -> Environment:
    """The environment with the GPUs that the options describe."""
    from logtriage.environment import Gpu
    from logtriage.runner.gpus import NOT_KNOWN

    sm, count, memory = given["sm"], given["gpus"], given["gpu_memory"]
    if sm is None and count is None and memory is None:
        return found
    gpus = list(found.gpus or ()) if keep else []
    if count is None and not gpus:
        return found.replace(platform=found.platform or "cuda") if sm is not None else found
    count = len(gpus) if count is None else count
    like = gpus[0] if gpus else Gpu(0)
    gpus += [Gpu(index, like.name, like.sm, like.memory) for index in range(len(gpus), count)]
    gpus = [gpu.replace(sm=sm if sm is not None else gpu.sm) for gpu in gpus[:count]]
    if memory is not None:
        gpus = [gpu.replace(memory=int(memory * _GIB), free=None, holders=()) for gpu in gpus]
    gaps = tuple(gap for gap in found.gaps if not gap.startswith(NOT_KNOWN))
    return found.replace(gpus=tuple(gpus), platform=found.platform or "cuda", gaps=gaps)


def _show(outlook: Any, rules: RuleSet, given: dict[str, Any]) -> None:
    from logtriage.report import json_v1, preflight

    data = preflight.to_dict(outlook, rules.secrets, rules.digest, redact=not given["no_redact"])
    if given["format_"] == "json":
        output.write(json_v1.dumps(data))
        return
    from logtriage.report import text

    shown = preflight.rows(data, verbose=given["verbose"])
    if sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        output.guarded(lambda: text.print_rows(shown, sys.stdout))
    else:
        output.write(text.as_text(shown))
