"""What to launch: what evidence already says of a command, and which values are left to explore after a success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import command as commands
from logtriage.advice import history, planner
from logtriage.advice.servers import Servers
from logtriage.engine import launch as launches
from logtriage.records import Change, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Advice, Attempt, Launch

_BLAMELESS = ("same-config", "n/a")


class Known(Record):
    """A failure of the past that a command would repeat, and the advice that follows from it."""

    attempt: Attempt
    advice: Advice


def known_failure(
    command: Sequence[str], rules: RuleSet, facts: Mapping[str, Any], evidence: Sequence[Attempt], pinned: Sequence[str]
) -> Known | None:
    """Return the latest failure in this environment that a command would repeat, or None.

    That is one whose blamed kernel the command uses, or one of the very same flags. What may have been repaired since
    (an environment, memory that others held) counts for nothing.
    """
    launch = launches.from_command(command, rules, facts)
    servers = Servers(rules.server)
    setting = history.setting_of(launch, servers)
    for attempt in reversed(evidence):
        if attempt.outcome not in ("failed", "degenerate") or attempt.retry in _BLAMELESS:
            continue
        if attempt.action != "change-flag":
            continue
        ruled_out = history.exclusions([attempt], launch, servers)
        if not ruled_out or all(item.advisory for item in ruled_out):
            continue
        exact = [item for item in ruled_out if item.exact]
        repeated = attempt.launch.flags == launch.flags or any(
            history.excluded_by(flag, history.value_of(launch, flag), exact, servers, setting)
            for flag in servers.backends
            if flag in launch.flags
        )
        if repeated:
            now = attempt.replace(launch=launch.replace(facts={**attempt.launch.facts, **launch.facts}))
            earlier = [other for other in evidence if other is not attempt]
            return Known(attempt, planner.advise(now, rules, earlier, pinned))
    return None


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
