"""The text report as styled pieces, from report data; `text` prints them with or without colours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from logtriage.report import view
from logtriage.report.screen import ALL, COMMAND, FULL, INDENT, Row, cells, reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    is_known = verdict["label"] != "unknown"  # how sure it is that it does not know would be read the other way
    sure = [("dim", f"  ({verdict['confidence']:.0%} sure)")] if is_known else []
    yield [(style, verdict["label"]), ("plain", f": {verdict['title']}"), *sure]
    for note in view.launch_notes(data):
        yield [("plain", f"{_INDENT}{note}")]
    if compared := data.get("baseline"):
        yield [("plain", f"{_INDENT}{compared['because']}")]
    yield []


def _root(data: dict[str, Any], detail: Detail, width: int | None) -> Iterator[Row]:
    root = data["root_cause"]
    evidence = [item for item in data["evidence"] if item["role"] in ("root", "frame", "context")]
    if root is None or not evidence:
        yield from _loose_lines(data, width)
        return
    yield [("dim", "  --> "), ("plain", f"{root['file']}:{root['line']}"), ("dim", "  " + ", ".join(view.where(data)))]
    evidence = list(_chosen(evidence, root["line"], detail))
    digits = len(str(max(item["line"] for item in evidence)))
    room = None if width is None else width - digits - 7
    for item in evidence:
        is_root = item["role"] == "root"
        limit = min(MAX_TEXT if is_root else MAX_CONTEXT, room or MAX_TEXT)
        text, shift = cut(item["text"], tuple(root["span"]) if is_root else (0, 0), limit=limit)
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
    stage = data["verdict"]["stage"] or ""
    yield [("dim", "  --> "), ("plain", ", ".join(data["source"]["files"])), ("dim", f"  {stage}" if stage else "")]
    for item in data["evidence"][:_LOOSE]:
        place = f"    {item['line']} | "
        text, _ = cut(item["text"], limit=MAX_TEXT if width is None else width - len(place))
        yield [("dim", place), ("plain", text)]
    yield []


def _facts(data: dict[str, Any], detail: Detail) -> Iterator[Row]:
    verdict = data["verdict"]
    rule = f"  (rule {verdict['rule']})" if verdict["rule"] else ""
    rule = rule if detail.facts else "  (--verbose shows more)"
    yield [("key", "  why       "), ("plain", verdict["because"]), ("dim", rule)]
    component, blamed = view.blamed(data)
    if component or blamed:
        component = f"{component}: " if component and blamed else component
        yield [("key", "  to blame  "), ("plain", component), ("strong", blamed)]
    if detail.facts and (started := ", ".join(view.launch(data))):
        yield [("key", "  launch    "), ("plain", started)]


def _others(data: dict[str, Any], detail: Detail, width: int | None, *, verbose: bool) -> Iterator[Row]:
    firsts = [(item, 0 if verbose else len(items) - 1) for items in view.effects(data)
              for item in (items if verbose else items[:1])]  # fmt: skip
    place_of = partial(view.short_place, data)
    yield from _list("explains", firsts, detail.effects, width, place_of)
    yield from _list("unclear", [(item, 0) for item in data["unexplained"]], detail.effects, width, place_of)
    for candidate in view.others(data)[: detail.effects]:
        place = f"line {candidate['line']}: " if candidate["line"] else ""
        yield [
            ("key", "  perhaps   "),
            ("strong", candidate["label"]),
            ("plain", f"  {place}{candidate['because']}"),
        ]


def _list(
    title: str, items: list[tuple[dict[str, Any], int]], limit: int | None, width: int | None,
    place_of: Callable[[dict[str, Any]], str],
) -> Iterator[Row]:  # fmt: skip
    """Lines of the log with their reasons, and how many more like each there are."""
    for position, (item, more) in enumerate(items[:limit]):
        again = f" (and {more} more)" if more else ""
        because = f"  - {item['because']}" if item.get("because") else ""
        place = f"{place_of(item)}: "
        room = _MAX_QUOTED if width is None else width - INDENT - len(place) - len(because) - len(again)
        text, _ = cut(item["text"], limit=max(_LEAST_QUOTED, min(_MAX_QUOTED, room)))
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
        verb, what, why = view.change(change, advice["summary"])
        why = f"now {change['from']}; {why}" if change["from"] else why
        yield [("plain", _INDENT + (f"{verb} " if verb else "")), ("strong", what), ("dim", f"  ({why})")]
    for note in view.notes(data)[: detail.notes]:
        yield [("plain", f"{_INDENT}{note}")]
    excluded = advice["ruled_out"] if verbose else view.ruled_out(data)
    for position, item in enumerate(excluded[: detail.ruled_out]):
        what = " ".join(part for part in (item["flag"], item["value"]) if part)
        why, _ = cut(item["why"] or "it has failed before", limit=_MAX_QUOTED)
        key = f"  {'ruled out' if position == 0 else '':<10}"
        yield [("key", key), ("plain", what), ("dim", f"  {why} ({item['source']})")]
    if advice["command_text"]:
        key = "  or run    " if advice["action"] in view.SECOND else "  run       "
        yield []
        yield [("key", key), (COMMAND, advice["command_text"])]


def cut(text: str, hit: tuple[int, ...] = (0, 0), *, limit: int) -> tuple[str, int]:
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
