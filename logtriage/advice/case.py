"""What advice is about: a failed launch, what is known of it, what was tried before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import history
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.advice.evidence import Setting
    from logtriage.advice.history import Exclusion
    from logtriage.advice.servers import Servers
    from logtriage.records import Attempt, Change, Launch


_SURE = {"message": 0.9, "figures": 0.7, "rule": 0.7, "direction": 0.5}
"""What a change rests on → how sure it is to help, if the verdict is right."""


class Case(Record):
    """A failed launch as an attempt, the attempts before it, and what all of them rule out.

    Attributes:
        now: the launch to give advice on.
        earlier: attempts before it, the oldest first.
        head: the head of its label.
        pinned: flags that are never changed.
    """

    now: Attempt
    earlier: Sequence[Attempt]
    head: Mapping[str, Any]
    servers: Servers
    setting: Setting
    ruled_out: Sequence[Exclusion]
    pinned: frozenset[str]
    confidence: float

    @property
    def launch(self) -> Launch:
        """What was started."""
        return self.now.launch

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts, the oldest first and this one last."""
        return [*self.earlier, self.now]

    def value(self, flag: str) -> str | None:
        """Return the value that the launch has for a flag."""
        return history.value_of(self.launch, flag)

    def sure(self, basis: str) -> float:
        """Return how sure a change is that rests on a value of the message, figures, a rule, or a direction only."""
        return round(self.confidence * _SURE[basis], 2)


class Step(Record):
    """What to do next, before it is put into words.

    Attributes:
        changes: what to change in the command; `notes`: what to know beside it.
        stop: why there is no step, if there is none.
        action: the kind of advice, where it is not the label's.
    """

    summary: str
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    stop: str | None = None
    action: str | None = None


def build(
    now: Attempt,
    earlier: Sequence[Attempt],
    head: Mapping[str, Any],
    servers: Servers,
    pinned: Sequence[str],
    confidence: float,
) -> tuple[Case, list[str]]:
    """Return the case of a failed launch, and notes about facts that earlier attempts supplied."""
    launch, notes = history.filled(now.launch, earlier)
    now = now.replace(launch=launch)
    setting = history.setting_of(launch, servers)
    told = launch.facts.get("quantization") or launch.facts.get("--quantization")
    if setting.format is None and now.flag and now.value and told is None and setting.is_nvidia:
        behind = servers.format_behind(now.flag, now.value)
        setting = setting.replace(format=behind)
        if behind is not None:
            notes.append(f"Quantization: taken to be {behind}, since {now.flag} {now.value} serves nothing else.")
    if setting.sm is None:
        # A kernel library that was refused for the GPU's sake: the GPU is none of those that it is made for.
        blocked = [a.blocks["kernels"] for a in (*earlier, now) if a.retry == "never" and "kernels" in a.blocks]
        setting = setting.replace(
            not_sm=frozenset(sm for kernels in blocked for sm in servers.library(kernels).get("only", ()))
        )
    ruled_out = history.exclusions([*earlier, now], launch, servers)
    flags = frozenset(servers.canonical(flag) for flag in pinned)
    return Case(now, tuple(earlier), head, servers, setting, tuple(ruled_out), flags, confidence), notes
