"""The weights against the memory of the GPUs, and what other processes hold of it.

The share of each GPU is about a lower bound: attention that is not divided (``--enable-dp-attention``) takes more, and
layers for speculation that stand in the files (2 % of DeepSeek-V3) are not always loaded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from logtriage.advice.preflight import backends, sizes
from logtriage.advice.preflight.finding import FAILS, GIB, OK, RISK, Finding, gib
from logtriage.records import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.advice.preflight.finding import Question
    from logtriage.environment import Gpu

_FRACTION = "--mem-fraction-static"
_MOST = 0.95
_SURELY = 0.95
"""What part of the weights in the files is loaded in any case."""

_HEADERS = "safetensors headers"


def check(question: Question) -> Iterator[Finding]:
    """Yield whether the weights fit, whether they leave room for the KV cache, and who else is on the GPUs."""
    fraction, bad = _fraction(question)
    if bad is not None:
        yield bad
        return
    gpus = (question.environment.gpus or ())[: sizes.of(question).gpus]
    if question.flag("--device") == "cpu" or not gpus or not all(gpu.memory for gpu in gpus):
        return
    share = _share(question)
    if share is None:
        yield from _held(gpus, None)
        return
    found = _fit(question, share, min(gpu.memory or 0 for gpu in gpus), fraction)
    yield found
    if found.severity != FAILS:
        held = list(_held(gpus, share))
        yield from held
        if all(item.severity != FAILS for item in held):
            yield from _repack(question, share, min(gpu.memory or 0 for gpu in gpus))


def _fraction(question: Question) -> tuple[float | None, Finding | None]:
    text = question.flag(_FRACTION)
    if text is None:
        return None, None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if 0 < value < 1:
        return value, None
    what = f"{_FRACTION} is a part of the GPU between 0 and 1, such as 0.85, not {text}"
    return None, Finding("memory-fraction", FAILS, what, flag=_FRACTION, value=text, label="oom-kv-cache")


def _share(question: Question) -> float | None:
    """Bytes of the weights on each GPU, at least; None if they are not known."""
    model, size = question.model, sizes.of(question)
    if model is None or model.weight_bytes is None or _is_converted(question):
        return None
    try:
        offloaded = float(question.flag("--cpu-offload-gb") or 0) * GIB
    except ValueError:
        return None
    return max(0.0, model.weight_bytes / (size.tp * size.pp) - offloaded)


def _is_converted(question: Question) -> bool:
    """Whether the weights are quantized while they are loaded, so that they take less than their files."""
    asked, model = question.flag("--quantization"), question.model
    return bool(asked and model and model.quantization in (None, "unquant") and asked != "unquant")


def _fit(question: Question, share: float, memory: int, fraction: float | None) -> Finding:
    size = sizes.of(question)
    limit = fraction if fraction is not None else float(question.known["mem_fraction_guess"])
    over = f" (tp {size.tp}" + (f" x pp {size.pp})" if size.pp > 1 else ")")
    total = question.model.weight_bytes if question.model else 0
    why = f"{gib(total or 0)} of weights{over}; each GPU has {gib(memory)}"
    about = Finding("weights-fit", FAILS, "", why=why, source=_HEADERS)
    if share * _SURELY > memory:
        what = f"The weights do not fit: at least {gib(share)} for each GPU of {gib(memory)}"
        return about.replace(what=what, label="oom-weight-load", instead=_more_gpus(question, share, memory),
                             flag="--tp-size", value=str(size.tp))  # fmt: skip
    room = memory * limit - share
    if share * _SURELY >= memory * limit and fraction is not None:
        what = f"{_FRACTION} {question.flag(_FRACTION)} leaves nothing for the KV cache: the weights take {gib(share)}"
        new = math.ceil((share / memory + 0.05) * 100) / 100
        raised = Change(_FRACTION, question.flag(_FRACTION), f"{new:g}", "weights and 5 % for the KV cache", 0.7, why)
        instead = (raised,) if new <= _MOST else _more_gpus(question, share, memory)
        return about.replace(what=what, label="oom-kv-cache", instead=instead, flag=_FRACTION,
                             value=question.flag(_FRACTION))  # fmt: skip
    if room < memory * float(question.known["limits"]["kv_share"]):
        what = f"The weights take {gib(share)} of {gib(memory)}: hardly anything is left for the KV cache"
        return about.replace(severity=RISK, what=what, label="oom-kv-cache", flag="--tp-size", value=str(size.tp),
                             instead=_more_gpus(question, share, memory))  # fmt: skip
    guess = "" if fraction is not None else f" (taking {_FRACTION} {limit:g} for what SGLang works out)"
    what = f"The weights take at least {gib(share)} of {gib(memory)} on each GPU, {gib(room)} are left{guess}"
    return about.replace(severity=OK, what=what)


def _more_gpus(question: Question, share: float, memory: int) -> tuple[Change, ...]:
    """A larger --tp-size that the machine has GPUs for and that holds the weights, if there is one."""
    size = sizes.of(question)
    count, tp = len(question.environment.gpus or ()), size.tp
    model = question.model
    heads = model.config.get("heads") if model else None
    while (tp := tp * 2) * size.pp * size.replicas // size.nodes <= count:
        if share * size.tp / tp < memory * 0.8 and (not heads or heads % tp == 0):
            why = f"each GPU then holds {gib(share * size.tp / tp)}"
            return (Change("--tp-size", question.flag("--tp-size"), str(tp), why, 0.7, _HEADERS),)
    return ()


def _held(gpus: Sequence[Gpu], share: float | None) -> Iterator[Finding]:
    """Memory that other processes hold now; the GPU with the least room speaks for all."""
    gpu = min(gpus, key=lambda item: item.free or 0)
    if gpu.free is None or gpu.memory is None:
        return
    used = gpu.memory - gpu.free
    if used < gpu.memory * 0.05:
        return
    told = [
        f"process {item.pid}" + (f" ({item.name})" if item.name else "") + (f": {gib(item.used)}" if item.used else "")
        for item in gpu.holders[:3]
    ]
    who = "; ".join(told) or "NVML names no process (it may belong to another container)"
    what = f"GPU {gpu.index} is in use: {gib(used)} of {gib(gpu.memory)} are taken"
    about = Finding("gpu-in-use", RISK, what, why=who, source="NVML", label="oom-gpu")
    if share is not None and share * _SURELY > gpu.free:
        what = f"{what}, and the weights need {gib(share)}"
        about = about.replace(severity=FAILS, what=what, label="oom-weight-load")
    yield about


def _repack(question: Question, share: float, memory: int) -> Iterator[Finding]:
    """Kernels that rearrange weights after loading take a second copy of a layer for a moment."""
    layers = question.model.config.get("layers") if question.model else None
    if not layers:
        return
    layer = share / layers * sizes.of(question).pp
    for flag in backends.in_use(question):
        value = question.flag(flag)
        kernels = question.servers.kernels(flag, value, question.settings[0])
        libraries = [question.servers.library(name) for name in kernels]
        if libraries and all(library.get("repacks") for library in libraries) and share + layer > memory:
            what = f"{flag} {value or 'auto'} rearranges the weights after loading, which takes {gib(layer)} more"
            yield Finding("weights-repacked", RISK, what, why=libraries[0]["name"], flag=flag, value=value,
                          label="oom-weight-shuffle")  # fmt: skip
