"""Steps for an argument that was refused: the way out that the message names, another spelling, another port."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logtriage.advice import history
from logtriage.advice.case import Step
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.advice.case import Case


_NAMED = "the message itself names this way out"
_INDEXES = ("gpu", "rank", "pid", "other_pid", "exit_code")


def named_way_out(this: Case, summary: str) -> Step | None:
    """The way out that the message names, if it can be taken here."""
    now, servers = this.now, this.servers
    hint = now.hint
    flag = hint.get("flag") or now.facts.get("new_flag")
    value = hint.get("value") or now.facts.get("new_value")
    if hint.get("direction") and now.action == "free-memory":
        return None  # memory has the better number
    if value is not None and flag is None and value in servers.choices(str(now.flag), this.setting.version):
        flag = now.flag
    if flag is None or now.action == "fix-environment":
        return None
    flag = servers.canonical(str(flag))
    if flag in this.pinned:
        return Step(f"{summary} But {flag} is pinned.", stop=f"{flag} is pinned")
    if value is None and servers.is_switch(flag):
        value = "true"
    if value is None and hint.get("direction") == "lower":
        value = _fewer(this, flag)
    value = None if value is None or "…" in str(value) else str(value)
    choices = servers.choices(flag, this.setting.version)
    if value is not None and this.setting.version is not None and choices and value not in choices:
        return None
    if value is not None and history.excluded_by(flag, value, this.ruled_out, servers, this.setting):
        return None
    why = names_way_out(this, flag, value)
    sure = this.sure("direction" if value is None else "message" if why == _NAMED else "rule")
    return Step(summary, (Change(flag, this.value(flag), value, why, sure, f"rule {now.rule}"),))


def names_way_out(this: Case, flag: str, value: str | None) -> str:
    """Who names a way out: the message, if it holds the advised value (of a switch, the flag); else the rule."""
    named = {str(fact) for name, fact in this.now.facts.items() if name not in _INDEXES}
    text = this.now.text.replace("=", " ")
    if value in (None, "true"):
        in_message = flag in text or flag.lstrip("-").replace("-", "_") in text
    else:
        in_message = value in named or f"{flag} {value}" in text
    return _NAMED if in_message else "the rule knows this way out"


def respelt(this: Case, flag: str) -> Step | None:
    """The right spelling of a value or flag that this version does not know, if there is one that can work."""
    servers, version = this.servers, this.setting.version
    value = this.now.value
    listed = re.findall(r"'([^']+)'", str(this.now.facts.get("choices", "")))
    choices = listed or servers.choices(flag, version)
    if value is None or not choices or value in choices:
        return None
    meant = servers.value_renamed(flag, value, version) or servers.closest(value, choices)
    if meant is None or meant not in choices or flag in this.pinned:
        return None
    hit = history.excluded_by(flag, meant, this.ruled_out, servers, this.setting)
    if hit is not None or (this.setting.sm is not None and servers.status_of(flag, meant, this.setting).is_dead):
        return None
    why = f"{value} is no choice of {flag}; {meant} is the nearest one"
    change = Change(flag, value, meant, why, this.sure("rule"), f"rule {this.now.rule}")
    return Step(f"Use {flag} {meant}: {value} is not one of its choices.", (change,))


def unknown_flag(this: Case, flag: str) -> Step | None:
    """What to do about flags that the version does not have: what they are called now, or that they have to go.

    A flag that is only missing in what is known of the server stays: the message has to reject it.
    """
    servers, version = this.servers, this.setting.version
    told = str(this.now.facts.get("choices", ""))
    if told.startswith("--"):
        return Step(f"Write out which flag {flag} stands for: {told}.", stop="a flag has to be chosen by hand")
    refused = [servers.canonical(name) for name in _rejected(this)]
    if not refused and servers.exists(flag, version) is not False:
        return None
    known = servers.flags(version)
    names = list(dict.fromkeys(refused or [flag]))
    which = f"SGLang {version}" if version else "this SGLang"
    instead = "".join(_instead(this, name, known, alone=len(names) == 1) for name in names)
    is_or_are = "which is no flag" if len(names) == 1 else "which are no flags"
    text = f"Remove {' and '.join(names)}, {is_or_are} of {which}{instead}."
    if pinned := [name for name in names if name in this.pinned]:
        return Step(f"{text} But {pinned[0]} is pinned.", stop=f"{pinned[0]} is pinned")
    sure = this.sure("rule")
    why = f"it is no flag of {which}"
    gone = [Change(name, this.value(name), None, why, sure, f"rule {this.now.rule}", removed=True) for name in names]
    return Step(text, tuple(gone))


def _rejected(this: Case) -> list[str]:
    """The flags among the arguments that the message rejects."""
    words = str(this.now.facts.get("arguments", "")).split()
    return [word.partition("=")[0] for word in words if re.match(r"--[A-Za-z]", word)]


def _instead(this: Case, flag: str, known: Sequence[str], *, alone: bool) -> str:
    """What a flag is called now, or which one is spelt like it, as the end of a sentence."""
    new, near = this.servers.renamed(flag, this.setting.version), this.servers.closest(flag, known, 0.85)
    it = "it" if alone else flag
    if new:
        return f"; {it} is {new} now"
    return f"; {near} is spelt like {it}" if near and near != flag else ""


def other_port(this: Case, summary: str) -> Step:
    """Another port than those that were tried; the message cannot know one that is free."""

    flag = this.now.flag or "--port"
    tried = {str(attempt.value) for attempt in this.attempts} | {
        str(this.value(name)) for name in ("--port", "--nccl-port")
    }
    told = this.now.facts.get("port") if flag == "--port" else None
    old = this.now.value or this.value(flag) or (None if told is None else str(told))
    if flag in this.pinned:
        return Step(f"{flag} is pinned: stop the process that holds the port.", stop=f"{flag} is pinned")
    if old is None or not old.isdigit():
        return Step(summary, (Change(flag, old, None, summary, this.sure("direction"), f"rule {this.now.rule}"),))
    new = next(str(port) for port in range(int(old) + 1, int(old) + 1000) if str(port) not in tried)
    why = f"port {old} is taken; any free port will do (`ss -ltn` lists those in use)"
    change = Change(flag, old, new, why, this.sure("figures"), f"rule {this.now.rule}")
    return Step(f"Use another port, such as {flag} {new}, or stop the process that holds {old}.", (change,))


def _fewer(this: Case, flag: str) -> str | None:
    """The smaller number that a parallel size can only be: the GPUs that there are, or one instead of two."""
    now, count = this.value(flag), this.launch.facts.get("gpu_count")
    if flag == "--tp-size" and now is not None and now.isdigit():
        if count is not None and int(count) < int(now):
            return str(count)
        return "1" if now == "2" else None
    return None
