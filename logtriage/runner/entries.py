"""An attempt as data, for the ledger, for `--on-attempt` and for people's scripts; and back to evidence for advice.

Secrets are taken out here: what leaves this module may be written to a file or a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import history
from logtriage.records import Attempt, Launch
from logtriage.redact import Redactor
from logtriage.report import json_v1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.records import Report
    from logtriage.runner.results import Result

SCHEMA = "logtriage/attempt/v1"


def entry(result: Result, run: str, started: str) -> dict[str, Any]:
    """Return what is worth keeping of an attempt, without secrets, as JSON-like data."""
    order, report = result.order, json_v1.to_dict(result.report)
    return {
        "schema": SCHEMA,
        "run": run,
        "number": order.number,
        "command_text": order.text,
        "why": order.why,
        "changed": dict(zip(("flag", "value"), order.changed, strict=True)) if order.changed else None,
        "started": started,
        "seconds": round(result.seconds, 1),
        "stages": [{"stage": stage, "seconds": round(seconds, 1)} for stage, seconds in result.stages],
        "ending": result.ending,
        "because": Redactor(result.report.secrets).text(result.because),
        "exit_code": result.exit_code,
        "log": order.log,
        "stopped": {"signals": list(result.stopped.signals), "left": list(result.stopped.left)}
        if result.stopped else None,
        "smoke": _smoke(result.smoke),
        "speed": _plain(result.speed),
        "report": report,
        "evidence": evidence(history.attempt(result.report, source_of(run, order.number)), result.report),
    }  # fmt: skip


def source_of(run: str, number: int) -> str:
    """Return the name by which reports call an attempt of a run."""
    return f"attempt {number} of run {run}"


def evidence(attempt: Attempt, report: Report) -> dict[str, Any]:
    """Return an attempt as advice needs it, as JSON-like data without secrets."""
    redactor = Redactor(report.secrets)
    launch = attempt.launch
    data = {name: getattr(attempt, name) for name in _FIELDS} | {
        "launch": {name: getattr(launch, name) for name in _LAUNCH}
        | {"command": redactor.argv(launch.command)[0] if launch.command else None, "text": None}
    }
    clean = redactor.value(_plain(data))
    assert isinstance(clean, dict)  # noqa: S101 - a dict goes in
    return clean


def attempt_of(data: Mapping[str, Any]) -> Attempt:
    """Return the evidence that `evidence` has written. Raises KeyError and TypeError for other data."""
    launch = data["launch"]
    return Attempt(
        **{name: data[name] for name in _FIELDS},
        launch=Launch(
            command=tuple(launch["command"]) if launch["command"] else None,
            wrapper=tuple(launch["wrapper"]),
            **{name: launch[name] for name in ("env", "flags", "resolved", "facts", "redirect")},
        ),
    )


_FIELDS = (
    "source", "label", "retry", "action", "outcome", "rule", "text", "flag", "value", "component", "blocks", "hint",
    "facts",
)  # fmt: skip
_LAUNCH = ("wrapper", "env", "flags", "resolved", "facts", "redirect")


def _smoke(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    finding = found.finding
    return {
        "passed": found.passed,
        "because": found.because,
        "finding": None if finding is None else {"kind": finding.kind, "certainty": finding.certainty},
        "answers": len(found.answers),
    }


def _plain(value: Any) -> Any:
    """Records and tuples as JSON has them."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
