"""Values that no list of choices holds: numbers, JSON, and those that start on some GPUs only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from logtriage.advice import history
from logtriage.advice.preflight.finding import FAILS, Finding
from logtriage.engine.conditions import holds, in_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from logtriage.advice.preflight.finding import Question

_MOST = 65535
_LABEL = "unsupported-config"


def check(question: Question) -> Iterator[Finding]:
    """Yield values that are no numbers or no JSON where they must be, and those that the GPU is no match for."""
    known = question.known
    for flag in known["whole_numbers"]:
        text = question.flag(flag)
        if text is not None and "$" not in text and not text.removeprefix("-").isdecimal():
            what = f"{flag} takes a whole number, not {text!r}"
            yield Finding("flag-number", FAILS, what, flag=flag, value=text, label=_LABEL)
        elif flag in known["ports"] and question.number(flag, 0) > _MOST:
            what = f"{flag} takes a port up to {_MOST}, not {text}"
            yield Finding("flag-number", FAILS, what, flag=flag, value=text, label=_LABEL)
    for flag in known["json"]:
        text = question.flag(flag)
        if text is not None and "$" not in text and (fault := _json_fault(text)):
            what = f"{flag} takes JSON, and its value is none: {fault}"
            yield Finding("flag-json", FAILS, what, flag=flag, value=text, label=_LABEL)
    for demand in known["demands"]:
        yield from _demand(question, demand)


def _json_fault(text: str) -> str | None:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _demand(question: Question, demand: Mapping[str, Any]) -> Iterator[Finding]:
    """What SGLang itself refuses on a GPU. The quantization counts wherever it is told."""
    flag = demand["flag"]
    facts = question.launch.facts
    value = question.flag(flag) or facts.get(flag.removeprefix("--"))
    if value not in demand["values"]:
        return
    if demand["versions"] and (question.version is None or not in_range(question.version, demand["versions"])):
        return
    test = {name: wanted for name, wanted in demand["sm"].items() if wanted is not None}
    for sm in question.sms:
        if holds({"sm": test}, {"sm": sm}) is False:
            what = f"{flag} {value} takes {_words(test)}, and this GPU is SM{sm}"
            only = set(test.get("in", ()))
            label = "sm100-only-kernel" if only and only <= history.SM100 else "arch-unsupported-kernel"
            yield Finding("gpu-demand", FAILS, what, source=demand["source"], flag=flag, value=str(value), label=label,
                          confidence=0.9)  # fmt: skip


def _words(test: Mapping[str, Any]) -> str:
    if "at_least" in test:
        return f"SM{test['at_least']} or later"
    return " or ".join(f"SM{sm}" for sm in test["in"])
