"""The text report as styled pieces, from report data; `text` prints them with or without colours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from logtriage.report.screen import ALL, COMMAND, FULL, INDENT, Row, cells, reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.report.screen import Detail

MAX_TEXT = 400
"""Characters shown of the root-cause line; a longer one is cut around the hit."""

MAX_CONTEXT = 160
"""Characters shown of the lines around it."""

_MAX_QUOTED = 90
_LEAST_QUOTED = 24
_OUTCOME_STYLE = {
    "healthy": "good",
    "incomplete": "warn",
    "unknown": "warn",
    "failed": "bad",
    "degenerate": "bad",
}
_LOOSE = 6
_INDENT = " " * INDENT
_BLAMED = "To blame: "  # the row of that name tells it already
_SECOND = ("fix-environment", "free-memory", "investigate")


def rows(
    data: dict[str, Any], *, verbose: bool = False, detail: Detail | None = None, width: int | None = None
) -> Iterator[Row]:
    """Yield the rows of a report, top to bottom.

    `verbose` shows everything that only followed, `detail` says how much else; `width` is that of the screen, to which
    lines of the log are cut.
    """
    detail = ALL if verbose else detail or FULL
    yield from _headline(data)
    yield from _root(data, detail, width)
    yield from _facts(data, detail)
    yield from _others(data, detail, width, verbose=verbose)
    yield from _next(data, detail, verbose=verbose)


def _headline(data: dict[str, Any]) -> Iterator[Row]:
    verdict = data["verdict"]
    style = _OUTCOME_STYLE[verdict["outcome"]]
    sure = f"{verdict['confidence']:.0%} sure"
    yield [(style, verdict["label"]), ("plain", f": {verdict['title']}  "), ("dim", f"({sure})")]
    for note in data["notes"]:
        if _is_about_launches(note):
            yield [("plain", f"{_INDENT}{note}")]
    yield []


def _is_about_launches(note: str) -> bool:
    return re.search(r"\bholds \d+ launches\b|^a later launch\b", note) is not None


def _root(data: dict[str, Any], detail: Detail, width: int | None) -> Iterator[Row]:
    root = data["root_cause"]
    evidence = [item for item in data["evidence"] if item["role"] in ("root", "frame", "context")]
    if root is None or not evidence:
        yield from _loose_lines(data, width)
        return
    where = [part for part in (root["rank"], data["verdict"]["stage"]) if part]
    yield [("dim", "  --> "), ("plain", f"{root['file']}:{root['line']}"), ("dim", "  " + ", ".join(where))]
    evidence = list(_chosen(evidence, root["line"], detail))
    digits = len(str(max(item["line"] for item in evidence)))
    room = None if width is None else width - digits - 7
    for item in evidence:
        is_root = item["role"] == "root"
        limit = min(MAX_TEXT if is_root else MAX_CONTEXT, room or MAX_TEXT)
        text, shift = _cut(item["text"], tuple(root["span"]) if is_root else (0, 0), limit=limit)
        gutter = f"{'>' if is_root else ' '} {item['line']:>{digits}} | "
        yield [("bad" if is_root else "dim", f"  {gutter}"), ("plain" if is_root else "dim", text)]
        if is_root:
            start, end = (max(0, at - shift) for at in root["span"])
            before, marked = cells(text[:start]), cells(text[start : max(start + 1, end)])
            yield [("dim", f"  {'':{digits + 2}} | "), ("bad", " " * before + "^" * max(1, marked))]
    yield []


def _chosen(evidence: list[dict[str, Any]], root: int, detail: Detail) -> Iterator[dict[str, Any]]:
    """The root line with the last frames above it and the nearest lines around it."""
    frames = [item["line"] for item in evidence if item["role"] == "frame"]
    kept = frames[len(frames) - detail.frames :] if detail.frames < len(frames) else frames
    for item in evidence:
        if item["role"] == "context" and abs(item["line"] - root) > detail.context:
            continue
        if item["role"] != "frame" or item["line"] in kept:
            yield item


def _loose_lines(data: dict[str, Any], width: int | None) -> Iterator[Row]:
    yield [("dim", "  --> "), ("plain", ", ".join(data["source"]["files"]))]
    for item in data["evidence"][:_LOOSE]:
        place = f"    {item['line']} | "
        text, _ = _cut(item["text"], limit=MAX_TEXT if width is None else width - len(place))
        yield [("dim", place), ("plain", text)]
    yield []


def _facts(data: dict[str, Any], detail: Detail) -> Iterator[Row]:
    verdict, root = data["verdict"], data["root_cause"]
    rule = f"  (rule {verdict['rule']})" if verdict["rule"] else ""
    rule = rule if detail.facts else "  (--verbose shows more)"
    yield [("key", "  why       "), ("plain", verdict["because"]), ("dim", rule)]
    if root and (root["component"] or root["flag"]):
        blamed = " ".join(part for part in (root["flag"], root["value"]) if part)
        component = f"{root['component']}: " if root["component"] and blamed else root["component"] or ""
        yield [("key", "  to blame  "), ("plain", component), ("strong", blamed)]
    if detail.facts and (started := _launch(data["launch"])):
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


def _others(data: dict[str, Any], detail: Detail, width: int | None, *, verbose: bool) -> Iterator[Row]:
    root = data["root_cause"]
    seen = {(root["file"], root["line"])} if root else set()
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in data["explained"]:
        if (item["file"], item["line"]) not in seen:
            seen.add((item["file"], item["line"]))
            groups.setdefault(item["rule"], []).append(item)
    firsts = [(item, 0 if verbose else len(items) - 1) for items in groups.values()
              for item in (items if verbose else items[:1])]  # fmt: skip
    yield from _list("explains", firsts, detail.effects, width)
    yield from _list("unclear", [(item, 0) for item in data["unexplained"]], detail.effects, width)
    others = [item for item in data["verdict"]["candidates"] if item["label"] != data["verdict"]["label"]]
    for candidate in others[: detail.effects]:
        place = f"line {candidate['line']}: " if candidate["line"] else ""
        yield [
            ("key", "  perhaps   "),
            ("strong", candidate["label"]),
            ("plain", f"  {place}{candidate['because']}"),
        ]


def _list(title: str, items: list[tuple[dict[str, Any], int]], limit: int | None, width: int | None) -> Iterator[Row]:
    """Lines of the log with their reasons, and how many more like each there are."""
    for position, (item, more) in enumerate(items[:limit]):
        again = f" (and {more} more)" if more else ""
        because = f"  - {item['because']}" if item.get("because") else ""
        place = f"{item['line']}: "
        room = _MAX_QUOTED if width is None else width - INDENT - len(place) - len(because) - len(again)
        text, _ = _cut(item["text"], limit=max(_LEAST_QUOTED, min(_MAX_QUOTED, room)))
        key = f"  {title if position == 0 else '':<10}"
        yield [("key", key), ("dim", place), ("plain", text), ("dim", f"{because}{again}")]
    if limit and len(items) > limit:
        yield [("dim", f"{_INDENT}… and {len(items) - limit} more (--verbose)")]


def _next(data: dict[str, Any], detail: Detail, *, verbose: bool) -> Iterator[Row]:
    advice = data["advice"]
    yield []
    if advice["action"] != "none":
        yield [("key", "  next      "), ("strong", advice["action"]), ("plain", f": {advice['summary']}")]
    for change in advice["changes"]:
        yield list(_change(change, advice["summary"]))
    is_told = bool(data["root_cause"] and data["root_cause"]["flag"])
    notes = [note for note in advice["notes"] if not (is_told and note.startswith(_BLAMED))]
    notes += [note for note in data["notes"] if not _is_about_launches(note)]
    for note in notes[: detail.notes]:
        yield [("plain", f"{_INDENT}{note}")]
    excluded = advice["ruled_out"] if verbose else [item for item in advice["ruled_out"] if not _repeats(item, data)]
    for position, item in enumerate(excluded[: detail.ruled_out]):
        what = " ".join(part for part in (item["flag"], item["value"]) if part)
        why, _ = _cut(item["why"] or "it has failed before", limit=_MAX_QUOTED)
        key = f"  {'ruled out' if position == 0 else '':<10}"
        yield [("key", key), ("plain", what), ("dim", f"  {why} ({item['source']})")]
    if advice["command_text"]:
        key = "  or run    " if advice["action"] in _SECOND else "  run       "
        yield []
        yield [("key", key), (COMMAND, advice["command_text"])]


def _change(change: dict[str, Any], summary: str) -> Iterator[tuple[str, str]]:
    """A change with its reason; where no value is known, at least its direction."""
    value = "" if change["to"] in (None, "true") else f" {change['to']}"
    old = f"now {change['from']}; " if change["from"] else ""
    why = f"forced: {change['why']}" if change["forced"] else change["why"]
    verb = re.match(r"(Raise|Lower) (\S+?)[.,]?(?: |$)", summary) if change["to"] is None else None
    direction = f"{verb[1].lower()} " if verb and verb[2] == change["flag"] else ""
    yield ("plain", _INDENT + direction)
    yield ("strong", f"{change['flag']}{value}")
    yield ("dim", f"  ({old}{why}; {change['confidence']:.0%} sure; {change['source']})")


def _repeats(item: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether an exclusion only says what the report has said: that the blamed value fails."""
    root = data["root_cause"] or {}
    return item["source"] in data["source"]["files"] and item["flag"] is not None and item["flag"] == root.get("flag")


def _cut(text: str, hit: tuple[int, ...] = (0, 0), *, limit: int) -> tuple[str, int]:
    """Return a line with the hit in view that takes at most `limit` columns, and how far it was shifted to the left."""
    text = text.replace("\t", " ")
    if cells(text) <= limit:
        return text, 0
    room = limit - 2
    start = max(0, min(hit[0] - room // 4, len(text) - room))
    start = max(start, min(hit[0], hit[1] - room))  # all of the hit, if it fits
    if len(text) - room - 1 <= hit[0]:
        start = max(0, len(text) - room - 1)  # the end too
        room += 1
    while cells(text[start : hit[0]]) > room // 2:  # wide letters
        start += 1
    shown = text[start : start + reach(text[start:], room)]
    head, tail = ("…" if start else ""), ("…" if start + len(shown) < len(text) else "")
    return head + shown + tail, start - len(head)
