"""One launch from start to verdict: starts it, follows its log live, asks its answers, and ends it where that is due.

Another program can drive it: `start`, then `judge`, then `serve` or `stop`. Time and all that looks outside are passed
in, so that nothing here is tied to a real server.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Any

from logtriage import following
from logtriage.records import Seen
from logtriage.runner import activity, cleanup, launcher, results
from logtriage.runner.background import Background
from logtriage.runner.processes import Family, birth
from logtriage.runner.results import Observer, Order, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from logtriage.engine.ruleset import RuleSet
    from logtriage.pipeline import Options
    from logtriage.records import Report
    from logtriage.runner.probes import Probes

_CHECK_EVERY = 1.0  # seconds between two questions to a server that listens
_CHECK_SELDOM = 5.0  # the same before its log says that it listens: the log may have another form
_QUIET = 0.3  # after the first process has ended, the log counts as complete when it was silent for so long
_LAST_WORDS = 5.0  # and at the latest then
_DISK_LEAST = 64 << 20  # bytes that have to stay free, for the ledger and everybody else
_DISK_EVERY = 1.0
_AFTER_SMOKE = 3.0  # a server that has given no answers may be dying: its log is read so much longer
_LISTENING = ("warmup", "serving")


class Attempt:
    """One launch. `asked_to_stop` is asked often; `deadline` is a time of the clock at which it has to answer."""

    def __init__(
        self,
        order: Order,
        rules: RuleSet,
        options: Options,
        probes: Probes,
        clock: following.Clock,
        *,
        observer: Observer | None = None,
        asked_to_stop: Callable[[], bool] = lambda: False,
        in_a_hurry: Callable[[], bool] = lambda: False,
        grace: float = following.GRACE,
        deadline: float | None = None,
    ) -> None:
        self.order = order
        self._rules = rules
        self._options = options.replace(command=order.command)
        self._probes = probes
        self._clock = clock
        self._observer = observer or Observer()
        self._asked_to_stop = asked_to_stop
        self._in_a_hurry = in_a_hurry
        self._grace = grace
        self._deadline = deadline
        self._limits = rules.server["runner"]
        self._stages: list[tuple[str, float]] = []
        self._began = clock.now()
        self._child: launcher.Child | None = None
        self._check: Background[Any] | None = None
        self._smoke: Background[Any] | None = None
        self._checked_at = self._disk_at = self._began
        self._ended_at: float | None = None
        self._last_byte = 0
        self._unanswered_at: float | None = None
        self._is_serving = False

    @property
    def pid(self) -> int | None:
        """The id of the first process, once there is one."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Launch it. Raises InputError if that is not possible."""
        order = self.order
        self._observer.launching(order)
        self._child = launcher.start(order.command, order.log, order.marker, head=f"+ {order.text}")
        self._family = Family(self._child.pid, birth(self._child.pid), order.marker)
        self._began = self._clock.now()
        self._checked_at = self._disk_at = self._began
        self._stall = activity.Stall(self._family, self._limits, self._began)
        self._follower = following.Follower(
            order.log, self._rules, self._options, self._clock, "failed", self._grace, self._on_stage
        )
        self._follower.on_piece = self._observer.output
        self._steps: Iterator[Report | None] = self._follower.steps()
        self._observer.launched(order, self._child.pid)
        self._follower.report()  # what judging needs is loaded while there is time: later every moment counts

    def judge(self) -> Result:
        """Follow it until it answers or has failed; a launch that failed is ended. Starts it if need be."""
        if self._child is None:
            if (holder := self._probes.holder(self.order.address.host, self.order.address.port)) is not None:
                return self._refused(holder)
            self.start()
        result = self._pump(self._answered)
        assert isinstance(result, Result)  # noqa: S101 - it ends with one
        return result

    def measure(self) -> Any:
        """Return the speed of a server that answers, or a Result if it failed meanwhile."""
        asked: Background[Any] = Background(
            lambda: self._probes.speed(self.order.address.url, api_key=self.order.address.api_key)
        )
        return self._pump(lambda: None if not asked.is_done else results.Answered(asked.result()))

    def serve(self) -> Result:
        """Follow a server that answers until it ends or is asked to; return what came of it."""
        self._is_serving = True
        result = self._pump(lambda: None)
        assert isinstance(result, Result)  # noqa: S101
        return result

    def signal(self, number: int) -> None:
        """Hand a signal on to the first process."""
        if self._child and self._child.poll() is None:
            os.kill(self._child.pid, number)

    def stop(self) -> cleanup.Stopped:
        """End all processes of the launch and see that they let go of what they held."""
        if self._child is None:
            return cleanup.Stopped()
        stopped = cleanup.stop(self._family, self._child.pid, self._limits["stop"], self._clock, hurry=self._in_a_hurry)
        self._child.poll()
        return stopped

    # ---- private

    def _pump(self, is_done: Callable[[], Any]) -> Any:
        """Follow the log and look around until there is a result, or `is_done` returns one."""
        for report in self._steps:
            now = self._clock.now()
            if self._asked_to_stop():
                return self._over(results.INTERRUPTED, "whoever runs it asked it to stop")
            if report is not None and not self._is_serving:
                return self._over(results.FAILED, "its log shows that it cannot work", report=report)
            if self._has_ended(now):
                return self._exited()
            if not self._is_serving and (result := self._looked(now)) is not None:
                return result
            if (result := is_done()) is not None:
                return result
        raise AssertionError("a log that is a file has no end")

    def _has_ended(self, now: float) -> bool:
        """Whether the first process has ended and what it still had to say was read."""
        assert self._child is not None  # noqa: S101
        if self._child.poll() is None:
            return False
        if self._ended_at is None:
            self._ended_at = now
            with contextlib.suppress(OSError):
                self._last_byte = os.path.getsize(self.order.log)
        if self._follower.taken < self._last_byte:  # much was written, and why it ended stands at the end
            return False
        silent = now - max(self._follower.written_at, self._ended_at)
        return silent >= _QUIET or now - self._ended_at >= _LAST_WORDS

    def _looked(self, now: float) -> Result | None:
        """Look at the time, the disk and the processes; return a result if the launch is to end for one of them."""
        if self._deadline is not None and now >= self._deadline:
            return self._over(results.LATE, f"it did not answer within {now - self._began:.0f} s", label="hang-timeout")
        if now - self._disk_at >= _DISK_EVERY:
            self._disk_at = now
            if (text := self._disk_is_full()) is not None:
                return self._over(results.DISK_FULL, text, label="host-resources")
        why = self._stall.verdict(now, self._follower.written_at or self._began, self._stage)
        return self._over(results.STALLED, why, label="hang-timeout") if why and self._smoke is None else None

    def _disk_is_full(self) -> str | None:
        free = shutil.disk_usage(self.order.log).free
        return f"only {free >> 20} MiB are left on the disk of {self.order.log}" if free < _DISK_LEAST else None

    def _answered(self) -> Result | None:
        """Ask the server whether it is ready, then for answers; return a result when they are judged."""
        now = self._clock.now()
        if self._smoke is not None:
            return self._with_answers(now) if self._smoke.is_done else None
        if self._check is None:
            every = _CHECK_EVERY if self._stage in _LISTENING else _CHECK_SELDOM
            if now - self._checked_at >= every:
                address = self.order.address
                self._check = Background(lambda: self._probes.check(address.url, api_key=address.api_key))
            return None
        if not self._check.is_done:
            return None
        found, self._check, self._checked_at = self._check.result(), None, now
        if found.state in ("ready", "foreign"):
            if (other := self._other_holder(found)) is not None:
                return self._over(results.PORT_TAKEN, other, label="port-in-use")
            if found.state == "ready":
                self._on_stage("serving")
                address = self.order.address
                self._smoke = Background(
                    lambda: self._probes.smoke(address.url, model=found.model, api_key=address.api_key)
                )
        return self._not_what_it_says(found, now)

    def _not_what_it_says(self, found: Any, now: float) -> Result | None:
        """Return a result if its log says that it is ready, and for long it is not: our questions keep the log busy."""
        if found.state == "ready" or self._stage != "serving":
            return None
        since = now - self._began - self._stages[-1][1]
        if since < self._limits["stall"]["serving"]["idle"]:
            return None
        label = "warmup-failure" if found.state == "foreign" else "hang-timeout"
        because = f"its log has said for {since:.0f} s that it is ready, but {found.detail}"
        return self._over(results.STALLED, because, label=label)

    def _other_holder(self, found: Any) -> str | None:
        """Who answers in place of the launch, or None if it is the launch itself (or there is no telling)."""
        address = self.order.address
        holder = self._probes.holder(address.host, address.port)
        if holder is not None and holder.pid is not None:
            return None if self._family.holds(holder.pid) else f"port {address.port} is held by {_who(holder)}"
        if found.state == "foreign" and self._stage not in _LISTENING:
            return f"something that is no SGLang server answers on port {address.port}: {found.detail}"
        return None

    def _with_answers(self, now: float) -> Result | None:
        assert self._smoke is not None  # noqa: S101
        smoke = self._smoke.result()
        if not smoke.passed and smoke.finding is None:
            self._unanswered_at = self._unanswered_at or now
            if now - self._unanswered_at < _AFTER_SMOKE:
                return None  # its log may be about to say why
            because = f"it does not answer as it should: {smoke.because}"
            return self._over(results.STALLED, because, label="hang-timeout", smoke=smoke)
        options = self._options.replace(responses=smoke.bodies, finding=smoke.finding)
        report = self._follower.report(options)
        because = "it answers sensibly" if smoke.passed else smoke.because
        return self._result(results.READY, because, report, smoke=smoke)

    def _over(
        self, ending: str, because: str, *, report: Report | None = None, label: str | None = None, smoke: Any = None
    ) -> Result:
        """End the launch; the verdict is on its log as it was before."""
        if report is None:
            seen = Seen(label, because) if label else None
            report = self._follower.report(self._options.replace(seen=seen))
        stopped = self.stop()
        return self._result(ending, because, report, smoke=smoke, stopped=stopped)

    def _exited(self) -> Result:
        """The first process has ended by itself: judge the whole log, and end what it left behind."""
        assert self._child is not None  # noqa: S101
        code = self._child.poll()
        if (text := self._disk_is_full()) is not None:  # and what it died of could not be written
            return self._over(results.DISK_FULL, f"{text}; it ended with exit code {code}", label="host-resources")
        report = self._follower.report(self._options.replace(exit_code=code))
        report = results.where_to_look(report, self.order, code)
        stopped = self.stop()
        left = ", and left processes behind, which were ended" if stopped.signals else ""
        return self._result(results.EXITED, f"it ended with exit code {code}{left}", report, stopped=stopped)

    def _refused(self, holder: Any) -> Result:
        """The port is held already: nothing is launched."""
        from logtriage import pipeline

        because = f"port {self.order.address.port} is held by {_who(holder)}"
        options = self._options.replace(seen=Seen("port-in-use", because))
        report = pipeline.analyze(
            f"+ {self.order.text}\n".encode("utf-8", "replace"), rules=self._rules, options=options
        )
        return self._result(results.PORT_TAKEN, because, report)

    def _result(
        self, ending: str, because: str, report: Report, *, smoke: Any = None, stopped: cleanup.Stopped | None = None
    ) -> Result:
        result = Result(
            self.order, ending, because, report, self._clock.now() - self._began,
            self._child.poll() if self._child else None, tuple(self._stages), smoke, None, stopped,
        )  # fmt: skip
        self._observer.judged(result)
        return result

    @property
    def _stage(self) -> str:
        return self._stages[-1][0] if self._stages else ""

    def _on_stage(self, stage: str) -> None:
        if stage != self._stage:
            seconds = self._clock.now() - self._began
            self._stages.append((stage, seconds))
            if stage == "serving":
                self._checked_at = self._began  # its log says that it is ready: ask at once
            self._observer.stage(self.order, stage, seconds)


def _who(holder: Any) -> str:
    """Who holds a port, for people."""
    if holder.pid is None:
        return "another program (its id is not visible to this user)"
    return f"pid {holder.pid} ({holder.name})" if holder.name else f"pid {holder.pid}"
