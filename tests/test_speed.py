"""How fast a server is: real streams from a real process, and a benchmark that is really run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from logtriage.runner import speed
from tests.fake_http import serving

if TYPE_CHECKING:
    from pathlib import Path

BENCHMARK = """
import json, sys
words = sys.argv
at_once = int(words[words.index("--max-concurrency") + 1])
row = {"output_throughput": 100.0 * at_once, "median_ttft_ms": 20.0 + at_once}
open(words[words.index("--output-file") + 1], "w").write(json.dumps(row) + "\\n")
"""


def _installed(folder: Path, text: str) -> dict[str, str]:
    """The environment of an interpreter in which sglang.bench_serving is this text."""
    (folder / "sglang").mkdir()
    (folder / "sglang" / "__init__.py").touch()
    (folder / "sglang" / "bench_serving.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_closed_loop() -> None:
    """Every token that was streamed counts, at 1 and at 32 at once, and the first one comes before the answer ends."""
    with serving("sane") as url:
        found = speed.measure(url)
    assert (found.method, found.note) == ("closed loop", "")
    assert found.tokens_per_s_1 is not None
    assert found.tokens_per_s_32 is not None
    assert found.first_token_s_1 is not None
    assert found.first_token_s_32 is not None
    # An answer of 128 tokens that took T seconds alone gives 128 / T; its first token came well before T.
    assert 0 < found.first_token_s_1 < speed.TOKENS / found.tokens_per_s_1
    assert found.tokens_per_s_32 > found.tokens_per_s_1


def test_a_server_that_cannot_be_measured() -> None:
    """No figure is invented, and the reason is told."""
    with serving("base") as url:
        found = speed.measure(url)
    assert found[:4] == (None,) * 4
    assert "no chat template" in found.note


def test_sglangs_own_benchmark_measures_where_it_is(tmp_path: Path) -> None:
    """It is run with the server's interpreter, once for each number of requests."""
    with serving("sane") as url:
        found = speed.measure(url, python=sys.executable, environment=_installed(tmp_path, BENCHMARK))
    assert found == speed.Speed(100.0, 3200.0, 0.021, 0.052, "sglang.bench_serving")


def test_the_closed_loop_stands_in(tmp_path: Path) -> None:
    """Where the benchmark fails, the figures are those of the closed loop, and the note says why."""
    with serving("sane") as url:
        broken = "raise SystemExit('no tokenizer here')"
        found = speed.measure(url, python=sys.executable, environment=_installed(tmp_path, broken))
    assert found.method == "closed loop"
    assert found.tokens_per_s_1 is not None
    assert found.note == "sglang.bench_serving did not measure: exit code 1: no tokenizer here"


def test_a_stop_ends_both_ways_to_measure(tmp_path: Path) -> None:
    """The benchmark is ended, not waited for."""
    with serving("hangs") as url:
        sleeper = "import time\ntime.sleep(600)"
        for python in (None, sys.executable):
            folder = tmp_path / str(python is None)
            folder.mkdir()
            found = speed.measure(
                url, python=python, environment=_installed(folder, sleeper), stop=lambda: True
            )  # fmt: skip
            assert found[:4] == (None,) * 4
            assert "stopped before the end" in found.note
