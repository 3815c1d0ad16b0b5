"""The next value of a flag that selects kernels: what exists, is not ruled out and has the best public evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice import history
from logtriage.advice.case import Step
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from logtriage.advice.case import Case
    from logtriage.advice.evidence import Candidate
    from logtriage.records import Attempt

_GEMM = ("fp4-gemm", "fp8-gemm")


def step(case: Case, flag: str, *, avoid: Iterable[str] = (), sure: bool = False, no_repack: bool = False) -> Step:
    """Return the step that moves a flag to its next value, or one that says why there is none.

    `avoid` are things that a kernel must not need (`sure` leaves out what nobody has said to work); `no_repack` leaves
    out kernels that rearrange the weights.
    """
    value = case.value(flag)
    shown = f"{flag} {value}" if value else flag
    if flag in case.pinned:
        return Step(f"{shown} is pinned, and only another value of it could help.", stop=f"{flag} is pinned")
    for candidate in _allowed(case, flag):
        library = case.servers.library(candidate.kernels)
        if set(avoid) & set(library["needs"]) or (no_repack and library.get("repacks")):
            continue
        if sure and candidate.status.status != "works":
            continue
        change = Change(flag, value, candidate.value, _why(case, candidate), _confidence(case, candidate),
                        _source(candidate))  # fmt: skip
        instead = f" instead of {value}" if value else ""
        return Step(f"Use {flag} {candidate.value}{instead}.", (change,))
    return Step(_nothing_left(case, flag), stop=f"nothing left to try for {flag}")


def with_forced(case: Case, planned: Step) -> Step:
    """Return the step with replacements of all other values of the command that cannot work here.

    Where such a value is pinned, or nothing is left for its flag, a launch would be wasted: then the step is a stop.
    """
    done = {change.flag for change in planned.changes}
    found: list[Change] = []
    notes: list[str] = []
    for flag, value, why, source, label in history.dead_values(case.launch, case.ruled_out, case.servers, case.setting):
        if flag in done:
            continue
        shown = f"{flag} {value or 'auto'}"
        seen = history.excluded_by(flag, value, case.ruled_out, case.servers, case.setting)
        if flag not in case.launch.flags and label == "degenerate-output" and seen is None:
            notes.append(f"{shown} is {why} ({source}).")
            continue
        other = next(iter(_allowed(case, flag)), None)
        if flag in case.pinned or other is None:
            reason = "is pinned, but" if flag in case.pinned else "has no other value left and"
            text = f"{shown} {reason} cannot work here: {why} ({source})."
            return Step(text, notes=(f"Else: {planned.summary}",), stop=f"{flag} cannot work")
        because = f"{value or 'auto'} cannot work here: {why}"
        sure = _confidence(case, other)
        found.append(Change(flag, value, other.value, because, sure, source, forced=True))
    return planned.replace(changes=(*planned.changes, *found), notes=(*planned.notes, *notes))


def garbage(case: Case) -> Step:
    """Return the step after garbage: away from the kernels that computed it, or a stop if they share nothing."""
    bad = [attempt for attempt in case.attempts if attempt.outcome == "degenerate"]
    if case.value("--load-format") == "dummy":
        text = "Load the real weights: --load-format dummy makes up random ones, which explains the garbage."
        return Step(text, stop="the weights are random", action="investigate")
    flags = history.suspects(case.launch, case.servers, case.setting)
    if not flags:
        gap = "It is not known which backends this launch uses, so none can be blamed."
        return Step(str(case.head["remedy"]["advice"]), notes=(gap,), stop="no backend to blame is known")
    first = flags[0]
    unrelated = _unrelated(case, first, bad)
    if not unrelated:
        found = step(case, first)
        if found.changes or first in case.pinned:
            return found
    # The first suspect is tried out: go on only with doubtful kernels that all attempts shared.
    suspicion = "suspect the checkpoint or the tokenizer, not a kernel"
    for flag in flags[1:]:
        if flag in case.pinned or not _is_doubtful(case, flag, bad):
            continue
        found = step(case, flag)
        if found.changes:
            note = f"All attempts had this kernel in common. If its successor gives the same garbage, {suspicion}."
            return found.replace(notes=(note,))
    names = " and ".join(case.servers.library(kernels)["name"] for kernels in unrelated)
    text = f"{names} share no code and give the same garbage: {suspicion}." if names else _nothing_left(case, first)
    stop = "the same garbage under kernels that share nothing" if names else "nothing left to try"
    notes = () if names else (f"If all of these gave the same garbage, {suspicion}.",)
    return Step(text, notes=notes, stop=stop, action="investigate")


def _allowed(case: Case, flag: str) -> Iterator[Candidate]:
    """The candidates of a flag that nothing rules out, the best first."""
    config = {name: case.value(name) for name in case.servers.backends}
    model = case.servers.model_of(flag, case.value(flag))
    if case.now.label == "unsupported-config" and case.now.flag == flag:
        model = None  # what was refused may have been refused for the model
    now = case.servers.kernels(flag, case.value(flag), case.setting)
    for candidate in case.servers.candidates(flag, case.setting, model):
        if candidate.value == case.value(flag) or now == {candidate.kernels}:
            continue
        if history.excluded_by(flag, candidate.value, case.ruled_out, case.servers, case.setting):
            continue
        if history.repeats({**config, flag: candidate.value}, case.ruled_out):
            continue
        yield candidate


def _unrelated(case: Case, flag: str, bad: Iterable[Attempt]) -> list[str]:
    """Two kernel libraries of different families under which a flag gave garbage, or nothing."""
    families: dict[str, str] = {}
    for attempt in bad:
        setting = history.setting_of(attempt.launch, case.servers)
        setting = case.setting if setting.version is None or setting.sm is None else setting
        kernels = case.servers.kernels(flag, history.value_of(attempt.launch, flag), setting)
        if len(kernels) == 1:
            families.setdefault(case.servers.library(min(kernels))["family"], min(kernels))
    return list(families.values())[:2] if len(families) > 1 else []


def _is_doubtful(case: Case, flag: str, bad: Iterable[Attempt]) -> bool:
    """Whether all attempts that gave garbage used one kernel for a flag, and sources disagree about it."""
    used = {case.servers.kernels(flag, history.value_of(attempt.launch, flag), case.setting) for attempt in bad}
    if len(used) != 1 or len(kernels := next(iter(used))) != 1:
        return False
    status = case.servers.status(flag, min(kernels), case.setting)
    return status.status == "garbage" or bool(status.disputed)


def _why(case: Case, candidate: Candidate) -> str:
    status = candidate.status
    name = case.servers.library(candidate.kernels)["name"]
    where = f"SM{case.setting.sm}" if case.setting.sm is not None else "this GPU"
    if status.status == "works":
        text = f"{name}: works on {where}" if case.setting.sm is not None else f"{name}: works on some GPUs"
    else:
        text = f"{name}: nobody has said whether it works on {where}"
    more = "; ".join(part for part in (status.note, status.disputed) if part)
    return f"{text} ({more})" if more else text


def _confidence(case: Case, candidate: Candidate) -> float:
    return round(candidate.status.confidence * case.confidence, 2)


def _source(candidate: Candidate) -> str:
    return candidate.status.source or "servers/sglang/kernels.yaml"


def _nothing_left(case: Case, flag: str) -> str:
    """Why no value of a flag is left."""
    choices = case.servers.choices(flag, case.setting.version)
    if not choices:
        reason = "takes no fixed choices" if case.servers.exists(flag, case.setting.version) else "does not exist"
        return f"{flag} {reason} in this version, so there is no other value to offer."
    reasons: dict[str, list[str]] = {}
    for value in choices:
        if value not in ("auto", "none") and not case.servers.for_other_platform(flag, value, case.setting):
            reasons.setdefault(_reason(case, flag, value), []).append(value)
    told = "; ".join(f"{', '.join(values)}: {reason}" for reason, values in reasons.items())
    others = _of_some_versions(case, flag, choices)
    hint = f" Some versions of SGLang also have {', '.join(others)}: give --server-version." if others else ""
    return f"Nothing is left to try for {flag}. {told}.{hint}"


def _of_some_versions(case: Case, flag: str, choices: Sequence[str]) -> list[str]:
    """The values that may work in a version that has them, where the version is not known."""
    if case.setting.version is not None:
        return []
    found: list[str] = []
    for version in reversed(case.servers.versions):
        setting = case.setting.replace(version=version)
        for candidate in case.servers.candidates(flag, setting):
            value = candidate.value
            excluded = history.excluded_by(flag, value, case.ruled_out, case.servers, setting)
            if candidate.status.status == "works" and value not in (*choices, *found) and excluded is None:
                found.append(value)
    return found


def _reason(case: Case, flag: str, value: str) -> str:
    hit = history.excluded_by(flag, value, case.ruled_out, case.servers, case.setting)
    if hit is not None:
        return f"ruled out by {hit.source}"
    if model := case.servers.model_of(flag, value):
        return f"for models of the kind {model}"
    status = case.servers.status_of(flag, value, case.setting)
    if status.status == "works":
        return "shares what is broken"
    return "not known to work here" if status.status == "unknown" else f"{status.status} on this GPU"
