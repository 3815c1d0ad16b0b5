"""The text report as styled pieces, from report data; `text` prints them with or without colours."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from logtriage.report import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

Piece = tuple[str, str]
"""A style name and the text that has it."""

Row = list[Piece]

MAX_TEXT = 400
"""Characters shown of the root-cause line; a longer one is cut around the hit."""

MAX_CONTEXT = 160
"""Characters shown of the lines around it."""

_OUTCOME_STYLE = {
    "healthy": "good",
    "incomplete": "warn",
    "unknown": "warn",
    "failed": "bad",
    "degenerate": "bad",
}
_SHOWN = 6
_INDENT = " " * 12


def rows(data: dict[str, Any], *, verbose: bool = False) -> Iterator[Row]:
    """Yield the rows of a report, top to bottom; `verbose` shows everything that only followed."""
    parts = (_headline(data), _root(data), _facts(data), _others(data, verbose=verbose), _next(data))
    for row in chain.from_iterable(parts):
        yield [(style, plain.one_line(text)) for style, text in row]


def _headline(data: dict[str, Any]) -> Iterator[Row]:
    verdict = data["verdict"]
    style = _OUTCOME_STYLE[verdict["outcome"]]
    sure = f"{verdict['confidence']:.0%} sure"
    yield [(style, verdict["label"]), ("plain", f": {verdict['title']}  "), ("dim", f"({sure})")]
    yield []


def _root(data: dict[str, Any]) -> Iterator[Row]:
    root = data["root_cause"]
    evidence = [item for item in data["evidence"] if item["role"] in ("root", "frame", "context")]
    if root is None or not evidence:
        yield from _loose_lines(data)
        return
    where = [part for part in (root["rank"], data["verdict"]["stage"]) if part]
    yield [("dim", "  --> "), ("plain", f"{root['file']}:{root['line']}"), ("dim", "  " + ", ".join(where))]
    width = len(str(max(item["line"] for item in evidence)))
    for item in evidence:
        is_root = item["role"] == "root"
        text, shift = _cut(item["text"], root["span"][0] if is_root else 0, MAX_TEXT if is_root else MAX_CONTEXT)
        gutter = f"{'>' if is_root else ' '} {item['line']:>{width}} | "
        yield [("bad" if is_root else "dim", f"  {gutter}"), ("plain" if is_root else "dim", text)]
        if is_root:
            start, end = (max(0, at - shift) for at in root["span"])
            mark = "^" * max(1, min(end, len(text)) - start)
            yield [("dim", f"  {'':{width + 2}} | "), ("bad", " " * start + mark)]
    yield []


def _loose_lines(data: dict[str, Any]) -> Iterator[Row]:
    if not data["evidence"]:
        return
    for item in data["evidence"][:_SHOWN]:
        text, _ = _cut(item["text"], 0)
        yield [("dim", f"    {item['line']} | "), ("plain", text)]
    yield []


def _facts(data: dict[str, Any]) -> Iterator[Row]:
    verdict, root = data["verdict"], data["root_cause"]
    rule = f"  (rule {verdict['rule']})" if verdict["rule"] else ""
    yield [("key", "  why       "), ("plain", verdict["because"]), ("dim", rule)]
    if root and (root["component"] or root["flag"]):
        blamed = " ".join(part for part in (root["flag"], root["value"]) if part)
        component = f"{root['component']}: " if root["component"] and blamed else root["component"] or ""
        yield [("key", "  to blame  "), ("plain", component), ("strong", blamed)]
    if started := _launch(data["launch"]):
        yield [("key", "  launch    "), ("plain", started)]


def _launch(launch: dict[str, Any]) -> str:
    gpu = launch["gpu"] or {}
    name = str(gpu.get("name") or "GPU").replace("_", " ")
    parts = [
        f"sglang {launch['version']}" if launch["version"] else "",
        f"{name} (SM{gpu['sm']})" if gpu.get("sm") else gpu.get("name") or "",
        f"CUDA {launch['cuda']['toolkit']}" if launch["cuda"]["toolkit"] else "",
        f"driver {launch['cuda']['driver']}" if launch["cuda"]["driver"] else "",
        *(f"{library} {version}" for library, version in launch["libraries"].items()),
    ]
    return ", ".join(part for part in parts if part)


def _others(data: dict[str, Any], *, verbose: bool) -> Iterator[Row]:
    limit = None if verbose else _SHOWN
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in data["explained"]:
        groups.setdefault(item["rule"], []).append(item)
    explained = [item for items in groups.values() for item in (items if verbose else items[:1])]
    yield from _list("explains", explained, limit, groups)
    yield from _list("unclear", data["unexplained"], limit, {})
    for candidate in data["verdict"]["candidates"][:limit]:
        place = f"line {candidate['line']}: " if candidate["line"] else ""
        yield [
            ("key", "  perhaps   "),
            ("strong", candidate["label"]),
            ("plain", f"  {place}{candidate['because']}"),
        ]


def _list(
    title: str, items: list[dict[str, Any]], limit: int | None, groups: dict[str, list[dict[str, Any]]]
) -> Iterator[Row]:
    for position, item in enumerate(items[:limit]):
        more = len(groups.get(item["rule"], ())) - 1
        again = f" (and {more} more)" if more > 0 and limit is not None else ""
        text, _ = _cut(item["text"], 0, limit=90)
        because = f"  - {item['because']}" if item.get("because") else ""
        key = f"  {title if position == 0 else '':<10}"
        yield [("key", key), ("dim", f"{item['line']}: "), ("plain", text), ("dim", f"{because}{again}")]
    if limit is not None and len(items) > limit:
        yield [("dim", f"{'':12}… and {len(items) - limit} more (--verbose)")]


def _next(data: dict[str, Any]) -> Iterator[Row]:
    advice = data["advice"]
    yield []
    if advice["action"] != "none":
        yield [("key", "  next      "), ("strong", advice["action"]), ("plain", f": {advice['summary']}")]
    for change in advice["changes"]:
        value = "" if change["to"] in (None, "true") else f" {change['to']}"
        old = f"now {change['from']}; " if change["from"] else ""
        why = f"forced: {change['why']}" if change["forced"] else change["why"]
        yield [
            ("plain", _INDENT),
            ("strong", f"{change['flag']}{value}"),
            ("dim", f"  ({old}{why}; {change['confidence']:.0%} sure; {change['source']})"),
        ]
    for note in [*advice["notes"], *data["notes"]]:
        yield [("plain", f"{_INDENT}{note}")]
    for position, item in enumerate(advice["ruled_out"][:_SHOWN]):
        what = " ".join(part for part in (item["flag"], item["value"]) if part)
        why, _ = _cut(item["why"] or "", 0, limit=90)
        key = f"  {'ruled out' if position == 0 else '':<10}"
        yield [("key", key), ("plain", what), ("dim", f"  {why} ({item['source']})")]
    if advice["command_text"]:
        yield []
        yield from ([("plain", row)] for row in advice["command_text"].split("\n"))


def _cut(text: str, hit: int, limit: int = MAX_TEXT) -> tuple[str, int]:
    """Return at most `limit` characters of a line with the hit in view, and how far they were shifted to the left."""
    if len(text) <= limit:
        return text, 0
    start = max(0, min(hit - limit // 4, len(text) - limit))
    shown = text[start : start + limit]
    head, tail = ("…" if start else ""), ("…" if start + limit < len(text) else "")
    return head + shown + tail, start - len(head)
