"""Compares a report with that of an earlier launch: the same failure, a new one, or none any more."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from logtriage.errors import InputError
from logtriage.report.json_v1 import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

_BAD = ("failed", "degenerate")
_VARIES = (
    (r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)*", "#"),  # numbers, addresses, digests
    (r"(?:/[\w.@+-]+){2,}/?", "/"),  # paths
    (r"\s+", " "),
)


def read(text: bytes, name: str) -> list[dict[str, Any]]:
    """Return the reports in a file that `--format json` wrote, one or one a line. Raises InputError."""
    try:
        try:
            found = [json.loads(text)]
        except ValueError:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        for report in found:
            if report["schema"] != SCHEMA:
                raise ValueError(report["schema"])
            fingerprint(report), report["source"]["files"], report["verdict"]["outcome"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = []
    if not found:
        raise InputError(f"{name}: is no report; --baseline takes what `logtriage analyze LOG --format json` wrote")
    return found


def compare(data: dict[str, Any], earlier: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return how a report compares with the earlier ones: `status` is same, new, fixed or none.

    Of several earlier reports that of the same log counts, where there is one.
    """
    own = [report for report in earlier if report["source"]["files"] == data["source"]["files"]] or earlier
    failures = [report["verdict"]["label"] for report in own if report["verdict"]["outcome"] in _BAD]
    outcome = data["verdict"]["outcome"]
    before = failures[0] if failures else own[0]["verdict"]["label"]
    if outcome not in _BAD:
        if failures:
            status, because = "fixed", f"Last time it was {before}; this time the launch is {outcome}."
        else:
            status, because = "none", f"No failure, and none last time ({before})."
    elif any(_is_same(data, report) for report in own):
        status, because = "same", "The same failure as last time."
    else:
        status, because = "new", f"A new failure: last time it was {before}."
    return {"file": name, "status": status, "label": before, "because": because}


def fingerprint(data: dict[str, Any]) -> str:
    """Return the label with the text that shows the cause, without what differs from launch to launch."""
    root = data["root_cause"]
    lines = [root["text"]] if root else [item["text"] for item in data["evidence"] if item["role"] == "trouble"][:1]
    text = " ".join(lines).lower()
    text = re.sub(r"^(?:\[[^\]]*\]\s*)+", "", text)  # time and ranks
    for pattern, instead in _VARIES:
        text = re.sub(pattern, instead, text)
    return f"{data['verdict']['label']}: {text.strip()}"


def _is_same(data: dict[str, Any], other: dict[str, Any]) -> bool:
    prints = [report["verdict"].get("fingerprint") for report in (data, other)]
    if all(prints):
        return bool(prints[0] == prints[1]) and data["verdict"]["label"] == other["verdict"]["label"]
    return fingerprint(data) == fingerprint(other)
