"""What tests of the runner share: a run in this process against the fake server, and who of its processes lives."""

from __future__ import annotations

import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from logtriage import following
from logtriage.runner import processes
from logtriage.runner.plan import Plan
from logtriage.runner.results import Observer
from logtriage.runner.session import Asked, Session
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.runner.loop import Outcome
    from logtriage.runner.results import Order, Result

FAKE = ROOT / "tests" / "fake_sglang" / "launch_server.py"
MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"


class Told(Observer):
    """Keeps what a run tells; `on_launch` is called with the process id of each attempt."""

    def __init__(self, on_launch: Callable[[int], None] = lambda pid: None) -> None:
        self.notes: list[str] = []
        self.stages: list[str] = []
        self.pids: list[int] = []
        self.results: list[Result] = []
        self._on_launch = on_launch

    def launched(self, order: Order, pid: int) -> None:
        self.pids.append(pid)
        self._on_launch(pid)

    def stage(self, order: Order, stage: str, seconds: float) -> None:
        self.stages.append(stage)

    def judged(self, result: Result) -> None:
        self.results.append(result)

    def note(self, text: str) -> None:
        self.notes.append(text)


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(port: int, *flags: str, model: str = MODEL) -> list[str]:
    """The command of a fake server."""
    return [sys.executable, str(FAKE), "--model-path", model, "--quantization", "modelopt_fp4", "--port", str(port),
            *flags]  # fmt: skip


def session(folder: Path, rules: RuleSet, words: list[str], told: Observer, **plan: Any) -> Session:
    """A run that keeps everything below `folder`, and stops the server that works unless the plan says otherwise."""
    given = {"then": "stop", "ledger": str(folder / "ledger.sqlite"), "logs": str(folder / "logs"), "grace": 0.2}
    asked = Asked(lambda: False, lambda: False)
    return Session(Plan(command=words, **{**given, **plan}), rules, told, asked, following.system_clock())


def ran(folder: Path, rules: RuleSet, words: list[str], told: Observer | None = None, **plan: Any) -> Outcome:
    """Run to the end."""
    one = session(folder, rules, words, told or Told(), **plan)
    try:
        return one.execute()
    finally:
        one.close()


def labels(entries: Any) -> list[str]:
    """The labels of attempts."""
    return [entry["report"]["verdict"]["label"] for entry in entries]


def marked(run: str) -> list[processes.Process]:
    """The living processes of a run, by the marker that they carry."""
    return [one for marker, found in processes.marked().items() if marker.startswith(f"{run}:") for one in found]


def wait_for(is_true: Callable[[], Any], why: str = "") -> None:
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, f"waited in vain {why}"
        time.sleep(0.02)


def quick(limits: Mapping[str, Any], idle: float, busy: float) -> dict[str, Any]:
    """The limits of the runner with other ones for a stall, and less patience where it stops a server."""
    stall = {stage: {"idle": idle, "busy": busy} for stage in limits["stall"]}
    return {**limits, "stall": stall, "stop": {"term": 1, "kill": 10, "release": 5}}
