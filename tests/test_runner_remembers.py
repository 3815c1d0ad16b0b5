"""What a run does with what the ledger knows: real launches of a program that prints a log and fails.

The logs are written for these tests.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from logtriage.runner.ledger import Ledger
from logtriage.runner.plan import Plan
from logtriage.runner.preview import preview
from tests.running import Told, free_port, labels, ran

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

CONTEXT = "ValueError: User-specified context_length (200000) is greater than the derived context_length (40960)."
SM100 = "RuntimeError: No supported CUDA architectures found for major versions [10]."
GRAPH = (
    "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 1 has a total capacity "
    "of 79.10 GiB of which 300.00 MiB is free. Process 991 has {} memory in use. Of the allocated memory {} is "
    "allocated by PyTorch"
)
OWN, FOREIGN = GRAPH.format("78.80 GiB", "76.01 GiB"), GRAPH.format("50.00 GiB", "26.01 GiB")
HOST = "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: 1 bytes."
NO_MODULE = "ModuleNotFoundError: No module named 'flashinfer'"
MOE = "--moe-runner-backend"


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program `sglang` on PATH that prints what its arguments are, an exception of the scheduler, and fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sglang").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/launched\n'
        "echo '[2026-03-02 10:00:01] server_args=ServerArgs(model_path=\"m\", mem_fraction_static=0.88)'\n"
        f"cat {tmp_path}/says\nexit 1\n"
    )
    (folder / "sglang").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def says(line: str) -> None:
        text = "[2026-03-02 10:00:40 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        (tmp_path / "says").write_text(f'{text}  File "scheduler.py", line 1, in run_scheduler_process\n{line}\n')

    return says


def launched(folder: Path) -> list[str]:
    """The arguments of all launches so far."""
    return (folder / "launched").read_text(encoding="utf-8").splitlines()


def run(folder: Path, rules: RuleSet, *flags: str, told: Told | None = None, **plan: Any) -> Any:
    words = ["sglang", "serve", "--model-path", "m", "--port", str(free_port()), "--tp", "2", *flags]
    if (folder / "port").exists():  # every run of a test has the same command
        words[5] = (folder / "port").read_text()
    (folder / "port").write_text(words[5])
    return ran(folder, rules, words, told, **{"sm": 90, "server_version": "0.5.9", **plan})


def test_the_step_after_a_known_failure_has_its_number(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """The next run takes the limit that the message of the earlier one told, never the rule's place for it."""
    failing(CONTEXT)
    for _ in range(2):
        run(tmp_path, rules, "--context-length", "200000", max_attempts=1)
    assert [line.split()[-1] for line in launched(tmp_path)] == ["200000", "40960"]


def test_evidence_with_a_gap_never_reaches_a_command(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """A ledger whose entry holds the rule's place and not the number: nothing is launched with it."""
    failing(CONTEXT)
    run(tmp_path, rules, "--context-length", "200000", max_attempts=1)
    book = Ledger(str(tmp_path / "ledger.sqlite"))
    entry = book.attempts()[0]["entry"].replace('"value": "40960"', '"value": "{limit}"').replace('"limit"', '"other"')
    book.update(book.attempts()[0]["id"], entry=entry)
    book.close()
    outcome = run(tmp_path, rules, "--context-length", "200000", max_attempts=1)
    assert len(launched(tmp_path)) == 1
    assert (len(outcome.known), outcome.advice.command_text) == (1, None)


def test_want_of_own_memory_is_not_repeated(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """Memory that no other process can have held is missing again: what failed for it is not launched twice."""
    failing(OWN)
    for _ in range(2):  # a secret, which the ledger does not have, makes no other command
        outcome = run(tmp_path, rules, "--api-key", "zq81Kd02mXw7", max_attempts=2)
    assert len(launched(tmp_path)) == len(set(launched(tmp_path))) == 2
    assert len(outcome.known) == 1
    assert "`logtriage ledger forget`" in outcome.known[0]


@pytest.mark.parametrize(
    ("line", "label", "why"),
    [
        (FOREIGN, "oom-cuda-graph", "held by others"),
        (HOST, "oom-host", "held by others"),
        (NO_MODULE, "missing-dependency", "repaired since"),
        ("Killed", "killed-unexplained", "it may pass"),
        ("RuntimeError: zqx", "unknown", "not known what failed"),
    ],
)
def test_what_is_repeated_says_why(
    rules: RuleSet, failing: Any, tmp_path: Path, line: str, label: str, why: str
) -> None:
    """What may be over is launched again on purpose, and the run tells so."""
    failing(line)
    told = Told()
    for _ in range(2):
        outcome = run(tmp_path, rules, told=told, max_attempts=1)
    assert labels(outcome.entries) == [label]
    assert len(launched(tmp_path)) == 2
    assert [why in note for note in told.notes if note.startswith("launched again, though")] == [True]


def test_another_environment_says_why(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """On another GPU the same is launched again, with the reason; `--dry-run` says so too."""
    failing(SM100)
    told = Told()
    for sm in (90, 120):
        run(tmp_path, rules, MOE, "triton", told=told, max_attempts=1, sm=sm)
    assert len(launched(tmp_path)) == 2
    assert [note for note in told.notes if note.endswith(": sm has changed since")]
    port = (tmp_path / "port").read_text()
    words = f"sglang serve --model-path m --port {port} --tp 2 {MOE} triton".split()
    for sm, expected in ((90, "not launched: "), (100, "launched again, though ")):
        plan = Plan(command=words, ledger=str(tmp_path / "ledger.sqlite"), sm=sm, server_version="0.5.9")
        assert [line for line in preview(plan, rules) if line.strip().startswith(expected)]


def test_another_variable_is_another_command(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """The user has taken the way out that the message names, a variable: that has not failed yet."""
    failing(CONTEXT)
    words = ["sglang", "serve", "--model-path", "m", "--port", str(free_port()), "--context-length", "200000"]
    for given in (words, ["SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1", *words]):
        outcome = ran(tmp_path, rules, given, max_attempts=1, sm=90, server_version="0.5.9")
    assert len(launched(tmp_path)) == 2
    assert not outcome.known


def test_no_value_that_failed_comes_again(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """A failure that blames no flag rules out its command: neither this run nor the next recommends or repeats it."""
    failing(SM100)
    for _ in range(2):
        outcome = run(tmp_path, rules, MOE, "flashinfer_trtllm", max_attempts=3)
        advised = outcome.advice.command_text if outcome.advice is not None else None
        assert advised not in {entry["command_text"] for entry in outcome.entries}
    assert len(launched(tmp_path)) == len(set(launched(tmp_path))) > 3


def test_what_failed_is_not_recommended_at_the_end(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """The log names the same way out whatever is launched: the run stops without recommending it once more."""
    failing(CONTEXT)
    outcome = run(tmp_path, rules, "--context-length", "200000", max_attempts=5)
    assert [line.split()[-1] for line in launched(tmp_path)] == ["200000", "40960"]
    assert "--context-length 40960" in outcome.because
    assert outcome.advice is None


def test_a_script_that_gets_the_command_as_arguments(rules: RuleSet, failing: Any, tmp_path: Path) -> None:
    """`bash -c '…; exec "$@"' bash CMD`: the next attempt is launched through the same script."""
    failing(CONTEXT)
    script = f'echo sourced >> {tmp_path}/sourced; exec "$@"'
    words = ["sglang", "serve", "--model-path", "m", "--port", str(free_port()), "--context-length", "200000"]
    ran(tmp_path, rules, ["bash", "-c", script, "bash", *words], max_attempts=2, sm=90, server_version="0.5.9")
    assert [line.split()[-1] for line in launched(tmp_path)] == ["200000", "40960"]
    assert (tmp_path / "sourced").read_text(encoding="utf-8").split() == ["sourced"] * 2
