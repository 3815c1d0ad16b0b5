"""The built wheel works in an empty environment, on a folder that is no checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOG = ROOT / "corpus" / "recorded" / "kv-fp4" / "run.log"


def test_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    """Built, installed and run: the command gives the verdict, with rules compiled into the wheel and no cache."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    wheel = next(tmp_path.glob("logtriage-*.whl"))
    _run(sys.executable, "-m", "venv", str(tmp_path / "env"))
    binaries = tmp_path / "env" / "bin"
    _run(str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    cache = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": ""}
    done = subprocess.run(
        [str(binaries / "logtriage"), "analyze", str(LOG), "--format", "json"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"]["label"] == "unsupported-config"
    assert not cache.exists()
    page = tmp_path / "report.html"
    subprocess.run([str(binaries / "logtriage"), "analyze", str(LOG), "--output", str(page)], check=False, cwd=tmp_path)
    assert "unsupported-config" in page.read_text(encoding="utf-8")
    listed = _run(str(binaries / "logtriage"), "rules", "lint")
    assert listed.endswith("0 faults\n")


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
