"""Advice for want of memory: who else holds it, else a flag, a direction, and a number from the log's figures."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from logtriage.advice.case import Step
from logtriage.advice.hints import filled
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.advice.case import Case
    from logtriage.records import Attempt

_FRACTION = "--mem-fraction-static"
_OWN = "this process has"
_SIZE = r"([\d.]+ [KMG]i?B)"
_HAS = rf"this process has {_SIZE}"
_OTHERS = rf"Process \d+ has {_SIZE}"
_ALLOCATED = rf"Of the allocated memory {_SIZE} is allocated by PyTorch"
_GRAIN = 0.01
_SPARE = 0.5
_ROOM = 0.1
"""Part of the free host memory that is left alone: the machine needs some of it before the next launch as well."""
_SHARE = 0.1
"""Part of a GPU from which on another process is to blame for what is missing."""
_UNITS = {"KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "KB": 2**-20, "MB": 2**-10, "GB": 1.0}


def holder(case: Case) -> str | None:
    """Return who else holds the memory, as the message says, or None.

    PyTorch names its own process as "this process" if it knows it. In a container it may not: then a process that the
    message names can be this launch itself, and nobody is accused.
    """
    facts, text = case.now.facts, case.now.text
    if not facts.get("other_pid") or _OWN not in text:
        return None
    own, allocated = (_gib(found[1]) if (found := re.search(pattern, text)) else None for pattern in (_HAS, _ALLOCATED))
    if own is not None and allocated is not None and allocated > own + _SPARE:
        return None  # it is not in the process that PyTorch takes for its own
    if _is_small(case.now):
        return None  # this launch takes too much, whoever else is there
    return f"Process {facts['other_pid']} holds {_size(case)}"


def may_be_held(attempt: Attempt) -> bool:
    """Return whether processes that the message names may be others, and hold what was missing.

    They are the launch itself where its own memory would not fit on the GPU beside theirs.
    """
    if not attempt.facts.get("other_pid") or _is_small(attempt):
        return False
    total, own = _gib(attempt.facts.get("total")), re.search(_ALLOCATED, attempt.text)
    return total is None or own is None or (_gib(own[1]) or 0.0) + _of_others(attempt) <= total + _SPARE


def _of_others(attempt: Attempt) -> float:
    """GiB that the processes hold which the message names."""
    return sum(_gib(size) or 0.0 for size in re.findall(_OTHERS, attempt.text))


def _is_small(attempt: Attempt) -> bool:
    """Whether all other processes that the message names hold a small part of the GPU."""
    total = _gib(attempt.facts.get("total"))
    return total is not None and _of_others(attempt) < _SHARE * total


def _size(case: Case) -> str:
    facts = case.now.facts
    used, total = facts.get("other_used"), facts.get("total")
    size = f"{used} of {total}" if used and total else used or "memory"
    return f"{size} on GPU {facts['gpu']}" if facts.get("gpu") is not None else f"{size} on the same GPU"


def step(case: Case) -> Step:
    """Return the next step for a label that is about memory."""
    if (who := holder(case)) is not None:
        text = f"{who}: end it or use another GPU, then launch the same command again."
        ways = " or ".join(f"{item['direction']} {item['flag']}" for item in _entries(case))
        notes = [f"If it must stay, let the launch need less of this GPU: {ways}."] if ways else []
        return Step(text, notes=tuple(notes), stop="memory is held by another process")
    notes = []
    if case.now.facts.get("other_pid"):
        who = f"process {case.now.facts['other_pid']} with {_size(case)}"
        which = (
            "That is little beside what this launch takes"
            if _is_small(case.now)
            else "In a container that can be this launch itself: ask nvidia-smi"
        )
        notes.append(f"The message names {who}. {which}.")
    for entry in _entries(case):
        flag = entry["flag"]
        old = case.value(flag)
        if (entry.get("only_if_set") and old is None) or (entry["direction"] == "lower" and _is_off(old)):
            continue
        if flag in case.pinned:
            notes.append(f"{flag} is pinned; to {entry['direction']} it would help.")
            continue
        value, problem = _next(case, entry)
        if problem is not None:
            notes.append(problem)
            continue
        verb = "Raise" if entry["direction"] == "raise" else "Lower" if old or value is None else "Set"
        to = f" to {value}" if value is not None else ""
        now = f" (now {old})" if old else ""
        source = f"rule {case.now.rule}" if case.now.hint.get("flag") == flag else "servers/sglang/flags.yaml"
        hinted = filled(str(case.now.hint.get("text")), case.now.facts)
        why = hinted if case.now.hint.get("flag") == flag and "…" not in hinted else entry["why"]
        if value is not None and _host_figures(case, entry) is not None:
            why = _of_host(case)
            if (_ranks(case) or 1) > 1 and float(value) == entry["least"]:
                notes.append(f"It is the least that {flag} takes, and may be too much still for {_ranks(case)} ranks.")
        if value is None:
            notes.append(f"The log has no figure that a number for {flag} could rest on.")
        minimum = value is not None and flag == _FRACTION and case.now.facts.get("minimum") is not None
        sure = case.sure("direction" if value is None else "message" if minimum else "figures")
        change = Change(flag, old, value, filled(str(why), case.now.facts), sure, source)
        return Step(f"{verb} {flag}{to}{now}.", (change,), tuple(notes))
    summary = str(case.now.hint.get("text") or case.head["remedy"]["advice"])
    if notes:
        notes.append("No value of a flag is left that could help.")
    return Step(summary, (), tuple(notes), stop="nothing left to try")


def _entries(case: Case) -> list[Mapping[str, Any]]:
    """The flags to try: the one that the message names, then the label's."""
    entries = case.servers.memory(case.now.label, case.setting.version)
    used = [item for item in entries if not _is_unused(case, item)]
    hint = case.now.hint
    if not hint.get("flag") or not hint.get("direction"):
        return used
    known = next((item for item in entries if item["flag"] == hint["flag"]), None)
    base = known or {"why": hint["text"], "least": 0, "factor": 2 if hint["direction"] == "raise" else 0.5}
    first = {**base, "flag": hint["flag"], "direction": hint["direction"], "only_if_set": _is_unused(case, base)}
    return [first, *(item for item in used if item["flag"] != hint["flag"])]


def _is_unused(case: Case, entry: Mapping[str, Any]) -> bool:
    """Whether the launch is known and has not switched on what a flag is about."""
    switch = str(case.value(entry["needs"])).lower() if "needs" in entry else "true"
    return switch == "false" or (switch == "none" and bool(case.launch.flags))


def _next(case: Case, entry: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The next value of a flag (None: only the direction is known), or why there is none."""
    flag = entry["flag"]
    if flag == _FRACTION:
        return _next_fraction(case, entry)
    tried = [number for number in (_number(_value(attempt, flag)) for attempt in case.attempts) if number is not None]
    now = _number(case.value(flag))
    if flag == "--tp-size":
        return _next_tp(case, now or 1)
    if (figures := _host_figures(case, entry)) is not None:
        return _fitting(case, entry, *figures)
    if now is None or now <= 0:
        return None, None
    new = now * entry["factor"]
    if new < entry["least"] or new in tried or (entry.get("most") and new > entry["most"]):
        return None, f"{flag} has no value left: {now:g} is at its end."
    return str(math.ceil(new) if float(now).is_integer() else round(new, 2)), None


def _is_off(value: str | None) -> bool:
    """Whether a value says that nothing is used of what the flag is about: there is nothing to lower."""
    number = _number(value)
    return number is not None and number <= 0


def _host_figures(case: Case, entry: Mapping[str, Any]) -> tuple[float, float] | None:
    """What a rank asked for and what was free of the host's memory, in GB, if both are told and bound the flag."""
    wanted, free = (_gib(case.now.facts.get(name)) for name in ("wanted", "free"))
    return (wanted, free) if entry.get("fits") and wanted and free is not None else None


def _fitting(case: Case, entry: Mapping[str, Any], wanted: float, free: float) -> tuple[str | None, str | None]:
    """The value with which all ranks of the machine fit into what was free, or the least one if one rank fits with it.

    Ranks that were quicker may have taken their part before the figure was read, so that no more than this is sure.
    """
    flag, least, usable = entry["flag"], entry["least"], free * (1 - _ROOM)
    share = usable / (_ranks(case) or 1)
    if entry["fits"] == "size":
        new = float(math.floor(share))
    else:
        now = _number(case.value(flag) or case.servers.default(flag, case.setting.version))
        if now is None:
            return None, None
        new = math.floor(100 * now * share / wanted) / 100
        new = least if new < least < now and wanted * least / now <= usable else new
    if new < least:
        return None, f"{flag} has no value left: {free:g} GB of host memory are too little for {least:g}."
    return f"{new:g}", None


def _of_host(case: Case) -> str:
    """What the message says was free, and for how many ranks."""
    ranks = _ranks(case)
    for_whom = f", for {ranks} ranks" if ranks and ranks > 1 else "" if ranks else ", for all ranks of this machine"
    return f"{case.now.facts['free']} of host memory were free{for_whom}"


def _ranks(case: Case) -> int | None:
    """How many ranks one machine has; None if the launch does not tell."""
    tp, pp, dp, nodes = (_number(case.value(flag)) for flag in ("--tp-size", "--pp-size", "--dp-size", "--nnodes"))
    if tp is None and case.launch.command is None:
        return None
    replicas = 1 if str(case.value("--enable-dp-attention")).lower() == "true" else dp or 1
    return max(1, int((tp or 1) * (pp or 1) * replicas / (nodes or 1)))


def _next_tp(case: Case, now: float) -> tuple[str | None, str | None]:
    count = case.launch.facts.get("gpu_count")
    if count is None:
        return None, None
    return (f"{2 * int(now)}", None) if 2 * now <= int(count) else (None, f"--tp-size {now:g} already uses all GPUs.")


def _next_fraction(case: Case, entry: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """A fraction between those that were too small and those that were too large."""
    low, high = _bounds(case)
    now = _number(case.value(_FRACTION)) or _number(case.now.facts.get("fraction"))
    if entry["direction"] == "raise":
        minimum = _number(case.now.facts.get("minimum"))
        if now is None and minimum is None:
            return None, None
        new = _ceil(minimum + _GRAIN) if minimum is not None else round((now or 0) + entry.get("step", 0.05), 3)
        new = new if new <= entry.get("most", 0.95) else _between(low, entry.get("most", 0.95) + _GRAIN)
    else:
        if now is None:
            return None, None
        new = round(now - max(entry.get("step", 0.05), _missing(case)), 3)
        new = new if new >= entry.get("least", 0.3) else _between(entry.get("least", 0.3) - _GRAIN, high)
    if (low is not None and new <= low) or (high is not None and new >= high):
        new = _between(low, high)
    if math.isnan(new):
        ends = [
            f"{low:g} is too small" if low is not None else "",
            f"{high:g} is too large" if high is not None else "",
        ]
        told = " and ".join(end for end in ends if end)
        return None, f"No value of {_FRACTION} works: {told}; the model needs more GPU memory, or less of everything."
    return f"{new:g}", None


def _bounds(case: Case) -> tuple[float | None, float | None]:
    """The largest fraction that was too small, and the smallest that was too large."""
    low: float | None = None
    high: float | None = None
    for attempt in case.attempts:
        entries = case.servers.memory(attempt.label, case.setting.version)
        own = next((item["direction"] for item in entries if item["flag"] == _FRACTION), None)
        direction = attempt.hint["direction"] if attempt.hint.get("flag") == _FRACTION else own
        value = _number(_value(attempt, _FRACTION)) or _number(attempt.facts.get("fraction"))
        minimum = _number(attempt.facts.get("minimum"))
        if direction == "raise" and (value is not None or minimum is not None):
            low = max(number for number in (low, value, minimum) if number is not None)
        if direction == "lower" and value is not None:
            high = min(number for number in (high, value) if number is not None)
    return low, high


def _between(low: float | None, high: float | None) -> float:
    """The middle of what is left, on a grid of 0.01; not a number where nothing is left."""
    if low is None or high is None:
        return math.nan
    middle = round(math.floor((low + high) / 2 / _GRAIN + 1e-6) * _GRAIN, 2)
    middle = middle if middle > low + 1e-9 else round(middle + _GRAIN, 2)
    return middle if low + 1e-9 < middle < high - 1e-9 else math.nan


def _missing(case: Case) -> float:
    """The part of the GPU that was missing, with a little to spare; 0 where the log does not say."""
    facts = case.now.facts
    wanted, free, total = (_gib(facts.get(name)) for name in ("wanted", "free", "total"))
    if wanted is None or not total:
        return 0.0
    return _ceil((max(0.0, wanted - (free or 0.0)) + _SPARE) / total)


def _ceil(number: float) -> float:
    return round(math.ceil(round(number / _GRAIN, 6)) * _GRAIN, 2)


def _value(attempt: Attempt, flag: str) -> str | None:
    value = attempt.launch.flags.get(flag, attempt.launch.facts.get(flag))
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _gib(text: Any) -> float | None:
    found = re.fullmatch(r"([\d.]+) ?([KMG]i?B)", str(text or ""))
    return float(found[1]) * _UNITS[found[2]] if found else None
