"""What other programs put around the lines of a log, as they do it; and whether a log means the same with it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests.conftest import Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

Wrap = Callable[[list[str]], list[str]]
CASES = cases()
SMALL = (
    "attn-trtllm-mha", "bad-architecture", "context-too-long", "model-path-missing", "no-gpu-visible", "remote-code",
    "kv-fp4", "kv-frac-too-low", "moe-fp8-postprocess-oom", "tp2-one-gpu", "port-in-use", "truncated-weights",
    "story-1-sm100-only-then-killed", "story-3-only-killed",
)  # fmt: skip
FAILED = [case for case in CASES if case.folder.name in SMALL]
# Nothing is not wrapped: what a wrapper says of itself is then all there is. Long logs would say the same, for longer.
HEALTHY = [
    case
    for case in CASES
    if case.verdict["label"] in ("healthy", "incomplete") and 0 < case.log.stat().st_size < 20_000
]


def _numbered(form: str) -> Wrap:
    """A gutter of line numbers; below five lines it is none, so a short log gets empty lines below."""

    def wrap(lines: list[str]) -> list[str]:
        short = [""] * 4 if len(lines) < 5 else []
        return [form.format(n=n) + line for n, line in enumerate([*lines, *short], start=1)]

    return wrap


def _prefix(form: str) -> Wrap:
    """A wrapper that puts `form` before every line; {t} is the time of the last line that had one, {n} counts."""

    def wrap(lines: list[str]) -> list[str]:
        stamp = "2026-11-29 12:00:00"
        wrapped = []
        for n, line in enumerate(lines):
            found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line[:80])
            stamp = found[0] if found else stamp
            clock = stamp.split()[1]
            wrapped.append(form.format(t=stamp.replace(" ", "T"), date=stamp, clock=clock, n=n) + line)
        return wrapped

    return wrap


def _docker_json(lines: list[str]) -> list[str]:
    stamp = "2026-01-01T10:00:00.123456789Z"
    return [json.dumps({"log": f"{line}\n", "stream": "stderr", "time": stamp}) for line in lines]


def _journald_json(lines: list[str]) -> list[str]:
    return [
        json.dumps({
            "__REALTIME_TIMESTAMP": "1767261600000000", "_PID": "7", "PRIORITY": "6",
            "MESSAGE": list(line.encode()) if "\r" in line or "\x1b" in line else line,
        })
        for line in lines
    ]  # fmt: skip


def _records(lines: list[str]) -> list[str]:
    stamp = "2026-01-01T10:00:00.123456789Z"
    return [json.dumps({"insertId": "a1", "textPayload": line, "timestamp": stamp}) for line in lines]


def _rows(lines: list[str]) -> list[str]:
    return ['"2026-01-01 10:00:00.123","{}"'.format(line.replace('"', '""')) for line in lines]


def _escaped(lines: list[str]) -> list[str]:
    return [html.escape(line) for line in lines]


def _fenced(lines: list[str]) -> list[str]:
    return ["<details>", "<summary>Log</summary>", "", "```text", *lines, "```", "</details>"]


def _typescript(lines: list[str]) -> list[str]:
    stamp = "2026-01-01 10:00:00+00:00"
    return [f'Script started on {stamp} [TERM="xterm"]', *lines, f'Script done on {stamp} [COMMAND_EXIT_CODE="1"]']


def _supervisord(lines: list[str]) -> list[str]:
    """Its debug log names the stream before every chunk, wherever that begins."""
    wrapped = []
    for index, line in enumerate(lines):
        if index % 7 == 0:
            wrapped.append("2026-01-01 10:00:00,123 DEBG 'sglang' stderr output:")
        wrapped.append(line)
    return wrapped


def _coloured_compose(lines: list[str]) -> list[str]:
    return [f"\x1b[36msglang-1  |\x1b[0m {line}" for line in lines]


def _coloured_ray(lines: list[str]) -> list[str]:
    return [f"\x1b[36m(RayWorkerWrapper pid=123, ip=10.0.0.2)\x1b[0m {line}" for line in lines]


WRAPPERS: dict[str, Wrap] = {
    "docker-time": _prefix("{t}.{n:05d}0000Z "),
    "compose": _prefix("sglang-1  | "),
    "compose-coloured": _coloured_compose,
    "compose-named": _prefix("server  | "),
    "swarm": _prefix("llm_sglang.1.x7k2m9q4w8e1r5t3y6u0i2o4p@gpu-a    | "),
    "docker-json": _docker_json,
    "cri": _prefix("{t}.{n:05d}0000Z stderr F "),
    "kubectl-timestamps": _prefix("{t}.{n:05d}0000+08:00 "),
    "kubectl-prefix": _prefix("[pod/sglang-0/server] "),
    "ray": _prefix("(RayWorkerWrapper pid=123, ip=127.0.0.1) "),
    "ray-coloured": _coloured_ray,
    "ray-bare": _prefix("(pid=123) "),
    "pytest": _prefix("E   "),
    "indented-block": _prefix("    "),
    "indented-by-three": _prefix("   "),
    "indented-by-two": _prefix("  "),
    "pod-name": _prefix("sglang-7f9c8d6b5c-xk2lp "),
    "slurm": _prefix("0: "),
    "slurm-wide": _prefix("12: "),
    "rank": _prefix("[rank0]: "),
    "torchrun": _prefix("[default0]:"),
    "syslog": _prefix("Nov 29 {clock} host sglang[123]: "),
    "short-iso": _prefix("{t}+0000 host sglang[123]: "),
    "short-full": _prefix("Sun {date} UTC host sglang[123]: "),
    "journald-json": _journald_json,
    "record-json": _records,
    "csv": _rows,
    "html": _escaped,
    "aws-stream": _prefix("{t}.123Z  AllTraffic/i-0a1b2c3d4e5f "),
    "tracing": _prefix("{t}.123456Z  INFO launcher::serve: "),
    "python-logging": _prefix("{date},123 - launcher.serve - INFO - "),
    "ts": _prefix("Nov 29 {clock} "),
    "jenkins": _prefix("[{t}.123Z] "),
    "line-numbers": _numbered("{n:6d}\t"),
    "line-numbers-close": _numbered("{n:7d} "),
    "line-numbers-colon": _numbered("{n}: "),
    "line-numbers-gutter": _numbered("{n:4d} │ "),
    "grep-n": _numbered("{n}:"),
    "github": _prefix("{t}.{n:05d}00Z "),
    "github-error": _prefix("{t}.{n:05d}00Z ##[error]"),
    "github-job": _prefix("serve\tRun server\t{t}.{n:05d}00Z "),
    "pm2": _prefix("0|sglang  | "),
    "tag": _prefix("[prefill] "),
    "pm2-time": _prefix("0|sglang  | {t}: "),
    "quote": _prefix("> "),
    "markdown": _fenced,
    "nohup": lambda lines: ["nohup: ignoring input", *lines],
    "typescript": _typescript,
    "supervisord": _supervisord,
}  # fmt: skip
"""Every wrapper; a line becomes one line."""

ADDED = {"markdown": 4, "nohup": 1, "typescript": 1}
"""Lines that a wrapper puts before the log."""

PAIRS = [
    ("compose", "github"), ("compose-coloured", "github-job"), ("ray", "cri"), ("ray-coloured", "docker-json"),
    ("ray", "kubectl-prefix"), ("docker-time", "kubectl-prefix"), ("docker-time", "compose"), ("rank", "slurm"),
    ("torchrun", "cri"), ("compose", "quote"), ("ray", "markdown"), ("syslog", "github"), ("docker-json", "slurm"),
    ("csv", "docker-json"), ("record-json", "docker-json"), ("docker-json", "csv"), ("docker-json", "html"),
    ("record-json", "compose"), ("rank", "record-json"), ("tag", "docker-time"),
]  # fmt: skip
"""Inner and outer wrapper."""


def lines_of(case: Case) -> list[str]:
    return case.log.read_bytes().decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")


def data_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def root_of(report: Report) -> tuple[int, str]:
    if report.root is None:
        return 0, ""
    line = report.lines[report.root.line]
    return line.number, line.text


def same(case: Case, rules: RuleSet, data: bytes, added: dict[int, int] | int = 0) -> Report:
    """Check that `data` gives the verdict of the case's log; its root line may stand `added` lines further down."""
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(data, rules=rules)
    assert report.label == bare.label
    number, text = root_of(bare)
    shift = added if isinstance(added, int) else added.get(number, 0)
    if number:
        assert root_of(report)[0] == number + shift
        assert root_of(report)[1].endswith(text)
        assert report.root is not None
        assert bare.root is not None
        assert (report.root.component, report.root.flag) == (bare.root.component, bare.root.flag)
        start, end = report.root.span
        assert root_of(report)[1][start:end] == text[slice(*bare.root.span)]
    assert report.verdict.stage == bare.verdict.stage
    assert report.verdict.rule == bare.verdict.rule
    return report


def added_by(case: Case, name: str) -> dict[int, int] | int:
    if name == "supervisord":
        return {number: (number - 1) // 7 + 1 for number in range(1, len(lines_of(case)) + 1)}
    return ADDED.get(name, 0)


def zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))
