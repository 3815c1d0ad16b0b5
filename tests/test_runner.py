"""The runner against a fake SGLang that is a real program: it ends at a configuration that works, in few launches."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from logtriage.runner.ledger import Ledger
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAKE = ROOT / "tests" / "fake_sglang" / "launch_server.py"
MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"


@pytest.fixture
def port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def state(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables for runs of a test: a state folder of its own. What a test leaves running is ended after it."""
    yield {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "NO_PROXY": "*", "FAKE_STAGE_S": "0.01"}
    for process in psutil.process_iter(["cmdline"]):
        if str(tmp_path) in " ".join(process.info["cmdline"] or ()):
            process.kill()


def server(port: int, tmp_path: Path, *flags: str, model: str = MODEL) -> list[str]:
    """The command of a fake server. Its (unused) download folder marks it as this test's."""
    return [sys.executable, str(FAKE), "--model-path", model, "--quantization", "modelopt_fp4", "--tp", "2",
            "--port", str(port), "--download-dir", str(tmp_path), *flags]  # fmt: skip


def started(words: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    """Begin `logtriage run` with some words."""
    return subprocess.Popen(
        [sys.executable, "-m", "logtriage", "run", *words], env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ran(words: list[str], env: dict[str, str]) -> tuple[int, dict[str, Any], str]:
    """Run `logtriage run` to its end; return its exit code, its result as data and its diagnostics."""
    process = started(["--format", "json", *words], env)
    out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(out) if out else {}, err


def labels(result: dict[str, Any]) -> list[str]:
    return [entry["report"]["verdict"]["label"] for entry in result["attempts"]]


def wait_for(is_true: Callable[[], Any]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("version", ["0.5.9", "0.5.16"])
def test_from_two_sm100_only_backends_to_a_working_one_in_two_launches(
    state: dict[str, str], port: int, tmp_path: Path, version: str
) -> None:
    """MoE and dense flashinfer_trtllm on SM120: one step to MoE flashinfer_cutlass, the dense one replaced with it."""
    words = server(
        port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm", "--fp4-gemm-backend", "flashinfer_trtllm"
    )
    code, result, err = ran(["--once", "--sm", "120", "--", *words], state | {"FAKE_VERSION": version})
    assert code == 0, err
    assert "preflight: --moe-runner-backend flashinfer_trtllm cannot work on SM120" in err
    assert labels(result) == ["sm100-only-kernel", "healthy"]
    last = result["attempts"][-1]
    assert last["changed"] == {"flag": "--moe-runner-backend", "value": "flashinfer_cutlass"}
    assert "--fp4-gemm-backend flashinfer_trtllm" not in last["command_text"]
    assert last["smoke"]["passed"]


def test_away_from_garbage_then_explored(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """From garbage under flashinfer_cutedsl to another class; exploring finds dense flashinfer_cudnn the fastest."""
    words = server(
        port, tmp_path, "--moe-runner-backend", "flashinfer_cutedsl", "--fp4-gemm-backend", "flashinfer_cutlass"
    )
    code, result, err = ran(["--explore", "--once", "--", *words], state)
    assert code == 0, err
    assert labels(result)[:2] == ["degenerate-output", "healthy"]
    assert result["attempts"][1]["changed"] == {"flag": "--moe-runner-backend", "value": "flashinfer_cutlass"}
    measured = [entry for entry in result["attempts"] if entry["speed"]]
    fastest = max(measured, key=lambda entry: entry["speed"]["tokens_per_s_1"])
    assert fastest["changed"] == {"flag": "--fp4-gemm-backend", "value": "flashinfer_cudnn"}
    assert result["working"]["attempt"] == fastest["number"]
    assert len(result["attempts"]) == len({entry["command_text"] for entry in result["attempts"]}) == 6


def test_bare_killed_is_no_lack_of_memory(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """A launch that is killed without a word is tried twice more, and never called out of memory."""
    (tmp_path / "plan.yaml").write_text("retry_after: [0.1, 0.2]\nthen: stop\n", encoding="utf-8")
    words = server(port, tmp_path, model="shot")
    code, result, err = ran(["--plan", str(tmp_path / "plan.yaml"), "--", *words], state)
    assert code == 1
    assert labels(result) == ["killed-unexplained"] * 3, err


def test_environment_failure_stops_at_once(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """No flag is tried where the model is not there: one launch, and what to repair."""
    code, result, _ = ran(["--", *server(port, tmp_path, model="missing")], state)
    assert code == 1
    assert labels(result) == ["model-load"]
    assert result["because"].startswith("the environment has to be repaired")


def test_the_next_run_does_not_repeat_what_failed(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """What the ledger knows to fail here is not launched again, and the step after it is taken."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    assert labels(ran(["--once", "--", *words], state)[1]) == ["sm100-only-kernel", "healthy"]
    code, result, err = ran(["--once", "--", *words], state)
    assert (code, labels(result)) == (0, ["healthy"]), err
    assert len(result["known"]) == 1


def test_port_in_use_launches_nothing_and_says_who(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """A held port is found before the launch; the holder is named and left alone."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        code, result, _ = ran(["--", *server(port, tmp_path)], state)
    assert code == 1
    assert labels(result) == ["port-in-use"]
    assert f"pid {os.getpid()}" in result["because"]
    assert not os.path.exists(result["attempts"][0]["log"])


def test_working_server_stays_in_the_foreground(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """It is served until SIGTERM, which goes on to it; then nothing of it is left and the exit code is 0."""
    process = started(["--", *server(port, tmp_path)], state)
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    assert next(line for line in lines if line.startswith("server: ")).startswith(f"server: http://127.0.0.1:{port}")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not mine(tmp_path)
    book = Ledger(str(tmp_path / "state" / "logtriage" / "ledger.sqlite"))
    assert [run["outcome"] for run in book.runs()] == ["served"]
    assert [row["exit_code"] for row in book.attempts()] == [-9]  # SGLang ends a stop so


def test_served_server_that_is_killed_is_a_failure(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """If the server in the foreground dies without having been asked to, the exit code is 1 and the ledger has why."""
    process = started(["--", *server(port, tmp_path)], state)
    assert process.stdout is not None
    line = next(line for line in iter(process.stdout.readline, "") if line.startswith("server: "))
    os.kill(int(line.split("pid ")[1].split()[0]), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 1
    assert not mine(tmp_path)
    book = Ledger(str(tmp_path / "state" / "logtriage" / "ledger.sqlite"))
    assert [run["outcome"] for run in book.runs()] == ["failed"]
    assert [row["label"] for row in book.attempts()] == ["killed-unexplained"]


def test_interrupt_stops_the_child_and_tells_what_was_tried(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """Ctrl-C in the middle of an attempt: nothing is left running, the ledger has it, the exit code is 130."""
    process = started(["--", *server(port, tmp_path)], state | {"FAKE_DO": "hang:weight-load"})
    wait_for(lambda: mine(tmp_path))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in out
    assert not mine(tmp_path)


def test_killed_runner_then_resume(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """SIGKILL of the runner leaves a server behind: other runs on its port name it, --resume ends it and goes on."""
    words = server(port, tmp_path)
    process = started(["--once", "--", *words], state | {"FAKE_DO": "hang:weight-load"})
    wait_for(lambda: mine(tmp_path))
    time.sleep(0.5)
    process.kill()
    process.communicate()
    left = mine(tmp_path)
    assert left
    code, _, err = ran(["--ledger", str(tmp_path / "other.sqlite"), "--", *words], state)
    assert code == 2
    assert f"pid {left[0].pid}" in err
    assert f"is going to take port {port}" in err
    code, result, err = ran(["--resume"], state)
    assert code == 0, err
    assert str(left[0].pid) in err
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)
    assert [entry["number"] for entry in result["attempts"]] == [2]


def mine(tmp_path: Path) -> list[psutil.Process]:
    """The fake servers of a test that are alive."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if str(FAKE) in words and str(tmp_path) in words and "logtriage" not in words:
            found.append(process)
    return found


def test_driven_by_another_program(
    state: dict[str, str],
    port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example of docs/runner.md works as it stands, but for the command, which is that of the fake server."""
    text = (ROOT / "docs" / "runner.md").read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    lines = [f"command = {words!r}" if line.startswith("command =") else line for line in example.splitlines()]
    assert sum(line.startswith("command =") for line in lines) == 1
    assert len(lines) <= 25
    for name in ("FAKE_STAGE_S", "NO_PROXY"):
        monkeypatch.setenv(name, state[name])
    monkeypatch.chdir(tmp_path)
    exec("\n".join(lines), {})  # noqa: S102 - the example of our own documentation
    told = capsys.readouterr().out
    assert "1 sm100-only-kernel" in told
    assert "2 healthy" in told
    assert not mine(tmp_path)


def test_detached_server_lives_on_and_the_script_starts_it(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """--detach leaves the server and names it; --save and --on-attempt have what works; secrets stand in neither."""
    script, heard = tmp_path / "launch.sh", tmp_path / "heard.json"
    words = server(port, tmp_path, "--api-key", "sk-not-to-be-seen-anywhere-42")
    options = [
        "--detach",
        "--echo",
        "--save",
        str(script),
        "--on-attempt",
        f"cat > {heard}",
        "--record",
        str(tmp_path / "cases"),
    ]
    code, result, err = ran([*options, "--", *words], state)
    assert code == 0, err
    assert "The server is fired up and ready to roll!" in err
    assert "sk-not-to-be-seen" not in err
    pid = result["working"]["pid"]
    assert pid in [process.pid for process in mine(tmp_path)]
    assert script.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    assert "exec " in script.read_text(encoding="utf-8")
    assert json.loads(heard.read_text(encoding="utf-8"))["report"]["verdict"]["label"] == "healthy"
    case = next((tmp_path / "cases").iterdir())
    assert "label: healthy" in (case / "case.yaml").read_text(encoding="utf-8")
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "attempt-1.log"]
    assert len(written) >= 5
    assert [path for path in written if b"sk-not-to-be-seen" in path.read_bytes()] == []


def test_second_runner_on_the_same_port_is_refused(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """While one runner launches on a port, another is told which process that is; it launches nothing."""
    first = started(["--", *server(port, tmp_path)], state | {"FAKE_DO": "hang:weight-load"})
    wait_for(lambda: mine(tmp_path))
    code, result, err = ran(["--", *server(port, tmp_path)], state)
    assert (code, result) == (2, {})
    assert f"pid {first.pid}" in err
    assert "--port" in err
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)


def test_budget_and_attempts_are_limits(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """No more is launched than allowed, and a launch that does not answer in time is stopped."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    code, result, _ = ran(["--max-attempts", "1", "--", *words], state)
    assert (code, labels(result)) == (1, ["sm100-only-kernel"])
    assert "--max-attempts" in result["because"]
    code, result, _ = ran(["--budget", "3s", "--", *server(port, tmp_path)], state | {"FAKE_DO": "hang:init"})
    assert (code, labels(result)) == (1, ["hang-timeout"])
    assert not mine(tmp_path)


def test_pinned_flag_is_never_changed(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """If only the pinned flag could help, the run says so and stops."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    code, result, _ = ran(["--pin", "--moe-runner-backend", "--", *words], state)
    assert (code, labels(result)) == (1, ["sm100-only-kernel"])
    assert "pinned" in result["because"]


def test_same_garbage_under_two_kernel_classes_stops_it(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """A checkpoint of zeros: two launches, then the checkpoint is suspected."""
    words = [sys.executable, str(FAKE), "--model-path", "zeros", "--attention-backend", "triton", "--port", str(port)]
    code, result, _ = ran(["--once", "--", *words, "--download-dir", str(tmp_path)], state | {"FAKE_SM": "90"})
    assert code == 1
    assert labels(result) == ["degenerate-output"] * len(result["attempts"])
    assert len(result["attempts"]) == 2
    assert "suspect the checkpoint" in result["because"]


def test_dry_run_launches_nothing(state: dict[str, str], port: int, tmp_path: Path, run: Any) -> None:
    """It tells the first command and what may follow, and neither launches nor writes."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    done = run("run", "--dry-run", "--sm", "120", "--server-version", "0.5.9", "--", *words, env=state)
    assert done.returncode == 0
    assert "first: " in done.stdout
    doomed = "--moe-runner-backend flashinfer_trtllm cannot work on SM120: use --moe-runner-backend flashinfer_cutlass"
    assert f"  preflight: {doomed}" in done.stdout.splitlines()
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ("budget: soon\n", "2h, 1h30m"),
        ("budget: 1h30\n", "2h, 1h30m"),
        ("budget: .inf\n", "budget: Input should be less than"),
        ("max_attempts: 1000000000\n", "max_attempts: Input should be less than"),
        ('command: [python3, "a\\0b"]\n', "NUL"),
        ('command: [python3, "\\uD800"]\n', "surrogate"),
        ("command: [python3, -m, sglang.launch_server, --model-path, m, --port, abc]\n", "--port abc"),
        ("command: [python3, -m, sglang.launch_server, --model-path, m, --port, '70000']\n", "1 to 65535"),
        ("command: [python3, -m, sglang.launch_server, --model-path, m, --port=-1]\n", "--port -1"),
        ("pinn: [--tp]\n", "known keys"),
        ("- 1\n", "holds no mapping"),
        ("command: [python3, -m, http.server]\n", "starts no server"),
        ("command: python3 -m sglang.launch_server --model-path m > run.log\n", "run.log"),
        ("{}\n", "no command"),
    ],
)
def test_bad_plans_are_refused_with_what_is_valid(run: Any, tmp_path: Path, plan: str, told: str) -> None:
    """A plan that cannot be meant: exit code 2, one message, nothing launched."""
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    done = run("run", "--plan", "plan.yaml", "--ledger", str(tmp_path / "ledger.sqlite"))
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_failed_launch_that_lingers_is_stopped(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """A launch whose log shows that it cannot work is ended, though its processes would live on for an hour."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    code, result, err = ran(["--max-attempts", "1", "--grace", "0.2s", "--", *words], state | {"FAKE_DO": "linger"})
    assert (code, labels(result)) == (1, ["sm100-only-kernel"]), err
    assert result["attempts"][0]["ending"] == "failed"
    assert result["attempts"][0]["stopped"]["signals"] == ["SIGTERM"]
    assert not mine(tmp_path)


def test_program_that_is_not_there(state: dict[str, str], run: Any) -> None:
    """One message, exit code 2, and nothing that counts as unfinished."""
    done = run("run", "--", "/no/such/python3", "-m", "sglang.launch_server", "--model-path", "m", env=state)
    assert done.returncode == 2
    assert "/no/such/python3: cannot be started" in done.stderr
    again = run("run", "--", "/no/such/python3", "-m", "sglang.launch_server", "--model-path", "m", env=state)
    assert "never came to an end" not in again.stderr


def test_evidence_of_another_environment_is_not_obeyed(state: dict[str, str], port: int, tmp_path: Path) -> None:
    """What failed on SM120 is launched on SM100 all the same, where it works; on SM120 it is not launched again."""
    words = server(port, tmp_path, "--moe-runner-backend", "flashinfer_trtllm")
    there, here = ["--once", "--sm", "120", "--", *words], ["--once", "--sm", "100", "--", *words]
    assert labels(ran(["--max-attempts", "1", *there], state)[1]) == ["sm100-only-kernel"]
    code, result, err = ran(here, state | {"FAKE_SM": "100"})
    assert (code, labels(result), result["known"]) == (0, ["healthy"], []), err
    code, result, err = ran(there, state)
    assert (code, labels(result), len(result["known"])) == (0, ["healthy"], 1), err
