"""Whatever fails, wherever: advice stays inside what exists, never repeats what failed, and comes to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.advice import history, planner
from logtriage.advice.evidence import Setting
from logtriage.advice.servers import Servers
from logtriage.records import Advice, Attempt, Incident, Launch, RootCause, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = pipeline.load_rules()
SERVERS = Servers(RULES.server)
VERSIONS = [*RULES.server["versions"], "0.5.10.post1", "0.5.11", "0.5.17", "0.6.0", "0.5.4", None]
SMS = [*RULES.server["sms"], None]
QUANTIZATIONS = [*SERVERS.choices("--quantization", "0.5.23"), *SERVERS.choices("--quantization", "0.5.5"), None]
FLAGS = ["--moe-runner-backend", "--fp4-gemm-backend", "--fp8-gemm-backend", "--attention-backend"]
LABELS = ["sm100-only-kernel", "arch-unsupported-kernel", "kernel-crash", "jit-compile-failure", "degenerate-output",
          "unsupported-config", "missing-dependency", "oom-weight-shuffle"]  # fmt: skip
NOTHING = Incident(None, (), (), (), (), (), (), ())
MODULE = ("python3", "-m", "sglang.launch_server")


def launch_of(flags: dict[str, str], version: str | None, sm: int | None, quantization: str | None) -> Launch:
    all_flags = {"--model-path": "some/moe-model", **flags}
    if quantization:
        all_flags["--quantization"] = quantization
    facts: dict[str, Any] = {**all_flags, "model": "some/moe-model"}
    facts |= {"server_version": version} if version else {}
    facts |= {"sm": sm} if sm else {}
    words = [word for pair in all_flags.items() for word in pair]
    return Launch(command=(*MODULE, *words), flags=all_flags, facts=facts)


def setting_of(launch: Launch) -> Setting:
    return history.setting_of(launch, SERVERS)


def fails(launch: Launch, label: str, flag: str | None, after: list[Attempt], pinned: tuple[str, ...] = ()) -> Advice:
    """The advice after a launch that failed with a label, for which a flag is to blame (none: garbage)."""
    head = RULES.labels[label]
    garbage = label == "degenerate-output"
    outcome = "degenerate" if garbage else "failed"
    verdict = Verdict(label, 0.97, "response" if garbage else "rule", outcome, head["retry"])
    root = None if garbage else RootCause(0, (0, 1), None, flag, history.value_of(launch, str(flag)))
    return planner.plan(verdict, root, NOTHING, launch, RULES, after, pinned)[1]


def attempt_of(launch: Launch, label: str, flag: str | None, number: int) -> Attempt:
    head = RULES.labels[label]
    garbage = label == "degenerate-output"
    return Attempt(
        f"attempt {number}", label, head["retry"], head["action"], "degenerate" if garbage else "failed", launch,
        flag=None if garbage else flag, value=None if garbage else history.value_of(launch, str(flag)),
    )  # fmt: skip


def applied(launch: Launch, advice: Advice) -> Launch:
    flags = {**launch.flags, **{change.flag: str(change.new) for change in advice.changes}}
    return launch.replace(flags=flags, facts={**launch.facts, **flags})


@st.composite
def starts(draw: st.DrawFn) -> tuple[Launch, str]:
    """A launch with a value of one flag, on any version, GPU and quantization."""
    version, sm = draw(st.sampled_from(VERSIONS)), draw(st.sampled_from(SMS))
    quantization = draw(st.sampled_from(QUANTIZATIONS))
    present = [flag for flag in FLAGS if SERVERS.choices(flag, version)]
    flag = draw(st.sampled_from(present))
    value = draw(st.sampled_from(SERVERS.choices(flag, version)))
    flags = {flag: value}
    for other in present:
        if other != flag and draw(st.booleans()):
            flags[other] = draw(st.sampled_from(SERVERS.choices(other, version)))
    return launch_of(flags, version, sm, quantization), flag


def chain(launch: Launch, flag: str, label: Any) -> Iterator[tuple[Launch, str, Advice, list[Attempt]]]:
    """Every launch fails with the label that `label()` gives; yields each with the advice after it."""
    after: list[Attempt] = []
    for number in range(100):
        name = label()
        advice = fails(launch, name, flag, after)
        yield launch, name, advice, after
        if not advice.changes or any(change.new is None for change in advice.changes):
            return
        after = [*after, attempt_of(launch, name, flag, number)]
        moved = next((change for change in advice.changes if not change.forced), advice.changes[0])
        flag = moved.flag if moved.flag in FLAGS else flag
        launch = applied(launch, advice)
    raise AssertionError("the advice has no end")


@settings(max_examples=150, deadline=None)
@given(starts(), st.sampled_from(LABELS))
def test_advice_stays_inside_what_exists(start: tuple[Launch, str], label: str) -> None:
    """No value outside the version's choices, none of another platform, no kernel that is known not to work."""
    launch, flag = start
    setting = setting_of(launch)
    for change in fails(launch, label, flag, []).changes:
        if change.new is None or not SERVERS.choices(change.flag, setting.version):
            continue
        assert change.new in SERVERS.choices(change.flag, setting.version)
        assert SERVERS.for_other_platform(change.flag, change.new, setting) is None
        assert not SERVERS.status_of(change.flag, change.new, setting).is_dead
        assert 0 < change.confidence <= 1
        assert change.source


@settings(max_examples=150, deadline=None)
@given(starts(), st.lists(st.sampled_from(LABELS), min_size=1, max_size=3))
def test_a_chain_never_comes_back_and_ends(start: tuple[Launch, str], labels: list[str]) -> None:
    """No step proposes a failed value or a synonym of one; there are no more steps than distinct kernels."""
    launch, flag = start
    setting = setting_of(launch)
    names = iter(labels * 100)
    tried: dict[str, list[str]] = {}
    kernels: set[tuple[str, frozenset[str]]] = set()
    for name in FLAGS:
        choices = SERVERS.choices(name, setting.version)
        kernels |= {(name, SERVERS.kernels(name, value, setting)) for value in choices}
    steps = 0
    for current, label, advice, _ in chain(launch, flag, lambda: next(names)):
        steps += bool(advice.changes)
        blamed = history.blamed(attempt_of(current, label, flag, 0), SERVERS, setting)[0]
        if label in ("sm100-only-kernel", "arch-unsupported-kernel", "kernel-crash") and blamed:
            tried.setdefault(blamed, []).append(str(history.value_of(current, blamed)))
        for change in advice.changes:
            if change.flag not in FLAGS:
                continue
            assert change.new != change.old
            for value in tried.get(change.flag, ()):
                assert change.new not in SERVERS.equivalent(change.flag, value, setting)
        last = advice
        moved = next((change.flag for change in advice.changes if not change.forced and change.flag in FLAGS), flag)
        flag = moved
    assert steps <= len(kernels)
    assert last.summary


@settings(max_examples=150, deadline=None)
@given(starts(), st.sampled_from(LABELS), st.data())
def test_pinned_flags_stay(start: tuple[Launch, str], label: str, data: st.DataObject) -> None:
    """A flag that the user pinned is in no change, under any of its names."""
    launch, flag = start
    pinned = tuple(data.draw(st.lists(st.sampled_from([*FLAGS, "--fp4-gemm-runner-backend"]), unique=True)))
    advice = fails(launch, label, flag, [], pinned)
    names = {SERVERS.canonical(name) for name in pinned}
    assert not names & {change.flag for change in advice.changes}


@settings(max_examples=150, deadline=None)
@given(starts(), st.sampled_from(LABELS))
def test_the_command_differs_by_the_changes_alone(start: tuple[Launch, str], label: str) -> None:
    """The command given is the launch's with exactly the changes of the advice."""
    launch, flag = start
    advice = fails(launch, label, flag, [])
    if advice.command is None:
        return
    words = advice.command[len(MODULE) :]
    assert dict(zip(words[::2], words[1::2], strict=True)) == applied(launch, advice).flags
    assert advice.command_text == " ".join(advice.command)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version])
def test_every_ranked_value_exists_somewhere(version: str) -> None:
    """Candidates of a known setting are choices of its version; the best one on a known GPU has evidence."""
    for sm in SMS[:-1]:
        for name in ("nvfp4", "fp8", "mxfp4", "mxfp8", "bf16"):
            for flag in FLAGS:
                found = SERVERS.candidates(flag, Setting(version, sm, name))
                assert {item.value for item in found} <= set(SERVERS.choices(flag, version))
                works = [item.status.status == "works" for item in found]
                assert works == sorted(works, reverse=True)


def test_choices_between_two_versions() -> None:
    """0.5.11 has what 0.5.10 and 0.5.12 both have; an unknown version what all have; a patch release is exact."""
    flag = "--fp4-gemm-backend"
    assert SERVERS.choices(flag, "0.5.7") == ()
    between = set(SERVERS.choices(flag, "0.5.15"))
    assert between == set(SERVERS.choices(flag, "0.5.14")) & set(SERVERS.choices(flag, "0.5.16"))
    assert "cutlass" in SERVERS.choices(flag, "0.5.14")
    assert "cutlass" not in between
    assert SERVERS.choices(flag, "0.5.10.post1") == SERVERS.choices(flag, "0.5.10")
    everywhere = set(SERVERS.choices(flag, None))
    assert everywhere == {"auto", "flashinfer_cudnn", "flashinfer_cutlass", "flashinfer_trtllm"}


def test_seven_values_are_one_kernel() -> None:
    """NVFP4 in 0.5.9: moving between the seven is no step."""
    setting = Setting("0.5.9", 120, "nvfp4")
    same = SERVERS.equivalent("--moe-runner-backend", "flashinfer_cutedsl", setting)
    assert same == {"auto", "triton", "triton_kernel", "deep_gemm", "flashinfer_cutedsl", "flashinfer_mxfp4", "cutlass"}
    later = SERVERS.equivalent("--moe-runner-backend", "flashinfer_cutedsl", Setting("0.5.16", 120, "nvfp4"))
    assert later == {"flashinfer_cutedsl"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(starts(), st.data())
def test_a_chain_finds_what_works(start: tuple[Launch, str], data: st.DataObject) -> None:
    """If a kernel that may work does work, the chain reaches it; else it ends with the reason that nothing is left."""
    launch, flag = start
    setting = setting_of(launch)
    assume(setting.is_known)  # else a value that may be a synonym of a failed one is left out
    launch = launch_of({flag: launch.flags[flag]}, setting.version, setting.sm, launch.flags.get("--quantization"))
    first = SERVERS.kernels(flag, launch.flags[flag], setting)
    candidates = [item for item in SERVERS.candidates(flag, setting) if {item.kernels} != first]
    working = set(data.draw(st.lists(st.sampled_from([item.value for item in candidates]), unique=True)) if candidates
                  else [])  # fmt: skip
    kernels = {SERVERS.kernels(flag, value, setting) for value in working} - {first}
    after: list[Attempt] = []
    for number in range(len(candidates) + 2):
        if SERVERS.kernels(flag, launch.flags[flag], setting) in kernels:
            return
        advice = fails(launch, "kernel-crash", flag, after)
        if not advice.changes:
            if "cannot work here" in advice.summary:  # another flag of this launch
                return
            assert "left" in advice.summary or "no other value" in advice.summary
            assert not kernels or any(len(kernel) > 1 for kernel in kernels)
            return
        after = [*after, attempt_of(launch, "kernel-crash", flag, number)]
        launch = applied(launch, advice)
    raise AssertionError("the chain is longer than there are candidates")
