"""What is the cause and what only followed: the order of things, ranks, survived failures, several launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

ARGS = "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2)"
BEGIN = "[2026-01-01 10:00:20 TP{rank}] Load weight begin. avail mem=90.00 GB"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB"
READY = "[2026-01-01 10:05:00] The server is fired up and ready to roll!"
SERVED = '[2026-01-01 10:06:00] INFO:     127.0.0.1:5000 - "POST /generate HTTP/1.1" 200 OK'
SIGQUIT = "[2026-01-01 10:01:01] Received sigquit from a child process. It usually means the child failed."


def crash(time: str, rank: str, *rows: str) -> list[str]:
    """A scheduler's traceback at a time, ending with the given rows."""
    return [
        f"[2026-01-01 {time}{rank}] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/a/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process',
        *rows,
        "",
    ]


LOADING = '  File "/a/sglang/srt/model_loader/loader.py", line 9, in load_weights'
GLOO = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"


def judge(rules: RuleSet, *rows: str) -> Report:
    return pipeline.analyze([*rows], rules=rules)


def test_the_earliest_failure_is_the_root_whatever_the_order_of_lines(rules: RuleSet) -> None:
    """By time, not by place: rank 1 failed a second earlier although it printed later."""
    rows = [ARGS, *(BEGIN.format(rank=rank) for rank in (0, 1))]
    rows += crash(
        "10:01:00",
        " TP0",
        '  File "/a/b.py", line 1, in f',
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    )
    rows += crash("10:00:59", " TP1", LOADING, OOM)
    report = judge(rules, *rows, SIGQUIT)
    assert report.label == "oom-weight-load"
    assert report.root is not None
    assert report.events[report.lines[report.root.line].event].rank == "TP1"
    assert len(report.incident.unexplained) == 1
    assert report.verdict.confidence < 0.9


def test_a_lost_partner_yields_to_the_rank_that_failed(rules: RuleSet) -> None:
    """A connection error printed first is an effect of the failure that another rank prints within two seconds."""
    rows = [ARGS, *(BEGIN.format(rank=rank) for rank in (0, 1))]
    rows += crash("10:01:00", " TP0", GLOO) + crash("10:01:01", " TP1", LOADING, OOM)
    report = judge(rules, *rows, SIGQUIT, "Killed")
    assert report.label == "oom-weight-load"
    assert report.incident.unexplained == ()


def test_the_first_cause_of_a_chain(rules: RuleSet) -> None:
    """The wrapper at the end of the chain, with its memory advice, is part of the same error."""
    rows = [ARGS, BEGIN.format(rank=0)]
    rows += crash(
        "10:01:00", " TP0", "nvcc fatal   : Unsupported gpu architecture 'compute_120a'", "",
        "During handling of the above exception, another exception occurred:", "",
        "Traceback (most recent call last):", '  File "/a/sglang/srt/x.py", line 5, in capture',
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "Possible solutions:", "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    )  # fmt: skip
    report = judge(rules, *rows)
    assert report.label == "cuda-toolkit-mismatch"
    assert report.incident.unexplained == ()


def test_a_failure_that_was_survived(rules: RuleSet) -> None:
    """What the launch went on from is no failure: the ready line comes later, or the rank reached a later stage."""
    failed = crash("10:00:30", "", LOADING, OOM)
    assert judge(rules, ARGS, BEGIN.format(rank=0), *failed, READY, SERVED).label == "healthy"
    assert judge(rules, ARGS, BEGIN.format(rank=0), *failed).label == "oom-weight-load"


CLIENT = ["Traceback (most recent call last):", '  File "/app/train.py", line 8, in <module>', OOM]


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        ([*CLIENT, SERVED, SERVED], "healthy"),
        ([*CLIENT, SERVED], "oom-runtime"),
        ([*CLIENT, SERVED, SERVED, "start.sh: line 3: 77 Killed   python3 -m x"], "oom-runtime"),
        ([CLIENT[0], '  File "/a/sglang/srt/managers/scheduler.py", line 8, in run_batch', OOM, SERVED, SERVED],
         "oom-runtime"),
        ([CLIENT[0], '  File "/a/sglang/bench_serving.py", line 8, in run', OOM, SERVED, SERVED], "healthy"),
    ],
)  # fmt: skip
def test_what_a_client_prints_is_no_failure_of_a_server_that_goes_on(
    rules: RuleSet, rows: list[str], label: str
) -> None:
    """Not stamped, with nothing of the server's in it, and the server answers on: it belongs to somebody else."""
    report = judge(rules, ARGS, READY, SERVED, *rows)
    assert report.label == label


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ("[ 8123.123456] NVRM: Xid (PCI:0000:17:00): 79, pid=1234, GPU has fallen off the bus.", "gpu-hardware"),
        ("terminate called after throwing: CUDA error: an illegal memory access was encountered", "kernel-crash"),
        (f'Traceback (most recent call last):\n  File "/p/threading.py", line 8, in run\n{OOM}', "oom-runtime"),
    ],
    ids=["driver", "c++", "thread"],
)
def test_answers_to_probes_do_not_excuse_what_no_client_prints(rules: RuleSet, row: str, label: str) -> None:
    """The driver, C++ and threads print without a stamp, and a server whose scheduler is dead answers probes."""
    assert judge(rules, ARGS, READY, SERVED, *row.split("\n"), SERVED, SERVED, SERVED).label == label


def test_two_streams_of_one_process_are_one_launch(rules: RuleSet) -> None:
    """A launcher that names the stream of each line: the stage is told on one, the failure on the other."""
    told = [f"[stdout] {row}" for row in (ARGS, BEGIN.format(rank=0))]
    failed = [f"[stderr] {row}" for row in crash("10:01:00", " TP0", OOM)]
    assert judge(rules, *told, *failed).label == "oom-weight-load"


def test_the_shell_tells_the_command_of_a_job_that_was_killed(rules: RuleSet) -> None:
    """Its notice holds the command, and begins no launch."""
    notice = "./run.sh: line 19:  1204 Killed                  python3 -m sglang.launch_server --model-path /m --tp 4"
    report = judge(rules, *crash("10:01:00", " TP0", LOADING, OOM), notice)
    assert (report.label, report.launch.flags) == ("oom-weight-load", {"--model-path": "/m", "--tp-size": "4"})


def test_a_service_that_exited_with_an_error_failed(rules: RuleSet) -> None:
    """systemd says no more than that: the cause is unknown, but nobody needs to wait."""
    report = judge(rules, ARGS, "systemd[1]: sglang.service: Main process exited, code=exited, status=1/FAILURE")
    assert (report.label, report.verdict.outcome) == ("unknown", "failed")


def test_ready_and_then_dead(rules: RuleSet) -> None:
    """A server that was ready and then died has failed."""
    serving = '  File "/a/sglang/srt/managers/scheduler.py", line 9, in event_loop_overlap'
    report = judge(rules, ARGS, READY, SERVED, *crash("10:07:00", "", serving, OOM), SIGQUIT, "Killed")
    assert report.label == "oom-runtime"


def test_an_ordered_stop_explains_what_follows(rules: RuleSet) -> None:
    """After SIGTERM a crashed child, a kill and even an exception are the stop, not a failure."""
    stop = "[2026-01-01 10:07:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
    child = "[2026-01-01 10:07:01] Subprocess scheduler_0 (pid=782) crashed with exit code -15. Triggering SIGQUIT"
    rows = [stop, child, *crash("10:07:02", "", "RuntimeError: CUDA error: an illegal memory access was encountered")]
    assert judge(rules, ARGS, READY, SERVED, *rows, "Killed").label == "healthy"
    assert judge(rules, ARGS, *rows, "Killed").label == "incomplete"


def test_a_job_manager_stops_all_tasks_of_its_log(rules: RuleSet) -> None:
    """Slurm's own line stands beside the tasks' lines; what they print behind it is no failure."""
    rows = [f"0: {row}" for row in (ARGS, BEGIN.format(rank=0), READY, SERVED)] + [f"1: {ARGS}"]
    lost = "1: [rank1]:[W112 11:20:32.001 TCPStore.cpp:125] [c10d] recvValue failed: Connection reset by peer"
    cancelled = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T11:20:31 DUE TO PREEMPTION ***"
    assert judge(rules, *rows, cancelled, lost).label == "healthy"
    assert judge(rules, *rows, lost, cancelled).label != "healthy"


def test_at_the_same_time_what_has_no_rank_keeps_its_place(rules: RuleSet) -> None:
    """A line of no rank below the failing rank's lines only reports; above them it is the first sign."""
    failed = crash("10:01:00", " TP1", LOADING, OOM)
    report = "[2026-01-01 10:01:00] torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert judge(rules, ARGS, BEGIN.format(rank=1), *failed, report).label == "oom-weight-load"
    assert judge(rules, ARGS, BEGIN.format(rank=1), report, *failed).label == "kernel-crash"


def test_a_container_of_another_program_decides_nothing(rules: RuleSet) -> None:
    """What fails beside the server in the same compose log is no failure of the server; the server's own is."""
    other = ["comfyui-1 | RuntimeError: CUDA error: no kernel image is available for execution on the device"]
    other += ["comfyui-1 exited with code 1"]
    well = [f"sglang-1 | {row}" for row in (ARGS, BEGIN.format(rank=0), READY, SERVED)]
    assert judge(rules, *well[:2], *other, *well[2:]).label == "healthy"
    failed = [f"sglang-1 | {row}" for row in crash("10:01:00", " TP0", LOADING, OOM)]
    assert judge(rules, *well[:2], *other, *failed, "sglang-1 exited with code 1").label == "oom-weight-load"


def test_a_warning_of_the_imports_belongs_to_the_launch_below_it(rules: RuleSet) -> None:
    """What torch says of its build stands above the arguments, and explains the kernel that is missing later."""
    built = (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
    )
    missing = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    report = judge(rules, built, ARGS, BEGIN.format(rank=0), *crash("10:01:00", " TP0", LOADING, missing))
    assert report.launches == 1
    assert report.label == "cuda-toolkit-mismatch"


def test_an_error_500_leaves_a_doubt(rules: RuleSet) -> None:
    """A server that answers some requests with an error of its own is not surely healthy."""
    failed = SERVED.replace("200 OK", "500 Internal Server Error")
    assert judge(rules, ARGS, READY, SERVED).verdict.confidence > 0.9
    report = judge(rules, ARGS, READY, failed, SERVED)
    assert report.label == "healthy"
    assert report.verdict.confidence < 0.7


def test_the_last_requests_failed(rules: RuleSet) -> None:
    """What nothing explains and nothing follows is unknown, with the line of the request."""
    failed = SERVED.replace("200 OK", "500 Internal Server Error")
    report = judge(rules, ARGS, READY, SERVED, failed)
    assert report.label == "unknown"
    assert report.root is not None
    assert report.lines[report.root.line].text == failed


def test_the_last_launch_with_an_outcome_is_judged(rules: RuleSet) -> None:
    """Restarts in one log: earlier launches are only mentioned, and so is a last one that has come to nothing yet."""
    first = [ARGS, BEGIN.format(rank=0), *crash("10:01:00", "", LOADING, OOM), "Killed"]
    second = [row.replace("10:0", "11:0") for row in (ARGS, BEGIN.format(rank=0), READY, SERVED)]
    report = judge(rules, *first, *second)
    assert (report.label, report.launches) == ("healthy", 2)
    assert judge(rules, *second, *first).label == "oom-weight-load"
    third = [row.replace("10:0", "12:0") for row in (ARGS, BEGIN.format(rank=0))]
    report = judge(rules, *first, *second, *third)
    assert report.label == "healthy"
    assert any("no outcome yet" in note for note in report.notes)


@pytest.mark.parametrize("notice", ["Killed", "run.sh: line 9: 4711 Killed  python3 -m sglang.launch_server --tp 2"])
def test_killed_after_an_unknown_failure_is_unknown(rules: RuleSet, notice: str) -> None:
    """SGLang kills itself after every failure, so a kill after a traceback that no rule knows proves nothing."""
    rows = crash("10:01:00", "", "FrobnicationError: the frobnicator is out of phase")
    report = judge(rules, ARGS, BEGIN.format(rank=0), *rows, SIGQUIT, notice)
    assert report.label == "unknown"
    assert report.root is not None
    assert "Frobnication" in report.lines[report.root.line].text


def test_a_fact_of_the_caller_beats_the_log(rules: RuleSet) -> None:
    """`[12]` means an old toolkit on SM120, another GPU's kernel elsewhere, and nothing if the GPU is unknown."""
    log = b"RuntimeError: No supported CUDA architectures found for major versions [12].\n"
    labels = [
        pipeline.analyze(log, rules=rules, options=pipeline.Options(facts=facts)).label
        for facts in ({"sm": 120}, {"sm": 90}, {})
    ]
    assert labels == ["cuda-toolkit-mismatch", "arch-unsupported-kernel", "unknown"]


def test_a_harmless_record_does_not_hide_the_traceback_below_it(rules: RuleSet) -> None:
    """A parent's traceback has no time stamp and follows whatever record came before; it stays a failure."""
    rows = [
        ARGS,
        "[2026-01-01 10:00:01] Attention backend not explicitly specified. Use fa3 backend by default.",
        "Traceback (most recent call last):",
        '  File "/a/sglang/launch_server.py", line 3, in <module>',
        "Exception: the moon is in the wrong phase",
    ]
    report = judge(rules, *rows)
    assert (report.label, report.verdict.outcome) == ("unknown", "failed")
    assert report.root is not None
    assert report.lines[report.root.line].text == rows[-1]
