"""The packages of the Python that a command runs: what is missing, and which versions do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.preflight.finding import FAILS, OK, RISK, Finding
from logtriage.engine.conditions import version_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.preflight.finding import Question

_PARTS = ("flashinfer_cubin", "flashinfer_jit_cache")
_UNCHECKED = "FLASHINFER_DISABLE_VERSION_CHECK"


def check(question: Question) -> Iterator[Finding]:
    """Yield modules that are missing, parts of FlashInfer out of step, and versions that SGLang was not made for."""
    yield from _missing(question)
    yield from _out_of_step(question)
    yield from _pins(question)


def _missing(question: Question) -> Iterator[Finding]:
    environment = question.environment
    wanted = {item["module"]: f" (package {item['package']}), which {item['flag']} {question.flag(item['flag'])} needs"
              for item in question.known["modules_for"] if question.flag(item["flag"]) in item["values"]}  # fmt: skip
    for name in environment.missing or ():
        python = environment.python
        what = f"{python} has no {name}{wanted.get(name, '')}" if python else f"{name} is not found on PATH"
        why = "" if name in wanted else "With --elsewhere only the command is looked at, for another machine"
        yield Finding("package", FAILS, what, why=why, label="missing-dependency")
    packages = environment.packages
    if packages and environment.missing == ():
        names = {fact: several[0] for fact, several in question.known["packages"].items()}
        shown = ", ".join(sorted(f"{names.get(fact, fact)} {version}" for fact, version in packages.items()))
        yield Finding("package", OK, f"Installed: {shown}", why=environment.python or "")


def _out_of_step(question: Question) -> Iterator[Finding]:
    """FlashInfer refuses to be imported beside parts of another version."""
    packages = question.environment.packages or {}
    own = packages.get("flashinfer")
    if own is None or question.launch.env.get(_UNCHECKED):
        return
    for part in _PARTS:
        version = packages.get(part)
        if version is not None and version.partition("+")[0] != own.partition("+")[0]:
            name = part.replace("_", "-")
            what = f"{name} {version} does not go with flashinfer-python {own}, which refuses to start beside it"
            why = f"install all of them at one version; {_UNCHECKED}=1 hides it"
            yield Finding("package-versions", FAILS, what, why=why, source="flashinfer 0.4.0 to 0.6.17 source",
                          label="cuda-toolkit-mismatch")  # fmt: skip


def _pins(question: Question) -> Iterator[Finding]:
    """Versions that a release of SGLang asks for; it refuses older FlashInfer and kernels itself."""
    packages = question.environment.packages or {}
    version = packages.get("server_version")  # the one that is installed, whatever an option says
    pins = next((item for item in question.known["pins"] if item["version"] == version), None)
    for name, wanted in (pins["packages"] if pins else {}).items():
        installed = packages.get(name)
        if installed is None or _same(wanted, installed):
            continue
        older = version_key(installed) < version_key(wanted)
        shown = f"{question.known['packages'][name][0]} {installed}"
        what = f"{shown} is {'older' if older else 'newer'} than the {wanted} that SGLang {version} asks for"
        why = "it may refuse to start" if older else "it was not made for it"
        yield Finding("package-versions", RISK, what, why=why, source=question.known["pins_source"],
                      label="cuda-toolkit-mismatch")  # fmt: skip


def _same(wanted: str, version: str) -> bool:
    """Whether a version is the wanted one, as far as that goes: 2.9 is wanted and 2.9.1+cu128 there."""
    own = version.partition("+")[0]
    return own == wanted or own.startswith(f"{wanted}.")
