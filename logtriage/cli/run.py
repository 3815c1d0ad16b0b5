"""``logtriage run``: launch, follow, judge, fall back, until a server answers sensibly."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage import pipeline
from logtriage.cli import exit_codes, output, script, tried
from logtriage.cli.analyze import rule_folders
from logtriage.cli.options import RULES, SM, VERSION
from logtriage.errors import InputError
from logtriage.redact import Redactor
from logtriage.report import plain
from logtriage.runner.results import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from logtriage.engine.ruleset import RuleSet
    from logtriage.runner.results import Order, Result
    from logtriage.runner.session import Session

EPILOG = """\b
Exit codes: 0 a server works (and has ended well), 1 nothing is left to try or the environment has to be repaired,
            2 usage, 130 interrupted.
Examples:
  logtriage run -- python3 -m sglang.launch_server --model-path … --moe-runner-backend flashinfer_trtllm
  logtriage run --pin --tp --budget 2h --save launch.sh --detach -- python3 -m sglang.launch_server …
  logtriage run --explore --once -- sglang serve --model-path …
  logtriage run --resume
"""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("run", epilog=EPILOG, options_metavar="[OPTIONS] -- CMD...")
@click.option("--plan", "plan_file", type=click.Path(dir_okay=False), metavar="FILE",
              help="A YAML file that holds any of this; what is given here comes first.")  # fmt: skip
@click.option("--pin", multiple=True, metavar="FLAG", help="A flag that must stay; may be repeated.")
@click.option("--max-attempts", type=int, metavar="N", help="Launch at most so often.  [default: 8]")
@click.option("--budget", metavar="TIME", help="Launch no more after this time, such as 2h.")
@click.option("--start-timeout", metavar="TIME", help="Time that a launch has to answer.")
@click.option("--grace", metavar="TIME",
              help="Time from a failure in the log to the stop: other ranks still print.  [default: 2s]")  # fmt: skip
@click.option("--explore", is_flag=True, default=None,
              help="Go on after the first success over what else may work, measure each and rank them.")  # fmt: skip
@click.option("--detach", "then", flag_value="detach", help="Leave the working server running, and end.")
@click.option("--once", "then", flag_value="stop", help="Stop the working server, and end.")
@click.option("--save", metavar="FILE", help="Write the working command to a shell script.")
@click.option("--on-attempt", metavar="CMD", help="Shell command that gets each attempt as JSON on standard input.")
@click.option("--prompts", type=click.Path(), metavar="FILE", help="Prompts with expected patterns for the smoke test.")
@click.option("--logs", metavar="DIR", help="Folder for the logs of the attempts.")
@click.option(
    "--echo", is_flag=True, default=None, help="Print on standard error what the servers print, without secrets."
)
@click.option("--record", metavar="DIR", help="Record every attempt in the form of the corpus. Also LOGTRIAGE_RUN.")
@click.option("--ledger", metavar="FILE", help="The ledger, if not the one in the state folder.")
@click.option("--resume", is_flag=True, help="Go on with the last run of the ledger, and end what it left behind.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and launch nothing.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the result.")  # fmt: skip
@RULES
@click.option("--sm", type=SM, help="Compute capability of the GPU times ten, if this machine does not tell it.")
@click.option("--server-version", type=VERSION, metavar="X.Y.Z", help="Version of SGLang, if it is not found out.")
@click.pass_obj
def command(trailing: list[str] | None, /, **given: Any) -> int:
    """Launch CMD (after `--`), follow its log, stop it when it cannot work, change one thing, and try again.

    It ends with a server that answers sensibly, or with a table of what was tried. What failed is remembered in a
    ledger: the next run on the same machine does not repeat it, or says why it may be over. Only processes that it
    started are ever ended.
    """
    from logtriage.following import system_clock
    from logtriage.runner import plan as plans
    from logtriage.runner.session import Asked, Session

    own = ("plan_file", "resume", "dry_run", "format_", "folders")
    named = {name: value for name, value in given.items() if name not in own and value not in (None, ())}
    named |= {"pin": list(given["pin"])} if given["pin"] else {}
    named |= {"command": list(trailing)} if trailing else {}
    plan = plans.load(given["plan_file"], named)
    rules = pipeline.load_rules(rule_folders(given["folders"]))
    wishes = _Wishes()
    if given["dry_run"]:
        from logtriage.runner.preview import preview

        for line in preview(plan, rules):
            output.say(line)
        return exit_codes.HEALTHY
    asked = Asked(wishes.to_stop, wishes.in_a_hurry)
    session = Session(plan, rules, _Shown(rules, echo=plan.echo), asked, system_clock(), resume=given["resume"])
    heard = [number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, wishes.heard) for number in heard}  # `nohup` keeps its promise
    try:
        return _run(session, wishes, given)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        session.close()


def _run(session: Session, wishes: _Wishes, given: Mapping[str, Any]) -> int:
    if session.plan.save:
        script.check(session.plan.save)
    outcome = session.execute()
    if outcome.state == "working" and session.plan.save and outcome.result:
        try:
            script.save(session.plan.save, outcome.result.order)
        except InputError as error:  # the server works, and its command is shown
            output.complain(plain.one_line(f"logtriage: {error}"))
    if outcome.attempt is not None and session.plan.then == "serve":
        wishes.serve(outcome.attempt.signal)
    tried.show(outcome, session, as_json=given["format_"] == "json")
    if outcome.state != "working":
        return exit_codes.INTERRUPTED if outcome.state == "interrupted" else exit_codes.FAILED
    if outcome.attempt is None or session.plan.then != "serve":
        return exit_codes.HEALTHY
    from logtriage.runner.session import is_well

    output.finish()
    result = session.serve(outcome)
    output.complain(plain.one_line(f"logtriage: the server has ended: {result.because}"))
    if wishes.count or is_well(result):
        return exit_codes.HEALTHY
    output.complain(plain.one_line(f"logtriage: {result.report.label}: {result.report.verdict.because}"))
    return exit_codes.FAILED


class _Wishes:
    """What signals ask for: the first to stop, the second to hurry; a server in the foreground gets the first."""

    def __init__(self) -> None:
        self.count = 0
        self._hand_on: Callable[[int], None] | None = None

    def heard(self, number: int, _: Any) -> None:
        self.count += 1
        if self._hand_on is not None and self.count == 1:
            self._hand_on(number)

    def serve(self, hand_on: Callable[[int], None]) -> None:
        """From now on the first signal goes to a server; one that came just before this as well."""
        self._hand_on = hand_on
        if self.count:
            hand_on(signal.SIGTERM)

    def to_stop(self) -> bool:
        return self.count > (1 if self._hand_on is not None else 0)

    def in_a_hurry(self) -> bool:
        return self.count > 1


class _Shown(Observer):
    """Shows on standard error what happens, as it happens."""

    def __init__(self, rules: RuleSet, *, echo: bool) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._redactor = Redactor(rules.secrets)
        self._echo = echo
        self._open = b""

    def launching(self, order: Order) -> None:
        self.note(f"attempt {order.number}: {order.why}")
        output.complain(f"  {plain.one_line(order.text)}")

    def launched(self, order: Order, pid: int) -> None:
        output.complain(plain.one_line(f"  pid {pid}, log {order.log}"))

    def stage(self, order: Order, stage: str, seconds: float) -> None:
        text = f"  {stage} after {seconds:.0f} s"
        if self._is_terminal:
            click.echo(f"\r\x1b[K{text} ...", err=True, nl=False)
        else:
            output.complain(text)

    def output(self, piece: bytes) -> None:
        if self._echo:
            lines, line_feed, self._open = (self._open + piece).rpartition(b"\n")
            if line_feed:
                output.complain(self._redactor.text(lines.decode("utf-8", "replace")))

    def judged(self, result: Result) -> None:
        if self._is_terminal:
            click.echo("\r\x1b[K", err=True, nl=False)
        verdict = result.report.verdict
        root = result.report.root
        label = "works" if result.is_working else verdict.label
        output.complain(plain.one_line(f"  {label} after {result.seconds:.0f} s: {result.because}"))
        if root is not None:
            text = self._redactor.text(result.report.lines[root.line].text)
            output.complain(plain.one_line(f"  {text.strip()[:200]}"))

    def note(self, text: str) -> None:
        output.complain(plain.one_line(f"logtriage: {text}"))
