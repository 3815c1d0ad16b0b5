"""A log means the same however it was stored and read; what is no log is refused."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.intake import compression, rows
from logtriage.intake import source as intake_source
from logtriage.intake.source import open_source
from logtriage.report import json_v1
from tests.test_intake import PIECES
from tests.wrapping import (
    FAILED,
    WRAPPERS,
    data_of,
    same,
    zstd,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from tests.conftest import Case

STORED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "gzip in parts": lambda data: gzip.compress(data[:999], mtime=0) + gzip.compress(data[999:], mtime=0) + b"\0" * 512,
    "zstd": zstd,
    "zstd in parts": lambda data: zstd(data[:999]) + zstd(data[999:]),
    "utf-16-le": lambda data: codecs.BOM_UTF16_LE + data.decode("utf-8", "replace").encode("utf-16-le"),
    "utf-16-be": lambda data: codecs.BOM_UTF16_BE + data.decode("utf-8", "replace").encode("utf-16-be"),
    "utf-8 with mark": lambda data: codecs.BOM_UTF8 + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "crlf in utf-16 in gzip": lambda data: gzip.compress(
        data.decode("utf-8", "replace").replace("\n", "\r\n").encode("utf-16")
    ),
    "NUL bytes": lambda data: b"\0" * 5000 + data.replace(b"\n", b"\n\0\0"),
    "compose in gzip": lambda data: gzip.compress(
        data_of(WRAPPERS["compose-coloured"](data.decode("utf-8", "replace").split("\n")))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_a_stored_log_means_the_same(case: Case, rules: RuleSet, name: str) -> None:
    """Compression and encoding change nothing."""
    report = same(case, rules, STORED[name](case.log.read_bytes()))
    assert not any("launch" not in note for note in report.notes)


def test_zstd_without_its_package(monkeypatch: pytest.MonkeyPatch, rules: RuleSet) -> None:
    """The message names the extra that is missing."""
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"extra 'zstd'.*logtriage\[zstd\]"):
        pipeline.analyze(b"\x28\xb5\x2f\xfd" + b"x" * 100, rules=rules)


@pytest.mark.parametrize("pack", [STORED["gzip"], STORED["zstd"]], ids=["gzip", "zstd"])
def test_a_truncated_archive(rules: RuleSet, pack: Callable[[bytes], bytes]) -> None:
    """What can be read is analyzed, and a note says that more was there."""
    random.seed(1)
    log = b"Traceback (most recent call last):\n" + b"".join(b"%d\n" % random.getrandbits(64) for _ in range(40_000))
    packed = pack(log)
    report = pipeline.analyze(packed[: len(packed) // 2], rules=rules)
    assert "ends too early; what could be unpacked was read" in report.notes[0]
    assert report.files[0].size > 100_000
    with pytest.raises(InputError, match="nothing can be read"):
        pipeline.analyze(packed[:12], rules=rules)


@pytest.mark.parametrize("pack", [STORED["gzip"], STORED["zstd"]], ids=["gzip", "zstd"])
def test_a_damaged_archive(rules: RuleSet, pack: Callable[[bytes], bytes]) -> None:
    """What stands before the damage is analyzed."""
    packed = bytearray(pack(b"".join(b"%d\n" % random.getrandbits(64) for _ in range(80_000))))
    packed[len(packed) // 2 :] = hashlib.shake_128(b"").digest(len(packed) // 2)
    report = pipeline.analyze(bytes(packed), rules=rules)
    assert any("damaged" in note for note in report.notes)
    assert report.files[0].size > 100_000


def test_a_wrong_checksum_loses_nothing(rules: RuleSet) -> None:
    """Damage at the very end of a small archive costs a note only."""
    packed = bytearray(gzip.compress(b"hello\nworld\n"))
    packed[-6] ^= 1
    report = pipeline.analyze(bytes(packed), rules=rules)
    assert [line.text for line in report.lines] == ["hello", "world"]
    assert "damaged" in report.notes[0]


@pytest.mark.parametrize("pack", [STORED["gzip"], STORED["zstd"]], ids=["gzip", "zstd"])
def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch, rules: RuleSet, pack: Callable[[bytes], bytes]) -> None:
    """An input that unpacks to far more than a log would is refused; a huge one is read up to a limit."""
    monkeypatch.setattr(compression, "RATIO_FROM", 1 << 20)
    monkeypatch.setattr(compression, "MAX_RATIO", 100)
    packed = pack(b"0" * (64 << 20))
    with pytest.raises(InputError, match="no log"):
        pipeline.analyze(packed, rules=rules)
    monkeypatch.setattr(compression, "MAX_RATIO", 1 << 30)
    monkeypatch.setattr(compression, "MAX_UNPACKED", 2 << 20)
    report = pipeline.analyze(packed, rules=rules)
    assert report.files[0].size < 20 << 20
    assert "were read" in report.notes[0]


def test_special_files(tmp_path: Path, rules: RuleSet) -> None:
    """A pipe is read; what is no file is refused with a message."""
    import threading

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"bash: line 14: 48326 Killed\n"))
    writer.start()
    assert pipeline.analyze(fifo, rules=rules).label == "killed-unexplained"
    writer.join()
    for name, message in (("/dev/zero", "device"), ("/dev/null", "device"), (str(tmp_path), "directory")):
        with pytest.raises(InputError, match=message):
            open_source(name)


def test_a_sparse_file_of_a_terabyte(tmp_path: Path, rules: RuleSet) -> None:
    """Holes are passed over; offsets count them."""
    path = tmp_path / "sparse.log"
    with path.open("wb") as file:
        file.seek(1 << 39)
        file.write(b"\nhello\n")
        file.seek(1 << 40)
        file.write(b"\nbash: line 14: 48326 Killed\n")
        file.truncate(3 << 39)
    start = time.monotonic()
    report = pipeline.analyze(path, rules=rules)
    assert time.monotonic() - start < 20
    assert report.label == "killed-unexplained"
    assert report.files[0].size == 3 << 39
    assert [line.byte for line in report.lines if "Killed" in line.text] == [(1 << 40) + 1]
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="looks binary"):
        pipeline.analyze(path, rules=rules)


def test_offsets_behind_a_huge_line(rules: RuleSet) -> None:
    """The middle of a huge line is dropped, its bytes are counted."""
    data = b"x" * (10 << 20) + b"\nTraceback\nbash: line 14: 48326 Killed\n"
    report = pipeline.analyze(data, rules=rules)
    assert [line.byte for line in report.lines] == [0, (10 << 20) + 1, (10 << 20) + 11]


def test_lines_without_end_are_read_as_they_come(rules: RuleSet) -> None:
    """An iterable of lines is not gathered first."""
    source = open_source((f"{number}" for number in iter(int, 1)), rules.wrappers)
    assert next(iter(source._stored())).number == 1


# Block size

FORMS: dict[str, Callable[[list[str]], bytes]] = {
    **{
        name: (lambda lines, wrap=wrap: data_of(wrap(lines)))  # type: ignore[misc]
        for name, wrap in WRAPPERS.items()
        if name in ("compose-coloured", "docker-json", "journald-json", "cri", "ray", "github", "markdown", "quote")
    },
    "cri-partial": lambda lines: data_of(
        [f"2026-01-01T10:00:00Z stderr {'P' if number % 3 else 'F'} {line}" for number, line in enumerate(lines)]
    ),
    "gzip": lambda lines: gzip.compress(data_of(lines), mtime=0),
    "zstd": lambda lines: zstd(data_of(lines)),
    "utf-16": lambda lines: data_of(lines).decode("utf-8", "replace").encode("utf-16"),
    "newest-first": lambda lines: data_of(
        [f"2026-01-01T10:00:{59 - n % 60:02d}Z {line}" for n, line in enumerate(lines)]
    ),
    "broken": lambda lines: data_of([line[at : at + 80] for line in lines for at in range(0, len(line), 80)]),
}


def _analyzed(data: bytes, rules: RuleSet) -> Any:
    return json_v1.to_dict(pipeline.analyze(data, rules=rules))


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.lists(PIECES, min_size=1, max_size=60), st.integers(1, 400))
def test_block_size_changes_nothing(rules: RuleSet, form: str, pieces: list[str], size: int) -> None:
    """One report for one log, wrapped or compressed, whatever the size of the blocks that it is read in."""
    data = FORMS[form](pieces)
    whole = _analyzed(data, rules)
    block, packed = intake_source.BLOCK, rows.PACKED
    try:
        intake_source.BLOCK, rows.PACKED = size, size
        assert _analyzed(data, rules) == whole
    finally:
        intake_source.BLOCK, rows.PACKED = block, packed
