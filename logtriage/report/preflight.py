"""What preflight found, as data (``logtriage/preflight/v1``) and as rows. Secrets are taken out here, last of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage._version import __version__
from logtriage.redact import Redactor
from logtriage.report.json_v1 import redact_shell
from logtriage.report.screen import COMMAND, INDENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.advice.preflight.finding import Finding
    from logtriage.advice.preflight.judge import Outlook
    from logtriage.environment import Environment
    from logtriage.records import Change
    from logtriage.report.screen import Row

SCHEMA = "logtriage/preflight/v1"

_HEADLINES = {
    "will-fail": ("bad", "will fail", "this launch would be wasted"),
    "known-garbage": ("bad", "known garbage", "the server would start and answer nonsense"),
    "risk": ("warn", "risk", "nothing is known that must fail, but look at this first"),
    "unknown": ("good", "nothing found that will fail", "some things could not be looked at"),
    "ok": ("good", "nothing found that will fail", "all that was looked at is in order"),
}
_KEYS = {"will-fail": "will-fail", "known-garbage": "garbage", "risk": "risk", "unknown": "unknown", "ok": "ok"}
_STYLES = {"will-fail": "bad", "known-garbage": "bad", "risk": "warn", "unknown": "dim", "ok": "good"}
_INDENT = " " * INDENT


def to_dict(
    outlook: Outlook, secrets: Sequence[Mapping[str, Any]], digest: str, *, redact: bool = True
) -> dict[str, Any]:
    """Return an outlook as JSON-like data; `redact=False` leaves secrets in."""
    launch = outlook.launch
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": {"version": __version__, "rules": digest},
        "launch": {
            "server": "sglang",
            "version": _text(launch.facts.get("server_version")),
            "command": list(launch.command) if launch.command else None,
            "env": dict(launch.env),
            "flags": dict(launch.flags),
            "sm": launch.facts.get("sm"),
        },
        "environment": _environment(outlook.environment),
        "outlook": outlook.severity,
        "findings": [_finding(finding) for finding in outlook.findings],
        "changes": [_change(change) for change in outlook.changes],
        "command": list(outlook.command) if outlook.command else None,
        "command_text": outlook.command_text,
    }
    if not redact:
        return data
    redactor = Redactor(secrets)
    for part in (data["launch"], data):
        if part["command"]:
            part["command"] = redactor.argv(part["command"])[0]
    if data["command_text"]:
        data["command_text"] = redact_shell(data["command_text"], redactor)
    result = redactor.value(data)
    assert isinstance(result, dict)  # noqa: S101 - a dict goes in
    return result


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "severity": finding.severity,
        "what": finding.what,
        "why": finding.why,
        "source": finding.source,
        "flag": finding.flag,
        "value": finding.value,
        "label": finding.label,
        "confidence": finding.confidence,
        "instead": [_change(change) for change in finding.instead],
    }


def _change(change: Change) -> dict[str, Any]:
    return {"flag": change.flag, "from": change.old, "to": change.new, "why": change.why,
            "confidence": change.confidence, "source": change.source}  # fmt: skip


def _environment(found: Environment) -> dict[str, Any]:
    model = found.model
    return {
        "where": found.where,
        "platform": found.platform,
        "gpus": None if found.gpus is None else [
            {"index": gpu.index, "name": gpu.name, "sm": gpu.sm, "memory": gpu.memory, "free": gpu.free,
             "holders": [{"pid": item.pid, "name": item.name, "used": item.used} for item in gpu.holders]}
            for gpu in found.gpus
        ],
        "cuda": {"driver": found.driver, "driver_cuda": found.driver_cuda, "torch_cuda": found.torch_cuda,
                 "nvcc": _compilers(found.nvcc), "ptxas": _compilers(found.ptxas)},
        "python": found.python,
        "packages": found.packages,
        "model": None if model is None else {
            "path": model.path, "architecture": model.architecture, "quantization": model.quantization,
            "weight_bytes": model.weight_bytes, "sizes": model.config,
        },
        "key": found.key(),
    }  # fmt: skip


def _compilers(found: Any) -> list[dict[str, Any]] | None:
    if found is None:
        return None
    return [{"found": item.found, "path": item.path, "version": item.version} for item in found]


def rows(data: dict[str, Any], *, verbose: bool = False) -> Iterator[Row]:
    """Yield the rows of a report on a command that was not launched; `verbose` shows what is in order, line by line."""
    style, head, meaning = _HEADLINES[data["outlook"]]
    yield [(style, head), ("plain", f": {meaning}")]
    yield [("dim", "  --> "), ("plain", ", ".join(_looked_at(data)))]
    yield []
    for finding in data["findings"]:
        if finding["severity"] != "ok" or verbose:
            yield from _rows_of(finding)
    fine = [finding for finding in data["findings"] if finding["severity"] == "ok"]
    if fine and not verbose:
        yield [("good", f"  {'ok':<10}"), ("plain", "; ".join(finding["what"] for finding in fine))]
    if data["changes"] and not data["command_text"]:
        yield []
        yield [("dim", "  No command is offered: with these changes, something in it would still fail.")]
    if data["command_text"]:
        yield []
        yield [("key", "  run       "), (COMMAND, data["command_text"])]


def _looked_at(data: dict[str, Any]) -> Iterator[str]:
    """The launch in short: version, GPUs, model."""
    version, found = data["launch"]["version"], data["environment"]
    yield f"sglang {version}" if version else "sglang of unknown version"
    gpus = found["gpus"]
    if gpus is None:
        sm = data["launch"]["sm"]
        yield f"GPU (SM{sm}), number not known" if sm else "GPUs not known"
    else:
        kinds = {(str(gpu["name"] or "GPU"), gpu["sm"]) for gpu in gpus}
        names = " + ".join(f"{name} (SM{sm})" if sm else name for name, sm in sorted(kinds, key=str))
        yield f"{len(gpus)} x {names}" if gpus else "no GPU"
    model = found["model"]
    name = data["launch"]["flags"].get("--model-path")
    told = [part for part in ((model or {}).get("architecture"), (model or {}).get("quantization")) if part]
    told = [part for part in told if part != "unquant"]
    if name:
        yield f"{name} ({', '.join(told)})" if told else name


def _rows_of(finding: dict[str, Any]) -> Iterator[Row]:
    severity = finding["severity"]
    label = f"  {finding['label']}" if finding["label"] and severity in ("will-fail", "known-garbage") else ""
    style = "strong" if severity in ("will-fail", "known-garbage") else "plain"
    yield [(_STYLES[severity], f"  {_KEYS[severity]:<10}"), (style, finding["what"]), ("dim", label)]
    source = f"({finding['source']})" if finding["source"] else ""
    if finding["why"] or (source and severity != "unknown"):
        yield [("plain", f"{_INDENT}{finding['why']}"), ("dim", f"{' ' if finding['why'] else ''}{source}")]
    for place, change in enumerate(finding["instead"]):
        verb = "use " if place == 0 else "or  "
        value = f" {change['to']}" if change["to"] not in (None, "true") else ""
        rest = f"  ({change['why']}; {change['confidence']:.0%} sure; {change['source']})"
        yield [("plain", f"{_INDENT}{verb}"), ("strong", f"{change['flag']}{value}"), ("dim", rest)]
