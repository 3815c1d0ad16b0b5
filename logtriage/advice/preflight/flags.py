"""Flags and values of a command, against those that the version of the server has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice.preflight.finding import FAILS, RISK, UNKNOWN, Finding
from logtriage.engine.conditions import in_range, version_key
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.preflight.finding import Question

_SOURCE = "servers/sglang/flags.yaml"
_ALIKE = 0.85
_LABEL = "unsupported-config"


def check(question: Question) -> Iterator[Finding]:
    """Yield flags, values and variables that the version does not have, with what they may have meant."""
    for flag, value in question.launch.flags.items():
        if not flag.startswith("--"):
            continue
        if flag not in question.servers.flags(None):
            yield from _unlisted(question, flag, value)
        elif question.version is not None and question.servers.exists(flag, question.version) is False:
            yield _gone(question, flag, value)
        else:
            yield from _value(question, flag, value)
    yield from _variables(question)


def _unlisted(question: Question, flag: str, value: str) -> Iterator[Finding]:
    """A flag that is in no list: the lists do not hold every flag, so it may exist."""
    if _abbreviates(question, flag):
        return
    near = question.servers.closest(flag, [*question.servers.flags(question.version), *_aliases(question)], _ALIKE)
    if near is None:
        text = f"{flag} is not among the flags that are known here, so it is not checked"
        yield Finding("flag-unlisted", UNKNOWN, text, source=_SOURCE, flag=flag, value=value)
        return
    change = Change(near, None, value, f"{near} is spelt like it", _ALIKE, _SOURCE)
    text = f"{flag} is no known flag: did you mean {near}?"
    yield Finding("flag-spelling", RISK, text, source=_SOURCE, flag=flag, value=value, label=_LABEL, instead=(change,))


def _gone(question: Question, flag: str, value: str) -> Finding:
    """A flag that other versions have."""
    version = f"SGLang {question.version}"
    about = Finding("flag-version", FAILS, f"{flag} is no flag of {version}", source=_SOURCE, flag=flag, value=value,
                    label=_LABEL)  # fmt: skip
    if not _is_exact(str(question.version), question.servers.versions) and _is_near(question, flag):
        what = f"{flag} is a flag of some versions near {question.version}, whose own source was not read"
        return about.replace(severity=UNKNOWN, what=what)
    if not question.servers.covers(str(question.version)):
        return about.replace(severity=RISK, what=f"{flag} may not be a flag of {version}, whose source was not read")
    new = question.servers.renamed(flag, question.version)
    if new is not None:
        plain = new if new in question.servers.flags(question.version) else None
        change = Change(plain or flag, value, value if plain else None, f"it is called {new} now", 0.9, _SOURCE)
        return about.replace(what=f"{about.what}: it is {new} now", instead=(change,) if plain else ())
    if longer := _abbreviates(question, flag):
        return about.replace(severity=RISK, what=f"{flag} is no flag of {version}, which reads it as {longer}")
    versions = question.data["flags"][flag].get("versions", "")
    return about.replace(why=f"it exists in {versions}" if versions else "")


def _value(question: Question, flag: str, value: str) -> Iterator[Finding]:
    choices = question.servers.choices(flag, question.version)
    if not choices or value in choices:
        return
    about = Finding("flag-value", FAILS, "", source=_SOURCE, flag=flag, value=value, label=_LABEL)
    first, _, rest = value.partition(" ")
    if value == "true":
        yield about.replace(what=f"{flag} needs a value: {_few(choices)}")
    elif rest and first in choices:
        yield about.replace(what=f"{flag} takes one value: {rest!r} behind it would be refused")
    else:
        yield _no_choice(question, about, choices)


def _no_choice(question: Question, about: Finding, choices: tuple[str, ...]) -> Finding:
    servers, version, flag, value = question.servers, question.version, str(about.flag), str(about.value)
    meant = servers.value_renamed(flag, value, version)
    meant = meant if meant in choices else servers.closest(value, choices, 0.6)
    change = Change(flag, value, meant, f"{meant} is the nearest choice", 0.7, _SOURCE) if meant else None
    hint = f": did you mean {meant}?" if meant else ""
    about = about.replace(why=f"choices: {_few(choices)}", instead=(change,) if change else ())
    every = _every_choice(question.data["flags"][flag])
    if version is None:
        somewhere = value in every
        text = f"{flag} {value} is a choice of some versions only" if somewhere else f"no version has {flag} {value}"
        return about.replace(severity=UNKNOWN if somewhere else RISK, what=text + ("" if somewhere else hint))
    if not servers.covers(version):
        what = f"{value} was no choice of {flag} in the versions that were read, of which {version} is none"
        return about.replace(severity=RISK, what=what)
    if not _is_exact(version, servers.versions) and value in every:
        what = f"{value} is a choice of {flag} in some versions near {version}, whose own source was not read"
        return about.replace(severity=UNKNOWN, what=what, instead=())
    return about.replace(what=f"{value} is no choice of {flag} in SGLang {version}{hint}")


def _variables(question: Question) -> Iterator[Finding]:
    """Variables of the environment that the version no longer reads."""
    if question.version is None:
        return
    for item in question.data.get("env_renames", ()):
        gone = item.get("removed_since")
        if item["old"] in question.launch.env and gone and in_range(question.version, f">={gone}"):
            text = f"{item['old']} is not read by SGLang {question.version}: use {item['new']}"
            yield Finding(
                "variable", RISK, text, source=_SOURCE, flag=item["old"], value=question.launch.env[item["old"]]
            )


def _abbreviates(question: Question, flag: str) -> str | None:
    """The one flag that a beginning of it stands for, as argparse reads it, or None."""
    names = {*question.servers.flags(question.version), *_aliases(question)}
    longer = {question.servers.canonical(name) for name in names if name.startswith(flag) and name != flag}
    return longer.pop() if len(longer) == 1 else None


def _aliases(question: Question) -> list[str]:
    aliases = question.data.get("aliases", {})
    return [old for old, new in aliases.items() if question.servers.exists(new, question.version) is not False]


def _every_choice(entry: Any) -> set[str]:
    return {*entry.get("choices", ()), *(value for step in entry.get("history", ()) for value in step.get("added", ()))}


def _is_exact(version: str, read: Any) -> bool:
    """Whether the source of exactly this version was read: a build between two releases has flags of its own."""
    own = version_key(version)
    return own[4:5] >= (0,) and "+g" not in version and any(version_key(known)[:4] == own[:4] for known in read)


def _is_near(question: Question, flag: str) -> bool:
    """Whether the last version before, or the first one after, that was read has a flag."""
    own = version_key(str(question.version))
    before = [known for known in question.servers.versions if version_key(known) <= own]
    after = [known for known in question.servers.versions if version_key(known) > own]
    return any(question.servers.exists(flag, known) for known in (*before[-1:], *after[:1]))


def _few(choices: tuple[str, ...]) -> str:
    shown = ", ".join(choices[:12])
    return f"{shown}, …" if len(choices) > 12 else shown
