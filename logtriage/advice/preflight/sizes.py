"""Parallel sizes against the GPUs that there are and against what they have to divide in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.advice.preflight.finding import FAILS, OK, RISK, Finding
from logtriage.records import Change, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logtriage.advice.preflight.finding import Question

_SIZES = ("--tp-size", "--pp-size", "--dp-size", "--ep-size", "--nnodes", "--attn-cp-size", "--attn-dp-size")
_SOURCE = "sglang 0.5.5 to 0.5.23 source"
_LABEL = "unsupported-config"
_EP_IS_TP = ("deepep", "mooncake", "nixl", "mori")


class Sizes(Record):
    """The parallel sizes of a launch; `attention` and `moe` are the ranks that share one layer of the kind.

    `gpus` is how many one machine needs, `replicas` how often the whole model is started.
    """

    tp: int
    pp: int
    dp: int
    ep: int
    nodes: int
    attention: int
    moe: int
    gpus: int
    replicas: int


def of(question: Question) -> Sizes:
    """Return the parallel sizes of a launch, each at least 1; what does not divide is rounded down, `check` says so."""

    def size(flag: str) -> int:
        return max(1, question.number(flag))

    tp, pp, dp, nodes = size("--tp-size"), size("--pp-size"), size("--dp-size"), size("--nnodes")
    shared = question.is_on("--enable-dp-attention")
    attention_dp = dp if shared else size("--attn-dp-size")
    attention = max(1, tp // (attention_dp * size("--attn-cp-size")))
    ep = tp if question.flag("--moe-a2a-backend") in _EP_IS_TP else size("--ep-size")
    replicas = 1 if shared else dp
    moe = max(1, tp // (ep * size("--moe-dp-size")))
    return Sizes(tp, pp, dp, ep, nodes, attention, moe, max(1, tp * pp * replicas // nodes), replicas)


def check(question: Question) -> Iterator[Finding]:
    """Yield sizes that are no numbers, that need more GPUs than there are, or that do not divide."""
    are_numbers = True
    for flag in _SIZES:
        text = question.flag(flag)
        if text is not None and (not text.isdecimal() or int(text[:9]) == 0):
            are_numbers = False
            what = f"{flag} takes a whole number from 1, not {text!r}"
            yield Finding("size-number", FAILS, what, source=_SOURCE, flag=flag, value=text, label=_LABEL)
    if not are_numbers:  # what they come to is not known
        return
    sizes = of(question)
    yield from _gpus(question, sizes)
    yield from _among_each_other(question, sizes)
    yield from _in_the_model(question, sizes)


def _gpus(question: Question, sizes: Sizes) -> Iterator[Finding]:
    found = question.environment.gpus
    if found is None or question.flag("--device") == "cpu" or question.launch.command is None:
        return
    first, step = question.number("--base-gpu-id", 0), question.number("--gpu-id-step")
    needed = first + (sizes.gpus - 1) * step + 1
    parts = {"tp": sizes.tp, "pp": sizes.pp, "dp": sizes.replicas}
    product = " x ".join(f"{name} {size}" for name, size in parts.items() if size > 1 or name == "tp")
    nodes = f" over {sizes.nodes} machines" if sizes.nodes > 1 else ""
    behind = f", counted from GPU {first} in steps of {step}" if (first, step) != (0, 1) else ""
    about = Finding("gpu-count", OK, f"{len(found)} GPUs are enough for {product}{nodes}{behind}", flag="--tp-size",
                    value=str(sizes.tp))  # fmt: skip
    if needed <= len(found):
        yield about
        return
    what = f"{product}{nodes} needs {needed} GPUs here{behind}, and there are {len(found)}"
    tp = _largest_tp(question, len(found)) if sizes.gpus == sizes.tp and (first, step) == (0, 1) else None
    change = Change("--tp-size", question.flag("--tp-size"), str(tp), f"{len(found)} GPUs", 0.7, "GPUs of this launch")
    yield about.replace(severity=FAILS, what=what, label=_LABEL, instead=(change,) if tp else ())


def _largest_tp(question: Question, most: int) -> int | None:
    heads = question.model.config.get("heads") if question.model else None
    fitting = [tp for tp in range(1, most + 1) if (heads % tp == 0 if heads else tp & (tp - 1) == 0)]
    return fitting[-1] if fitting else None


def _among_each_other(question: Question, sizes: Sizes) -> Iterator[Finding]:
    """SGLang's own demands on the sizes."""
    cp = question.number("--attn-cp-size")
    demands = [("--nnodes", sizes.nodes, "the number of machines"), ("--attn-cp-size", cp, "--attn-cp-size")]
    if question.is_on("--enable-dp-attention"):
        demands.append(("--dp-size", sizes.dp * cp, "--dp-size" + (" x --attn-cp-size" if cp > 1 else "")))
    if "--ep-size" in question.launch.flags:
        demands.append(("--ep-size", sizes.ep, "--ep-size"))
    for flag, size, name in demands:
        total = sizes.tp * sizes.pp if flag == "--nnodes" else sizes.tp
        if size > 0 and total % size:
            what = f"--tp-size {sizes.tp} is not divisible by {name} {size}"
            yield _indivisible("size-divides", flag, str(size), what)


def _in_the_model(question: Question, sizes: Sizes) -> Iterator[Finding]:
    model = question.model
    if model is None or not model.config:
        return
    config, ranks = model.config, sizes.attention
    heads, kv_heads = config.get("heads"), config.get("kv_heads")
    tp = str(sizes.tp)
    divides = True
    if heads and heads % ranks:
        divides = False
        what = f"{heads} attention heads cannot be divided among {ranks} ranks (--tp-size {tp})"
        yield _indivisible("heads", "--tp-size", tp, what, _other_tp(question, heads, sizes))
    elif kv_heads and "latent_kv" not in config and max(kv_heads, ranks) % min(kv_heads, ranks):
        divides = False
        what = f"{kv_heads} key-value heads and {ranks} ranks (--tp-size {tp}): neither divides the other"
        yield _indivisible("kv-heads", "--tp-size", tp, what, _other_tp(question, kv_heads, sizes))
    experts = config.get("experts", 0)
    extra = question.number("--ep-num-redundant-experts", 0)
    if experts > 1 and sizes.ep > 1 and (experts + extra) % sizes.ep:
        divides = False
        what = f"{experts + extra} experts cannot be divided among --ep-size {sizes.ep}"
        yield _indivisible("experts", "--ep-size", str(sizes.ep), what)
    yield from _blocks(question, sizes)
    if divides and heads:
        yield Finding("heads", OK, f"--tp-size {tp} divides {heads} attention heads", flag="--tp-size", value=tp)


def _blocks(question: Question, sizes: Sizes) -> Iterator[Finding]:
    """Blocks of weights that share a scale must not be cut: SGLang refuses a part that is no multiple of them."""
    model = question.model
    if model is None or not model.block or min(model.block) < 1 or model.quantization != "fp8":
        return
    is_moe = model.config.get("experts", 0) > 1
    size = model.config.get("moe_intermediate" if is_moe else "intermediate")
    ranks = sizes.moe if is_moe else sizes.tp
    if not size or ranks == 1:
        return
    if size % ranks or size // ranks % model.block[0]:
        part = "experts" if is_moe else "layers"
        what = f"{size} rows of the {part} over {ranks} ranks are no multiple of the weight block {model.block[0]}"
        flag = Change("--ep-size", question.flag("--ep-size"), str(sizes.tp), "then no expert is cut", 0.5, _SOURCE)
        yield _indivisible("weight-blocks", "--tp-size", str(sizes.tp), what, (flag,) if is_moe else ())


def _other_tp(question: Question, heads: int, sizes: Sizes) -> tuple[Change, ...]:
    """The next smaller size that divides, where the sizes are plain."""
    if sizes.attention != sizes.tp:
        return ()
    tp = next((size for size in range(sizes.tp - 1, 0, -1) if heads % size == 0 or size % heads == 0), 1)
    return (Change("--tp-size", question.flag("--tp-size"), str(tp), f"{tp} divides {heads}", 0.7, _SOURCE),)


def _indivisible(check: str, flag: str, value: str, what: str, instead: tuple[Change, ...] = ()) -> Finding:
    return Finding(check, FAILS, what, source=_SOURCE, flag=flag, value=value, label=_LABEL, instead=instead)


def idle(question: Question) -> Finding | None:
    """Return a finding where GPUs of another kind than the first would be used beside it."""
    names = sorted({gpu.name or f"SM{gpu.sm}" for gpu in (question.environment.gpus or ())[: of(question).gpus]})
    if len(names) < 2:
        return None
    return Finding("gpu-kinds", RISK, f"The GPUs differ ({', '.join(names)}): the slowest and smallest one decides")
