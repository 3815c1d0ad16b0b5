"""The report as JUnit XML: each launch is a test case, which passes if the launch is healthy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Tree

from logtriage.report import plain, text, view

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENDS = {"failed": "failure", "degenerate": "failure", "incomplete": "error"}
_NOT_IN_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def render(reports: Sequence[dict[str, Any]], counts: Sequence[bool] | None = None) -> str:
    """Return JUnit XML. `counts` says which launches count as failed; one that does not is reported as skipped."""
    suites = Tree.Element("testsuites", name="logtriage")
    suite = Tree.SubElement(suites, "testsuite", name="logtriage")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for number, report in enumerate(reports):
        end = "error" if report["verdict"]["label"] == "unknown" else _ENDS.get(report["verdict"]["outcome"], "")
        if end and counts is not None and not counts[number]:
            end = "skipped"
        totals["tests"] += 1
        if end:
            totals[{"failure": "failures", "error": "errors", "skipped": "skipped"}[end]] += 1
        _case(suite, plain.data(report), end)
    for name, total in totals.items():
        suite.set(name, str(total))
        suites.set(name, str(total))
    for element in suites.iter():
        element.text = _legal(element.text or "") or None
        element.attrib = {name: _legal(value) for name, value in element.attrib.items()}
    Tree.indent(suites)
    shown = Tree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{plain.in_markup(shown)}\n'


def _case(suite: Tree.Element, data: dict[str, Any], end: str) -> None:
    verdict, root = data["verdict"], data["root_cause"]
    case = Tree.SubElement(suite, "testcase", classname="sglang.launch", name=", ".join(data["source"]["files"]))
    case.set("time", "0")
    if root:
        case.set("file", root["file"])
        case.set("line", str(root["line"]))
    properties = Tree.SubElement(case, "properties")
    for name, value in _facts(data):
        Tree.SubElement(properties, "property", name=name, value=value)
    if end:
        message = f"{verdict['label']}: {root['text'] if root else verdict['title']}"
        found = Tree.SubElement(case, end, message=message)
        if end != "skipped":
            found.set("type", verdict["label"])
        found.text = text.render(data)
    else:
        Tree.SubElement(case, "system-out").text = text.render(data)


def _facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    verdict, root, advice = data["verdict"], data["root_cause"] or {}, data["advice"]
    facts = [
        ("label", verdict["label"]),
        ("outcome", verdict["outcome"]),
        ("confidence", str(verdict["confidence"])),
        ("rule", verdict["rule"]),
        ("stage", verdict["stage"]),
        ("rank", root.get("rank")),
        ("blamed", view.blamed(data)[1]),
        ("next", advice["summary"] if advice["action"] != "none" else None),
        ("command", advice["command_text"]),
        ("compared", (data.get("baseline") or {}).get("because")),
    ]
    return [(name, value) for name, value in facts if value]


def _legal(value: str) -> str:
    """Text without the characters that XML forbids, which no escape can carry."""
    return re.sub(_NOT_IN_XML, "\ufffd", value)
