"""A runner that is killed, whatever it was doing: what is left is named, what was finished is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

POINTS = 50
"""Out of all calls and returns of the runner's functions; `python -m tests.kill_runner FOLDER` tries every one."""


def test_killed_at_many_points(tmp_path: Path) -> None:
    """No process is left that the next run does not name, --resume ends them all, no finished attempt is lost."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kill_runner", str(tmp_path), str(POINTS)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == POINTS, done.stderr
    assert all(one["killed"] for one in found)
    assert sum(1 for one in found if one["left"]) > 5  # it was killed while servers ran
    for one in found:
        point = one["point"]
        assert one["is_whole"], point
        assert one["unnamed"] == [], point
        assert one["lost"] == [], point
        assert one["still_left"] == [], point
        assert one["still_open"] == [], point
