"""The way out that a rule names, with what the message told in its places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.records import RootCause

_PLACE = r"\{(\w+)\}"


def filled(template: Any, facts: Mapping[str, Any]) -> str:
    """Replace ``{name}`` by the fact of that name; a fact that was not caught reads as an ellipsis."""
    return re.sub(_PLACE, lambda match: str(facts.get(match[1], "…")), str(template))


def has_gap(text: str) -> bool:
    """Return whether a text still has a place for a fact, or the ellipsis of one that was not caught."""
    return "…" in text or re.search(_PLACE, text) is not None


def of(rule: Mapping[str, Any], root: RootCause | None, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the hint of a rule that fired, filled; a flag that it leaves to the message is the one to blame."""
    hint = {key: filled(text, facts) for key, text in rule.get("hint", {}).items()}
    if root is not None and hint.get("flag") == rule.get("implies", {}).get("flag") is not None:
        hint["flag"] = root.flag or hint["flag"]
    return hint
