"""A fake SGLang: real processes, a real log, a real port; what it does is decided by table.yaml.

`python tests/fake_sglang/launch_server.py --model-path M [flags of SGLang]`. Variables: FAKE_SM (120), FAKE_VERSION
(0.5.9), FAKE_TABLE, FAKE_STAGE_S (seconds of each stage, 0.02), and FAKE_DO, faults separated by blanks:
`hang:STAGE` and `spin:STAGE` (silent, idle or busy), `ignore-term`, `stray` (a child that leaves group and tree),
`flood:STAGE:BYTES` (prints so much), `close-output`, `page` (a proxy's HTML), `die:STAGE` (SIGKILL of a child),
`linger` (does not end after a failure), `chatter:N` (prints N lines a second while it serves).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import http_side
import logs
import yaml

HERE = Path(__file__).resolve().parent
ALIASES = {"--model": "--model-path", "--tp": "--tp-size"}


def flags_of(words: list[str]) -> dict[str, str]:
    """The flags of a command line; a switch is 'true'."""
    flags: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            name = ALIASES.get(name, name)
            flags[name] = value or "true"
        elif name:
            flags[name] = word
    return flags


def key(version: str) -> list[int]:
    """A version as numbers that can be compared."""
    return [int(number) for number in re.findall(r"\d+", version)]


class Fake:
    """One launch: the parent process."""

    def __init__(self, words: list[str]) -> None:
        self.flags = flags_of(words)
        self.sm = int(os.environ.get("FAKE_SM", "120"))
        self.version = os.environ.get("FAKE_VERSION", "0.5.9")
        self.table = yaml.safe_load(Path(os.environ.get("FAKE_TABLE", HERE / "table.yaml")).read_text(encoding="utf-8"))
        self.stage_s = float(os.environ.get("FAKE_STAGE_S", "0.02"))
        self.faults = os.environ.get("FAKE_DO", "").split()
        self.ranks = int(self.flags.get("--tp-size", "1"))
        self.children: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Start, load, bind, serve."""
        name = logs.GPUS.get(self.sm, f"GPU of SM{self.sm}")
        print(f"GPU 0: {name} (UUID: GPU-0f1e2d3c)\nsglang: {self.version}", flush=True)
        self.stop_on_request()
        self.stage("args")
        arguments = ", ".join(f"{flag[2:].replace('-', '_')}={value!r}" for flag, value in self.flags.items())
        self.say(f"server_args=ServerArgs({arguments})")
        self.start_children()
        for stage in logs.STAGES[1:]:
            self.stage(stage)
        self.serve()

    def say(self, text: str, rank: int | None = None) -> None:
        """Print a line with SGLang's prefix."""
        tag = f" TP{rank}" if rank is not None and self.ranks > 1 else ""
        print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{tag}] {text}", flush=True)

    def entry(self, part: str, **wanted: Any) -> dict[str, Any] | None:
        """The first entry of a part of the table that fits."""
        for item in self.table[part]:
            given = all(self.flags.get(flag, "auto") in values for flag, values in item.get("flags", {}).items())
            place = self.sm in item.get("sm", [self.sm])
            old = key(self.version) < key(item["below"]) if "below" in item else True
            new = key(self.version) >= key(item["since"]) if "since" in item else True
            if given and place and old and new and all(item.get(name) == value for name, value in wanted.items()):
                return dict(item)
        return None

    def stage(self, stage: str) -> None:
        """Print what a stage prints, and fail or misbehave in it if that is wanted."""
        lines = logs.stage_lines(stage, self.version)
        self.print_lines(lines[:1])
        time.sleep(self.stage_s)
        for fault in self.faults:
            name, _, rest = fault.partition(":")
            if rest.partition(":")[0] == stage:
                self.misbehave(name, rest.partition(":")[2])
        if (found := self.entry("fails", at=stage)) is not None:
            self.fail(found["text"])
        self.print_lines(lines[1:])

    def print_lines(self, lines: list[str]) -> None:
        """Print lines of a stage, those of a rank once for each."""
        for line in lines:
            if line.startswith("{t}"):
                for rank in range(self.ranks):
                    self.say(line[3:], rank)
            else:
                print(line, flush=True)

    def misbehave(self, name: str, argument: str) -> None:
        """Do something that servers do at their worst."""
        if name == "hang":
            time.sleep(3600)
        elif name == "spin":
            end = time.monotonic() + float(argument or 3600)
            while time.monotonic() < end:
                pass
        elif name == "die":
            self.children[0].kill()
            time.sleep(0.1)
            self.end_by_kill()
        elif name == "flood":
            line = b"[2026-01-01 10:00:00] Prefill batch, #new-seq: 1, #new-token: 29, #cached-token: 0\n" * 1000
            for _ in range(int(argument or 100_000_000) // len(line)):
                sys.stdout.buffer.write(line)
            sys.stdout.flush()

    def start_children(self) -> None:
        """A scheduler for each rank and a detokenizer, as processes of their own."""
        for role in [*(f"scheduler_TP{rank}" for rank in range(self.ranks)), "detokenizer"]:
            code = "import signal, time\n"
            code += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if "ignore-term" in self.faults else ""
            code += "time.sleep(3600)\n"
            self.children.append(subprocess.Popen([sys.executable, "-S", "-c", code, f"sglang::{role}"]))
        if "stray" in self.faults:  # its parent ends at once, so nothing leads from us to it
            stray = [sys.executable, "-S", "-c", "import time; time.sleep(3600)", "stray"]
            outer = f"import subprocess; subprocess.Popen({stray!r}, start_new_session=True)"
            subprocess.run([sys.executable, "-S", "-c", outer], check=True)

    def fail(self, text: str) -> None:
        """Fail as SGLang does: every rank says why, then the parent kills all, itself last."""
        if text == "killed":
            self.end_by_kill()
        told = logs.FAILURES[text].replace("{sm}", str(self.sm))
        if not told.startswith("{t}"):
            print(told, flush=True)
            sys.exit(1)
        for rank in range(self.ranks):
            self.say(told[3:], rank)
        if "linger" in self.faults:
            self.misbehave("hang", "")
        self.say("Received sigquit from a child process. It usually means the child failed.")
        self.end_by_kill()

    def end_by_kill(self) -> None:
        """Kill the children, then this process: SGLang does that after every failed launch."""
        for child in self.children:
            child.kill()
        os.kill(os.getpid(), signal.SIGKILL)

    def stop_on_request(self) -> None:
        """Stop within a moment of SIGTERM, with the lines that SGLang prints."""

        def stop(number: int, _: Any) -> None:
            name = signal.Signals(number).name
            self.say(f"{name} received. signum=None frame=None. Draining requests and shutting down...")
            for child in self.children:
                child.kill()
            self.say("Subprocess scheduler_0 (pid=1) crashed with exit code -15. Triggering SIGQUIT for cleanup...")
            self.say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
            os.kill(os.getpid(), signal.SIGKILL)

        def ignore(number: int, _: Any) -> None:
            self.say(f"{signal.Signals(number).name} is ignored")

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, ignore if "ignore-term" in self.faults else stop)

    def serve(self) -> None:
        """Bind the port, warm up, answer until somebody stops it."""
        host, port = self.flags.get("--host", "127.0.0.1"), int(self.flags.get("--port", "30000"))
        garbage, speed = self.entry("garbage"), self.entry("speed")
        service = http_side.Service(
            self.flags.get("--model-path", "model"), self.version, garbage["kind"] if garbage else None,
            speed["tokens"] if speed else 3000, self.say,
        )  # fmt: skip
        if "page" in self.faults:
            service.page = b"<html><body>It works!</body></html>"
        for line in (f"Started server process [{os.getpid()}]", "Waiting for application startup.",
                     "Application startup complete."):  # fmt: skip
            self.say(f"INFO:     {line}")
        try:
            http_side.serve(host, port, service)
        except OSError:
            self.say(
                f"ERROR:    [Errno 98] error while attempting to bind on address ('{host}', {port}): "
                "address already in use"
            )
            self.end_by_kill()
        self.say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
        time.sleep(5 * self.stage_s)
        self.print_lines(
            ["{t}Prefill batch, #new-seq: 1, #new-token: 29, #cached-token: 0, token usage: 0.00, #running-req: 0"]
        )
        self.say('INFO:     127.0.0.1:49384 - "POST /generate HTTP/1.1" 200 OK')
        service.is_warm = True
        self.say("The server is fired up and ready to roll!")
        if "close-output" in self.faults:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
        rate = next((int(fault[8:]) for fault in self.faults if fault.startswith("chatter:")), 0)
        while rate:
            lines = "Decode batch, #running-req: 8, #token: 9, token usage: 0.01, gen throughput (token/s): 801.2"
            for _ in range(rate // 20):
                self.say(lines)
            time.sleep(0.05)
        threading.Event().wait()


def main() -> None:
    """Run the fake with the words of the command line."""
    Fake(sys.argv[1:]).run()


if __name__ == "__main__":
    main()
