"""What to launch: what evidence already says of a command, and which values are left to explore after a success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import command as commands
from logtriage.advice import history, memory, planner
from logtriage.advice.servers import Servers
from logtriage.engine import launch as launches
from logtriage.records import Change, Record
from logtriage.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Advice, Attempt, Launch

_FAILED = ("failed", "degenerate")
_MAY_PASS = ("same-config", "n/a")


class Known(Record):
    """A failure of the past that a command would repeat, and the advice that follows from it."""

    attempt: Attempt
    advice: Advice


class Again(Record):
    """A failure of the past with this very command, and why it is launched all the same."""

    attempt: Attempt
    because: str

    @property
    def told(self) -> str:
        """One clause for people."""
        return f"launched again, though {self.attempt.source} failed ({self.attempt.label}): {self.because}"


def remembered(
    command: Sequence[str], rules: RuleSet, facts: Mapping[str, Any], evidence: Sequence[Attempt], pinned: Sequence[str]
) -> Known | Again | None:
    """Return the latest failure in this environment that a command would repeat, else one that may be over, or None.

    A command repeats a failure if it is the very same (wrapper, variables and flags), or uses the kernel that is to
    blame. What may have been repaired since (an environment, memory that others held) is launched again; so is what
    has worked since.
    """
    launch = launches.from_command(command, rules, facts)
    servers = Servers(rules.server)
    own = Redactor(rules.secrets).value(_parts(launch))  # evidence is without secrets already
    again: Again | None = None
    for attempt in reversed(evidence):
        is_same = _parts(attempt.launch) == own
        changed = history.changed(attempt.launch, launch)
        if is_same and attempt.outcome == "healthy" and not changed:
            break
        if attempt.outcome not in _FAILED:
            continue
        because = f"{changed} has changed since" if changed else _why_it_may_be_over(attempt)
        if because is None and (is_same or _uses_what_failed(launch, attempt, servers)):
            now = attempt.replace(launch=launch.replace(facts={**attempt.launch.facts, **launch.facts}))
            earlier = [other for other in evidence if other is not attempt]
            return Known(attempt, planner.advise(now, rules, earlier, pinned))
        if because is not None and is_same and again is None:
            again = Again(attempt, because)
    return again


def _parts(launch: Launch) -> dict[str, object]:
    """What makes a command the same as another."""
    return {"wrapper": list(launch.wrapper), "env": dict(launch.env), "flags": dict(launch.flags)}


def _why_it_may_be_over(attempt: Attempt) -> str | None:
    """Why a failure need not come again with the same command in the same environment; None if it will."""
    if attempt.retry in _MAY_PASS:
        return "it may pass"
    if attempt.action == "fix-environment":
        return "what it lacked may have been repaired since"
    if attempt.label == "port-in-use":
        return "the port may be free now"
    if attempt.label == "oom-host" or (attempt.action == "free-memory" and memory.may_be_held(attempt)):
        return "the memory may have been held by others, and be free now"
    if attempt.action in ("change-flag", "free-memory"):
        return None
    return "it is not known what failed"


def _uses_what_failed(launch: Launch, attempt: Attempt, servers: Servers) -> bool:
    """Whether a launch has a value that an attempt is known to have failed with, beside other flags."""
    if attempt.action != "change-flag":
        return False
    setting = history.setting_of(launch, servers)
    exact = [item for item in history.exclusions([attempt], launch, servers) if item.exact]
    return any(
        history.excluded_by(flag, history.value_of(launch, flag), exact, servers, setting)
        for flag in servers.backends
        if flag in launch.flags
    )


def unexplored(
    launch: Launch, rules: RuleSet, evidence: Sequence[Attempt], pinned: Sequence[str]
) -> Iterator[tuple[Change, str]]:
    """Yield one change to a working launch for every other value that may work too, with the text of the command."""
    servers = Servers(rules.server)
    setting = history.setting_of(launch, servers)
    ruled_out = history.exclusions(evidence, launch, servers)
    fixed = {servers.canonical(flag) for flag in pinned}
    for flag in history.suspects(launch, servers, setting):
        if flag in fixed:
            continue
        own = history.value_of(launch, flag)
        running = servers.kernels(flag, own, setting)
        done = {min(running)} if len(running) == 1 else set()
        for candidate in servers.candidates(flag, setting, servers.model_of(flag, own)):
            if candidate.value == own or candidate.kernels in done:
                continue
            if history.excluded_by(flag, candidate.value, ruled_out, servers, setting):
                continue
            done.add(candidate.kernels)
            name = servers.library(candidate.kernels)["name"]
            change = Change(flag, own, candidate.value, f"{name} may be faster", 0.5, candidate.status.source or "")
            if (rendered := commands.render(launch, [change], rules)) is not None:
                yield change, rendered[1]
