"""Disks that fill while a server is run: that of its log, and that of the ledger. Real ones, of a few megabytes."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.running import command, free_port, labels

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = shutil.which("unshare") and subprocess.run(
    ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
).returncode == 0  # fmt: skip
small_disk = pytest.mark.skipif(not NAMESPACE, reason="needs `unshare -rm` and tmpfs for a small disk")


@small_disk
def test_a_log_that_fills_its_disk(tmp_path: Path) -> None:
    """The launch is ended while there is still room for others, and the disk is blamed, not a flag."""
    result = _on_a_small_disk(tmp_path, "120M", "logs", {"FAKE_DO": f"flood:kv-cache:{1 << 30}"}, "--logs", "{disk}",
                              "--ledger", str(tmp_path / "ledger.sqlite"))  # fmt: skip
    assert labels(result["attempts"]) == ["host-resources"]
    assert result["state"] == "stopped"
    assert _is_whole(tmp_path / "ledger.sqlite")


@small_disk
def test_a_full_disk_of_the_ledger(tmp_path: Path) -> None:
    """It fills up after the first attempt: the run goes on, and what was written before is whole and there."""
    fill = "dd if=/dev/zero of={disk}/filler bs=1k; true"
    result = _on_a_small_disk(
        tmp_path, "400k", "state", {}, "--logs", str(tmp_path / "logs"), "--ledger", "{disk}/ledger.sqlite",
        "--on-attempt", fill, flags=("--moe-runner-backend", "flashinfer_trtllm"), keep="ledger.sqlite*",
    )  # fmt: skip
    assert labels(result["attempts"]) == ["sm100-only-kernel", "healthy"]
    assert "cannot be written now" in result["err"]
    assert _is_whole(tmp_path / "kept" / "ledger.sqlite")
    with sqlite3.connect(tmp_path / "kept" / "ledger.sqlite") as book:
        assert book.execute("SELECT label FROM attempts WHERE number = 1").fetchall() == [("sm100-only-kernel",)]


def _on_a_small_disk(
    folder: Path, size: str, name: str, env: dict[str, str], *words: str, flags: tuple[str, ...] = (), keep: str = ""
) -> dict[str, Any]:
    """Run with a disk of its own at `folder/name` ({disk} in the words); copy what is to be kept to `folder/kept`."""
    disk, kept = folder / name, folder / "kept"
    disk.mkdir()
    kept.mkdir()
    save = f"cp {disk}/{keep} {kept}" if keep else "true"
    script = f'mount -t tmpfs -o size={size} none {disk} && "$@"; code=$?; {save}; exit $code'
    own = [word.replace("{disk}", str(disk)) for word in words]
    runner = [sys.executable, "-m", "logtriage", "run", "--once", "--format", "json", *own]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *runner, "--", *command(free_port(), *flags)],
        env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {**json.loads(done.stdout), "err": done.stderr}


def _is_whole(path: Path) -> bool:
    with sqlite3.connect(path) as book:
        return bool(book.execute("PRAGMA integrity_check").fetchone() == ("ok",))
