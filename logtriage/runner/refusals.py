"""Commands that are refused before anything is launched, since nothing could be followed or asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.command import redirect_target
from logtriage.engine import launch as launches
from logtriage.errors import InputError
from logtriage.runner import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet

_LAST_PORT = 65535


def refuse_useless(command: Sequence[str], rules: RuleSet) -> None:
    """Raise InputError for a command that cannot be followed: no server, no port to ask, its output elsewhere."""
    launch = launches.from_command(command, rules)
    if launch.command is None:
        raise InputError(
            "the command starts no server that is known. After `--` it wants one such as "
            "`python3 -m sglang.launch_server --model-path …`; a script is not looked into: "
            'give its text, as in `logtriage run -- "$(cat launch.sh)"`'
        )
    _refuse_port(command, rules)
    if (target := redirect_target(launch)) is not None:
        raise InputError(f"the command sends its output to {target}; leave that to the runner (--logs DIR)")


def _refuse_port(command: Sequence[str], rules: RuleSet) -> None:
    """Raise InputError for a port on which nothing can listen; what `$PORT` is, only the shell knows."""
    port = results.flags_of(command, rules).get("--port")
    if port is None or "$" in port or (port.isdecimal() and port.isascii() and 1 <= int(port[:9]) <= _LAST_PORT):
        return
    raise InputError(f"--port {port}: no server can listen there; give one from 1 to {_LAST_PORT}, such as 30000")
