"""The report as data, in the published shape ``logtriage/report/v1``. Secrets are taken out here, last of all."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import TYPE_CHECKING, Any

from logtriage._version import __version__
from logtriage.redact import Redactor
from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.node_records import Node
    from logtriage.records import Advice, Attempt, Explained, Launch, Line, Match, Report

SCHEMA = "logtriage/report/v1"

CONTEXT = 2
"""Lines shown before and after the root-cause line."""

_FRAMES = 3
_QUOTED_QUOTE = "'\"'\"'"  # how shlex writes a single quote
_SHELL_WORD = r"""(?:[^\s'"]|'[^']*'|"(?:\\.|[^"\\])*")+"""
_LIBRARIES = ("flashinfer", "sgl_kernel", "torch", "triton", "transformers", "python")


def to_dict(
    report: Report, *, redact: bool = True, detailed: bool = False, earlier: Sequence[Attempt] = ()
) -> dict[str, Any]:
    """Return the report as JSON-like data; `redact=False` leaves secrets in.

    `detailed` adds the log around the cause, the stages of every rank over time, and the `earlier` launches.
    """
    redactor = Redactor(report.secrets)
    if redact:
        report = report.replace(lines=_shown(report.lines, redactor))
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": {"version": __version__, "rules": report.rules_digest},
        "source": _source(report),
        "launch": _launch(report.launch),
        "verdict": _verdict(report),
        "root_cause": _root_cause(report),
        "evidence": list(_evidence(report)),
        "explained": [_explained(report, item) for item in report.incident.explained],
        "unexplained": [_match(report, match) for match in report.incident.unexplained],
        "advice": _advice(report.advice),
        "nodes": [_node(node) for node in report.nodes],
        "notes": list(report.notes),
    }
    if detailed:
        from logtriage.report import detail

        data["excerpt"] = detail.excerpt(report)
        data["timeline"] = detail.timeline(report)
        data["attempts"] = detail.attempts(report, earlier)
    if not redact:
        return data
    for part in (data["launch"], data["advice"]):
        if part["command"]:
            part["command"] = redactor.argv(part["command"])[0]
    if data["advice"]["command_text"]:
        data["advice"]["command_text"] = redact_shell(data["advice"]["command_text"], redactor)
    result = redactor.value(data)
    assert isinstance(result, dict)  # noqa: S101 - a dict goes in
    return result


def redact_shell(text: str, redactor: Redactor) -> str:
    """Return a shell command with `$NAME` for each secret, open to the shell where the secret stood in quotes."""
    if _QUOTED_QUOTE in text:
        text = re.sub(_SHELL_WORD, lambda word: _without_secrets(word[0], redactor), text)
    shown = redactor.argv([text])[0][0]
    return re.sub(r"(?<=[\s=])'(\$[A-Z_][A-Z0-9_]*)'", r'"\1"', shown) if shown != text else text


def _without_secrets(word: str, redactor: Redactor) -> str:
    """A word of a shell command whose own quotes hide from the rules what is quoted inside it: JSON or a dict, say."""
    if _QUOTED_QUOTE not in word:
        return word
    import shlex  # hardly any command needs it

    try:
        (plain_word,) = shlex.split(word)
    except ValueError:  # it is no shell's word
        return word
    (shown,), names = redactor.argv([plain_word])
    if shown == plain_word:
        return word
    ours = "|".join(map(re.escape, names)) or "(?!)"
    return '"' + re.sub(rf'[\\"`]|\$(?!(?:{ours})\b)', r"\\\g<0>", shown) + '"'


def _shown(lines: Sequence[Line], redactor: Redactor) -> Sequence[Line]:
    """Return the lines without the secrets that only the lines around them give away."""
    texts = redactor.across(lines)
    return [line._replace(text=texts.get(at, line.text)) for at, line in enumerate(lines)] if texts else lines


def dumps(data: dict[str, Any], *, one_line: bool = False) -> str:
    """Return report data as JSON text, ending with a line feed."""
    return plain.in_json(json.dumps(data, indent=None if one_line else 1, ensure_ascii=False)) + "\n"


def _source(report: Report) -> dict[str, Any]:
    counts = [file.lines for file in report.files]
    return {
        "files": [file.name for file in report.files],
        "bytes": sum(file.size for file in report.files),
        "lines": None if None in counts else sum(count or 0 for count in counts),
        "launches": report.launches if report.lines else 0,
    }


def _launch(launch: Launch) -> dict[str, Any]:
    facts = launch.facts
    gpu = {"name": facts.get("gpu_name"), "sm": facts.get("sm"), "count": facts.get("gpu_count")}
    return {
        "server": "sglang",
        "version": facts.get("server_version"),
        "command": list(launch.command) if launch.command else None,
        "env": dict(launch.env),
        "flags": dict(launch.flags),
        "resolved": {k: v for k, v in launch.resolved.items() if k.endswith(("_backend", "_dtype", "quantization"))},
        "gpu": gpu if any(value is not None for value in gpu.values()) else None,
        "cuda": {"toolkit": facts.get("toolkit"), "driver": facts.get("driver")},
        "libraries": {name: facts[name] for name in _LIBRARIES if name in facts},
    }


def _verdict(report: Report) -> dict[str, Any]:
    verdict = report.verdict
    return {
        "label": verdict.label,
        "title": report.label_title,
        "confidence": round(verdict.confidence, 2),
        "decided_by": verdict.decided_by,
        "rule": verdict.rule,
        "outcome": verdict.outcome,
        "stage": verdict.stage,
        "retry": verdict.retry,
        "because": verdict.because,
        "fingerprint": report.fingerprint,
        "words": list(verdict.words),
        "candidates": [
            {
                "label": candidate.label,
                "confidence": candidate.confidence,
                "because": candidate.because,
                "line": None if candidate.line is None else report.lines[candidate.line].number,
            }
            for candidate in verdict.candidates
        ],
    }


def _root_cause(report: Report) -> dict[str, Any] | None:
    root = report.root
    if root is None:
        return None
    line = report.lines[root.line]
    return {
        **_place(report, root.line),
        "byte": line.byte,
        "text": line.text,
        "span": list(root.span),
        "rank": line.rank or report.events[line.event].rank or None,
        "node": root.node,
        "local_rank": root.local_rank,
        "component": root.component,
        "flag": root.flag,
        "value": root.value,
        "facts": dict(root.facts),
    }


def _evidence(report: Report) -> Iterator[dict[str, Any]]:
    """The lines to read: the frames and lines around the root; what else looks like trouble or points at a label.

    Of a log that shows nothing of the kind, its last lines: they tell how far the launch came.
    """
    shown: set[int] = set()
    if report.root is not None:
        for at, role in _around(report, report.root.line):
            shown.add(at)
            yield {**_place(report, at), "text": report.lines[at].text, "role": role}
    for at in report.verdict.lines:
        if at not in shown:
            shown.add(at)
            yield {**_place(report, at), "text": report.lines[at].text, "role": "supporting"}
    for match in report.incident.supporting:
        if match.line not in shown:
            shown.add(match.line)
            yield {**_place(report, match.line), "text": report.lines[match.line].text, "role": "supporting"}
    for at in report.incident.troubles[:8]:
        if at not in shown:
            shown.add(at)
            yield {**_place(report, at), "text": report.lines[at].text, "role": "trouble"}
    for match in report.incident.outcomes[:3]:
        if match.line not in shown:
            shown.add(match.line)
            yield {**_place(report, match.line), "text": report.lines[match.line].text, "role": "outcome"}
    if not shown:
        for at in [at for at, line in enumerate(report.lines) if line.text.strip()][-CONTEXT:]:
            yield {**_place(report, at), "text": report.lines[at].text, "role": "context"}


def _around(report: Report, root: int) -> Iterator[tuple[int, str]]:
    """The last frames above the root line and the lines around it."""
    event = report.events[report.lines[root].event]
    frames = [at for at in range(event.first, root) if report.lines[at].role == "frame"][-_FRAMES:]
    near = range(max(0, root - CONTEXT), min(len(report.lines), root + CONTEXT + 1))
    row, file = report.lines[root].row, report.lines[root].file
    for at in sorted({*frames, *near}):
        line = report.lines[at]
        far = abs(line.row - row) > CONTEXT and line.role != "frame"
        if at == root or (line.text and line.file == file and not far):
            yield at, "root" if at == root else "frame" if line.role == "frame" else "context"


def _explained(report: Report, item: Explained) -> dict[str, Any]:
    return {**_match(report, item.match), "because": item.because}


def _match(report: Report, match: Match) -> dict[str, Any]:
    line = report.lines[match.line]
    rank = report.events[match.event].rank or None
    return {
        **_place(report, match.line),
        "rule": match.rule["id"],
        "label": match.label,
        "rank": rank,
        "text": line.text,
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "file": node.file,
        "node": node.number,
        "first_time": _time(node.first_time),
        "last_time": _time(node.last_time),
        "skew_s": node.skew,
        "stage": node.stage,
        "label": node.label,
        "outcome": node.outcome,
        "silent": bool(node.silent),
        "because": node.silent or None,
    }


def _time(seconds: float | None) -> str | None:
    """A time as the log tells it: with its date, if it tells one."""
    if seconds is None:
        return None
    days, second = divmod(int(seconds), 86400)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{date.fromordinal(days).isoformat()}T{clock}" if days else clock


def _place(report: Report, at: int) -> dict[str, Any]:
    line = report.lines[at]
    return {"file": report.files[line.file].name, "line": line.number}


def _advice(advice: Advice) -> dict[str, Any]:
    return {
        "action": advice.action,
        "summary": advice.summary,
        "changes": [
            {
                "flag": change.flag,
                "from": change.old,
                "to": change.new,
                "forced": change.forced,
                "removed": change.removed,
                "why": change.why,
                "confidence": round(change.confidence, 2),
                "source": change.source,
            }
            for change in advice.changes
        ],
        "command": list(advice.command) if advice.command else None,
        "command_text": advice.command_text,
        "ruled_out": [dict(item) for item in advice.ruled_out],
        "notes": list(advice.notes),
    }
