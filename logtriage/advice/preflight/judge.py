"""A command and an environment → the outlook: findings, the worst first, and the command that avoids them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import command, history
from logtriage.advice.preflight import backends, files, flags, host, memory, packages, sizes, toolkit, values
from logtriage.advice.preflight.finding import FAILS, GARBAGE, SEVERITIES, UNKNOWN, Finding, Question
from logtriage.advice.servers import Servers
from logtriage.environment import ELSEWHERE
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.environment import Environment
    from logtriage.records import Change, Launch

_ON_MACHINE = ("port", "model-files", "flag-path")
_CHECKS = (
    flags.check,
    values.check,
    backends.check,
    sizes.check,
    files.check,
    memory.check,
    packages.check,
    toolkit.check,
    host.check,
)


class Outlook(Record):
    """What will become of a launch.

    Attributes:
        severity: of the worst finding.
        launch: with all facts that the command, the caller and the machine tell.
        changes: what to change in the command so that nothing that is known to fail is in it, as far as that is known.
        command, command_text: the user's own command with them; None where there is nothing to change, or where that
            would not be enough.
    """

    severity: str
    launch: Launch
    environment: Environment
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] | None = None
    command_text: str | None = None

    @property
    def fails(self) -> bool:
        """Whether a launch would be wasted."""
        return self.severity in (FAILS, GARBAGE)


def judge(launch: Launch, environment: Environment, rules: RuleSet) -> Outlook:
    """Return what will become of a launch in an environment. Facts of the launch beat those of the environment."""
    launch = launch.replace(facts={**environment.facts(), **launch.facts})
    findings = _findings(launch, environment, rules)
    changes = tuple(_changes(findings))
    is_enough = bool(changes) and not _still_fails(launch, changes, environment, rules)
    rendered = command.render(launch, changes, rules) if is_enough else None
    return Outlook(
        severity=findings[0].severity if findings else UNKNOWN,
        launch=launch,
        environment=environment,
        findings=findings,
        changes=changes,
        command=rendered[0] if rendered else None,
        command_text=rendered[1] if rendered else None,
    )


def _findings(launch: Launch, environment: Environment, rules: RuleSet) -> tuple[Finding, ...]:
    question = _question(launch, environment, rules)
    found = [finding for check in _CHECKS for finding in check(question)] if launch.command else []
    found += [*_gaps(question)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _still_fails(launch: Launch, changes: Sequence[Change], environment: Environment, rules: RuleSet) -> bool:
    """Whether flags of the changed command would fail; what has to be repaired on the machine does not count."""
    flags = {**launch.flags, **{change.flag: str(change.new) for change in changes if change.flag.startswith("--")}}
    changed = launch.replace(flags=flags, facts={**launch.facts, **flags})
    return any(
        finding.severity in (FAILS, GARBAGE) and str(finding.flag).startswith("--") and finding.check not in _ON_MACHINE
        for finding in _findings(changed, environment, rules)
    )


def _question(launch: Launch, environment: Environment, rules: RuleSet) -> Question:
    servers = Servers(rules.server)
    setting = history.setting_of(launch, servers)
    if setting.platform is None and environment.sms:
        setting = setting.replace(platform="cuda")
    used = environment.gpus or ()
    known: Any = rules.server["preflight"]
    question = Question(launch, environment, servers, (setting,), known, rules.server)
    sms = sorted({gpu.sm for gpu in used[: sizes.of(question).gpus] if gpu.sm is not None})
    if not sms:
        return question
    return question.replace(settings=tuple(setting.replace(sm=sm) for sm in sms))


def _gaps(question: Question) -> Iterator[Finding]:
    """What is not known, and so was not looked at."""
    if (path := question.flag("--config")) is not None:
        yield Finding("config-file", UNKNOWN, f"The flags in {path} are not looked at, only those of the command")
    if question.launch.command is None:
        yield Finding("command", UNKNOWN, "This is no command that starts SGLang")
    elif question.version is None:
        what = "The version of SGLang is not known (--server-version), so flags are held against all versions"
        yield Finding("version", UNKNOWN, what)
    elif not question.servers.covers(question.version):
        first, last = question.servers.versions[0], question.servers.versions[-1]
        what = f"SGLang {question.version} lies outside the versions that are known ({first} to {last})"
        yield Finding("version", UNKNOWN, what)
    if not question.sms and question.environment.where == ELSEWHERE:
        yield Finding("gpu", UNKNOWN, "The GPU is not known (--sm), so backends are not held against it")
    if question.launch.command and (mixed := sizes.idle(question)):
        yield mixed
    for gap in question.environment.gaps:
        yield Finding("not-looked-at", UNKNOWN, gap)


def _changes(findings: tuple[Finding, ...]) -> Iterator[Change]:
    """The first way out of each finding that would waste the launch; one change for each flag."""
    done: set[str] = set()
    for finding in findings:
        if finding.severity not in (FAILS, GARBAGE) or not finding.instead or finding.instead[0].new is None:
            continue
        change = finding.instead[0]
        if change.flag not in done:
            done.add(change.flag)
            yield change
