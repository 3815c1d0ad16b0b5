"""The ledger keeps what was tried, whatever happens to those who write it, and gives it back as evidence."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from logtriage.errors import InputError
from logtriage.runner import ledger
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

STORY = ROOT / "corpus" / "written" / "story-1-sm100-only-then-killed" / "run.log"
WRITER = """
import sys
from logtriage.runner.ledger import Ledger
book = Ledger(sys.argv[1], lambda text: sys.exit(text))
for number in range(40):
    name = f"{sys.argv[2]}:{number}"
    row = {"id": name, "run": sys.argv[2], "number": number, "command": "c", "started": "s"}
    book.begin_attempt(row)
    book.update(name, stage="init", label="unknown")
"""


def begun(book: ledger.Ledger, name: str) -> None:
    book.begin_attempt({"id": name, "run": "r", "number": 1, "command": "c", "started": ledger.now()})


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    """Two processes write to one ledger at the same time: it stays whole and has all of both."""
    path = str(tmp_path / "ledger.sqlite")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name], cwd=ROOT) for name in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert len(ledger.Ledger(path).attempts("label = 'unknown'")) == 80
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_cannot_be_written_now_is_written_later(tmp_path: Path) -> None:
    """While the database is full, writes wait, in order; the next one that succeeds takes them along."""
    told: list[str] = []
    book = ledger.Ledger(str(tmp_path / "ledger.sqlite"), told.append)
    begun(book, "r:1")
    pages = book._db.execute("PRAGMA page_count").fetchone()[0]
    book._db.execute(f"PRAGMA max_page_count = {pages}")
    book.update("r:1", entry="x" * 100_000)
    book.update("r:1", label="healthy")
    assert len(told) == 2
    assert "cannot be written now" in told[0]
    assert book.attempts()[0]["label"] is None
    book._db.execute("PRAGMA max_page_count = 100000")
    book.update("r:1", stage="serving")
    row = book.attempts()[0]
    assert (len(row["entry"]), row["label"], row["stage"]) == (100_000, "healthy", "serving")


def test_text_that_is_no_utf8_is_written(tmp_path: Path) -> None:
    """A byte of an argument that is no UTF-8 is kept as an escape; no transaction stays open."""
    book = ledger.Ledger(str(tmp_path / "ledger.sqlite"))
    begun(book, "r:1")
    book.update("r:1", root_line="m\udcff")
    assert book.attempts("root_line = ?", ("m\udcff",))[0]["root_line"] == "m\\udcff"


def test_a_value_that_no_database_takes_is_rolled_back(tmp_path: Path) -> None:
    """It is an error of its own; what comes after it is written, and other runners are not locked out."""
    path = str(tmp_path / "ledger.sqlite")
    book = ledger.Ledger(path)
    begun(book, "r:1")
    with pytest.raises(OverflowError):
        book.update("r:1", port=1 << 70)
    book.update("r:1", stage="init")
    assert ledger.Ledger(path).attempts()[0]["stage"] == "init"


@pytest.mark.parametrize(
    "content", [b"no database at all, but some text that is long enough to be looked at\n" * 20, None]
)
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Another file, and a ledger of a later version, are left as they are; the message says what to do."""
    path = tmp_path / "ledger.sqlite"
    if content is None:
        sqlite3.connect(path).execute("PRAGMA user_version = 99")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(InputError, match="newer logtriage" if content is None else "--ledger"):
        ledger.Ledger(str(path))
    assert path.read_bytes()[:100] == before[:100]


def test_a_launch_by_hand_becomes_evidence(run: Any, tmp_path: Path) -> None:
    """`ledger add` files a log once; `next --ledger` then does not advise what it rules out."""
    added = run("ledger", "add", str(STORY), "--ledger", "l.sqlite", "--sm", "120")
    assert added.returncode == 0
    assert added.stdout.split() == [added.stdout.split()[0], "sm100-only-kernel"]
    assert "known already" in run("ledger", "add", str(STORY), "--ledger", "l.sqlite", "--sm", "120").stdout
    killed = tmp_path / "killed.log"
    flags = "--quantization modelopt_fp4 --moe-runner-backend flashinfer_trtllm"
    killed.write_text(f"+ python3 -m sglang.launch_server --model-path nvidia/X-MoE-NVFP4 {flags}\nKilled\n")
    words = ("analyze", str(killed), "--format", "json", "--exit-zero")
    alone = json.loads(run(*words).stdout)
    with_ledger = json.loads(run(*words, "--ledger", "l.sqlite").stdout)
    assert alone["advice"]["ruled_out"] == []
    assert [item["flag"] for item in with_ledger["advice"]["ruled_out"]].count("--moe-runner-backend")
    assert with_ledger["verdict"]["label"] == "killed-unexplained"


def test_a_ledger_that_is_not_there_is_not_made_by_reading(run: Any, tmp_path: Path) -> None:
    """`analyze --ledger` says that there is none; so do those who show, hand on and forget."""
    for words in (("analyze", str(STORY)), ("ledger", "show"), ("ledger", "export"), ("ledger", "forget", "x")):
        done = run(*words, "--ledger", "none.sqlite")
        assert done.returncode == 2
        assert "there is no ledger" in done.stderr
    assert not (tmp_path / "none.sqlite").exists()


def test_export_import_show_and_forget(run: Any, tmp_path: Path) -> None:
    """What one ledger exports another imports, once; a broken line imports nothing; `forget` removes it."""
    run("ledger", "add", str(STORY), "--ledger", "a.sqlite")
    exported = run("ledger", "export", "--ledger", "a.sqlite").stdout
    (tmp_path / "lines").write_text(exported, encoding="utf-8")
    assert run("ledger", "import", "lines", "--ledger", "b.sqlite").stdout == "1 of 1 attempts are new\n"
    assert run("ledger", "import", "lines", "--ledger", "b.sqlite").stdout == "0 of 1 attempts are new\n"
    (tmp_path / "broken").write_text(exported.replace("log-", "other-") + "{}\n", encoding="utf-8")
    broken = run("ledger", "import", "broken", "--ledger", "b.sqlite")
    assert broken.returncode == 2
    assert "broken:2:" in broken.stderr
    shown = run("ledger", "show", "--ledger", "b.sqlite").stdout
    assert "sm100-only-kernel" in shown
    header, row, count = shown.splitlines()
    assert count.startswith("1 attempt in ")
    assert header.index("result") == row.index("sm100-only-kernel")
    name = row.split()[1].partition(":")[0]
    assert "RuntimeError" in run("ledger", "show", name, "--ledger", "b.sqlite").stdout
    assert run("ledger", "show", "nothing", "--ledger", "b.sqlite").returncode == 2
    assert run("ledger", "forget", name, "--ledger", "b.sqlite").stdout == "1 attempt forgotten\n"
    assert "0 attempts" in run("ledger", "show", "--ledger", "b.sqlite").stdout
