"""What a run would do, without launching anything: the first command, what the ledger knows of it, what may follow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from logtriage.advice import history, pins
from logtriage.advice.servers import Servers
from logtriage.engine import launch as launches
from logtriage.redact import Redactor
from logtriage.runner import choices, environment, foresight, ledger, loop, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.engine.ruleset import RuleSet
    from logtriage.runner.plan import Plan


def preview(plan: Plan, rules: RuleSet) -> Iterator[str]:
    """Yield the lines of the plan. Raises InputError for a command that cannot be run."""
    command = tuple(plan.command)
    refusals.refuse_useless(command, rules)
    pins.checked(plan.pin, rules)
    redactor = Redactor(rules.secrets)
    found = environment.probe(command, rules)
    given = {name: value for name, value in (("sm", plan.sm), ("server_version", plan.server_version)) if value}
    identity = found.identity() | {name: str(value) for name, value in given.items()}
    facts = {**found.facts(), **given, "environment": ledger.key_of(identity)}
    yield f"first: {loop.shown(command, redactor)}"
    for warning in foresight.warnings(command, found, given, rules):
        yield f"  preflight: {redactor.text(warning)}"
    path = plan.ledger or ledger.default_path()
    evidence = list(ledger.Ledger(path).evidence()) if os.path.exists(path) else []
    known = choices.remembered(command, rules, facts, evidence, plan.pin)
    if isinstance(known, choices.Again):
        yield f"  {known.told}"
    elif known is not None:
        yield f"  not launched: {known.attempt.source} shows that it fails here ({known.attempt.label})"
        yield f"  instead: {redactor.text(known.advice.command_text or known.advice.summary)}"
    launch = launches.from_command(command, rules, facts)
    servers = Servers(rules.server)
    setting = history.setting_of(launch, servers)
    where = f"SM{setting.sm}" if setting.sm is not None else "a GPU that is not known"
    version = setting.version or "not known"
    yield f"on: {where}, SGLang {version}, weights {setting.format or 'of a format that is not known'}"
    for flag in servers.backends:
        if not history.concerns(flag, launch, servers, setting):
            continue
        if flag in {servers.canonical(name) for name in plan.pin}:
            yield f"{flag}: pinned"
            continue
        ruled_out = history.exclusions(evidence, launch, servers)
        left = [
            candidate.value
            for candidate in servers.candidates(flag, setting, servers.model_of(flag, history.value_of(launch, flag)))
            if not history.excluded_by(flag, candidate.value, ruled_out, servers, setting)
        ]
        yield f"{flag}: would be tried in this order where it is to blame: {', '.join(left) or 'nothing'}"
    budget = f", {plan.budget:g} s in all" if plan.budget else ""
    yield f"limits: {plan.max_attempts} attempts{budget}; ledger: {path}"
