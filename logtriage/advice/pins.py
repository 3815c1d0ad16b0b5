"""Flags that must stay as they are: whether their names can be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.servers import Servers
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet

_ALIKE = 0.85


def checked(pins: Sequence[str], rules: RuleSet) -> Sequence[str]:
    """Return the pins. Raises InputError for one that is no flag, or that is spelt almost like one that is known."""
    if not pins:
        return pins
    servers = Servers(rules.server)
    known = servers.flags(None)
    for pin in pins:
        is_variable = pin.isupper() and pin.isascii() and not pin.startswith("-")
        if not pin.startswith("--") and not is_variable:
            raise InputError(f"--pin {pin}: a flag is given with its dashes, as in --pin --{pin.lstrip('-')}")
        near = servers.closest(pin, known, _ALIKE)
        if not is_variable and servers.canonical(pin) not in known and near is not None:
            raise InputError(f"--pin {pin}: no such flag is known; did you mean {near}?")
    return pins
