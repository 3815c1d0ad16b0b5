"""The backends that a launch would use, against what is known of their kernels on its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice import history
from logtriage.advice.evidence import DEPENDS
from logtriage.advice.preflight.finding import FAILS, GARBAGE, OK, RISK, UNKNOWN, Finding
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.evidence import Candidate, Setting
    from logtriage.advice.preflight.finding import Question

_MOST = 3
_LIST = "servers/sglang/kernels.yaml"


def check(question: Question) -> Iterator[Finding]:
    """Yield what is known of each backend in use: refused, garbage, disputed, works, or that nobody has said."""
    for flag in in_use(question):
        value = history.value_of(question.launch, flag)
        choices = question.servers.choices(flag, question.version)
        if value is not None and choices and value not in choices:
            continue  # the spelling is wrong: another check says so
        if value is None and not question.sms:
            continue  # what it stands for depends on the GPU
        found = [_one(question, setting, flag, value) for setting in question.settings]
        worst = min(found, key=lambda finding: (FAILS, GARBAGE, RISK, UNKNOWN, OK).index(finding.severity))
        yield worst
        if flag in question.launch.flags:
            yield from _wrong_kind(question, flag, str(value))


def in_use(question: Question) -> list[str]:
    """Return the flags that select kernels which this launch would run."""
    servers, launch, setting = question.servers, question.launch, question.settings[0]
    moe = servers.components.get("moe")
    experts = question.model.config.get("experts") if question.model and question.model.config else None
    flags = [flag for flag in servers.backends if flag != moe and history.concerns(flag, launch, servers, setting)]
    has_experts = history.concerns(str(moe), launch, servers, setting) if experts is None else experts > 1
    if moe and (has_experts or moe in launch.flags):
        flags.insert(0, moe)
    others = [
        flag
        for flag, value in launch.flags.items()
        if flag not in servers.backends and servers.kernels(flag, value, setting) & servers.libraries
    ]
    return [*flags, *others]


def alternatives(question: Question, setting: Setting, flag: str, value: str | None) -> Iterator[Candidate]:
    """Yield the values that may work in a setting in place of one, the best first; none that may be the same code."""
    servers = question.servers
    same = servers.equivalent(flag, value, setting) if value else frozenset()
    now = servers.kernels(flag, value, setting)
    for candidate in servers.candidates(flag, setting, servers.model_of(flag, value)):
        if candidate.value not in same and now != {candidate.kernels}:
            yield candidate


def _one(question: Question, setting: Setting, flag: str, value: str | None) -> Finding:
    servers = question.servers
    shown = f"{flag} {value}" if value else f"{flag} (not given)"
    kernels = servers.kernels(flag, value, setting)
    status = servers.status_of(flag, value, setting)
    names = " or ".join(sorted(servers.library(name)["name"] for name in kernels & servers.libraries))
    about = Finding("backend", OK, "", flag=flag, value=value or "auto", source=status.source,
                    confidence=status.confidence)  # fmt: skip
    dead = history.why_dead(flag, value, servers, setting)
    if dead is not None:
        why, source, label = dead
        verdict = "is known to give garbage" if label == "degenerate-output" else "cannot work"
        return about.replace(
            severity=GARBAGE if label == "degenerate-output" else FAILS,
            what=f"{shown} {verdict} on SM{setting.sm}",
            why=f"{names}: {why}" if names else why,
            source=source,
            label=label,
            instead=tuple(_instead(question, setting, flag, value)),
        )
    where = f"SM{setting.sm}" if setting.sm is not None else "some GPUs"
    if status.is_dead:
        return about.replace(severity=RISK, what=f"{shown} works on no GPU that is known", why=names)
    missing = ["the version of SGLang (--server-version)"] if setting.version is None else []
    is_moe = flag.endswith(servers.components["moe"].lstrip("-"))
    missing += ["the quantization"] if setting.format is None and is_moe else []
    depends = status.note == DEPENDS and bool(missing)
    if status.status == "works" and setting.sm is not None and not depends:
        if status.disputed:
            text = f"{shown} works on {where}, but sources disagree: judge it by its answers"
            return about.replace(severity=RISK, what=text, why=f"{names}: {status.disputed}")
        return about.replace(what=f"{shown} works on {where}", why=f"{names} ({status.note})" if status.note else names)
    if setting.sm is None:
        text = f"{shown}: whether it works depends on the GPU, which is not known (--sm)"
        return about.replace(severity=UNKNOWN, what=text, why=names)
    if missing:
        text = f"{shown}: whether it works on {where} depends on {' and '.join(missing)}"
    else:
        text = f"{shown}: nobody has said whether it works on {where}"
    return about.replace(severity=UNKNOWN, what=text, why=names, source="")


def _instead(question: Question, setting: Setting, flag: str, value: str | None) -> Iterator[Change]:
    for place, candidate in enumerate(alternatives(question, setting, flag, value)):
        if place == _MOST:
            return
        status = candidate.status
        works = status.status == "works"
        words = f"works on SM{setting.sm}" if works else f"nobody has said whether it works on SM{setting.sm}"
        more = "; ".join(part for part in (status.note, status.disputed) if part)
        why = f"{question.servers.library(candidate.kernels)['name']}: {words}" + (f" ({more})" if more else "")
        yield Change(flag, value, candidate.value, why, status.confidence, status.source or _LIST)


def _wrong_kind(question: Question, flag: str, value: str) -> Iterator[Finding]:
    """A value for another platform, or for models whose attention is of another kind."""
    servers, setting = question.servers, question.settings[0]
    platform = servers.for_other_platform(flag, value, setting)
    if platform is not None and setting.platform is not None:
        text = f"{flag} {value} is for {platform}; this is {setting.platform}"
        yield Finding("backend-platform", RISK, text, source=_LIST, flag=flag, value=value)
    model = question.model
    if model is None or not model.config:
        return
    own = "mla" if "latent_kv" in model.config else "mha"
    wanted = servers.model_of(flag, value)
    if wanted in ("mla", "mha") and wanted != own:
        text = f"{flag} {value} is for {wanted.upper()} models; this one has {own.upper()}"
        yield Finding("backend-model", RISK, text, source=_LIST, flag=flag, value=value, label="unsupported-config")
