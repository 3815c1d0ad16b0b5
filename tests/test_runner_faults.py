"""What goes wrong around a launch: servers that misbehave, full disks, ports that others take, clocks that jump."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from logtriage import following
from logtriage.runner import ledger, orphans, processes
from tests import running
from tests.running import Told, command, free_port, labels, ran

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet


@pytest.fixture
def quick(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the limits of a stall (idle, busy) in seconds, and short ones for a stop."""
    monkeypatch.setenv("FAKE_STAGE_S", "0.01")

    def set_to(idle: float, busy: float) -> None:
        monkeypatch.setitem(rules.server, "runner", running.quick(rules.server["runner"], idle, busy))

    set_to(60, 600)
    return set_to


def test_a_server_that_ignores_sigterm_is_killed(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM first, SIGKILL after a while; nothing of it lives on."""
    monkeypatch.setenv("FAKE_DO", "ignore-term")
    one = running.session(tmp_path, rules, command(free_port()), Told(), then="detach")
    outcome = one.execute()
    assert outcome.attempt is not None
    stopped = outcome.attempt.stop()
    one.close()
    assert (stopped.signals, stopped.left) == (("SIGTERM", "SIGKILL"), ())
    assert running.marked(one.run) == []


def test_a_grandchild_that_left_the_group_is_ended(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a session of its own and with no parent that leads to it, it is found by its environment."""
    monkeypatch.setenv("FAKE_DO", "stray")
    one = running.session(tmp_path, rules, command(free_port()), Told(), then="detach")
    outcome = one.execute()
    before = running.marked(one.run)
    assert any("stray" in processes.described(process) for process in before)
    assert outcome.attempt is not None
    assert outcome.attempt.stop().left == ()
    one.close()
    assert running.marked(one.run) == []


def test_silent_but_busy_is_not_stuck(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernel builds are silent for minutes: as long as the CPU is used, the limit for idle ones does not count."""
    quick(1.5, 60)
    monkeypatch.setenv("FAKE_DO", "spin:weight-load:5")
    outcome = ran(tmp_path, rules, command(free_port()))
    assert (outcome.state, labels(outcome.entries)) == ("working", ["healthy"])


def test_silent_and_idle_is_stuck(rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, the reason names the stage and the limit, and nothing of it lives on."""
    quick(1.5, 60)
    monkeypatch.setenv("FAKE_DO", "hang:weight-load")
    told = Told()
    outcome = ran(tmp_path, rules, command(free_port()), told, retry_after=[])
    assert labels(outcome.entries) == ["hang-timeout"]
    assert outcome.entries[0]["ending"] == "stalled"
    assert "weight-load" in outcome.entries[0]["because"]
    assert not psutil.pid_exists(told.pids[0])


def test_a_server_that_closes_its_output_still_answers(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log ends there; the server is asked all the same."""
    monkeypatch.setenv("FAKE_DO", "close-output")
    outcome = ran(tmp_path, rules, command(free_port()))
    assert (outcome.state, labels(outcome.entries)) == ("working", ["healthy"])


def test_much_log_is_followed_in_bounded_memory(quick: Any, tmp_path: Path) -> None:
    """Two hundred megabytes in front of the failure, as fast as they can be written: the verdict is the same."""
    words = [sys.executable, "-m", "logtriage", "run", "--format", "json", "--max-attempts", "1",
             "--logs", str(tmp_path / "logs"), "--ledger", str(tmp_path / "ledger.sqlite"), "--",
             *command(free_port(), "--moe-runner-backend", "flashinfer_trtllm")]  # fmt: skip
    env = {**os.environ, "FAKE_DO": f"flood:kv-cache:{201_000_000}"}
    peak = 0
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as runner:
        while runner.poll() is None:
            peak = max(peak, _peak_kib(runner.pid))
            with contextlib.suppress(subprocess.TimeoutExpired):
                runner.wait(0.05)
        assert runner.stdout is not None
        result = json.loads(runner.stdout.read())
    assert labels(result["attempts"]) == ["sm100-only-kernel"]
    assert (tmp_path / "logs" / "attempt-1.log").stat().st_size > 200_000_000
    assert 0 < peak < 300 << 10  # the log is as large as that; what it is kept in is not


def test_all_of_a_log_is_read_before_the_verdict(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends right after it wrote a lot: why it ended stands at the end, however late that is read."""
    monkeypatch.setattr("logtriage.runner.attempt._QUIET", 0.0)
    monkeypatch.setattr("logtriage.runner.attempt._LAST_WORDS", 0.0)
    monkeypatch.setenv("FAKE_DO", f"flood:cuda-graph:{60 << 20}")
    words = command(free_port(), "--moe-runner-backend", "flashinfer_trtllm")
    assert labels(ran(tmp_path, rules, words, max_attempts=1).entries) == ["sm100-only-kernel"]


def _peak_kib(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


@pytest.mark.parametrize("others", [False, True], ids=["its-own", "of-another-program"])
def test_a_page_is_no_answer(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """Status 200 with HTML never counts as ready, whoever sends it; the launch is ended and the reason shows it."""
    quick(3, 60)
    port = free_port()
    page = subprocess.Popen(
        [sys.executable, "-c", _PAGE, str(port), str(tmp_path / "go")], stdout=subprocess.DEVNULL
    ) if others else None  # fmt: skip
    monkeypatch.setenv("FAKE_DO", "hang:kv-cache" if others else "page")
    told = Told(lambda pid: (tmp_path / "go").touch())
    try:
        outcome = ran(tmp_path, rules, command(port), told, retry_after=[])
        assert page is None or page.poll() is None
    finally:
        if page:
            page.kill()
            page.wait()
    (entry,) = outcome.entries
    assert entry["report"]["verdict"]["label"] == ("port-in-use" if others else "warmup-failure")
    assert f"pid {page.pid}" in entry["because"] if page else "text/html" in entry["because"]
    assert not psutil.pid_exists(told.pids[0])


_PAGE = """
import http.server, os, sys, time
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html>It works!</html>")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


def test_a_port_that_is_taken_between_the_look_and_the_bind(
    rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was free before the launch; whoever has it when the server wants it is named and left alone."""
    monkeypatch.setenv("FAKE_STAGE_S", "0.1")
    port = free_port()
    taken: list[socket.socket] = []
    told = Told(lambda pid: taken.append(socket.create_server(("127.0.0.1", port))))
    outcome = ran(tmp_path, rules, command(port), told)
    assert labels(outcome.entries) == ["port-in-use"]
    assert outcome.state == "stopped"
    assert taken[0].fileno() >= 0
    taken[0].close()
    assert not psutil.pid_exists(told.pids[0])


def test_a_clock_that_jumps(rules: RuleSet, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock goes back a day with every look: the run ends as ever, and the last run is still the last."""
    days = iter(range(28, 0, -1))
    monkeypatch.setattr(ledger, "now", lambda: f"2026-01-{next(days, 1):02d}T00:00:00Z")
    words = command(free_port(), "--moe-runner-backend", "flashinfer_trtllm")
    first, second = Told(), Told()
    assert labels(ran(tmp_path, rules, words, first).entries) == ["sm100-only-kernel", "healthy"]
    assert labels(ran(tmp_path, rules, words, second, logs=str(tmp_path / "others")).entries) == ["healthy"]
    runs = [told.results[-1].order.marker.partition(":")[0] for told in (first, second)]
    book = ledger.Ledger(str(tmp_path / "ledger.sqlite"))
    last = book.run()
    assert last is not None
    assert last["id"] == runs[1]
    assert [row["number"] for row in book.attempts("run = ?", (runs[0],))] == [1, 2]
    assert [row["run"] for row in book.attempts()] == [runs[0], runs[0], runs[1]]
    book.close()


def test_what_ends_while_it_is_named_is_not_left_open(
    rules: RuleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of a killed runner lives when it is looked at and is gone a moment later: the next run closes it."""
    looks = [[psutil.Process()]]

    class Vanishing:
        def __init__(self, *_: Any) -> None:
            pass

        def alive(self, *, thorough: bool) -> list[psutil.Process]:
            return looks.pop() if looks else []

    monkeypatch.setattr("logtriage.runner.orphans.Family", Vanishing)
    book = ledger.Ledger(str(tmp_path / "ledger.sqlite"))
    book.begin_run("r", {}, "key", "command", {}, "another process")
    book.begin_attempt({"id": "r:1", "run": "r", "number": 1, "command": "command", "started": "then", "pid": 1})
    orphans.settle(book, None, rules, following.system_clock(), Told())
    assert [row["id"] for row in book.unfinished()] == ["r:1"]
    orphans.settle(book, None, rules, following.system_clock(), Told())
    assert book.unfinished() == []
    book.close()


def test_two_runs_with_one_folder_for_logs(rules: RuleSet, quick: Any, tmp_path: Path) -> None:
    """The second run judges its own log, not what the first one has left there under the same name."""
    bad = command(free_port(), "--moe-runner-backend", "flashinfer_trtllm")
    first = ran(tmp_path, rules, bad, max_attempts=1)
    second = ran(tmp_path, rules, command(free_port()))
    assert (labels(first.entries), labels(second.entries)) == (["sm100-only-kernel"], ["healthy"])
    assert first.entries[0]["log"] != second.entries[0]["log"]


def test_where_the_script_cannot_be_written_nothing_is_launched(quick: Any, tmp_path: Path) -> None:
    """--save is checked before the first launch; the check leaves no file."""
    words = [sys.executable, "-m", "logtriage", "run", "--ledger", str(tmp_path / "ledger.sqlite"),
             "--logs", str(tmp_path / "logs"), "--save", str(tmp_path / "none" / "launch.sh"), "--",
             *command(free_port())]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "launch.sh: cannot be written" in done.stderr
    assert ledger.Ledger(str(tmp_path / "ledger.sqlite")).attempts() == []


def test_a_server_that_nobody_takes_over_is_ended(rules: RuleSet, quick: Any, tmp_path: Path) -> None:
    """What fails between a server's answers and `serve` leaves no server behind."""
    one = running.session(tmp_path, rules, command(free_port()), Told(), then="serve")
    assert one.execute().state == "working"
    assert running.marked(one.run)
    one.close()
    assert running.marked(one.run) == []
    assert ledger.Ledger(str(tmp_path / "ledger.sqlite")).unfinished() == []


def test_an_argument_that_is_no_utf8(quick: Any, tmp_path: Path) -> None:
    """It reaches the server as it is, and the run, its ledger and its script are complete."""
    script = tmp_path / "launch.sh"
    words = [sys.executable, "-m", "logtriage", "run", "--once", "--ledger", str(tmp_path / "ledger.sqlite"),
             "--logs", str(tmp_path / "logs"), "--record", str(tmp_path / "cases"), "--on-attempt", "cat",
             "--format", "json", "--save", str(script), "--", *command(free_port(), model="m\udcff")]  # fmt: skip
    done = subprocess.run(words, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert b"m\xff" in script.read_bytes()
    assert [row["label"] for row in ledger.Ledger(str(tmp_path / "ledger.sqlite")).attempts()] == ["healthy"]


def test_a_server_that_ends_without_a_word(rules: RuleSet, quick: Any, tmp_path: Path) -> None:
    """The advice says that nothing was printed, with the exit code and the log; not to read lines that nobody sees."""
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "launch_server.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    words = [sys.executable, str(package / "launch_server.py"), "--model-path", "m", "--port", str(free_port())]
    outcome = ran(tmp_path, rules, words)
    assert outcome.state == "stopped"
    assert "printed nothing and ended with exit code 3" in outcome.because
    assert outcome.entries[0]["log"] in outcome.because
    assert outcome.entries[0]["report"]["advice"]["summary"] == outcome.because


def test_a_runner_whose_reader_is_gone(quick: Any, tmp_path: Path) -> None:
    """Nobody reads what it prints any more: the server is stopped all the same, and the ledger is complete."""
    words = [sys.executable, "-m", "logtriage", "run", "--once", "--ledger", str(tmp_path / "ledger.sqlite"),
             "--logs", str(tmp_path / "logs"), "--", *command(free_port())]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stderr is not None
        runner.stdout.close()
        runner.stderr.close()
        assert runner.wait(120) == 0
    book = ledger.Ledger(str(tmp_path / "ledger.sqlite"))
    (row,) = book.attempts()
    assert (row["label"], row["ending"]) == ("healthy", "ready")
    assert running.marked(row["run"]) == []
    book.close()
