"""Tracebacks that other output tears apart, that somebody cut short, or that end nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

BEGIN = "[2026-01-12 10:03:41 TP{rank}] Load weight begin. avail mem=30.40 GB"
HEAD = "[2026-01-12 10:04:44{rank}] Scheduler hit an exception: Traceback (most recent call last):"
FRAMES = [
    '  File "/usr/lib/python3/sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process',
    "    scheduler = Scheduler(",
    '  File "/usr/lib/python3/sglang/srt/model_loader/loader.py", line 599, in load_model',
    "    self.load_weights_and_postprocess(",
    '  File "/usr/lib/python3/sglang/srt/model_loader/loader.py", line 618, in load_weights_and_postprocess',
    "    quant_method.process_weights_after_loading(module)",
    '  File "/usr/lib/python3/sglang/srt/layers/quantization/awq.py", line 775, in process_weights_after_loading',
    "    output = torch.empty(",
]  # fmt: skip
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512 MiB. GPU {gpu} has a total capacity of 23 GiB"
READY = "[2026-01-12 10:05:21] The server is fired up and ready to roll!"
STOPPED = ["[2026-01-12 10:06:21] SIGTERM received. signum=15 frame=None.", "INFO:     Finished server process [9]"]


@pytest.mark.parametrize(
    "noise",
    [
        "[wait-for-server] 10:04:44 http://localhost:30000/health not ready, sleeping 5s",
        "\x1b[2m2026-01-12T10:04:44Z\x1b[0m \x1b[33m WARN\x1b[0m sglang_router_rs::core: worker health check failed",
    ],
    ids=["script", "router"],
)
@pytest.mark.parametrize("filler", [0, 3000], ids=["short", "long"])
def test_what_else_is_printed_into_a_traceback_does_not_end_it(noise: str, filler: int, rules: RuleSet) -> None:
    """The frames above the last line of noise still tell where memory ran out, also where most lines are not kept."""
    torn = [row for frame in [*FRAMES * 6, OOM.format(gpu=1)] for row in (noise, frame)]
    quiet = ["[2026-01-12 10:03:40] nothing to tell"] * filler
    report = pipeline.analyze([*quiet, BEGIN.format(rank=0), HEAD.format(rank=""), *torn, *quiet], rules=rules)
    assert report.label == "oom-weight-shuffle"
    assert report.root is not None
    assert "GPU 1" in report.lines[report.root.line].text


@pytest.mark.parametrize("head", [[HEAD.format(rank=" TP0")], []], ids=["head", "no-head"])
@pytest.mark.parametrize("filler", [0, 3000], ids=["short", "long"])
def test_a_paste_that_lost_its_indentation_keeps_its_frames(head: list[str], filler: int, rules: RuleSet) -> None:
    """Frames tell where memory ran out, also of a traceback that is longer than an exception's message may be."""
    quiet = ["[2026-01-12 10:03:40] nothing to tell"] * filler
    flat = [frame.strip() for frame in [*FRAMES[:4] * 10, *FRAMES[4:], *FRAMES[2:4] * 20 * bool(head)]]
    report = pipeline.analyze([*quiet, BEGIN.format(rank=0), *head, *flat, OOM.format(gpu=1), *quiet], rules=rules)
    assert report.label == "oom-weight-shuffle"


def test_any_exception_ends_frames_that_lost_their_indentation(rules: RuleSet) -> None:
    """What is called neither error nor exception is known by its module."""
    raised = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Limit: 101376"
    report = pipeline.analyze([HEAD.format(rank=" TP0"), *map(str.strip, FRAMES[:4]), raised], rules=rules)
    assert report.label == "jit-compile-failure"


def test_a_record_ends_a_traceback_that_does_not_go_on(rules: RuleSet) -> None:
    """Below a traceback whose exception is missing the next record is no part of it."""
    report = pipeline.analyze([HEAD.format(rank=" TP0"), *FRAMES[:4], READY], rules=rules)
    assert report.label == "healthy"


@pytest.mark.parametrize("between", [[], ["E0112 10:04:45.1 9 torch/elastic/api.py:1] worker 0 failed"]])
def test_the_head_of_another_traceback_is_no_part_of_one(between: list[str], rules: RuleSet) -> None:
    """Also where the first one's message is missing, or another program's line stands in its place."""
    rows = [HEAD.format(rank=" TP0"), *FRAMES[:4], *between]
    report = pipeline.analyze([*rows, "Traceback (most recent call last):", FRAMES[0], OOM.format(gpu=0)], rules=rules)
    heads = [report.lines[event.first].text for event in report.events if event.traceback is not None]
    assert len(heads) == 2


def test_of_ranks_that_fail_alike_the_traceback_that_tells_most_is_judged(rules: RuleSet) -> None:
    """Somebody cut the lowest rank's traceback short; another one shows that weights were being rearranged."""
    whole = [HEAD.format(rank=" TP1"), *FRAMES, OOM.format(gpu=1), ""]
    short = [HEAD.format(rank=" TP0"), *FRAMES[:4], "  [...]", OOM.format(gpu=0), ""]
    begun = [BEGIN.format(rank=rank) for rank in (0, 1)]
    for order in ([*whole, *short], [*short, *whole]):
        assert pipeline.analyze([*begun, *order], rules=rules).label == "oom-weight-shuffle"


def test_a_rank_that_shows_more_frames_tells_what_is_to_blame(rules: RuleSet) -> None:
    """The lowest rank's line is shown, and the flag is the one that another rank's frames name."""
    error = "RuntimeError: No supported CUDA architectures found for major versions [10]."
    moe = '  File "/usr/lib/python3/flashinfer/fused_moe/core.py", line 2142, in trtllm_fp4_block_scale_moe'
    rows = [HEAD.format(rank=" TP1"), FRAMES[0], moe, error, "", HEAD.format(rank=" TP0"), FRAMES[0], error]
    report = pipeline.analyze(rows, rules=rules)
    assert report.root is not None
    assert report.events[report.lines[report.root.line].event].rank == "TP0"
    assert report.root.flag == "--moe-runner-backend"


@pytest.mark.parametrize("headline", ["Exception ignored in: <function Engine.__del__ at 0x7f>", "Something else"])
def test_an_exception_that_python_ignores_ends_nothing(headline: str, rules: RuleSet) -> None:
    """A destructor that fails after all is done is no failure; the same traceback without Python's words may be one."""
    rows = [headline, "Traceback (most recent call last):", FRAMES[0], "TypeError: 'NoneType' object is not callable"]
    report = pipeline.analyze([READY, *rows], rules=rules)
    assert report.label == ("healthy" if headline.startswith("Exception ignored") else "unknown")


def test_what_is_printed_below_an_ignored_exception_counts(rules: RuleSet) -> None:
    """Python's report of it ends at its exception; the shell's notice may follow at once."""
    rows = [
        "Exception ignored in: <function f at 0x7f>",
        "Traceback (most recent call last):",
        FRAMES[0],
        "TypeError: x",
    ]
    report = pipeline.analyze([BEGIN.format(rank=0), *rows, "Killed"], rules=rules)
    assert report.label == "killed-unexplained"


def test_a_harmless_line_between_frames_takes_nothing_away(rules: RuleSet) -> None:
    """What a library notes is printed into the traceback of a rank that runs out of memory."""
    note = "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1"
    rows = [HEAD.format(rank=" TP0"), *FRAMES[:6], note, *FRAMES[6:], OOM.format(gpu=0)]
    assert pipeline.analyze([BEGIN.format(rank=0), *rows], rules=rules).label == "oom-weight-shuffle"


def test_a_native_abort_below_frames_keeps_its_words(rules: RuleSet) -> None:
    """What `what()` says stands indented, as the source of a frame does."""
    abort = ["terminate called after throwing an instance of 'c10::AcceleratorError'"]
    abort += ["  what():  CUDA error: an illegal memory access was encountered", *FRAMES[2:4], OOM.format(gpu=0)]
    report = pipeline.analyze([HEAD.format(rank=" TP0"), *FRAMES[:2], *abort], rules=rules)
    assert report.label == "kernel-crash"


def test_whole_tracebacks_are_judged_in_their_order(rules: RuleSet) -> None:
    """A rank that fails a little later, in another stage and with more frames, does not go first."""
    load = '  File "/usr/lib/python3/sglang/srt/layers/linear.py", line 333, in weight_loader'
    first = [HEAD.format(rank=" TP0"), *FRAMES[:4], load, OOM.format(gpu=0), ""]
    later = [HEAD.format(rank=" TP1").replace("04:44", "04:45"), *FRAMES, OOM.format(gpu=1)]
    assert pipeline.analyze([BEGIN.format(rank=0), *first, *later], rules=rules).label == "oom-weight-load"


def test_a_check_of_the_arguments_is_another_launch(rules: RuleSet) -> None:
    """What stops a start before it prints its arguments does not follow from the ordered stop of the server before."""
    check = '  File "/usr/lib/python3/sglang/srt/server_args.py", line 5168, in check_server_args'
    stopped = [BEGIN.format(rank=0), READY, *STOPPED]
    failed = ["Traceback (most recent call last):", check, "RuntimeError: the frobnicator is missing"]
    report = pipeline.analyze([*stopped, *failed], rules=rules)
    assert report.label == "unsupported-config"
    assert report.root is not None
    assert "frobnicator" in report.lines[report.root.line].text


@pytest.mark.parametrize(
    ("outer", "shown"),
    [
        ("Exception: Capture cuda graph failed: odd kernel state", "RuntimeError: odd kernel state"),
        ("Exception: the launch ended early", "Exception: the launch ended early"),
    ],
    ids=["quoted", "another"],
)
def test_of_a_chain_the_exception_that_the_last_one_quotes(outer: str, shown: str, rules: RuleSet) -> None:
    """Above it stand the frames that tell where it happened; a message of its own stands for itself."""
    joint = ["", "During handling of the above exception, another exception occurred:", ""]
    inner = [HEAD.format(rank=" TP0"), *FRAMES, "RuntimeError: odd kernel state"]
    rows = [*inner, *joint, "Traceback (most recent call last):", *FRAMES[:2], outer]
    report = pipeline.analyze(rows, rules=rules)
    assert report.root is not None
    assert (report.label, report.lines[report.root.line].text) == ("unknown", shown)
