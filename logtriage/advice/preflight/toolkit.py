"""Driver, CUDA toolkit and assembler, against the GPU and against what the backends in use need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.preflight import backends
from logtriage.advice.preflight.finding import FAILS, OK, RISK, Finding
from logtriage.engine.conditions import in_range, version_key
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.advice.preflight.finding import Question
    from logtriage.environment import Compiler

_LABEL = "cuda-toolkit-mismatch"
_REFUSES_SINCE = "0.6.5"  # FlashInfer says since then that SM12x needs a newer nvcc


def check(question: Question) -> Iterator[Finding]:
    """Yield what is too old for the GPU, or too new for the driver."""
    if question.flag("--device") == "cpu":
        return
    yield from _torch(question)
    needs = _needs(question)
    if "nvcc" in needs:
        yield from _nvcc(question, needs["nvcc"])
    yield from _ptxas(question)
    if "cubins" in needs:
        yield from _cubins(question, needs["cubins"])


def _needs(question: Question) -> dict[str, str]:
    """What the backends in use need beyond their package, and the first of them that does."""
    found: dict[str, str] = {}
    setting = question.settings[0]
    for flag in backends.in_use(question):
        value = question.flag(flag)
        kernels = question.servers.kernels(flag, value, setting)
        needs = [set(question.servers.library(name)["needs"]) for name in kernels & question.servers.libraries]
        for need in set.intersection(*needs) if needs else ():
            found.setdefault(need, f"{flag} {value or 'auto'}")
    return found


def _torch(question: Question) -> Iterator[Finding]:
    """PyTorch's CUDA, which the driver must serve and which must know the GPU."""
    cuda, environment = question.environment.torch_cuda, question.environment
    if cuda is None:
        return
    major = cuda.partition(".")[0]
    newest = environment.driver_cuda
    if newest is not None and int(newest.partition(".")[0]) < int(major):
        needed = question.known["driver_since"].get(major)
        what = f"PyTorch is built for CUDA {cuda}, and driver {environment.driver} serves up to CUDA {newest}"
        why = f"CUDA {major} needs driver {needed} or later, or a package cuda-compat" if needed else ""
        yield Finding("driver", FAILS, what, why=why, source=question.known["driver_source"], label=_LABEL)
    for sm in question.sms:
        since = question.known["torch_since"].get(str(sm))
        if since is not None and version_key(cuda) < version_key(since):
            what = (
                f"PyTorch is built for CUDA {cuda}, whose code does not run on SM{sm}: it takes CUDA {since} or later"
            )
            yield Finding("torch-gpu", FAILS, what, source=question.known["torch_source"], label=_LABEL)


def _nvcc(question: Question, who: str) -> Iterator[Finding]:
    found, environment = question.environment.nvcc, question.environment
    if found is None:
        return
    built = " (unless they were built before)"
    prebuilt = bool(environment.packages and "flashinfer_jit_cache" in environment.packages)
    if not found or found[0].version is None:
        where = f"{found[0].found} leads to {found[0].path}, which is not there" if found else "there is no nvcc"
        change = _newer(found, "1")
        what = f"{who} builds kernels at the first start{built}, and {where}"
        if not prebuilt:
            yield Finding("nvcc", RISK, what, label=_LABEL, flag="CUDA_HOME", instead=change)
        return
    first = found[0]
    fault = _too_old(question, first, who)
    if fault is not None:
        yield fault
    elif question.sms:
        yield Finding("nvcc", OK, f"nvcc {first.version} ({first.found}) knows the GPU", why=first.path)
    cuda = environment.torch_cuda
    if fault is None and cuda and cuda.partition(".")[0] != str(first.version).partition(".")[0]:
        what = f"nvcc is of CUDA {first.version}, PyTorch of CUDA {cuda}: extensions that PyTorch builds refuse that"
        yield Finding("nvcc-torch", RISK, what, why=first.path, label=_LABEL, flag="CUDA_HOME")
    elif fault is None and cuda and version_key(str(first.version)) < version_key(cuda):
        what = (
            f"nvcc is of CUDA {first.version}, older than the CUDA {cuda} of PyTorch: what it builds may miss features"
        )
        yield Finding("nvcc-torch", RISK, what, why=first.path, label=_LABEL, flag="CUDA_HOME")


def _too_old(question: Question, nvcc: Compiler, who: str) -> Finding | None:
    """Where nvcc does not know the GPU, or FlashInfer takes it for too old."""
    packages = question.environment.packages or {}
    for sm in question.sms:
        since = question.known["compiler_since"].get(str(sm))
        about = Finding("nvcc", RISK if "flashinfer_jit_cache" in packages else FAILS, "", label=_LABEL,
                        why=nvcc.path, flag="CUDA_HOME", instead=_newer(question.environment.nvcc, since))  # fmt: skip
        if since and version_key(str(nvcc.version)) < version_key(since):
            what = f"nvcc {nvcc.version} ({nvcc.found}) does not know SM{sm}, which takes {since}; {who} builds with it"
            return about.replace(what=what, source=question.known["compiler_source"])
        wanted = question.known["flashinfer_since"].get(str(sm))
        if wanted and version_key(str(nvcc.version)) < version_key(wanted):
            version = packages.get("flashinfer")
            sure = version is not None and in_range(version, f">={_REFUSES_SINCE}")
            what = f"nvcc {nvcc.version} ({nvcc.found}) is too old for FlashInfer on SM{sm}, which takes {wanted}"
            severity = about.severity if sure else RISK
            newer = _newer(question.environment.nvcc, wanted)
            return about.replace(severity=severity, what=f"{what}; {who} builds with it", instead=newer,
                                 source=question.known["flashinfer_source"])  # fmt: skip
    return None


def _newer(found: Sequence[Compiler] | None, since: str | None) -> tuple[Change, ...]:
    """Another nvcc of this machine that is new enough; not one whose toolkit is spread over the system's folders."""
    for item in found or ():
        home = item.path.removesuffix("/bin/nvcc")
        if home in (item.path, "/usr", "/usr/local"):
            continue
        if since and item.version and version_key(item.version) >= version_key(since):
            return (Change("CUDA_HOME", None, home, f"nvcc {item.version}", 0.7, item.found),)
    return ()


def _ptxas(question: Question) -> Iterator[Finding]:
    """Triton's assembler; on Blackwell the one of that name, where Triton has two."""
    found = [item for item in question.environment.ptxas or () if item.version]
    for sm in question.sms:
        since = question.known["compiler_since"].get(str(sm))
        own = [item for item in found if ("blackwell" in (item.found + item.path).lower()) == (sm >= 100)] or found
        if not own or since is None or version_key(str(own[0].version)) >= version_key(since):
            continue
        what = f"Triton's ptxas {own[0].version} does not know SM{sm}, which takes {since}"
        variable = "TRITON_PTXAS_BLACKWELL_PATH" if "blackwell" in own[0].path else "TRITON_PTXAS_PATH"
        instead = tuple(item.replace(flag=variable, new=f"{item.new}/bin/ptxas") for item in
                        _newer(question.environment.nvcc, since))  # fmt: skip
        yield Finding("ptxas", FAILS, what, why=own[0].path, source=question.known["compiler_source"], label=_LABEL,
                      flag=variable, instead=instead)  # fmt: skip


def _cubins(question: Question, who: str) -> Iterator[Finding]:
    packages = question.environment.packages
    if packages is not None and "flashinfer" in packages and "flashinfer_cubin" not in packages:
        what = f"{who} downloads its kernels at the first start: it needs the network, or the package flashinfer-cubin"
        yield Finding("cubins", RISK, what, label="missing-dependency")
