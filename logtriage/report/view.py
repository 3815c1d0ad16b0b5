"""What every laid-out report says, from report data: the same words and the same choices for all forms."""

from __future__ import annotations

import re
from typing import Any

_BLAMED = "To blame: "  # what is to blame has a place of its own

SECOND = ("fix-environment", "free-memory", "investigate")
"""Actions beside which a command is only the other way out."""


def effects(data: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return what only followed, by rule, without the root line and without a line twice."""
    root = data["root_cause"]
    seen = {(root["file"], root["line"])} if root else set()
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in data["explained"]:
        if (item["file"], item["line"]) not in seen:
            seen.add((item["file"], item["line"]))
            groups.setdefault(item["rule"], []).append(item)
    return list(groups.values())


def launch(data: dict[str, Any]) -> list[str]:
    """Return what is known of the launch: versions and the GPU."""
    known = data["launch"]
    gpu = known["gpu"] or {}
    name = str(gpu.get("name") or "GPU").replace("_", " ")
    parts = [
        f"sglang {known['version']}" if known["version"] else "",
        f"{name} (SM{gpu['sm']})" if gpu.get("sm") else gpu.get("name") or "",
        f"CUDA {known['cuda']['toolkit']}" if known["cuda"]["toolkit"] else "",
        f"driver {known['cuda']['driver']}" if known["cuda"]["driver"] else "",
        *(f"{library} {version}" for library, version in known["libraries"].items()),
    ]
    return [part for part in parts if part]


def others(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the labels that were considered and not given."""
    return [item for item in data["verdict"]["candidates"] if item["label"] != data["verdict"]["label"]]


def launch_notes(data: dict[str, Any]) -> list[str]:
    """Return the notes on which launch of a log is judged."""
    return [note for note in data["notes"] if _is_about_launches(note)]


def notes(data: dict[str, Any]) -> list[str]:
    """Return the other notes: those of the advice, then those on what was read."""
    is_told = bool(data["root_cause"] and data["root_cause"]["flag"])
    kept = [note for note in data["advice"]["notes"] if not (is_told and note.startswith(_BLAMED))]
    return kept + [note for note in data["notes"] if not _is_about_launches(note)]


def ruled_out(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is ruled out, without what only repeats that the blamed value fails."""
    return [item for item in data["advice"]["ruled_out"] if not _repeats(item, data)]


def change(item: dict[str, Any], summary: str) -> tuple[str, str, str]:
    """Return a change as a verb (or ''), the flag with its new value, and its reason.

    Where no value is known the verb tells at least the direction, or that the flag has to go.
    """
    value = "" if item["to"] in (None, "true") else f" {item['to']}"
    why = f"forced: {item['why']}" if item["forced"] else item["why"]
    found = re.match(r"(Raise|Lower) (\S+?)[.,]?(?: |$)", summary) if item["to"] is None else None
    verb = "remove" if item["removed"] else found[1].lower() if found and found[2] == item["flag"] else ""
    return verb, f"{item['flag']}{value}", f"{why}; {item['confidence']:.0%} sure; {item['source']}"


def blamed(data: dict[str, Any]) -> tuple[str, str]:
    """Return the component that is to blame and the flag with its value; '' for what is not known."""
    root = data["root_cause"]
    if not root:
        return "", ""
    return root["component"] or "", " ".join(part for part in (root["flag"], root["value"]) if part)


def where(data: dict[str, Any]) -> list[str]:
    """Return where in the launch the cause stands: node, rank, stage."""
    root = data["root_cause"]
    node = f"node {root['node']}" if root["node"] is not None else ""
    rank = root["rank"] or ""
    if node and rank and root["local_rank"] is not None:
        rank += f" (rank {root['local_rank']} there)"
    return [part for part in (node, rank, data["verdict"]["stage"]) if part]


def short_place(data: dict[str, Any], item: dict[str, Any]) -> str:
    """Return the line of an item, with its file if several were read."""
    return place(item) if len(data["source"]["files"]) > 1 else str(item["line"])


def place(item: dict[str, Any]) -> str:
    """Return FILE:LINE."""
    return f"{item['file']}:{item['line']}"


def _is_about_launches(note: str) -> bool:
    return re.search(r"\bholds \d+ launches\b|^a later launch\b|^these logs are of \d+ launches\b", note) is not None


def _repeats(item: dict[str, Any], data: dict[str, Any]) -> bool:
    root = data["root_cause"] or {}
    return item["source"] in data["source"]["files"] and item["flag"] is not None and item["flag"] == root.get("flag")
