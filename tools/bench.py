"""Benchmarks of the whole process, as ratios to other things measured in the same run (absolute times mean little).

make bench                  logs up to 512 MiB
make bench ARGS=--full      up to 8 GiB
make bench ARGS=--record    instruction counts are recorded instead of compared
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_large
import bench_plot

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 15

IMPORTS = "import click, regex, json; from logtriage.engine.prefilter import make; make(['Traceback', 'Killed'])"
SERVING = (
    "[2026-02-11 09:38:{second:02d} TP0] Decode batch, #running-req: 8, #token: {token}, token usage: 0.01, "
    "cuda graph: True, gen throughput (token/s): 831.20, #queue-req: 0\n"
    '[2026-02-11 09:38:{second:02d}] INFO:     127.0.0.1:41310 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
)


def log_of(size: int) -> bytes:
    """Return a log of about `size` bytes: a healthy launch, serving lines, then a crash."""
    recorded = ROOT / "corpus" / "recorded"
    start = (recorded / "parrot-moe" / "run.log").read_bytes().split(b"SIGTERM received")[0].rpartition(b"\n")[0]
    end = (recorded / "scheduler-killed" / "run.log").read_bytes().splitlines(keepends=True)[-6:]
    parts, length = [start, b"\n"], len(start)
    for count in range(size):
        if length >= size:
            break
        parts.append(SERVING.format(second=count % 60, token=count).encode())
        length += len(parts[-1])
    return b"".join([*parts, *end])


def medians(commands: dict[str, list[str]]) -> dict[str, float]:
    """Run all commands in turn, `ROUNDS` times; return each one's median wall time in seconds.

    A first, uncounted round writes byte code and compiles the rules of a checkout, as an installation does.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for count in range(ROUNDS + 1):
        for name, words in commands.items():
            start = time.perf_counter()
            subprocess.run(words, capture_output=True, check=False, env=environment)
            if count:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Print a table of ratios with their aims."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        log.write_bytes(log_of(1_000_000))
        logtriage = str(Path(sys.executable).parent / "logtriage")
        analyze = [logtriage, "analyze", str(log), "--format"]
        found = medians(
            {
                "python": [sys.executable, "-c", "pass"],
                "imports": [sys.executable, "-c", IMPORTS],
                "version": [logtriage, "--version"],
                "json": [*analyze, "json"],
                "text": [*analyze, "text"],
            }
        )
    rows = [
        ("1 MB log, JSON / python -c pass", found["json"] / found["python"], 8.0),
        ("1 MB log, JSON / importing click, regex, json, prefilter", found["json"] / found["imports"], 1.8),
        ("1 MB log, text / python -c pass", found["text"] / found["python"], 12.0),
        ("--version / python -c pass", found["version"] / found["python"], 4.5),
    ]
    for name, ratio, aim in rows:
        show(name, ratio, "most", aim)
    with tempfile.TemporaryDirectory() as folder:
        for row in bench_large.rows(Path(folder), logtriage, full="--full" in sys.argv):
            show(*row)
        points = json.loads((Path(folder) / "points.json").read_text())
        (ROOT / "docs" / "performance.svg").write_text(bench_plot.svg(points), encoding="utf-8")
        compare_instructions(Path(folder), record="--record" in sys.argv)


def show(name: str, figure: float, kind: str, aim: float) -> None:
    """Print a figure with its aim."""
    missed = figure > aim if kind == "most" else figure < aim
    print(f"{name:<60} {figure:8.2f}   aim: at {kind} {aim}{'   MISSED' if missed else ''}", flush=True)


def compare_instructions(folder: Path, *, record: bool) -> None:
    """Compare the instructions of start-up and of one fixed log with those recorded, or record them."""
    log = folder / "fixed.log"
    log.write_bytes(log_of(1_000_000))
    program = [sys.executable, "-m", "logtriage"]
    counts = {
        "start-up (--version)": bench_large.instructions([*program, "--version"]),
        "1 MB log, JSON": bench_large.instructions([*program, "analyze", str(log), "--format", "json"]),
    }
    if None in counts.values():
        print("valgrind is not installed: no instructions counted")
        return
    known = ROOT / "tools" / "instructions.json"
    if record:
        known.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(known.read_text(encoding="utf-8"))
    for name, count in counts.items():
        show(f"instructions / those recorded, {name}", (count or 0) / recorded[name], "most", 1.03)


if __name__ == "__main__":
    main()
