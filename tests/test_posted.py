"""Logs that stand in a text: somebody shows launches in blocks and asks about the one that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

COMMAND = "$ python3 -m sglang.launch_server --model-path m --port 30000"
FAILED = [
    "[2026-01-12 10:03:41 TP0] Load weight begin. avail mem=30.40 GB",
    "[2026-01-12 10:03:44 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/usr/lib/python3.12/site-packages/sglang/srt/model_loader/loader.py", line 321, in _initialize_model',
    "    return model_class(",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 31.36 GiB.",
    "",
    "[2026-01-12 10:03:44] Received sigquit from a child process. It usually means the child failed.",
]
READY = [
    "[2026-01-12 10:41:07 TP0] Load weight begin. avail mem=30.40 GB",
    "[2026-01-12 10:41:27 TP0] Load weight end. avail mem=10.40 GB",
    "[2026-01-12 10:42:21] The server is fired up and ready to roll!",
]


def _block(rows: list[str]) -> list[str]:
    return ["```", *rows, "```"]


@pytest.mark.parametrize("has_command", [True, False], ids=["with-commands", "without"])
@pytest.mark.parametrize("failed_first", [True, False], ids=["failed-first", "failed-last"])
def test_the_block_that_failed_is_asked_about(rules: RuleSet, *, has_command: bool, failed_first: bool) -> None:
    """In whatever order a failed launch and one that did well are shown, with commands above them or without."""
    command = [COMMAND] if has_command else []
    failed, ready = _block([*command, *FAILED]), _block([*command, *READY])
    blocks = [*failed, "With the smaller model it works:", *ready]
    if not failed_first:
        blocks = [*ready, "With the larger model it dies:", *failed]
    report = pipeline.analyze(["Our GPU is a 5090.", "", *blocks, "Any ideas?"], rules=rules)
    assert report.label == "oom-weight-load"


@pytest.mark.parametrize("around", [[], ["```"]], ids=["bare", "in-one-block"])
def test_a_restart_within_a_log_is_none(rules: RuleSet, around: list[str]) -> None:
    """In one log the last launch with an outcome counts, also where the log as a whole stands in a block."""
    report = pipeline.analyze([*around, COMMAND, *FAILED, COMMAND, *READY, *around], rules=rules)
    assert report.label == "healthy"


@pytest.mark.parametrize("share", [1, 4], ids=["much-prose", "little-prose"])
def test_an_indented_block_among_prose(rules: RuleSet, share: int) -> None:
    """A block of code that is indented, as Markdown has it, is read like one between fences."""
    prose = ["Loading dies on our 5090, what are we doing wrong?", "", "Thanks for any hint."]
    block = [f"    {row}" if row else "" for row in FAILED * share]
    report = pipeline.analyze([*prose, "", *block, "", *prose], rules=rules)
    assert report.label == "oom-weight-load"
    assert report.root is not None
    assert report.lines[report.root.line].role == "exception"


def test_code_in_a_traceback_is_no_indented_block(rules: RuleSet) -> None:
    """A log that is nearly all source lines keeps their indentation."""
    rows = [FAILED[1], *(row for _ in range(12) for row in (FAILED[2], "    raise OSError(")), FAILED[4]]
    report = pipeline.analyze(rows, rules=rules)
    assert report.label == "oom-weight-load"
    assert not any(line.role == "exception" for line in report.lines[:-1])


@pytest.mark.parametrize("indent", [2, 3, 4])
def test_a_block_in_an_item_of_a_list(rules: RuleSet, indent: int) -> None:
    """A fenced block below an item of a list is indented as a whole."""
    block = [f"{' ' * indent}{row}" for row in _block([COMMAND, *FAILED])]
    report = pipeline.analyze(["1. It fails:", "", *block, "", "2. What now?"], rules=rules)
    assert report.label == "oom-weight-load"


TAKEN = (
    "[{time}] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use"
)


@pytest.mark.parametrize(
    ("start", "label"), [("10:03:50", "oom-weight-load"), ("11:40:50", "port-in-use")], ids=["at-once", "later"]
)
def test_what_an_earlier_launch_left_behind(rules: RuleSet, start: str, label: str) -> None:
    """Of a port that is taken right after another failure the earlier launch is to blame, of one an hour later not."""
    again = [COMMAND, READY[0].replace("10:41:07", start), TAKEN.format(time=f"2026-01-12 {start}")]
    report = pipeline.analyze([COMMAND, *FAILED, *again], rules=rules)
    assert report.label == label


def test_what_an_earlier_launch_left_behind_for_several(rules: RuleSet) -> None:
    """A port that is taken at the second start, and at the third."""
    again = [COMMAND, READY[0].replace("10:41:07", "10:03:50"), TAKEN.format(time="2026-01-12 10:03:50")]
    thrice = [row.replace("10:03:50", "10:04:20") for row in again]
    assert pipeline.analyze([COMMAND, *FAILED, *again, *thrice], rules=rules).label == "oom-weight-load"
    assert pipeline.analyze([*again, *thrice], rules=rules).label == "port-in-use"


@pytest.mark.parametrize(("echo", "label"), [("^C", "incomplete"), ("", "unknown")], ids=["echo", "none"])
def test_an_interrupt_that_several_ranks_print(rules: RuleSet, echo: str, label: str) -> None:
    """From the echo of the key on everything belongs to the stop, also a traceback that another one tears apart."""
    heads = [f"[2026-01-12 10:41:10 TP{rank}] Traceback (most recent call last):" for rank in (1, 0)]
    torn = [*heads, FAILED[2], FAILED[2], "KeyboardInterrupt", "KeyboardInterrupt"]
    report = pipeline.analyze([COMMAND, READY[0], echo, *torn], rules=rules)
    assert report.label == label


@pytest.mark.parametrize("table_first", [True, False], ids=["table-first", "command-first"])
@pytest.mark.parametrize(("log", "label"), [([], "unknown"), ([READY[0]], "incomplete")], ids=["no-log", "log"])
def test_a_machine_that_is_described_is_no_launch(
    rules: RuleSet, log: list[str], label: str, *, table_first: bool
) -> None:
    """A command and what sglang.check_env prints say nothing of what happened; one line of a launch does."""
    table = ["Python: 3.12.3 (main)", "GPU 0: NVIDIA H100", "sglang: 0.5.9", "sgl_kernel: 0.3.21", "triton: 3.5.1"]
    parts = [table, [COMMAND.removeprefix("$ "), *log]]
    rows = [row for part in (parts if table_first else parts[::-1]) for row in part]
    report = pipeline.analyze(["It ends after some seconds.", *rows], rules=rules)
    assert report.label == label
