"""SGLang's own benchmark, run with the interpreter of the server; its figures come back, or why there are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.runner.client import Stop

_MODULE = "sglang.bench_serving"
_LIMIT_S = 300
_IN, _OUT = 128, 128  # tokens of a prompt and of an answer
_PROMPTS_EACH = 3


def measure(
    base: str, python: str, at_once: int, model: str | None, api_key: str | None, environment: Mapping[str, str] | None,
    stop: Stop | None,
) -> tuple[float, float] | str:  # fmt: skip
    """Return tokens per second and median seconds to the first token at `at_once` requests, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="logtriage-bench-") as folder:
        result, printed = Path(folder) / "result.jsonl", Path(folder) / "printed.txt"
        words = [
            python, "-m", _MODULE, "--backend", "sglang", "--base-url", base,
            "--dataset-name", "random-ids", "--random-input-len", str(_IN), "--random-output-len", str(_OUT),
            "--random-range-ratio", "1.0", "--num-prompts", str(at_once * _PROMPTS_EACH),
            "--max-concurrency", str(at_once), "--disable-tqdm", "--output-file", str(result),
            *(["--model", model] if model else []),
        ]  # fmt: skip
        around = dict(os.environ if environment is None else environment)
        around["NO_PROXY"] = around["no_proxy"] = "*"
        if api_key:
            around["OPENAI_API_KEY"] = api_key
        trouble = _run(words, around, printed, stop)
        if trouble:
            return trouble
        return _read(result) or f"it ended without a result: {_last_line(printed)}"


def _run(words: list[str], environment: dict[str, str], printed: Path, stop: Stop | None) -> str:
    """Run the benchmark to its end; return what went wrong, or ''."""
    try:
        with printed.open("wb") as out:
            child = subprocess.Popen(  # noqa: S603 - the interpreter that the user starts the server with
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment,
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        return f"{words[0]} cannot be run: {error.strerror or error}"
    until = time.monotonic() + _LIMIT_S
    try:
        while child.poll() is None:
            if time.monotonic() > until:
                return f"it did not end within {_LIMIT_S} s"
            if stop and stop():
                return "stopped before the end"
            time.sleep(0.1)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return "" if child.returncode == 0 else f"exit code {child.returncode}: {_last_line(printed)}"


def _read(result: Path) -> tuple[float, float] | None:
    try:
        data = json.loads(result.read_text(encoding="utf-8").splitlines()[-1])
        found = float(data["output_throughput"]), float(data["median_ttft_ms"]) / 1000
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if found[0] > 0 else None  # no request was answered


def _last_line(printed: Path) -> str:
    lines = printed.read_bytes()[-4000:].decode("utf-8", "replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it printed nothing")
