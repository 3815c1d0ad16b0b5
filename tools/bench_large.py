"""Benchmarks of large, hostile and growing logs, as ratios to ripgrep and cat on the same file, and what follows them.

Sizes go up to 512 MiB, with --full to 8 GiB. Every file is deleted once it is measured.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
ROUNDS = 3
RIPGREP_LIMIT = "4G"
SERVER_LOG = Path(__file__).resolve().parent.parent / "rules" / "servers" / "sglang" / "log.yaml"
HALVES, ROUNDS_IN_TURN = 3, 30

DECODE = (
    "[2026-02-11 09:{minute:02d}:{second:02d} TP0] Decode batch, #running-req: 8, #token: {n}, token usage: 0.01, "
    "cuda graph: True, gen throughput (token/s): 831.20, #queue-req: 0\n"
)
PREFILL = (
    "[2026-02-11 09:{minute:02d}:{second:02d} TP0] Prefill batch, #new-seq: 1, #new-token: {n}, #cached-token: 0, "
    "token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, "
    "input throughput (token/s): 1.06\n"
)
ACCESS = '[2026-02-11 09:{minute:02d}:{second:02d}] INFO:     127.0.0.1:41310 - "POST /generate HTTP/1.1" 200 OK\n'
HOSTILE = (
    "[2026-02-11 09:{minute:02d}:{second:02d} TP0] RuntimeError: CUDA error: an illegal memory access was encountered "
    "at request {n}\n"
)


class Run(NamedTuple):
    """The best of several runs: wall time and processor time in seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def write_log(path: Path, size: int, forms: tuple[str, ...]) -> None:
    """Write `size` bytes of lines in the given forms, in turn, between a start and a crash of a server."""
    unit = "".join(
        forms[n % len(forms)].format(n=n, minute=n // 6000 % 60, second=n // 100 % 60) for n in range(20_000)
    ).encode()
    with path.open("wb") as file:
        file.write(b"[2026-02-11 09:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n")
        for _ in range(size // len(unit)):
            file.write(unit)
        file.write(unit[: size % len(unit)].rpartition(b"\n")[0] + b"\nbash: line 14: 48326 Killed\n")


def serving() -> tuple[str, ...]:
    """The lines of a server at work: 62 in 100 decode, 18 prefill, 20 are of the access log."""
    return (DECODE,) * 6 + (PREFILL,) * 2 + (ACCESS,) * 2


def _every_anchor() -> tuple[str, ...]:
    """Lines that hold the anchors of all rules, one after the other."""
    from logtriage import pipeline

    anchors = (anchor.replace("{", "{{").replace("}", "}}") for anchor in pipeline.load_rules().anchors)
    return tuple(f"[2026-02-11 09:{{minute:02d}}:{{second:02d}} TP0] {anchor} at request {{n}}\n" for anchor in anchors)


def _wrap_in_json(log: Path) -> None:
    """Put each line of a log into JSON as Docker's log driver does."""
    stamp = {"stream": "stderr", "time": "2026-02-11T09:00:00.123456789Z"}
    wrapped = log.with_suffix(".json")
    with log.open(encoding="utf-8") as lines, wrapped.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps({"log": line, **stamp}, separators=(",", ":")) + "\n")
    wrapped.replace(log)


def best(words: list[str], rounds: int = ROUNDS) -> Run:
    """Run a command several times; return the best of each figure."""
    runs = []
    for _ in range(rounds):
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        runs.append(Run(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return Run(*(min(column) for column in zip(*runs, strict=True)))


def measure_sizes(folder: Path, logtriage: str, sizes: list[int]) -> list[tuple[int, Run]]:
    """Return size in bytes and figures of `logtriage analyze` for a log of each size."""
    points = []
    for size in sizes:
        log = folder / "size.log"
        write_log(log, size, serving())
        points.append((size, best([logtriage, "analyze", str(log)])))
        log.unlink()
    return points


def rows(folder: Path, logtriage: str, *, full: bool) -> Iterator[tuple[str, float, str, float]]:
    """Yield name, figure, "least" or "most", aim."""
    sizes = [1 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB] + ([8192 * MIB] if full else [])
    points = measure_sizes(folder, logtriage, sizes)
    (folder / "points.json").write_text(json.dumps([(size, run.wall) for size, run in points]))
    rate = (512 - 64) * MIB / (points[5][1].wall - points[2][1].wall)
    log = folder / "run.log"
    write_log(log, 512 * MIB, serving())
    ours = best([logtriage, "analyze", str(log)])
    yield "512 MiB, cat / logtriage (how near to only reading)", best(["cat", str(log)]).wall / ours.wall, "least", 0.03
    if shutil.which("rg"):
        regexes, literals = _patterns(folder)
        limits = ["--regex-size-limit", RIPGREP_LIMIT, "--dfa-size-limit", RIPGREP_LIMIT]
        for name, words in (("expressions", [*limits, "-c", "-f", str(regexes)]),
                            ("fixed phrases", ["-F", "-c", "-f", str(literals)])):  # fmt: skip
            ratio = best(["rg", *words, str(log)], 1 if limits[0] in words else ROUNDS).wall / ours.wall
            yield f"512 MiB, rg -c -f of as many {name} / logtriage", ratio, "least", 2.5
    yield "512 MiB, peak memory in MiB", ours.peak, "most", 100
    log.unlink()
    if full:
        large = points[-1][1]
        yield "8 GiB, rate / rate from 64 to 512 MiB", 8192 * MIB / large.wall / rate, "least", 0.9
        yield "8 GiB, peak memory in MiB", large.peak, "most", 100
    write_log(log, 256 * MIB, (HOSTILE,))
    hostile = best([logtriage, "analyze", str(log)])
    yield "every line a failure, 256 MiB, MB/s", 256 * MIB / hostile.wall / 1e6, "least", 150
    yield "every line a failure, peak memory in MiB", hostile.peak, "most", 100
    write_log(log, 64 * MIB, _every_anchor())
    mixed = best([logtriage, "analyze", str(log)])
    yield "every line another failure, 64 MiB, MB/s", 64 * MIB / mixed.wall / 1e6, "least", 15
    write_log(log, 32 * MIB, serving())
    bare = best([logtriage, "analyze", str(log)])
    _wrap_in_json(log)
    yield "in Docker's JSON / the same log, 32 MiB", best([logtriage, "analyze", str(log)]).wall / bare.wall, "most", 8
    write_log(log, 32 * MIB, serving())
    yield "the rules / half of the rules, searching 32 MiB", _doubled(log), "most", 1.15
    log.unlink()
    latency, share = _follow(log, logtriage)
    yield "follow: fatal line to report and exit, ms", latency * 1e3, "most", 100
    yield "follow: percent of a core at 1,000 lines/s", share * 100, "most", 1


def _refused(expressions: list[str]) -> list[str]:
    """Return the expressions that ripgrep does not take (look-around, back-references)."""
    words = ["rg", "--regex-size-limit", RIPGREP_LIMIT, "-c", "-f", "-", os.devnull]
    given = "\n".join(expressions) + "\n"
    if not subprocess.run(words, input=given, capture_output=True, text=True, check=False).stderr:
        return []
    middle = len(expressions) // 2
    return expressions if not middle else _refused(expressions[:middle]) + _refused(expressions[middle:])


def _patterns(folder: Path) -> tuple[Path, Path]:
    """Write what ripgrep can take of the signatures: expressions (without look-around), and anchors."""
    from logtriage import pipeline

    rules = pipeline.load_rules()
    regexes, literals = folder / "regexes", folder / "literals"
    numbers = sorted({number for rule in rules.rules for number in rule["any"]})
    found = [re.sub(r"\(\?P<\w+>", "(?:", rules.expression(number)) for number in numbers]
    found = [re.sub(r"\\([ #\"'])", r"\1", text) for text in found]
    refused = set(_refused(found))
    found = [f"Received sigquit {n}" if text in refused else text for n, text in enumerate(found)]
    regexes.write_text("\n".join(found) + "\n", encoding="utf-8")
    literals.write_text("\n".join(rules.anchors) + "\n", encoding="utf-8")
    return regexes, literals


def _doubled(log: Path) -> float:
    """Search a log with the gates of all anchors, and with those of several halves of them: the best time of each.

    Rules that are really there are what a second half is like. Many short rounds in turn: else noise is all there is.
    """
    from logtriage import pipeline
    from logtriage.engine import gates, prefilter
    from logtriage.intake.lines import select
    from logtriage.intake.source import open_source

    rules = pipeline.load_rules()
    busy = yaml.safe_load(SERVER_LOG.read_text(encoding="utf-8"))["busy"]
    halves = [random.Random(seed).sample(rules.anchors, len(rules.anchors) // 2) for seed in range(HALVES)]  # noqa: S311
    searches = [prefilter.make(gates.choose(anchors, rules.failures, busy)) for anchors in (rules.anchors, *halves)]
    times = [math.inf] * len(searches)
    for _ in range(ROUNDS_IN_TURN):
        for at, search in enumerate(searches):
            start = time.process_time()
            select(open_source(log, rules.wrappers).blocks(), search.offsets)
            times[at] = min(times[at], time.process_time() - start)
    return times[0] / statistics.mean(times[1:])


def _follow(log: Path, logtriage: str) -> tuple[float, float]:
    """Return seconds from the write of the fatal line to the end, and the share of a core while lines are written."""
    log.write_bytes(b"[2026-02-11 09:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n")
    words = [logtriage, "analyze", str(log), "--follow", "--until", "failed", "--grace", "0",
             "--format", "json"]  # fmt: skip
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    time.sleep(2)
    before, begun = _cpu(process.pid), time.perf_counter()
    with log.open("a", buffering=1) as file:
        for n in range(200):
            file.write("".join(DECODE.format(n=n, minute=0, second=0) for _ in range(20)))
            time.sleep(max(0.0, begun + n * 0.02 - time.perf_counter()))
        share = (_cpu(process.pid) - before) / (time.perf_counter() - begun)
        file.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
        start = time.perf_counter()
        process.wait()
    log.unlink()
    return time.perf_counter() - start, share


def _cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def instructions(words: list[str]) -> int | None:
    """Return how many instructions a command takes (callgrind), or None where valgrind is missing."""
    if not shutil.which("valgrind"):
        return None
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if found else None
