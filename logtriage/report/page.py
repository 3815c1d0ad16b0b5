"""What stands where on the HTML page, from report data: the chain, the log around it, the stages over time, the tries.

It lays out and counts; markup is in ``templates/report.html``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from logtriage.records import STAGES
from logtriage.report import view
from logtriage.report.layout import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TONES = {"failed": "bad", "degenerate": "bad", "healthy": "good", "incomplete": "warn", "unknown": "warn"}
"""How an outcome looks."""

_ROLES = {
    "unclear": "not explained by the cause", "supporting": "points at a cause", "trouble": "looks like trouble",
    "outcome": "says how it went",
}  # fmt: skip
_ROLES_IF_HEALTHY = {**_ROLES, "supporting": "looks like trouble, but nothing failed"}
_MAX_TEXT = 700  # letters shown of a line
_MAX_UNCLEAR = 50
_MAX_TRIED = 40  # launches in the matrix
_MAX_ROWS = 24  # ranks shown over time
_LEAST = 0.05  # of the width, for each stage


def of(data: dict[str, Any], number: int) -> dict[str, Any]:
    """Return all that the template needs for the report with that number on the page."""
    chain = list(_chain(data, number))
    return {
        **data,
        "id": f"r{number}",
        "is_known": data["verdict"]["decided_by"] != "none",
        "tone": TONES[data["verdict"]["outcome"]],
        "root": _root(data),
        "blamed": view.blamed(data),
        "launch_facts": view.launch(data),
        "launch_notes": view.launch_notes(data),
        "notes": view.notes(data),
        "ruled_out": view.ruled_out(data),
        "others": view.others(data),
        "unclear": data["unexplained"][:_MAX_UNCLEAR],
        "changes": [(item, *view.change(item, data["advice"]["summary"])) for item in data["advice"]["changes"]],
        "is_second": data["advice"]["action"] in view.SECOND,
        "chain": chain,
        "logs": list(_logs(data, number, chain)),
        "timeline": _timeline(data.get("timeline")),
        "tried": _tried(data.get("attempts") or []),
    }


def _root(data: dict[str, Any]) -> dict[str, Any] | None:
    root = data["root_cause"]
    if root is None:
        return None
    return {**root, "pieces": _pieces(root["text"], root["span"]), "where": [view.place(root), *view.where(data)]}


def _pieces(text: str, span: Sequence[int]) -> tuple[str, str, str]:
    """The text before the hit, the hit, and the text behind it; of a long line, around the hit."""
    shown, shift = cut(text, tuple(span), limit=_MAX_TEXT)
    start, end = (min(max(0, at - shift), len(shown)) for at in span)
    return shown[:start], shown[start:end], shown[end:]


def _anchor(number: int, data: dict[str, Any], item: dict[str, Any]) -> str:
    return f"r{number}-{data['source']['files'].index(item['file'])}-{item['line']}"


def _chain(data: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The cause and what followed from it, in the order of the lines; nothing where no cause is known."""
    if data["root_cause"] is None:
        return
    shown = {(item["file"], item["line"]) for item in data.get("excerpt") or []}
    root = data["root_cause"]
    steps = [{**root, "label": data["verdict"]["label"], "because": "", "more": 0, "rule": ""}]
    steps += [{**items[0], "more": len(items) - 1} for items in view.effects(data)]
    for position, step in enumerate(steps, 1):
        is_shown = (step["file"], step["line"]) in shown
        yield {
            **step,
            "number": position,
            "text": cut(step["text"].strip(), limit=160)[0],
            "href": _anchor(number, data, step) if is_shown else None,
        }


def _logs(data: dict[str, Any], number: int, chain: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of each file, with gaps between them; the file of the cause comes first."""
    excerpt = data.get("excerpt") or []
    is_healthy = data["verdict"]["outcome"] == "healthy"
    numbers = {(step["file"], step["line"]): step for step in chain}
    files = list(dict.fromkeys(item["file"] for item in excerpt))
    if data["root_cause"]:
        files.sort(key=lambda name: name != data["root_cause"]["file"])
    for name in files:
        rows: list[dict[str, Any]] = []
        last = None
        anchors: set[str] = set()
        for item in (item for item in excerpt if item["file"] == name):
            if last is not None and item["line"] > last + 1:
                rows.append({"gap": item["line"] - last - 1})
            last = item["line"]
            anchor = _anchor(number, data, item)
            step = numbers.get((item["file"], item["line"])) if item["role"] in ("root", "effect") else None
            span = data["root_cause"]["span"] if item["role"] == "root" else (0, 0)
            rows.append(
                {
                    **item,
                    "id": None if anchor in anchors else anchor,
                    "step": step,
                    "pieces": _pieces(item["text"], span),
                    "says": (_ROLES_IF_HEALTHY if is_healthy else _ROLES).get(item["role"]),
                }
            )
            anchors.add(anchor)
        yield {"name": name, "rows": rows}


def _timeline(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """The rows as parts of the width. A short stage gets some width all the same, so the scale is not even."""
    if not data:
        return None
    rows = _rows(data)
    knots = _knots(rows, data["root"])
    root = data["root"]
    shown = []
    for row in rows:
        ends = [stage["at"] for stage in row["stages"][1:]] + [row["end"]]
        parts = [
            {
                "stage": stage["stage"],
                "index": STAGES.index(stage["stage"]),
                "left": _share(stage["at"], knots),
                "width": _share(end, knots) - _share(stage["at"], knots),
                "took": _took(end - stage["at"], data["unit"]),
                "at": _took(stage["at"], data["unit"]),
            }
            for stage, end in zip(row["stages"], ends, strict=True)
        ]
        shown.append({**row, "parts": parts, "failed": _share(root, knots) if row["is_root"] else None})
    marked = next((row for row in shown if row["is_root"]), shown[0])
    return {
        "rows": shown,
        "more": len(data["rows"]) - len(rows),
        "files": len({row["file"] for row in rows}),
        "marked": marked,
        "unit": data["unit"],
    }


def _rows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """As many rows as fit: that of the cause, one of each file for each stage that its ranks reached, then others."""
    rows: list[dict[str, Any]] = data["rows"]
    if len(rows) <= _MAX_ROWS:
        return rows
    ways = [(row["file"], row["stages"][-1]["stage"]) for row in rows]
    order = sorted(range(len(rows)), key=lambda at: (not rows[at]["is_root"], ways.index(ways[at]) != at, at))
    return [rows[at] for at in sorted(order[:_MAX_ROWS])]


def _knots(rows: Sequence[dict[str, Any]], root: float | None) -> list[tuple[float, float]]:
    """Points of the scale: a place and its share of the width, for the first start of each stage and the end."""
    starts: dict[str, float] = {}
    for row in rows:
        for stage in row["stages"]:
            starts[stage["stage"]] = min(stage["at"], starts.get(stage["stage"], stage["at"]))
    places = sorted({*starts.values(), *(row["end"] for row in rows[:1]), max(row["end"] for row in rows), root or 0})
    total = (places[-1] - places[0]) or 1.0
    widths = [max((after - before) / total, _LEAST) for before, after in pairwise(places)] or [1.0]
    whole, share, knots = sum(widths), 0.0, [(places[0], 0.0)]
    for place, width in zip(places[1:], widths, strict=False):
        share += width / whole
        knots.append((place, share))
    return knots


def _share(place: float, knots: Sequence[tuple[float, float]]) -> float:
    """The part of the width, in percent, at which a place stands."""
    for (start, low), (end, high) in pairwise(knots):
        if place <= end:
            return round(100 * (low + (high - low) * max(0.0, place - start) / (end - start)), 2)
    return 100.0


def _took(amount: float, unit: str) -> str:
    if unit == "lines":
        return f"{amount:.0f} lines"
    minutes, seconds = divmod(round(amount), 60)
    if minutes:
        return f"{minutes} min {seconds} s"
    return f"{seconds} s" if amount >= 1 or not amount else f"{amount:.1f} s"


def _tried(attempts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The elimination matrix: for each flag that was blamed or varied, each value with the launches that had it."""
    if not attempts:
        return None
    left_out, attempts = len(attempts[:-_MAX_TRIED]), attempts[-_MAX_TRIED:]
    blamed = list(dict.fromkeys(attempt["flag"] for attempt in attempts if attempt["flag"]))
    varied = [name for name in dict.fromkeys(name for attempt in attempts for name in attempt["flags"])
              if len({attempt["flags"].get(name) for attempt in attempts}) > 1]  # fmt: skip
    launches = [{**attempt, "tone": TONES[attempt["outcome"]]} for attempt in attempts]
    return {
        "launches": launches,
        "left_out": left_out,
        "blamed": [row for name in blamed for row in _values(name, attempts)],
        "varied": [row for name in varied if name not in blamed for row in _values(name, attempts)],
    }


def _values(flag: str, attempts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row for each value of a flag, with the numbers of the launches that had it."""
    values = list(dict.fromkeys(_value(attempt, flag) for attempt in attempts))
    for position, value in enumerate(values):
        had = [number for number, attempt in enumerate(attempts, 1) if _value(attempt, flag) == value]
        yield {"flag": flag, "first": not position, "span": len(values), "value": value, "had": had}


def _value(attempt: dict[str, Any], flag: str) -> str | None:
    """The value of a flag in a launch; that of a variable is known only where it was blamed."""
    value: str | None = attempt["flags"].get(flag)
    return attempt["value"] if value is None and attempt["flag"] == flag else value
