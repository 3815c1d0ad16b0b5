"""Advice: one step, from what the message names and from what is known; what was ruled out is never proposed."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from logtriage import pipeline
from logtriage.pipeline import Options
from tests import launches
from tests.conftest import ROOT, Case, cases

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Advice, Attempt, Report

MOE, FP4 = "--moe-runner-backend", "--fp4-gemm-backend"
FAILED = [case for case in cases() if case.folder.parent.name == "recorded" and case.verdict["responsible_flag"]]
BAD = Options(responses=[launches.GARBAGE])


def changes(advice: Advice) -> dict[str, str | None]:
    return {change.flag: change.new for change in advice.changes}


def recorded(name: str, rules: RuleSet, **options: Any) -> Report:
    return pipeline.analyze(ROOT / "corpus/recorded" / name / "run.log", rules=rules, options=Options(**options))


# ---- the story


@pytest.fixture(scope="module")
def first(rules: RuleSet) -> Attempt:
    """MoE and dense GEMM on flashinfer_trtllm: SM100-only."""
    log = launches.log(f"{MOE} flashinfer_trtllm", f"{FP4} flashinfer_trtllm", end=launches.TRTLLM_MOE)
    return pipeline.attempt(log, rules)


@pytest.fixture(scope="module")
def second(rules: RuleSet) -> Attempt:
    """MoE on flashinfer_cutedsl, dense GEMM on its default: exclamation marks."""
    return pipeline.attempt(launches.log(f"{MOE} flashinfer_cutedsl"), rules, BAD)


@pytest.fixture(scope="module")
def third(rules: RuleSet) -> Attempt:
    """No backend chosen: exclamation marks, from the same kernels."""
    return pipeline.attempt(launches.log(), rules, BAD)


def test_one_step_replaces_the_moe_backend_and_what_else_is_ruled_out(rules: RuleSet) -> None:
    """(i) Both on trtllm-gen: the MoE backend is the step, the dense one goes with it, since it cannot work either."""
    log = launches.log(f"{MOE} flashinfer_trtllm", f"{FP4} flashinfer_trtllm", end=launches.TRTLLM_MOE)
    report = pipeline.analyze(log, rules=rules)
    assert report.label == "sm100-only-kernel"
    step, forced = report.advice.changes
    assert (step.flag, step.old, step.new, step.forced) == (MOE, "flashinfer_trtllm", "flashinfer_cutlass", False)
    assert (forced.flag, forced.forced) == (FP4, True)
    assert forced.new in ("flashinfer_cudnn", "flashinfer_cutlass")
    assert report.advice.command_text == launches.command(f"{MOE} flashinfer_cutlass", f"{FP4} {forced.new}")
    assert {"flag": None, "value": "every value served by trtllm-gen"}.items() <= report.advice.ruled_out[0].items()


@pytest.mark.parametrize("flags", [(f"{MOE} flashinfer_cutedsl",), (f"{MOE} auto",), ()])
def test_garbage_moves_away_from_the_kernel_and_not_to_a_synonym(
    rules: RuleSet, first: Attempt, flags: tuple[str, ...]
) -> None:
    """(ii) In 0.5.9 seven values run the same NVFP4 GEMM; the step leaves all of them."""
    options = BAD.replace(after=[first])
    report = pipeline.analyze(launches.log(*flags), rules=rules, options=options)
    assert report.label == "degenerate-output"
    assert changes(report.advice) == {MOE: "flashinfer_cutlass"}


def test_killed_keeps_its_label_and_history_gives_the_likely_reading(
    rules: RuleSet, first: Attempt, second: Attempt, third: Attempt
) -> None:
    """(iii) A bare notice after dense flashinfer_trtllm: a candidate with its reason, and the log to read is named."""
    started = launches.command(f"{MOE} flashinfer_cutlass", f"{FP4} flashinfer_trtllm", redirect="> run.log 2>&1")
    log = f"+ {started}\n{launches.KILLED}".encode()
    report = pipeline.analyze(log, rules=rules, options=Options(after=[first, second, third]))
    assert report.label == "killed-unexplained"
    likely = report.verdict.candidates[0]
    assert likely.label == "sm100-only-kernel"
    assert "flashinfer_trtllm" in likely.because
    assert likely.confidence < 0.6
    assert report.advice.action == "investigate"
    assert "run.log" in report.advice.summary
    assert changes(report.advice) == {FP4: "flashinfer_cudnn"}
    assert report.advice.command_text is not None
    assert report.advice.command_text.endswith("flashinfer_cudnn > run.log 2>&1")


def test_the_story_ends(rules: RuleSet, first: Attempt, second: Attempt, third: Attempt) -> None:
    """From the first launch the advice leads to the backends that work; nothing that was ruled out comes again."""
    log = launches.log(f"{MOE} flashinfer_trtllm", f"{FP4} flashinfer_trtllm", end=launches.TRTLLM_MOE)
    after = [second, third]
    command = pipeline.analyze(log, rules=rules, options=Options(after=after)).advice.command_text
    assert command == launches.command(f"{MOE} flashinfer_cutlass", f"{FP4} flashinfer_cudnn")
    works = pipeline.analyze(launches.log(f"{MOE} flashinfer_cutlass", f"{FP4} flashinfer_cudnn"), rules=rules)
    assert (works.label, works.advice.action, works.advice.changes) == ("healthy", "none", ())


def test_the_same_garbage_under_kernels_that_share_nothing(rules: RuleSet, second: Attempt) -> None:
    """After two unrelated MoE kernels only a dense kernel that sources disagree about is tried, then it stops."""
    third = launches.log(f"{MOE} flashinfer_cutlass")
    report = pipeline.analyze(third, rules=rules, options=BAD.replace(after=[second]))
    assert changes(report.advice) == {FP4: "flashinfer_cudnn"}
    assert "checkpoint or the tokenizer" in report.advice.notes[0]
    fourth = launches.log(f"{MOE} flashinfer_cutlass", f"{FP4} flashinfer_cudnn")
    earlier = [second, pipeline.attempt(third, rules, BAD)]
    report = pipeline.analyze(fourth, rules=rules, options=BAD.replace(after=earlier))
    assert report.advice.changes == ()
    assert report.advice.command is None
    assert "suspect the checkpoint or the tokenizer" in report.advice.summary


def test_evidence_of_another_environment_is_told_but_not_obeyed(rules: RuleSet) -> None:
    """What failed on another GPU rules out nothing here."""
    there = pipeline.attempt(
        launches.log(f"{MOE} flashinfer_cutlass", end=launches.TRTLLM_MOE, sm=90, version="0.5.16"), rules
    )
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE, version="0.5.16")
    report = pipeline.analyze(log, rules=rules, options=Options(after=[there]))
    assert changes(report.advice)[MOE] == "flashinfer_cutlass"
    assert any("has changed since" in str(item["why"]) for item in report.advice.ruled_out)


# ---- the recorded launches


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_advice_names_the_blamed_flag(case: Case, rules: RuleSet) -> None:
    """In a change, in the summary or in a note."""
    advice = pipeline.analyze(case.log, rules=rules).advice
    flag = case.verdict["responsible_flag"]
    told = [advice.summary, *advice.notes, *(change.flag for change in advice.changes)]
    assert any(flag in text for text in told)


@pytest.mark.parametrize(
    ("name", "flag", "value"),
    [
        ("kv-fp4", "--kv-cache-dtype", "fp4_mx_block16"),
        ("nvfp4-dense-fp4cudnn", FP4, "marlin"),
        ("nvfp4-moe-cutlass", MOE, "marlin"),
        ("context-too-long", "--context-length", "32768"),
        ("remote-code", "--trust-remote-code", "true"),
        ("bogus-choice", MOE, "flashinfer_cutedsl"),
        ("kv-frac-too-low", "--mem-fraction-static", "0.19"),
        ("moe-triton-ok", "--mem-fraction-static", "0.13"),
        ("port-in-use", "--port", "34001"),
        ("tp2-one-gpu", "--tp-size", "1"),
    ],
)
def test_the_way_out_that_the_message_names(rules: RuleSet, name: str, flag: str, value: str) -> None:
    """Exactly that value; of a minimum, a little more."""
    report = recorded(name, rules)
    assert changes(report.advice) == {flag: value}
    assert report.advice.command_text is not None
    shown = "--trust-remote-code" if value == "true" else value
    assert shown in report.advice.command_text


@pytest.mark.parametrize(
    ("name", "process", "size"), [("moe-load-oom", 8775, "121.79 GiB"), ("moe-fp8-postprocess-oom", 1182, "113.89 GiB")]
)
def test_who_holds_the_memory_comes_first(rules: RuleSet, name: str, process: int, size: str) -> None:
    """Another process is named, with its size, and no flag is changed."""
    advice = recorded(name, rules).advice
    assert advice.action == "free-memory"
    assert advice.summary.startswith(f"Process {process} holds {size}")
    assert advice.changes == ()


def test_nobody_is_accused_of_what_may_be_the_launch_itself(rules: RuleSet) -> None:
    """In a container PyTorch may not know its own process: one that is named is told, and the flags come first."""
    log = _graph(0.9).replace(
        b"Including non-PyTorch memory, this process has 93.16 GiB memory in use.",
        b"Process 54 has 93.16 GiB memory in use.",
    )
    advice = pipeline.analyze(log, rules=rules).advice
    assert changes(advice) == {"--mem-fraction-static": "0.85"}
    assert "process 54 with 93.16 GiB" in advice.notes[0]
    assert "can be this launch itself" in advice.notes[0]


@pytest.mark.parametrize(
    "clauses",
    [
        "Process 54 has 70.00 GiB memory in use. Including non-PyTorch memory, this process has 9.00 GiB memory in use",
        "Including non-PyTorch memory, this process has 9.00 GiB memory in use. Process 54 has 70.00 GiB memory in use",
    ],
    ids=["other-first", "own-first"],
)
def test_the_clauses_about_processes_come_in_either_order(rules: RuleSet, clauses: str) -> None:
    """The other process is found before and behind the clause about this one."""
    log = _graph(0.9).replace(
        b"Including non-PyTorch memory, this process has 93.16 GiB memory in use", clauses.encode()
    )
    advice = pipeline.analyze(log, rules=rules).advice
    assert advice.summary.startswith("Process 54 holds 70.00 GiB of 95.00 GiB on GPU 0")


def test_memory_that_pytorch_allocated_is_the_launch_itself(rules: RuleSet) -> None:
    """Where PyTorch's own allocations do not fit into "this process", the other process may be the launch: no end."""
    log = _graph(0.9).replace(
        b"this process has 93.16 GiB memory in use.",
        b"this process has 0.50 GiB memory in use. Process 54 has 92.60 GiB memory in use. "
        b"Of the allocated memory 91.00 GiB is allocated by PyTorch, and 0.4 GiB is reserved but unallocated.",
    )
    advice = pipeline.analyze(log, rules=rules).advice
    assert "end it" not in advice.summary
    assert changes(advice) == {"--mem-fraction-static": "0.85"}


@pytest.mark.parametrize(
    ("end", "flag"),
    [
        ("ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization "
         "block_n = 128.", "--tp-size"),
        ("AssertionError: 62 is not divisible by 8", "--tp-size"),
    ],
)  # fmt: skip
def test_a_size_in_a_message_is_not_the_value_of_the_flag(rules: RuleSet, end: str, flag: str) -> None:
    """What is blamed is the flag with the value that the command gives it."""
    report = pipeline.analyze(launches.log("--tp 8", end=f"[2026-02-11 09:20:13 TP0] {end}\n"), rules=rules)
    assert report.root is not None
    assert (report.root.flag, report.root.value) == (flag, "8")


@pytest.mark.parametrize("name", ["no-gpu-visible"])
def test_no_visible_gpu_is_about_no_argument(rules: RuleSet, name: str) -> None:
    """The advice is to give the process a GPU; no argument is blamed for it."""
    advice = recorded(name, rules).advice
    assert advice.action == "fix-environment"
    assert "Give the process a GPU" in advice.summary
    assert advice.changes == ()


def test_missing_python_headers_are_installed(rules: RuleSet) -> None:
    """Another backend would be built just the same, so none is advised."""
    end = "/root/a1/cuda_utils.c:6:10: fatal error: Python.h: No such file or directory\n"
    advice = pipeline.analyze(launches.log("--attention-backend triton", end=end), rules=rules).advice
    assert "python3-dev" in advice.summary
    assert advice.changes == ()


def test_dummy_weights_explain_garbage(rules: RuleSet) -> None:
    """No backend is blamed for the answers of random weights."""
    log = launches.log("--load-format dummy --attention-backend triton", end=launches.READY)
    advice = pipeline.analyze(log, rules=rules, options=BAD).advice
    assert "--load-format dummy" in advice.summary
    assert advice.changes == ()


def test_host_memory_is_not_blamed_on_a_cache_that_is_not_used(rules: RuleSet) -> None:
    """A kill for host memory lowers offloading and host caches only where the launch uses them."""
    end = "[183122.401] Out of memory: Killed process 41877 (sglang::schedul) total-vm:412345678kB\n"
    bare = pipeline.analyze(launches.log("--tp 8", end=end), rules=rules)
    used = pipeline.analyze(launches.log("--tp 8 --cpu-offload-gb 64", end=end), rules=rules)
    assert bare.label == "oom-host"
    assert "--" not in bare.advice.summary
    assert changes(used.advice) == {"--cpu-offload-gb": "32"}


def test_a_change_is_less_sure_than_the_verdict(rules: RuleSet) -> None:
    """The percentage beside a change is that of the advice: more for a value of the message than for a direction."""
    minimum = pipeline.analyze(_kv(0.05, 0.108), rules=rules)
    figure = pipeline.analyze(_kv(0.5), rules=rules)
    sure = [report.advice.changes[0].confidence for report in (minimum, figure)]
    assert minimum.verdict.confidence > sure[0] > sure[1]


@pytest.mark.parametrize(
    ("name", "why"),
    [("kv-fp4", "the message itself names this way out"), ("tp2-one-gpu", "the rule knows this way out")],
)
def test_the_message_is_quoted_only_for_what_it_says(rules: RuleSet, name: str, why: str) -> None:
    """A value that the message holds is the message's way out; one that is put together here is not."""
    assert recorded(name, rules).advice.changes[0].why == why


def test_waiting_is_for_what_may_still_grow(rules: RuleSet) -> None:
    """A stopped launch, an empty file and a cut archive do not go on; a launch that is loading may."""
    begun = launches.log("--tp 8", end="")
    stop = b"[2026-02-11 09:20:13] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...\n"
    cut = gzip.compress(begun * 9)[:-12]
    said = [pipeline.analyze(log, rules=rules).advice for log in (begun, begun + stop, b"", cut)]
    assert [advice.action for advice in said] == ["wait", "investigate", "investigate", "investigate"]
    assert "asked it to stop" in said[1].summary
    assert "empty" in said[2].summary
    assert "whole file" in said[3].summary


def test_an_unknown_launch_gives_no_lottery(rules: RuleSet) -> None:
    """Garbage of a launch of which nothing is known blames no backend."""
    advice = pipeline.analyze(launches.READY.encode(), rules=rules, options=BAD).advice
    assert advice.changes == ()
    assert any("not known which backends" in note for note in advice.notes)


def test_a_download_is_not_repaired_for_a_kernel_that_cannot_work(rules: RuleSet) -> None:
    """moe-flashinfer-trtllm, no network, SM90: the backend could not work anyway, so the step is another backend."""
    advice = recorded("moe-flashinfer-trtllm", rules).advice
    assert advice.action == "change-flag"
    assert f"{MOE} flashinfer_trtllm could not work on SM90 anyway" in advice.summary
    assert changes(advice) == {MOE: "triton"}


def test_an_environment_failure_gets_environment_advice_first(rules: RuleSet) -> None:
    """The toolkit is named first; a backend that needs no nvcc comes second."""
    advice = recorded("fi-nvcc-118", rules).advice
    assert advice.action == "fix-environment"
    assert "CUDA_HOME" in advice.summary
    assert changes(advice)["--attention-backend"] in ("fa3", "triton")
    assert advice.notes[0].startswith("Without the repair:")


# ---- memory


def _kv(fraction: float, minimum: float | None = None) -> bytes:
    end = (
        f"ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={fraction}. "
        f"Raise --mem-fraction-static above {minimum} (minimum viable = 1 - available/pre = {minimum}).\n"
        if minimum
        else "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        f"Current value: mem_fraction_static={fraction}\n"
    )
    return launches.log(f"--mem-fraction-static {fraction}", end=f"[2026-02-11 09:20:13 TP0] {end}")


def _graph(fraction: float) -> bytes:
    end = (
        "[2026-02-11 09:20:13 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=3.11 GB\n"
        "[2026-02-11 09:20:19 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/model_executor/cuda_graph_runner.py", line 420, in capture\n'
        "    self.capture_one_batch_size(bs, forward)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
        "95.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 93.16 GiB memory in use.\n"
    )
    return launches.log(f"--mem-fraction-static {fraction}", end=end)


def test_direction_follows_the_label(rules: RuleSet) -> None:
    """A shortage of KV cache raises the fraction, a graph's out of memory lowers it by what was missing."""
    assert changes(pipeline.analyze(_kv(0.5), rules=rules).advice) == {"--mem-fraction-static": "0.55"}
    assert changes(pipeline.analyze(_kv(0.05, 0.108), rules=rules).advice) == {"--mem-fraction-static": "0.12"}
    report = pipeline.analyze(_graph(0.9), rules=rules)
    assert report.label == "oom-cuda-graph"
    assert changes(report.advice) == {"--mem-fraction-static": "0.85"}


def test_no_fraction_works(rules: RuleSet) -> None:
    """0.85 is out of memory, 0.84 asks for more: that is said, and another flag is next."""
    earlier = [pipeline.attempt(_graph(0.85), rules)]
    report = pipeline.analyze(_kv(0.84), rules=rules, options=Options(after=earlier))
    assert "--mem-fraction-static" not in changes(report.advice)
    assert any("No value of --mem-fraction-static works: 0.84 is too small and 0.85 is too large" in note
               for note in report.advice.notes)  # fmt: skip


def test_a_fraction_between_two_failures(rules: RuleSet) -> None:
    """With room between the ends the middle is next."""
    earlier = [pipeline.attempt(_graph(0.9), rules)]
    report = pipeline.analyze(_kv(0.8), rules=rules, options=Options(after=earlier))
    assert changes(report.advice) == {"--mem-fraction-static": "0.85"}


# ---- gaps, pins


def test_no_command(rules: RuleSet) -> None:
    """Without a command there is advice, no command text, and the gap is named."""
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE).split(b"\n", 1)[1]
    advice = pipeline.analyze(log, rules=rules).advice
    assert advice.changes != ()
    assert (advice.command, advice.command_text) == (None, None)
    assert any("No command is known" in note for note in advice.notes)


def test_unknown_version_and_gpu(rules: RuleSet) -> None:
    """What is not known is named; a value must be a choice of all versions."""
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE, sm=None, version=None)
    advice = pipeline.analyze(log, rules=rules).advice
    assert changes(advice) == {MOE: "flashinfer_cutlass"}
    assert any("compute capability" in note and "version" in note for note in advice.notes)


def test_a_version_that_nobody_has_read(rules: RuleSet) -> None:
    """A version outside the known ones is advised on, and that is said."""
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE, version="0.9.0")
    advice = pipeline.analyze(log, rules=rules).advice
    assert changes(advice) == {MOE: "flashinfer_cutlass"}
    assert any("0.9.0 lies outside the versions that are known" in note for note in advice.notes)


def test_an_unknown_flag_is_named_and_kept(rules: RuleSet) -> None:
    """A flag that no version has stays in the command."""
    log = launches.log(f"{MOE} flashinfer_trtllm", "--frobnicate 7", end=launches.TRTLLM_MOE)
    advice = pipeline.analyze(log, rules=rules).advice
    assert "--frobnicate is not among the flags that are known here." in advice.notes
    assert "--frobnicate 7" in str(advice.command_text)


def test_the_command_of_another_program(rules: RuleSet) -> None:
    """A command that starts no SGLang server is no command."""
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE).split(b"\n", 1)[1]
    options = Options(command=["vllm", "serve", "some/model", "--tensor-parallel-size", "8"])
    advice = pipeline.analyze(log, rules=rules, options=options).advice
    assert advice.command_text is None
    assert any("No command is known" in note for note in advice.notes)


def test_a_pinned_flag_is_never_changed(rules: RuleSet) -> None:
    """If only a pinned flag could help, that is said, and nothing is proposed; aliases count."""
    log = launches.log(f"{MOE} flashinfer_trtllm", f"{FP4} flashinfer_trtllm", end=launches.TRTLLM_MOE)
    for pin in (MOE, FP4, "--fp4-gemm-runner-backend"):
        advice = pipeline.analyze(log, rules=rules, options=Options(pinned=[pin])).advice
        assert advice.changes == ()
        assert "is pinned" in advice.summary


def test_nothing_left_says_why(rules: RuleSet, second: Attempt) -> None:
    """Every choice is listed with what it is ruled out by."""
    failed = pipeline.attempt(launches.log(f"{MOE} flashinfer_cutlass", end=launches.TRTLLM_MOE), rules)
    log = launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE)
    advice = pipeline.analyze(log, rules=rules, options=Options(after=[second, failed])).advice
    assert advice.changes == ()
    assert advice.summary.startswith(f"Nothing is left to try for {MOE}.")
    assert "ruled out by" in advice.summary


# ---- the command line


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, str]:
    written = {
        "first": launches.log(f"{MOE} flashinfer_trtllm", end=launches.TRTLLM_MOE),
        "second": launches.log(f"{MOE} flashinfer_cutedsl"),
        "third": launches.log(
            f"{FP4} flashinfer_trtllm", "--api-key sk-abcdefghijklmnop1234", end=launches.TRTLLM_GEMM
        ),
    }
    for name, log in written.items():
        (tmp_path / f"{name}.log").write_bytes(log)
    (tmp_path / "answer.json").write_bytes(launches.GARBAGE)
    return {name: f"{name}.log" for name in written}


def test_next_prints_just_the_command(run: Any, logs: dict[str, str]) -> None:
    """One line, ready for a shell, and exit code 0."""
    done = run("next", logs["first"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == launches.command(f"{MOE} flashinfer_cutlass") + "\n"


def test_next_takes_history_and_pins(run: Any, logs: dict[str, str]) -> None:
    """--after takes several logs, with answers for them; what they rule out is replaced in passing."""
    after = ["--after", logs["first"], logs["second"], "--after-response", f"{logs['second']}=answer.json"]
    done = run("next", logs["third"], *after)
    assert done.returncode == 0
    assert f"{FP4} flashinfer_cudnn" in done.stdout
    assert f"{MOE} flashinfer_cutlass" in done.stdout
    assert "--api-key $API_KEY" in done.stdout
    assert "sk-abc" not in done.stdout
    pinned = run("next", logs["third"], *after, "--pin", FP4)
    assert (pinned.returncode, pinned.stdout) == (3, "")
    assert "is pinned" in pinned.stderr


def test_after_before_the_log(run: Any, logs: dict[str, str]) -> None:
    """`--after old.log new.log`: the last one is the log if no other word is."""
    done = run("next", "--after", logs["first"], logs["third"])
    assert done.returncode == 0
    assert FP4 in done.stdout


def test_next_without_a_command_to_give(run: Any, logs: dict[str, str]) -> None:
    """Exit code 3 and the reason on standard error."""
    done = run("next", str(ROOT / "corpus/recorded/moe-load-oom/run.log"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "Process 8775 holds 121.79 GiB" in done.stderr


def test_analyze_shows_step_command_and_exclusions(run: Any, logs: dict[str, str]) -> None:
    """The text report has the change with its reason, the command on a row with a head, and what is ruled out."""
    done = run("analyze", logs["third"], "--after", logs["first"])
    assert f"{FP4} flashinfer_cudnn  (now flashinfer_trtllm" in done.stdout
    assert "ruled out" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("  run       python3 -m sglang.launch_server")
    data = json.loads(run("analyze", logs["third"], "--after", logs["first"], "--format", "json").stdout)
    assert "$API_KEY" in data["advice"]["command"]
    assert data["advice"]["command_text"].count("$API_KEY") == 1
    assert {"flag", "value", "why", "source"} == set(data["advice"]["ruled_out"][0])


def test_an_answer_for_no_old_log(run: Any, logs: dict[str, str]) -> None:
    """--after-response names one of the logs given to --after, or it is a usage error."""
    done = run("next", logs["third"], "--after", logs["first"], "--after-response", "other.log=answer.json")
    assert done.returncode == 2
    assert "OLDLOG=FILE" in done.stderr
