"""Preflight and the planner never contradict each other, on any version, GPU and quantization."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.advice import history
from logtriage.advice.evidence import Setting
from logtriage.advice.preflight import backends
from logtriage.advice.preflight.finding import SEVERITIES
from logtriage.advice.preflight.judge import Outlook, judge
from logtriage.environment import Compiler, Environment, Gpu, Model
from logtriage.records import Advice, Launch
from logtriage.report import preflight, text
from tests.test_advice_properties import FLAGS, LABELS, RULES, SERVERS, SMS, VERSIONS, applied, chain, fails, starts

WASTED = ("will-fail", "known-garbage")


def outlook_of(launch: Launch) -> Outlook:
    return judge(launch, Environment(), RULES)


def dead(outlook: Outlook) -> set[tuple[str | None, str | None]]:
    return {(item.flag, item.value) for item in outlook.findings if item.severity in WASTED}


@settings(max_examples=150, deadline=None)
@given(starts(), st.sampled_from(LABELS))
def test_what_the_planner_proposes_is_never_called_failing(start: tuple[Launch, str], label: str) -> None:
    """No value of a step of advice is among those that preflight calls failing, in the launch that it leads to."""
    launch, flag = start
    advice = fails(launch, label, flag, [])
    if not advice.changes or any(change.new is None for change in advice.changes):
        return
    after = dead(outlook_of(applied(launch, advice)))
    assert not {(change.flag, change.new) for change in advice.changes} & after


@settings(max_examples=100, deadline=None)
@given(starts(), st.lists(st.sampled_from(LABELS), min_size=1, max_size=3))
def test_what_is_called_failing_is_never_proposed(start: tuple[Launch, str], labels: list[str]) -> None:
    """Whatever fails and however often: no step goes to a value that preflight calls failing on this machine."""
    launch, flag = start
    names = iter(labels * 100)
    steps: list[tuple[Launch, Advice]] = [
        (now, advice) for now, _, advice, _ in chain(launch, flag, lambda: next(names))
    ]
    proposed = {(change.flag, change.new) for _, advice in steps for change in advice.changes}
    assert not {pair for now, _ in steps for pair in dead(outlook_of(now))} & proposed


@settings(max_examples=150, deadline=None)
@given(starts())
def test_what_to_use_instead_exists_and_passes(start: tuple[Launch, str]) -> None:
    """Each value that is offered is a choice of the version, no synonym of the bad one, and passes preflight itself."""
    launch, _ = start
    outlook = outlook_of(launch)
    version = history.setting_of(launch, SERVERS).version
    for finding in outlook.findings:
        for change in finding.instead:
            if finding.check != "backend":
                continue
            setting = history.setting_of(launch, SERVERS)
            assert change.new in SERVERS.choices(change.flag, version)
            assert change.new not in SERVERS.equivalent(change.flag, str(finding.value), setting)
            assert change.source
            flags = {**launch.flags, change.flag: str(change.new)}
            then = launch.replace(flags=flags, facts={**launch.facts, **flags})
            assert (change.flag, change.new) not in dead(outlook_of(then))


@settings(max_examples=150, deadline=None)
@given(starts())
def test_the_command_that_is_offered_is_better(start: tuple[Launch, str]) -> None:
    """A command is offered only if with all changes made nothing in it is called failing."""
    launch, _ = start
    outlook = outlook_of(launch)
    then = applied(launch, Advice("change-flag", "", outlook.changes))
    assert (outlook.command is not None) == (bool(outlook.changes) and not dead(outlook_of(then)))


@pytest.mark.parametrize("version", [version for version in VERSIONS if version])
def test_the_matrix_is_read_alike(version: str) -> None:
    """All GPUs, formats and flags: what preflight offers in place of a dead value is what the planner may offer."""
    looked = 0
    for sm in SMS[:-1]:
        for quantization in ("modelopt_fp4", "fp8", "mxfp4", "mxfp8", "unquant"):
            setting = Setting(version, sm, SERVERS.format_of(quantization), platform="cuda")
            facts: dict[str, Any] = {"sm": sm, "server_version": version, "quantization": quantization}
            for flag in FLAGS:
                candidates = {item.value for item in SERVERS.candidates(flag, setting)}
                for value in SERVERS.choices(flag, version):
                    why = history.why_dead(flag, value, SERVERS, setting)
                    assert why is None or value not in candidates
                    if why is None or value == "auto" or looked % 7:
                        looked += why is not None
                        continue
                    looked += 1
                    launch = Launch(command=("x",), flags={flag: value}, facts={**facts, flag: value})
                    [found] = [
                        item for item in outlook_of(launch).findings if (item.check, item.flag) == ("backend", flag)
                    ]
                    assert found.severity in WASTED
                    model = SERVERS.model_of(flag, value)
                    offered = [change.new for change in found.instead]
                    allowed = [item.value for item in SERVERS.candidates(flag, setting, model)]
                    assert offered == [other for other in allowed if other in offered]
                    assert bool(offered) == bool(
                        [*backends.alternatives(_question(launch, setting), setting, flag, value)]
                    )
    assert looked > 100


GIB = 1 << 30
WORDS = [
    "",
    "true",
    "1e9",
    "9" * 20,
    "٣",
    "a b",
    "$X",
    "0.5",
    "-0",
    "nan",
    "{",
    "[]",
    "\x00\x1b[2J",
    "auto",
    "fp8",
    "/",
    "~",
]
ODD = st.integers(-1, 9).map(str) | st.sampled_from(WORDS)
NUMBERS = [
    "--tp-size",
    "--pp-size",
    "--dp-size",
    "--ep-size",
    "--nnodes",
    "--attn-cp-size",
    "--attn-dp-size",
    "--moe-dp-size",
    "--base-gpu-id",
    "--gpu-id-step",
    "--mem-fraction-static",
    "--cpu-offload-gb",
    "--context-length",
    "--port",
    "--quantization",
    "--kv-cache-dtype",
    "--moe-a2a-backend",
    "--enable-dp-attention",
    "--json-model-override-args",
    "--config",
    "--device",
    "--load-format",
    "--ep-num-redundant-experts",
    "--nonsense",
]
SIZES = ["heads", "kv_heads", "experts", "layers", "intermediate", "moe_intermediate", "context", "latent_kv"]


@st.composite
def machines(draw: st.DrawFn) -> Environment:
    """Any environment, also one that no machine has."""
    numbers = st.one_of(st.none(), st.integers(0, 1 << 40))
    memory = st.sampled_from([None, 0, 1, GIB, 96 * GIB, 96 * GIB])
    gpus = st.builds(
        Gpu, st.integers(0, 9), st.none() | st.text(max_size=3), st.sampled_from([*SMS, 999]), memory, memory
    )
    versions = st.sampled_from([None, "", "12.4", "13.0", "0.6.14", "nonsense", "1" * 30])
    compilers = st.none() | st.lists(
        st.builds(Compiler, st.text(max_size=3), st.text(max_size=9), versions), max_size=2
    )
    packages = st.dictionaries(st.sampled_from(["torch", "flashinfer", "server_version", "flashinfer_cubin"]),
                               st.sampled_from(["0.6.6", "x", "13"]))  # fmt: skip
    config = st.dictionaries(st.sampled_from(SIZES), st.integers(-1, 9) | st.sampled_from([64, 128, 1 << 40]))
    blocks = st.sampled_from([(), (128, 128), (0,), (-1, 5)])
    names, weights = (
        st.sampled_from([None, "fp8", "unquant", "modelopt_fp4"]),
        st.sampled_from([None, 0, GIB, 400 * GIB]),
    )
    models = st.builds(Model, st.just("/m"), st.none(), config, names, st.just("x"), blocks, weights)
    found = draw(compilers), draw(compilers)
    return Environment(
        where=draw(st.sampled_from(["here", "container", "elsewhere"])),
        platform=draw(st.sampled_from([None, "cuda", "rocm"])),
        gpus=draw(st.none() | st.lists(gpus, max_size=5).map(tuple)),
        driver_cuda=draw(st.sampled_from([None, "12.4", "13.0"])),
        nvcc=None if found[0] is None else tuple(found[0]),
        ptxas=None if found[1] is None else tuple(found[1]),
        packages=draw(st.none() | packages),
        torch_cuda=draw(st.sampled_from([None, "12.8", "13.0"])),
        model=draw(st.none() | models),
        shm=draw(numbers),
        open_files=draw(numbers),
    )


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from([*NUMBERS, *FLAGS]), ODD, max_size=8), machines(), st.sampled_from([*VERSIONS, "x"])
)
def test_no_command_and_no_machine_is_too_odd(flags: dict[str, str], machine: Environment, version: str | None) -> None:
    """Whatever stands in a command and whatever a machine says: there is one outlook, as data and as text."""
    facts = {**flags, **({"server_version": version} if version else {})}
    words = [word for pair in flags.items() for word in pair]
    launch = Launch(command=("python3", "-m", "sglang.launch_server", *words), flags=flags, facts=facts)
    outlook = judge(launch, machine, RULES)
    data = preflight.to_dict(outlook, RULES.secrets, RULES.digest)
    assert data == preflight.to_dict(judge(launch, machine, RULES), RULES.secrets, RULES.digest)
    assert data["outlook"] == min(
        (item["severity"] for item in data["findings"]), key=SEVERITIES.index, default="unknown"
    )
    assert text.as_text(preflight.rows(data, verbose=True))
    assert all(item["what"] for item in data["findings"])
    assert {item["label"] for item in data["findings"]} <= {None, *RULES.labels}


def _question(launch: Launch, setting: Setting) -> Any:
    from logtriage.advice.preflight.finding import Question

    known = RULES.server
    return Question(launch, Environment(), SERVERS, (setting,), known["preflight"], known)
