"""The end of a run on standard output: what was tried, what each failure rules out, and how to do it by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from logtriage.cli import output
from logtriage.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from logtriage.runner.loop import Outcome
    from logtriage.runner.session import Session

_ROOT = 100
SCHEMA = "logtriage/run/v1"


def show(outcome: Outcome, session: Session, *, as_json: bool) -> None:
    """Print how a run ended."""
    redactor = Redactor(session.secrets)
    if as_json:
        output.write(json.dumps(redactor.value(as_data(outcome, session)), ensure_ascii=False, indent=1) + "\n")
        return
    for line in lines(outcome, session):
        output.say(redactor.text(line))


def as_data(outcome: Outcome, session: Session) -> dict[str, Any]:
    """Return how a run ended as JSON-like data."""
    working = outcome.result
    return {
        "schema": SCHEMA,
        "run": session.run,
        "ledger": session.book.path,
        "state": outcome.state,
        "because": outcome.because,
        "attempts": [dict(entry) for entry in outcome.entries],
        "known": list(outcome.known),
        "working": {
            "attempt": working.order.number,
            "command_text": working.order.text,
            "pid": outcome.attempt.pid if outcome.attempt and session.plan.then != "stop" else None,
            "url": working.order.address.url,
            "log": working.order.log,
        } if working else None,
    }  # fmt: skip


def lines(outcome: Outcome, session: Session) -> Iterable[str]:
    """Yield the lines of the result."""
    yield from table(outcome.entries)
    for text in outcome.known:
        yield f"known: {text}"
    yield from _ruled_out(outcome.entries)
    measured = [entry for entry in outcome.entries if entry["speed"]]
    if measured:
        yield ""
        yield from _ranking(measured)
    yield ""
    yield f"{outcome.state}: {outcome.because}"
    if outcome.advice is not None:
        if outcome.advice.summary not in outcome.because:
            yield f"advice: {outcome.advice.summary}"
        yield from (f"note: {note}" for note in outcome.advice.notes)
        if outcome.advice.command_text:
            yield f"by hand: {outcome.advice.command_text}"
    if outcome.result is not None:
        order = outcome.result.order
        yield f"command: {order.text}"
        if outcome.attempt is not None and session.plan.then != "stop":
            yield f"server: {order.address.url}  pid {outcome.attempt.pid}  log {order.log}"
    yield f"ledger: {session.book.path}  run {session.run}"


def table(entries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield a table of attempts, and below it how each is reproduced by hand."""
    entries = list(entries)
    if not entries:
        return
    rows = [("#", "new in it", "result", "stage", "time")]
    rows += [
        (
            str(entry["number"]),
            " ".join(entry["changed"].values()) if entry["changed"] else entry["why"],
            _result(entry),
            entry["stages"][-1]["stage"] if entry["stages"] else "-",
            f"{entry['seconds']:.0f} s",
        )
        for entry in entries
    ]
    yield from columns(rows)
    for entry in entries:
        yield ""
        root = entry["report"]["root_cause"]
        why = f"{root['text'].strip()[:_ROOT]}  ({entry['log']}:{root['line']})" if root else entry["because"]
        yield f"{entry['number']}: {why}"
        yield f"   {entry['command_text']}"


def columns(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Yield rows, the first of which names the columns, with their cells below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _result(entry: Mapping[str, Any]) -> str:
    label = str(entry["report"]["verdict"]["label"])
    return "works" if entry["ending"] == "ready" and label == "healthy" else label


def _ruled_out(entries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """What the failures rule out, as the last advice has it."""
    last = next((entry for entry in reversed(list(entries)) if entry["report"]["advice"]["ruled_out"]), None)
    if last is None:
        return
    yield ""
    yield "ruled out:"
    for item in last["report"]["advice"]["ruled_out"]:
        named = f"{item['flag']} {item['value']}" if item["flag"] else item["value"]
        yield f"  {named}: {item['why']} ({item['source']})"


def _ranking(measured: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """The working configurations, the fastest first."""
    yield "ranking (tokens per second and seconds to the first token, at 1 and at 32 requests):"
    ranked = sorted(measured, key=lambda entry: -_rate(entry["speed"]))
    for place, entry in enumerate(ranked, start=1):
        speed = entry["speed"]
        cells = [
            "-" if rate is None else f"{rate:.0f} tokens/s, {first:.3f} s"
            for rate, first in (
                (speed["tokens_per_s_1"], speed["first_token_s_1"]),
                (speed["tokens_per_s_32"], speed["first_token_s_32"]),
            )
        ]
        changed = " ".join(entry["changed"].values()) if entry["changed"] else entry["why"]
        yield f"  {place}. attempt {entry['number']}, {changed}: {' | '.join(cells)}  ({speed['method']})"


def _rate(speed: Mapping[str, Any]) -> float:
    return float(speed["tokens_per_s_32"] or speed["tokens_per_s_1"] or 0.0)
