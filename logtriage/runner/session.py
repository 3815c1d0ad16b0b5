"""A whole run put together: machine, ledger, lock and orphans in; the loop; and what becomes of the working server."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from logtriage.advice import pins
from logtriage.errors import InputError
from logtriage.records import Record
from logtriage.redact import Redactor
from logtriage.runner import environment, foresight, ledger, loop, orphans, processes, recording, refusals, results
from logtriage.runner.lock import PortLock
from logtriage.runner.plan import continued
from logtriage.runner.probes import Probes, system_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from logtriage.engine.ruleset import RuleSet
    from logtriage.following import Clock
    from logtriage.runner.attempt import Attempt
    from logtriage.runner.plan import Plan
    from logtriage.runner.results import Observer, Result

_HOOK_SECONDS = 60.0


class Asked(Record):
    """What whoever runs it has asked for: to stop, to hurry; and signals to hand on to a server in the foreground."""

    to_stop: Callable[[], bool]
    in_a_hurry: Callable[[], bool]


class Session:
    """One `logtriage run`. Raises InputError where it cannot begin; then nothing was launched."""

    def __init__(
        self,
        plan: Plan,
        rules: RuleSet,
        observer: Observer,
        asked: Asked,
        clock: Clock,
        *,
        resume: bool = False,
        probes: Probes | None = None,
    ) -> None:
        if not os.path.exists("/proc/self/stat"):
            raise InputError(
                "`logtriage run` needs Linux (/proc): elsewhere the processes of a server cannot be told apart"
            )
        self.secrets = rules.secrets
        self.plan, self._rules, self._observer, self._asked, self._clock = plan, rules, observer, asked, clock
        self.book = ledger.Ledger(plan.ledger or ledger.default_path(), observer.note)
        self.command = tuple(plan.command)
        self.run, again = self._id_and_command(resume)
        plan = self.plan
        self.command = again or self.command
        refusals.refuse_useless(self.command, rules)
        pins.checked(plan.pin, rules)
        self._lock = PortLock(results.address_of(self.command, rules).port)
        found = environment.probe(self.command, rules)
        self._probes = probes or system_probes(plan.prompts, found.python, asked.to_stop)
        given = {"sm": plan.sm, "server_version": plan.server_version}
        given = {name: value for name, value in given.items() if value is not None}
        self._facts = {**found.facts(), **given}
        self._identity = found.identity() | {name: str(value) for name, value in given.items()}
        self._warnings = list(foresight.warnings(self.command, found, given, rules))
        self._key = ledger.key_of(self._identity)
        orphans.settle(self.book, self.run if resume else None, rules, clock, observer)
        address = results.address_of(self.command, rules)
        if self._probes.holder(address.host, address.port) is None:
            orphans.refuse_waiting(address.port, rules)
        self.logs = plan.logs or os.path.join(ledger.state_folder(), "runs", self.run)
        try:
            os.makedirs(self.logs, mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.logs}: logs cannot be kept there: {error.strerror or error}") from error
        self._held: Attempt | None = None
        self._recording = recording.Recording(plan.record or os.environ.get("LOGTRIAGE_RUN"), self.run, rules)

    def execute(self) -> loop.Outcome:
        """Run the loop; note in the ledger how it went. A working server runs on until `serve` is over, or `close`."""
        redactor = Redactor(self._rules.secrets)
        shown = loop.shown(self.command, redactor)
        plan = self.plan.model_dump(exclude={"command"}, exclude_unset=True)
        plan = {name: value for name, value in plan.items() if redactor.value(value) == value}
        birth = processes.birth(os.getpid()) or ""
        for warning in self._warnings:
            self._observer.note(f"preflight: {redactor.text(warning)}")
        self.book.begin_run(self.run, self._identity, self._key, shown, plan, birth)
        try:
            outcome = loop.Loop(self._setup()).run(self.command)
        except BaseException as error:
            self.book.end_run(self.run, "broken-off", redactor.text(str(error)))
            raise
        self._held = outcome.attempt
        if outcome.attempt is None or self.plan.then == "stop":
            stopped = outcome.attempt.stop() if outcome.attempt else None
            if stopped is not None and stopped.left:
                self._observer.note(f"not released: {'; '.join(stopped.left)}")
            self._held = None
            self.book.end_run(self.run, outcome.state, outcome.because)
        elif self.plan.then == "detach":
            self.book.end_run(self.run, "detached", f"pid {outcome.attempt.pid}")
            self._held = None
        return outcome

    def serve(self, outcome: loop.Outcome) -> Result:
        """Keep the working server in the foreground until it ends or is to; note its end in the ledger."""
        assert outcome.attempt is not None  # noqa: S101
        result = outcome.attempt.serve()
        self._held = None
        marker = result.order.marker
        self.book.update(marker, exit_code=result.exit_code, ended=ledger.now())
        well = is_well(result)
        if not well:
            verdict = result.report.verdict
            self.book.update(marker, label=verdict.label, outcome=verdict.outcome)
        self.book.end_run(self.run, "served" if well else "failed", result.because)
        return result

    def close(self) -> None:
        """End a server that nobody took over, write what is pending and let go of the port."""
        if self._held is not None:
            self._held.stop()
            self.book.update(self._held.order.marker, ended=ledger.now(), ending="broken-off")
            self.book.end_run(self.run, "broken-off", "the runner failed while the server worked")
            self._held = None
        self.book.close()
        self._lock.release()

    # ---- private

    def _id_and_command(self, resume: bool) -> tuple[str, tuple[str, ...] | None]:
        if not resume:
            if not self.command:
                raise InputError("no command to run: give it after `--`, as in `logtriage run -- python3 -m sglang.…`")
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
            return f"{stamp}-{secrets.token_hex(3)}", None
        row = self.book.run()
        if row is None:
            raise InputError(f"{self.book.path}: there is no run to resume; start one with `logtriage run -- CMD`")
        self.plan = continued(row["plan"], self.plan)
        if self.command:
            return row["id"], None
        begun = self.book.attempts("run = ?", (row["id"],))
        text = begun[-1]["command"] if begun and begun[-1]["ended"] is None else row["command"]
        return row["id"], orphans.restored(text, self._rules)

    def _setup(self) -> loop.Setup:
        return loop.Setup(
            run=self.run, plan=self.plan, rules=self._rules, facts=self._facts, key=self._key, book=self.book,
            logs=self.logs, probes=self._probes, clock=self._clock, observer=self._observer,
            asked_to_stop=self._asked.to_stop, in_a_hurry=self._asked.in_a_hurry, on_entry=self._on_entry,
        )  # fmt: skip

    def _on_entry(self, entry: Mapping[str, Any], result: Result) -> None:
        self._recording.add(entry, result)
        if self.plan.on_attempt:
            text = json.dumps(entry, ensure_ascii=False)
            try:
                done = subprocess.run(  # noqa: S602 - the user's own command, for a shell
                    self.plan.on_attempt, shell=True, input=text.encode("utf-8", "backslashreplace"),
                    timeout=_HOOK_SECONDS, check=False, stdout=subprocess.DEVNULL,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired) as error:
                self._observer.note(f"--on-attempt {self.plan.on_attempt}: {error}")
            else:
                if done.returncode:
                    self._observer.note(f"--on-attempt {self.plan.on_attempt}: exit code {done.returncode}")


def is_well(result: Result) -> bool:
    """Return whether a server that was served has ended because somebody asked it to."""
    return result.ending == results.INTERRUPTED or results.ended_well(result.report, result.exit_code)
