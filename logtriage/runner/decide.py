"""What follows from an attempt: another command, the same one once more, or a stop. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.records import Record
from logtriage.runner import launcher, results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.records import Advice
    from logtriage.runner.results import Result


class Next(Record):
    """Launch a command; `why` and `changed` say what is new in it."""

    command: tuple[str, ...]
    why: str = ""
    changed: tuple[str, str] | None = None

    @classmethod
    def from_advice(cls, advice: Advice) -> Next:
        """Return the step that advice with a full command gives: one new value, the others are forced."""
        new = [change for change in advice.changes if not change.forced] or list(advice.changes)
        first = new[0]
        changed = (first.flag, "removed" if first.removed else str(first.new))
        also = [change.told for change in advice.changes if change is not first]
        what = first.told if first.removed else f"{first.flag} {first.old or '(not set)'} → {first.new}"
        why = f"{what}: {first.why}"
        why += f"; also {', '.join(also)}, since the present value cannot work here" if also else ""
        return cls(tuple(launcher.from_text(str(advice.command_text))), why, changed)


class Retry(Record):
    """Launch the same again after some seconds."""

    again: Next
    seconds: float
    because: str


class Stop(Record):
    """Launch nothing more."""

    because: str
    advice: Advice | None = None


_ENDS = {
    results.PORT_TAKEN: "something else holds its port",
    results.DISK_FULL: "the disk is full",
}


def _was_our_idea(step: Next, advice: Advice) -> bool:
    """Whether the value that needs what is broken here was a step's own candidate: then it is only one that failed.

    A user who asks for a backend wants it repaired; of a candidate nobody said that it has to work.
    """
    return bool(advice.changes) and step.changed is not None and step.changed[0] == advice.changes[0].flag


def after(result: Result, step: Next, retries: int, delays: Sequence[float]) -> Next | Retry | Stop:
    """Return what to do after an attempt that does not work; `retries` were made of the same command already."""
    verdict, advice = result.report.verdict, result.report.advice
    if result.ending in _ENDS:
        return Stop(f"{_ENDS[result.ending]}: {result.because}", advice)
    if verdict.label == "port-in-use":
        return Stop(f"its port was taken: {verdict.because}", advice)
    if verdict.outcome in ("healthy", "incomplete"):
        return Stop(f"{result.because}, and its log shows no failure: somebody else may have stopped it", advice)
    if advice.action == "fix-environment" and not _was_our_idea(step, advice):
        return Stop(f"the environment has to be repaired first. {advice.summary}", advice)
    if advice.changes and advice.command_text is not None:
        return Next.from_advice(advice)
    if verdict.retry == "same-config" and retries < len(delays):
        return Retry(step, delays[retries], f"{verdict.label} may pass")
    return Stop(advice.summary, advice)
