"""Launch, judge, change one thing, launch again: until a server answers sensibly or nothing is left to try."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from logtriage.pipeline import Options
from logtriage.records import Record
from logtriage.redact import Redactor
from logtriage.report.json_v1 import redact_shell
from logtriage.runner import choices, entries, launcher, ledger, processes, results
from logtriage.runner.attempt import Attempt
from logtriage.runner.decide import Next, Retry, Stop, after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from logtriage import records
    from logtriage.engine.ruleset import RuleSet
    from logtriage.following import Clock
    from logtriage.runner.plan import Plan
    from logtriage.runner.probes import Probes
    from logtriage.runner.results import Observer, Result


class Setup(Record):
    """Everything a run needs.

    Attributes:
        run: its id; `facts`: what is known of the machine; `key`: the key of its environment.
        secret: the variable that stands for each secret in what is written down.
        on_entry: is given each attempt as data when it is over.
    """

    run: str
    plan: Plan
    rules: RuleSet
    facts: Mapping[str, Any]
    key: str
    book: ledger.Ledger
    logs: str
    probes: Probes
    clock: Clock
    observer: Observer
    asked_to_stop: Callable[[], bool]
    in_a_hurry: Callable[[], bool]
    on_entry: Callable[[Mapping[str, Any], Result], None]


class Outcome(Record):
    """How a run ended.

    Attributes:
        state: ``working``, ``stopped`` (nothing is left, or the environment has to be repaired) or ``interrupted``.
        because: a sentence; `advice` what to do, if that is known.
        entries: every attempt as data, in order; `known` those that the ledger spared.
        attempt, result: the server that works and lives, if there is one.
    """

    state: str
    because: str
    entries: tuple[Mapping[str, Any], ...]
    known: tuple[str, ...] = ()
    advice: records.Advice | None = None
    attempt: Attempt | None = None
    result: Result | None = None


class Loop:
    """One run. It launches one server at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._redactor = Redactor(setup.rules.secrets)
        self._number = max((row["number"] for row in setup.book.attempts("run = ?", (setup.run,))), default=0)
        self._first = self._number
        self._began = setup.clock.now()
        self._evidence = list(setup.book.evidence())
        self._entries: list[Mapping[str, Any]] = []
        self._known: list[str] = []
        self._tried: set[tuple[str, ...]] = set()
        self._retries: dict[tuple[str, ...], int] = {}

    def run(self, command: Sequence[str]) -> Outcome:
        """Run to the end. A server that works is left running, and belongs to the caller. Raises InputError."""
        step: Next | Stop | Retry = Next(tuple(command), "as given")
        while not isinstance(step, Stop):
            if (limit := self._limit()) is not None:
                return self._outcome("stopped", limit)
            if isinstance(step, Retry):
                self._setup.observer.note(f"{step.because}: the same is tried again in {step.seconds:g} s")
                if not self._wait(step.seconds):
                    return self._outcome("interrupted", "whoever runs it asked it to stop")
                step = step.again
            elif (found := self._sparing(step)) is not None:
                step = found
                continue
            attempt, result = self._launch(step)
            if result.ending == results.INTERRUPTED:
                return self._outcome("interrupted", result.because)
            if result.is_working:
                return self._explored(attempt, result, step) if self._setup.plan.explore else self._outcome(
                    "working", result.because, attempt=attempt, result=result
                )  # fmt: skip
            step = self._next(attempt, result, step)
        return self._outcome("stopped", step.because, advice=step.advice)

    # ---- private

    def _next(self, attempt: Attempt, result: Result, step: Next) -> Next | Stop | Retry:
        stopped = attempt.stop() if result.ending == results.READY else result.stopped
        if stopped is not None and stopped.left:
            left = "; ".join(stopped.left)
            return Stop(f"what the attempt held was not released: {left}", result.report.advice)
        done = self._retries.get(step.command, 0)
        delays = self._setup.plan.retry_after
        found = after(
            result, step, done, self._setup.rules.server["runner"]["retry_after"] if delays is None else delays
        )
        if isinstance(found, Retry):
            self._retries[step.command] = done + 1
        return self._untried(found) if isinstance(found, Next) else found

    def _untried(self, step: Next) -> Next | Stop:
        """A step, or a stop where its command has failed: then nothing is left to recommend."""
        if step.command not in self._tried:
            return step
        new = " ".join(step.changed) if step.changed else "the same"
        return Stop(f"nothing is left to try: what would come next ({new}) has failed already")

    def _sparing(self, step: Next) -> Next | Stop | None:
        """Take the step after a failure that the ledger knows, without launching what would fail again."""
        plan = self._setup.plan
        known = choices.remembered(step.command, self._setup.rules, self._facts(), self._evidence, plan.pin)
        if isinstance(known, choices.Again):
            self._setup.observer.note(known.told)
        if not isinstance(known, choices.Known):
            return None
        self._tried.add(step.command)
        text = f"not launched, since {known.attempt.source} shows that it fails here ({known.attempt.label})"
        text += "; `logtriage ledger forget` makes it forget"
        self._known.append(f"{self._shown(step.command)}: {text}")
        self._setup.observer.note(text)
        advice = known.advice
        if advice.command_text is None:
            return Stop(advice.summary, advice)
        return self._untried(Next.from_advice(advice))

    def _launch(self, step: Next) -> tuple[Attempt, Result]:
        setup, plan = self._setup, self._setup.plan
        self._number += 1
        self._tried.add(step.command)
        order = self._order(step)
        started = ledger.now()
        setup.book.begin_attempt({
            "id": order.marker, "run": setup.run, "number": order.number, "environment": setup.key,
            "command": order.text, "changed": " ".join(step.changed) if step.changed else None, "started": started,
            "host": order.address.host, "port": order.address.port, "log": order.log,
        })  # fmt: skip
        deadline = [end for end in (
            self._began + plan.budget if plan.budget else None,
            setup.clock.now() + plan.start_timeout if plan.start_timeout else None,
        ) if end is not None]  # fmt: skip
        attempt = Attempt(
            order, setup.rules, Options(facts=self._facts(), after=self._evidence, pinned=plan.pin), setup.probes,
            setup.clock, observer=_Noting(setup, order), asked_to_stop=setup.asked_to_stop,
            in_a_hurry=setup.in_a_hurry, grace=plan.grace, deadline=min(deadline, default=None),
        )  # fmt: skip
        try:
            result = attempt.judge()
        except BaseException:  # whatever it is: no server is left without somebody who watches it
            attempt.stop()
            setup.book.update(order.marker, ended=ledger.now(), ending="broken-off")
            raise
        self._keep(result, started)
        return attempt, result

    def _keep(self, result: Result, started: str) -> None:
        """Write an attempt down before anything else happens, and count it as evidence."""
        found = entries.entry(result, self._setup.run, started)
        self._setup.book.finish(result.order.marker, found)
        if result.ending not in (results.INTERRUPTED, results.LATE):
            self._evidence.append(entries.attempt_of(found["evidence"]))
        self._entries = [item for item in self._entries if item["number"] != found["number"]] + [found]
        self._setup.on_entry(found, result)

    def _explored(self, attempt: Attempt, result: Result, first: Next) -> Outcome:
        """Measure the server that works, then every other candidate; launch the fastest again if it is to serve."""
        setup = self._setup
        working = {first.command: self._measured(attempt, result)}
        results_of = {first.command: result}
        for change, text in choices.unexplored(result.report.launch, setup.rules, self._evidence, setup.plan.pin):
            step = Next(tuple(launcher.from_text(text)), change.why, (change.flag, str(change.new)))
            if self._limit() is not None or setup.asked_to_stop() or step.command in self._tried:
                continue
            attempt, found = self._launch(step)
            if found.is_working:
                working[step.command] = self._measured(attempt, found)
                results_of[step.command] = found
            elif found.ending == results.READY:
                attempt.stop()
        if setup.asked_to_stop():
            return self._outcome("interrupted", "whoever runs it asked it to stop")
        ranked = sorted(working, key=lambda command: -working[command])
        because = f"{len(working)} configurations work; this one is the fastest"
        if setup.plan.then == "stop":
            return self._outcome("working", because, result=results_of[ranked[0]])
        attempt, result = self._launch(Next(ranked[0], "the fastest of those that work"))
        if not result.is_working:
            return self._outcome("stopped", f"the fastest configuration did not come up again: {result.because}")
        return self._outcome("working", because, attempt=attempt, result=result)

    def _measured(self, attempt: Attempt, result: Result) -> float:
        """Measure a server that works, write it down, stop it; return its tokens per second at 32 requests."""
        measured = attempt.measure()
        speed = measured.value if isinstance(measured, results.Answered) else None
        self._keep(result.replace(speed=speed, stopped=attempt.stop()), ledger.now())
        return float(speed.tokens_per_s_32 or speed.tokens_per_s_1 or 0.0) if speed is not None else 0.0

    def _order(self, step: Next) -> results.Order:
        setup = self._setup
        marker = f"{setup.run}:{self._number}"
        log = _unused(setup.logs, f"attempt-{self._number}")
        if os.path.exists(log):  # another run keeps its logs here: what is appended to one would be judged with it
            log = os.path.join(setup.logs, f"attempt-{self._number}-{setup.run}.log")
        address = results.address_of(step.command, setup.rules)
        return results.Order(
            self._number, step.command, self._shown(step.command), log, marker, address, step.why, step.changed
        )

    def _limit(self) -> str | None:
        plan = self._setup.plan
        if self._number - self._first >= plan.max_attempts:
            return f"{plan.max_attempts} attempts were made, and no more are allowed (--max-attempts)"
        if plan.budget is not None and self._setup.clock.now() - self._began >= plan.budget:
            return f"the time is over (--budget, {plan.budget:g} s)"
        return None

    def _wait(self, seconds: float) -> bool:
        """Wait; return False if whoever runs it asks it to stop meanwhile."""
        clock = self._setup.clock
        end = clock.now() + seconds
        while clock.now() < end:
            if self._setup.asked_to_stop():
                return False
            clock.sleep(0.1)
        return True

    def _facts(self) -> dict[str, Any]:
        return {**self._setup.facts, "environment": self._setup.key}

    def _shown(self, command: Sequence[str]) -> str:
        """A command as text to paste, with a variable for each secret."""
        return shown(command, self._redactor)

    def _outcome(self, state: str, because: str, *, advice: records.Advice | None = None, **more: Any) -> Outcome:
        text = advice.command_text if advice is not None else None
        if advice is not None and text is not None and tuple(launcher.from_text(text)) in self._tried:
            advice = advice.replace(changes=(), command=None, command_text=None)  # it has failed
        return Outcome(state, because, tuple(self._entries), tuple(self._known), advice, **more)


def _unused(folder: str, stem: str) -> str:
    """A name for a log that no file has: logs of earlier runs are kept."""
    names = (os.path.join(folder, f"{stem}{end}.log") for end in ("", *(f"-{more}" for more in range(2, 10_000))))
    return next(name for name in names if not os.path.exists(name))


def shown(command: Sequence[str], redactor: Redactor) -> str:
    """Return a command as one text for a shell, with a variable for each secret."""
    return redact_shell(command[0] if len(command) == 1 else shlex.join(command), redactor)


class _Noting(results.Observer):
    """Writes into the ledger how far an attempt is, and passes everything on."""

    def __init__(self, setup: Setup, order: results.Order) -> None:
        self._book, self._to, self._id = setup.book, setup.observer, order.marker

    def launching(self, order: results.Order) -> None:
        self._to.launching(order)

    def launched(self, order: results.Order, pid: int) -> None:
        self._book.update(self._id, pid=pid, birth=processes.birth(pid))
        self._to.launched(order, pid)

    def stage(self, order: results.Order, stage: str, seconds: float) -> None:
        self._book.update(self._id, stage=stage)
        self._to.stage(order, stage, seconds)

    def output(self, piece: bytes) -> None:
        self._to.output(piece)

    def judged(self, result: Result) -> None:
        self._to.judged(result)

    def note(self, text: str) -> None:
        self._to.note(text)
