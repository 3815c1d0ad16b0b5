"""The next step for a verdict: what the message itself names first, then what helps for the label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.records import Advice, Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.records import Incident, Launch, RootCause, Verdict


def plan(
    verdict: Verdict,
    root: RootCause | None,
    incident: Incident,
    launch: Launch,
    labels: Mapping[str, dict[str, Any]],
) -> Advice:
    """Return the advice for a verdict; a rule's own action and hint beat the label's."""
    head = labels[verdict.label]
    rule = incident.root.rule if incident.root and incident.root.rule["id"] == verdict.rule else {}
    facts = dict(incident.root.facts) if rule and incident.root else {}
    remedy = head.get("remedy") or {}
    summary = str(remedy.get("advice") or head["title"])
    changes: tuple[Change, ...] = ()
    if hint := rule.get("hint"):
        summary = _fill(hint["text"], facts)
        if flag := hint.get("flag"):
            value = _fill(hint["value"], facts) if hint.get("value") else None
            old = root.value if root and root.flag == flag else launch.facts.get(flag)
            why = "the message itself names this way out"
            changes = (Change(flag, old, value, why, verdict.confidence, f"rule {rule['id']}"),)
    notes = []
    if process := facts.get("other_pid"):
        notes.append(f"Process {process} holds {facts.get('other_used', 'memory')} on the same GPU: free that first.")
    flags = [flag for flag in remedy.get("flags", ()) if not changes]
    if flags:
        notes.append("Flags worth a look, most likely first: " + ", ".join(flags))
    return Advice(str(rule.get("action") or head["action"]), summary, changes, notes=tuple(notes))


def _fill(template: str, facts: Mapping[str, Any]) -> str:
    """Replace ``{name}`` by the fact of that name; a fact that was not caught reads as an ellipsis."""
    for name, value in facts.items():
        template = template.replace(f"{{{name}}}", str(value))
    while "{" in template and "}" in template.partition("{")[2]:
        before, _, rest = template.partition("{")
        template = f"{before}…{rest.partition('}')[2]}"
    return template
