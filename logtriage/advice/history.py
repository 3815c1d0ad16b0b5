"""Earlier attempts → what they rule out: partial descriptions in which an unnamed field is a wildcard.

In: attempts (from reports, or from whoever keeps them) and the knowledge. Out: exclusions, and the answer whether a
value is excluded. The width of an exclusion follows the label's ``retry`` and the rule's ``blocks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import hints
from logtriage.advice.evidence import Setting
from logtriage.records import Attempt, Candidate, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.advice.servers import Servers
    from logtriage.records import Launch, Report

_FAILED = ("failed", "degenerate")
_ENVIRONMENT = (
    "environment", "sm", "driver", "toolkit", "server_version", "flashinfer", "sgl_kernel", "torch", "model",
    "quantization",
)  # fmt: skip
_LIKELY = 0.5
SM100 = frozenset({100, 103, 110})
"""Compute capabilities of the family that the word `sm100` stands for."""


class Exclusion(Record):
    """What an attempt rules out: kernels under any flag, kernels or one value under one flag, or a whole configuration.

    Attributes:
        flag, value, kernels: what is ruled out; None is a wildcard.
        config: backends that may not come together again, where it is not known which one failed.
        exact: it rests on a failure of exactly this; else it is a suspicion (garbage), and no reason to replace the
            value in passing.
        advisory: the environment has changed since, so it is told but not obeyed.
    """

    why: str
    source: str
    label: str
    flag: str | None = None
    value: str | None = None
    kernels: str | None = None
    config: tuple[tuple[str, str | None], ...] = ()
    exact: bool = True
    advisory: bool = False


def attempt(report: Report, source: str) -> Attempt:
    """Return what a report tells of an earlier launch."""
    root, verdict = report.root, report.verdict
    match = report.incident.root
    rule: dict[str, Any] = match.rule if match is not None and match.rule["id"] == verdict.rule else {}
    facts = {**(match.facts if match is not None and rule else {}), **(root.facts if root else {})}
    return Attempt(
        source=source,
        label=verdict.label,
        retry=verdict.retry,
        action=str(rule.get("action") or report.advice.action),
        outcome=verdict.outcome,
        launch=report.launch,
        rule=verdict.rule,
        text=report.lines[root.line].text if root else verdict.because,
        flag=root.flag if root else None,
        value=root.value if root else None,
        component=root.component if root else None,
        blocks=dict(rule.get("blocks", {})),
        hint=hints.of(rule, root, facts),
        facts=facts,
    )


def setting_of(launch: Launch, servers: Servers) -> Setting:
    """Return what a launch runs on, as far as it is known."""
    facts = launch.facts

    def text(name: str) -> str | None:
        return str(facts[name]) if facts.get(name) else None

    sm = facts.get("sm")
    told = text("--quantization") or text("quantization")
    return Setting(
        version=text("server_version"),
        sm=int(sm) if sm is not None else None,
        format=servers.format_of(told) if told else servers.format_named(text("model")),
        flashinfer=text("flashinfer"),
        platform=text("platform"),
    )


def filled(launch: Launch, attempts: Sequence[Attempt]) -> tuple[Launch, list[str]]:
    """Return the launch with facts of the environment that only earlier attempts tell, and notes that say so."""
    facts, notes = dict(launch.facts), []
    for earlier in reversed(attempts):
        model = earlier.launch.facts.get("model")
        if facts.get("model") and model and facts["model"] != model:
            continue
        if earlier.launch.facts.get("environment") not in (None, facts.get("environment")):
            continue  # a ledger says that it was another machine, or the same one before a change
        taken = {name: earlier.launch.facts[name] for name in _ENVIRONMENT if name in earlier.launch.facts}
        new = {name: value for name, value in taken.items() if name not in facts and name != "model"}
        if new:
            facts |= new
            notes.append(f"taken from {earlier.source}: " + ", ".join(f"{name} {new[name]}" for name in sorted(new)))
    return launch.replace(facts=facts), notes


def value_of(launch: Launch, flag: str) -> str | None:
    """Return the value that a launch has for a flag: the command's, else what the server made of it, else None."""
    value = launch.flags.get(flag, launch.facts.get(flag))
    return None if value is None else str(value)


def changed(then: Launch, now: Launch) -> str:
    """Return the names of what is known of both environments and differs, or nothing."""
    names = [name for name in _ENVIRONMENT if name in then.facts and name in now.facts]
    differ = [name for name in names if str(then.facts[name]) != str(now.facts[name])]
    named = " and ".join(name for name in differ if name != "environment")
    return named or ("the environment" if differ else "")


def exclusions(attempts: Iterable[Attempt], launch: Launch, servers: Servers) -> list[Exclusion]:
    """Return what attempts rule out for the next launch, which is like `launch`."""
    found = []
    for earlier in attempts:
        if earlier.outcome in _FAILED:
            differs = changed(earlier.launch, launch)
            for exclusion in _width(earlier, launch, servers):
                why = f"{exclusion.why} (but {differs} has changed since)" if differs else exclusion.why
                found.append(exclusion.replace(advisory=bool(differs), why=why))
    return found


def excluded_by(
    flag: str, value: str | None, ruled_out: Iterable[Exclusion], servers: Servers, setting: Setting
) -> Exclusion | None:
    """Return the first exclusion that a value of a flag falls under, or None."""
    kernels = servers.kernels(flag, value, setting)
    same = servers.equivalent(flag, value, setting) if value else frozenset()
    for item in ruled_out:
        if item.advisory or item.config or item.flag not in (None, flag):
            continue
        if item.value is not None and item.value in (*same, value):
            return item
        if item.kernels is not None and item.kernels in kernels and (value not in (None, "auto") or len(kernels) == 1):
            return item
    return None


def repeats(config: dict[str, str | None], ruled_out: Iterable[Exclusion]) -> Exclusion | None:
    """Return the exclusion of a whole configuration that `config` repeats, or None."""
    for item in ruled_out:
        if item.config and not item.advisory and all(config.get(flag) == value for flag, value in item.config):
            return item
    return None


def dead_values(
    launch: Launch, ruled_out: Sequence[Exclusion], servers: Servers, setting: Setting
) -> list[tuple[str, str | None, str, str, str]]:
    """Return the backends of a launch that cannot work: flag, value, why, source and the label they would fail with."""
    found = []
    for flag in servers.backends:
        value = value_of(launch, flag)
        if not concerns(flag, launch, servers, setting):
            continue
        hit = excluded_by(flag, value, [item for item in ruled_out if item.exact], servers, setting)
        if hit is not None:
            found.append((flag, value, hit.why, hit.source, hit.label))
            continue
        if (dead := why_dead(flag, value, servers, setting)) is not None:
            found.append((flag, value, *dead))
    return found


def why_dead(flag: str, value: str | None, servers: Servers, setting: Setting) -> tuple[str, str, str] | None:
    """Return why a value cannot work on a known GPU, the source, and the label that it would fail with; else None."""
    status = servers.status_of(flag, value, setting)
    if not status.is_dead or setting.sm is None:
        return None
    only = {sm for name in servers.kernels(flag, value, setting) for sm in servers.library(name).get("only", ())}
    label = "sm100-only-kernel" if only and only <= SM100 else "arch-unsupported-kernel"
    label = "degenerate-output" if status.status == "garbage" else label
    verb = "known to give garbage" if status.status == "garbage" else "refused"
    note = f" ({status.note})" if status.note else ""
    return f"{verb} on SM{setting.sm}{note}", status.source, label


def concerns(flag: str, launch: Launch, servers: Servers, setting: Setting) -> bool:
    """Return whether a backend flag does anything for this launch: given in the command, or plainly in use."""
    if flag in launch.flags:
        return True
    if servers.exists(flag, setting.version) is False:
        return False
    if flag == servers.components.get("moe"):
        return servers.is_moe(str(launch.facts.get("model", "")))
    if flag in (servers.components.get("fp4-gemm"), servers.components.get("fp8-gemm")):
        return setting.format == {"fp4-gemm": "nvfp4"}.get(_component(flag, servers), "fp8")
    return flag == servers.components.get("attention") and bool(launch.flags or launch.resolved)


def likely(launch: Launch, ruled_out: Sequence[Exclusion], servers: Servers, setting: Setting) -> list[Candidate]:
    """Return the labels that a launch without an explanation probably deserves, each with its reason."""
    return [
        Candidate(label, _LIKELY, f"{flag} {value or 'auto'} cannot work here: {why} ({source})")
        for flag, value, why, source, label in dead_values(launch, ruled_out, servers, setting)
    ]


def _component(flag: str, servers: Servers) -> str:
    return next((name for name, other in servers.components.items() if other == flag), "")


def _width(earlier: Attempt, launch: Launch, servers: Servers) -> list[Exclusion]:
    """What one failed attempt rules out; nothing, where another process held the memory."""
    if earlier.facts.get("other_pid") and "this process has" in earlier.text:
        return []
    known = setting_of(earlier.launch, servers)
    now = setting_of(launch, servers)
    setting = known.replace(**{name: getattr(now, name) for name in ("version", "sm", "format", "flashinfer")
                               if getattr(known, name) is None})  # fmt: skip
    found = []
    if kernels := earlier.blocks.get("kernels"):
        why = f"{servers.library(kernels)['name']}: {earlier.label}"
        found.append(Exclusion(why, earlier.source, earlier.label, kernels=kernels))
    for name, blocked in earlier.blocks.items():
        if name.startswith("--"):
            found.append(Exclusion(earlier.label, earlier.source, earlier.label, flag=name, value=blocked))
    config = tuple((flag, value_of(earlier.launch, flag)) for flag in servers.backends)
    if earlier.label == "unknown" and earlier.flag is None:
        return [Exclusion("it failed and nobody knows why", earlier.source, earlier.label, config=config)]
    flag, value = blamed(earlier, servers, setting)
    if flag is None and not found and _is_of_backends(earlier):
        why = f"{earlier.label}, and it is not clear which part failed"
        return [Exclusion(why, earlier.source, earlier.label, config=config)]
    if flag is None or earlier.retry in ("same-config", "n/a") or earlier.action == "free-memory":
        return found
    why = f"{earlier.label}: {earlier.text[:120]}" if earlier.text else earlier.label
    exact = earlier.outcome != "degenerate"
    if value is not None:
        found.append(Exclusion(why, earlier.source, earlier.label, flag=flag, value=value, exact=exact))
    if earlier.action == "change-flag" and earlier.label != "unknown" and flag in servers.backends:
        of_value = servers.kernels(flag, value, setting)
        if len(of_value) == 1 and of_value <= servers.libraries:
            wide = Exclusion(why, earlier.source, earlier.label, flag=flag, kernels=min(of_value), exact=exact)
            found.append(wide)
    return found


def _is_of_backends(earlier: Attempt) -> bool:
    """Whether other backends are the way out of a failure that blames none."""
    return (
        (earlier.outcome, earlier.action) == ("failed", "change-flag")
        and earlier.retry not in ("same-config", "n/a")
        and earlier.label not in ("unsupported-config", "port-in-use")
    )


def blamed(earlier: Attempt, servers: Servers, setting: Setting) -> tuple[str | None, str | None]:
    """Return the flag that an attempt's failure is held against, and its value.

    That is the flag to blame; of garbage, which blames none, the first backend that is in use, of those that most
    often are at fault (MoE, then dense GEMM, then attention).
    """
    if earlier.flag is not None and earlier.flag.startswith("--"):
        return earlier.flag, earlier.value if earlier.value is not None else value_of(earlier.launch, earlier.flag)
    if earlier.outcome != "degenerate":
        return None, None
    flag = next(iter(suspects(earlier.launch, servers, setting)), None)
    return flag, value_of(earlier.launch, flag) if flag else None


def suspects(launch: Launch, servers: Servers, setting: Setting) -> list[str]:
    """Return the backend flags that are in use, those that most often compute garbage first."""
    order = [servers.components[name] for name in ("moe", "fp4-gemm", "fp8-gemm", "attention") if
             name in servers.components]  # fmt: skip
    return [flag for flag in order if concerns(flag, launch, servers, setting)]
