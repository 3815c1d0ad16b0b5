"""How quickly the runner stops a launch that has failed, and what it costs while a server logs 1,000 lines a second.

`python tools/bench_runner.py [ROUNDS]` prints the time from the fatal line to SIGTERM less the grace, in a quiet log
and a busy one, and the runner's share of one core while a server starts and while it serves. The clock is the system's
monotonic one, which all processes share.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from bench import show

GRACE_S = 0.5
WATCHED_S = 30.0

# What a server does: its log, the moment of its fatal line and of the signal that ends it.
SERVER = """
import http.server, json, os, signal, sys, threading, time
lines_per_s, does, notes = int(os.environ["LINES"]), os.environ["DOES"], os.environ["NOTES"]
port = int(sys.argv[sys.argv.index("--port") + 1])

def note(word):
    with open(notes, "a") as file:
        file.write(f"{word} {time.monotonic()}\\n")

def stop(*_):
    note("stopped")
    os._exit(0)

signal.signal(signal.SIGTERM, stop)

def say(text):
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}", flush=True)

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def do_GET(self):
        self.reply({"model_path": "made-up", "is_generation": True})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply({"choices": [{"index": 0, "message": {"content": "The capital of France is Paris."}}]})
    def reply(self, data):
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

print("GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: GPU-0f1e2d3c)")
say("server_args=ServerArgs(model_path='made-up', port=%d, moe_runner_backend='flashinfer_trtllm')" % port)
say("Load weight begin. avail mem=93.11 GB")
if does == "serve":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say("INFO:     Uvicorn running on http://127.0.0.1:%d (Press CTRL+C to quit)" % port)
    say("The server is fired up and ready to roll!")
begin = time.monotonic()
fatal_at = begin + 3 + os.getpid() % 100 / 100
count = 0
while True:
    time.sleep(0.01)
    now = time.monotonic()
    while count < (now - begin) * lines_per_s:
        count += 1
        say(f"Decode batch, #running-req: 8, #token: {count}, token usage: 0.01, cuda graph: True, "
            f"gen throughput (token/s): 831.20, #queue-req: 0")
    if does == "fail" and now >= fatal_at:
        fatal_at = float("inf")
        say("Scheduler hit an exception: Traceback (most recent call last):")
        print('  File "/opt/sglang/flashinfer/compilation_context.py", line 71, in get_nvcc_flags_list')
        print("    raise RuntimeError(")
        note("failed")
        print("RuntimeError: No supported CUDA architectures found for major versions [10].", flush=True)
"""
PROMPTS = "builtin: false\nprompts: [{ask: What is the capital of France?, expect: Paris}]\n"


def start(folder: Path, does: str, lines_per_s: int) -> subprocess.Popen[bytes]:
    """Begin a run with a server that does so."""
    (folder / "sglang").mkdir(parents=True)
    (folder / "sglang" / "launch_server.py").write_text(SERVER)
    (folder / "prompts.yaml").write_text(PROMPTS)
    environment = {"LINES": str(lines_per_s), "DOES": does, "NOTES": str(folder / "notes"), "PATH": "/usr/bin:/bin"}
    own = ["--max-attempts", "1", "--grace", str(GRACE_S), "--logs", str(folder / "logs"),
           "--ledger", str(folder / "ledger.sqlite"), "--prompts", str(folder / "prompts.yaml")]  # fmt: skip
    server = [sys.executable, str(folder / "sglang" / "launch_server.py"), "--model-path", "made-up",
              "--moe-runner-backend", "flashinfer_trtllm", "--port", str(30000 + hash(folder) % 20000)]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "logtriage", "run", *own, "--", *server],
        env=environment | {"HOME": str(folder)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def reaction_s(folder: Path, lines_per_s: int) -> float:
    """Seconds from the fatal line to the signal, less the grace."""
    with start(folder, "fail", lines_per_s) as run:
        run.wait(120)
    moments = dict(line.split() for line in (folder / "notes").read_text().splitlines())
    return float(moments["stopped"]) - float(moments["failed"]) - GRACE_S


def share(folder: Path, does: str) -> tuple[float, float]:
    """The runner's share of one core, in per cent, and how many lines a second its server really logged."""
    with start(folder, does, 1000) as run:
        log = folder / "logs" / "attempt-1.log"
        while not log.exists():
            time.sleep(0.1)
        time.sleep(8)  # the machine was looked at and the answers were judged before that
        runner = psutil.Process(run.pid)
        lines = log.read_bytes().count(b"\n")
        before, begin = runner.cpu_times(), time.monotonic()
        time.sleep(WATCHED_S)
        after, seconds = runner.cpu_times(), time.monotonic() - begin
        lines = log.read_bytes().count(b"\n") - lines
        run.terminate()
        run.wait(60)
    return 100 * (after.user + after.system - before.user - before.system) / seconds, lines / seconds


def main() -> None:
    """Print the figures with their aims."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lines_per_s in (0, 1000):
            found = [reaction_s(folder / f"{lines_per_s}-{number}", lines_per_s) for number in range(rounds)]
            what = f"seconds from the fatal line to SIGTERM, less the grace, {lines_per_s} lines/s"
            show(f"{what}, median", statistics.median(found), "most", 1.0)
            show(f"{what}, worst of {rounds}", max(found), "most", 1.0)
        for does, what in (("start", "starts"), ("serve", "serves")):
            used, lines = share(folder / does, does)
            show(f"per cent of a core while it {what} and logs {lines:.0f} lines/s", used, "most", 3.0)


if __name__ == "__main__":
    main()
