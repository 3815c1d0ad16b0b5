"""A growing log gives the verdict that batch gives, through truncation, rotation and lines that come in parts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.engine.prefilter import make, make_anchors
from logtriage.errors import InputError
from logtriage.following import Clock, Follower
from logtriage.intake import follow, growing
from logtriage.intake.growing import GrowingLog
from tests.conftest import ROOT, Case, cases
from tests.test_intake import PIECES
from tests.test_stored import FORMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

START = b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n"
FATAL = (
    b"[2026-01-01 10:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/a/sglang/srt/x.py", line 3, in run\n    y = f(x)\n'
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
)
READY = b"[2026-01-01 10:00:09] The server is fired up and ready to roll!\n"
STOPPED = b"[2026-01-01 10:00:10] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
LOADING = b"[2026-01-01 10:00:01 TP0] Load weight begin. avail mem=93.11 GB\n"
SERVING = b"[2026-01-01 10:00:11 TP0] Decode batch, #running-req: 8, #token: 9, token usage: 0.01\n"


class Story:
    """A clock whose sleeps are steps of a story: each look that finds nothing new lets the next thing happen."""

    def __init__(self, *steps: Callable[[], Any] | None) -> None:
        self.time = 0.0
        self._steps = list(steps)

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        if self._steps and (step := self._steps.pop(0)):
            step()
        if self.time > 60:
            raise TimeoutError("following does not end")

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)


def _append(path: Path, data: bytes) -> Callable[[], None]:
    def write() -> None:
        with path.open("ab") as file:
            file.write(data)

    return write


def _follow(path: Path, rules: RuleSet, *steps: Callable[[], Any] | None, **options: Any) -> Report:
    return Follower(str(path), rules, pipeline.Options(), Story(*steps).clock, **options).run()


def _essence(report: Report) -> Any:
    root = report.root
    return (
        report.verdict,
        root and (report.lines[root.line].text, report.lines[root.line].number, root.flag),
        report.lines,
        report.files[0].size,
        report.files[0].lines,
    )


def test_a_failure_ends_it_after_the_grace(tmp_path: Path, rules: RuleSet) -> None:
    """What other ranks print within the grace is part of the report; what comes later is not."""
    path = tmp_path / "run.log"
    path.write_bytes(START)
    story = Story(None, _append(path, FATAL), *[None] * 20, _append(path, FATAL.replace(b"TP0", b"TP1")))
    report = Follower(str(path), rules, pipeline.Options(), story.clock, grace=2.0).run()
    assert report.label == "oom-gpu"
    assert sum("TP1" in line.rank for line in report.lines) > 0
    assert 2.0 <= story.time < 3.0
    assert _essence(report) == _essence(pipeline.analyze(path, rules=rules))


@pytest.mark.parametrize(
    ("until", "written", "label"),
    [
        ("ready", (READY,), "healthy"),
        ("failed", (READY, SERVING, FATAL), "oom-runtime"),
        ("failed", (READY, STOPPED), "healthy"),
        ("exit", (READY, STOPPED, SERVING), "healthy"),
        ("exit", (FATAL, SERVING), "oom-gpu"),
    ],
)
def test_what_ends_following(
    tmp_path: Path, rules: RuleSet, until: str, written: tuple[bytes, ...], label: str
) -> None:
    """Each way to end it waits for its own sign, and has then read all that was written."""
    path = tmp_path / "run.log"
    path.write_bytes(START)
    steps = [step for data in written for step in (_append(path, data), None, None)]
    report = _follow(path, rules, *steps, until=until, grace=0.5)
    assert report.label == label
    assert report.files[0].size == len(START) + sum(map(len, written))


def test_a_failure_that_is_survived_is_no_failure(tmp_path: Path, rules: RuleSet) -> None:
    """A server that becomes ready within the grace has not failed."""
    path = tmp_path / "run.log"
    path.write_bytes(START + FATAL)
    assert _follow(path, rules, None, None, _append(path, READY + SERVING)).label == "healthy"


def test_truncation(tmp_path: Path, rules: RuleSet) -> None:
    """A file that is cut short and written anew is read on, even if it has grown beyond its old size meanwhile."""
    path = tmp_path / "run.log"
    path.write_bytes(START + b"an open line")
    long = b"".join(b"[2026-01-01 10:00:05] INFO: %d\n" % number for number in range(100))
    report = _follow(path, rules, None, lambda: path.write_bytes(long), _append(path, FATAL))
    assert report.label == "oom-gpu"
    assert report.files[0].size == len(START) + len(b"an open line\n") + len(long) + len(FATAL)
    assert "cut short" in report.notes[-1]


def test_a_writer_that_leaves_a_hole(tmp_path: Path, rules: RuleSet) -> None:
    """After copytruncate a writer without O_APPEND goes on at its old place; the hole before it is passed over."""
    path = tmp_path / "run.log"
    with path.open("wb", buffering=0) as file:
        file.write(START * 50)

        def truncate() -> None:
            os.truncate(path, 0)
            file.write(FATAL)

        assert _follow(path, rules, None, truncate).label == "oom-gpu"


def test_rotation(tmp_path: Path, rules: RuleSet) -> None:
    """A file that is moved away is read to its end, then the one that took its name; in between there may be none."""
    path = tmp_path / "run.log"
    old = tmp_path / "run.log.1"
    path.write_bytes(START)
    report = _follow(
        path, rules, None, lambda: path.rename(old), None, _append(old, b"last words\n"), None,
        lambda: path.write_bytes(b""), None, _append(path, FATAL),
    )  # fmt: skip
    assert report.label == "oom-gpu"
    assert any(line.text == "last words" for line in report.lines)
    assert any("server_args" in line.text for line in report.lines)
    assert "rotated" in report.notes[-1]


def test_lines_in_parts_and_several_writers(tmp_path: Path, rules: RuleSet) -> None:
    """A line may come byte by byte, and two processes may append in turn."""
    path = tmp_path / "run.log"
    path.write_bytes(START)
    other = b"[2026-01-01 10:00:08 TP1] Load weight begin. avail mem=93.11 GB\n"
    steps = [_append(path, FATAL[at : at + 7]) for at in range(0, len(FATAL), 7)]
    steps.insert(0, _append(path, other))
    steps.append(_append(path, other))
    report = _follow(path, rules, *steps, grace=1.0)
    assert _essence(report) == _essence(pipeline.analyze(path, rules=rules))


def test_a_file_that_is_not_there_yet(tmp_path: Path, rules: RuleSet) -> None:
    """It is waited for; a folder is refused."""
    path = tmp_path / "run.log"
    assert _follow(path, rules, None, lambda: path.write_bytes(START + FATAL)).label == "oom-gpu"
    with pytest.raises(InputError, match="no file that grows"):
        _follow(tmp_path, rules)


def test_a_pipe_ends_when_it_is_closed(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is followed to its end, whatever the verdict."""
    reader, writer = os.pipe()

    def write() -> None:
        os.write(writer, START + LOADING)
        os.close(writer)

    monkeypatch.setattr(follow, "_from_pipe", lambda _, sleep, real=follow._from_pipe: real(reader, sleep))
    report = Follower("-", rules, pipeline.Options(), Story(None, write).clock).run()
    assert (report.label, report.files[0].size) == ("incomplete", len(START + LOADING))
    os.close(reader)


def test_stages_are_told_as_they_change(tmp_path: Path, rules: RuleSet) -> None:
    """Each stage is told once, in order."""
    path = tmp_path / "run.log"
    path.write_bytes(START)
    told: list[str] = []
    mark = b"[2026-01-01 10:00:01 TP0] Load weight begin. avail mem=93.11 GB\n"
    _follow(path, rules, _append(path, mark), _append(path, mark.replace(b"TP0", b"TP1")), _append(path, READY),
            on_stage=told.append)  # fmt: skip
    assert told == ["args", "weight-load", "serving"]


def test_nothing_is_judged_without_a_reason(tmp_path: Path, rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a server that works do not make the whole log be judged."""
    path = tmp_path / "run.log"
    path.write_bytes(START)
    judged = []
    real = pipeline.report_on_growing
    monkeypatch.setattr(pipeline, "report_on_growing", lambda *given: judged.append(1) or real(*given))
    steps = [_append(path, SERVING * 25) for _ in range(200)]
    _follow(path, rules, *steps, _append(path, FATAL), until="failed", grace=0)
    assert len(judged) <= 4


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(sorted(set(FORMS) - {"gzip", "zstd", "newest-first", "broken", "utf-16"})),
    st.lists(PIECES, min_size=1, max_size=60),
    st.lists(st.integers(1, 400), min_size=1),
    st.sampled_from([0, 200, 1 << 23]),
)
def test_following_gives_what_batch_gives(
    rules: RuleSet, form: str, pieces: list[str], sizes: list[int], held: int
) -> None:
    """Whatever the pieces, at any time what follows a log selects what batch selects of the log so far."""
    data = FORMS[form](pieces * 8)
    search = make(rules.gates)
    log = GrowingLog("<bytes>", rules.wrappers, search.offsets, lambda: make_anchors(rules.anchors))
    kept = growing.HELD
    growing.HELD = max(held, _sample_end(data)) if held < 1 << 23 else held
    try:
        at = 0
        while at < len(data):
            size = sizes[at % len(sizes)] * 16
            log.add(data[at : at + size])
            at += size
            if at % 3 == 0:
                log.state()  # looking changes nothing
        report = pipeline.report_on_growing(log, [], rules, pipeline.Options())
        assert _essence(report) == _essence(pipeline.analyze(data, rules=rules))
    finally:
        growing.HELD = kept


def _sample_end(data: bytes) -> int:
    """Bytes by which the layout of a log is judged."""
    return sum(map(len, data.splitlines(keepends=True)[:401]))


@pytest.mark.parametrize("case", cases()[::9], ids=lambda case: case.folder.name)
def test_followed_logs_of_the_corpus(case: Case, rules: RuleSet, tmp_path: Path) -> None:
    """A log of the corpus that is written in pieces gets its verdict when following is interrupted at its end."""
    path = tmp_path / "run.log"
    data = case.log.read_bytes()
    path.write_bytes(b"")
    follower: Follower

    def stop() -> None:
        raise KeyboardInterrupt

    steps = [_append(path, data[at : at + 5000]) for at in range(0, len(data), 5000)]
    follower = Follower(str(path), rules, pipeline.Options(), Story(*steps, None, stop).clock, "exit", grace=1e6)
    with pytest.raises(KeyboardInterrupt):
        follower.run()
    assert _essence(follower.report()) == _essence(pipeline.analyze(path, rules=rules))


def test_the_command(tmp_path: Path) -> None:
    """`--follow` prints one report and exits by its label; interrupted it tells the verdict so far (exit code 130)."""
    path = tmp_path / "run.log"
    path.write_bytes(START + FATAL)
    words = [sys.executable, "-m", "logtriage", "analyze", str(path), "--follow"]
    done = subprocess.run([*words, "--grace", "0"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, "")
    assert re.match(r"oom-gpu", done.stdout)
    path.write_bytes(START)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    _wait_until_it_reads(process.pid, path)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("incomplete")


def test_a_missing_log_is_told(tmp_path: Path) -> None:
    """Whoever mistypes a name sees what is waited for, also without a terminal; the log then counts as any other."""
    path = tmp_path / "late.log"
    words = [sys.executable, "-m", "logtriage", "analyze", str(path), "--follow", "--grace", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    assert process.stderr.readline() == f"logtriage: waiting for {path}: there is no such file yet\n"
    path.write_bytes(START + FATAL)
    out, rest = process.communicate(timeout=60)
    assert (process.returncode, out[:7], rest) == (1, "oom-gpu", "")


def _wait_until_it_reads(pid: int, path: Path) -> None:
    import time

    folder = f"/proc/{pid}/fd"
    for _ in range(600):
        if any(os.path.realpath(os.path.join(folder, name)) == str(path) for name in os.listdir(folder)):
            return
        time.sleep(0.05)
    raise TimeoutError("the command does not open its log")
