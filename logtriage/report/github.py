"""The report for a job of GitHub Actions: one annotation per verdict, and a step summary that keeps GitHub's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.report import markdown, page, plain, view
from logtriage.report.layout import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 1024 * 1024
"""Bytes that a step summary may have; GitHub drops a larger one whole."""

_LEVELS = {"bad": "error", "warn": "warning", "good": "notice"}
_MAX_ROOT, _MAX_TITLE = 500, 200
_TOO_LONG = "\nThe summary of this step is full; the report of logtriage is left out.\n"


def annotation(data: dict[str, Any], *, counts: bool = True) -> str:
    """Return the workflow command that puts cause and fix on the run; what does not count as a failure only warns."""
    data = plain.data(data)
    verdict, root, advice = data["verdict"], data["root_cause"], data["advice"]
    level = _LEVELS[page.TONES[verdict["outcome"]]]
    if level == "error" and not counts:
        level = "warning"
    title = f"{verdict['label']}: {verdict['title']}"
    said = [root["text"].strip() if root else verdict["because"]]
    if root and len(said[0]) > _MAX_ROOT:
        said[0] = cut(root["text"], tuple(root["span"]), limit=_MAX_ROOT)[0]
    said += [verdict["because"]] if root else []
    if (compared := data.get("baseline")) and compared["because"]:
        said.append(compared["because"])
    if advice["action"] != "none":
        said.append(f"Next: {advice['summary']}")
    if advice["command_text"]:
        said.append(f"{'Or run' if advice['action'] in view.SECOND else 'Run'}: {advice['command_text']}")
    where = {"file": root["file"], "line": str(root["line"])} if root else {"file": data["source"]["files"][0]}
    where["title"] = cut(title, limit=_MAX_TITLE)[0]
    properties = ",".join(f"{name}={_property(value)}" for name, value in where.items())
    return f"::{level} {properties}::{_message(chr(10).join(said))}\n"


def summary(reports: Sequence[dict[str, Any]], used: int = 0) -> str:
    """Return the step summary; where `used` bytes leave too little room, the same without evidence, or a note."""
    for shown in (markdown.render(reports), markdown.render(reports, brief=True), _TOO_LONG):
        if used + len(shown.encode(errors="replace")) + 1 <= LIMIT:
            return ("\n" if used else "") + shown
    return ""


def _message(text: str) -> str:
    """A text as the message of a workflow command: its line feeds are GitHub's, nothing else is read in it."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return plain.in_job(escaped)


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
