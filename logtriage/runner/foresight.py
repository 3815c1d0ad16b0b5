"""What preflight knows of a command, told before it is launched: the runner launches it all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice.preflight.finding import FAILS, GARBAGE
from logtriage.advice.preflight.judge import judge
from logtriage.engine import launch as launches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.environment import Environment


def warnings(
    command: Sequence[str], environment: Environment, facts: Mapping[str, Any], rules: RuleSet
) -> Iterator[str]:
    """Yield a sentence for everything that will fail or give garbage, as far as is known; `facts` are the caller's."""
    launch = launches.from_command(command, rules, facts)
    for finding in judge(launch, environment, rules).findings:
        if finding.severity in (FAILS, GARBAGE):
            better = next((change for change in finding.instead if change.new is not None), None)
            yield f"{finding.what}{f': use {better.flag} {better.new}' if better else ''}"
