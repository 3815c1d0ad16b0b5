"""A folder, a pattern or an archive stands for the logs in it; what is no log is passed over, a trick refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.intake import compression
from logtriage.report import json_v1
from tests import nodes
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

LOGS = {name: log.text.encode() for name, log in nodes.incident().items() if log.node in (0, 5, 9, 11)}
OTHERS = {
    "config.json": b'{"model": "m"}',
    ".git/HEAD.log": b"ref",
    "chart.png": b"\x89PNG\0\1\2\3" * 99,
    "core": b"\x7fELF\1\1\1" * 99,
}


def tar(path: Path, files: Mapping[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, mode, format=form) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def zipped(path: Path, files: Mapping[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def gathered(path: Path, kind: str, files: Mapping[str, bytes]) -> str:
    """The files as a folder, a pattern, or an archive of a kind."""
    if kind in ("folder", "pattern"):
        return str(folder(path / "logs", files)) + ("/*" if kind == "pattern" else "")
    if kind == "zip":
        return str(zipped(path / "logs.zip", files))
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
        plain = tar(path / "plain.tar", files)
        (path / "logs.tar.zst").write_bytes(zstandard.compress(plain.read_bytes()))
        return str(path / "logs.tar.zst")
    return str(tar(path / f"logs.{kind}", files, "w:gz" if kind == "tgz" else "w"))


def judge(path: str, rules: RuleSet) -> dict[str, Any]:
    return json_v1.to_dict(pipeline.analyze(path, rules=rules))


@pytest.mark.parametrize("kind", ["folder", "pattern", "tar", "tgz", "zst", "zip"])
def test_the_logs_in_it_are_one_launch(rules: RuleSet, tmp_path: Path, kind: str) -> None:
    """Node, rank and line are those that the logs give when each is named; what is no log is passed over and told."""
    path = gathered(tmp_path, kind, {**OTHERS, **LOGS})
    report = judge(path, rules)
    assert report["verdict"]["label"] == "oom-weight-load"
    found = report["root_cause"]
    separator = "/" if kind in ("folder", "pattern") else "!"
    assert found["file"] == f"{path.removesuffix('/*')}{separator}node11.log"
    assert (found["node"], found["line"]) == (11, 29)
    assert len(report["source"]["files"]) == 4
    assert report["source"]["bytes"] == sum(map(len, LOGS.values()))
    told = next(note for note in report["notes"] if "passed over" in note)
    assert all(name in told for name in ("config.json", "chart.png", "core"))
    assert "HEAD" not in told


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_forms_of_tar(rules: RuleSet, tmp_path: Path, form: int) -> None:
    """Long names, empty logs, and logs that end at a block's end are read whole in each form of tar."""
    long = "/".join(["a" * 40] * 3) + "/node0.log"
    data = LOGS["node11.log"]
    files = {long: data + b"\n" * (-len(data) % 512), "node1.log": b"", "node2.log": data}
    report = judge(str(tar(tmp_path / "x.tar", files, form=form)), rules)
    assert report["source"]["files"] == [f"{tmp_path}/x.tar!{name}" for name in files]
    assert report["source"]["bytes"] == sum(map(len, files.values()))


def test_compressed_logs_in_an_archive(rules: RuleSet, tmp_path: Path) -> None:
    """A log in an archive may be packed itself; an archive in an archive is passed over."""
    inner = tar(tmp_path / "inner.tar", LOGS).read_bytes()
    files = {"node11.log.gz": gzip.compress(LOGS["node11.log"]), "old.tar.gz": gzip.compress(inner), "old.zip": b"PK"}
    report = judge(str(zipped(tmp_path / "x.zip", files)), rules)
    assert (report["verdict"]["label"], len(report["source"]["files"])) == ("oom-weight-load", 1)
    assert "old.tar.gz" in "".join(report["notes"])


def test_links_devices_and_names_that_lead_out(rules: RuleSet, tmp_path: Path) -> None:
    """Of a tar archive links, devices, pipes and names that lead out are passed over, and nothing outside is read."""
    (tmp_path / "secret.log").write_bytes(LOGS["node11.log"])
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, kind, link in (
            ("link.log", tarfile.SYMTYPE, "/etc/passwd"), ("hard.log", tarfile.LNKTYPE, "../secret.log"),
            ("zero.log", tarfile.CHRTYPE, ""), ("disk.log", tarfile.BLKTYPE, ""), ("pipe.log", tarfile.FIFOTYPE, ""),
            ("folder.log", tarfile.DIRTYPE, ""),
        ):  # fmt: skip
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            archive.addfile(entry)
        for name in ("../up.log", "/root.log", "a/../../up.log", "C:\\up.log", "node0.log"):
            entry = tarfile.TarInfo(name)
            entry.size = len(LOGS["node0.log"])
            archive.addfile(entry, io.BytesIO(LOGS["node0.log"]))
    report = judge(str(tmp_path / "x.tar"), rules)
    assert report["source"]["files"] == [f"{tmp_path}/x.tar!node0.log"]
    told = "".join(report["notes"])
    assert "link.log (a link), hard.log (a link), zero.log (no file), disk.log (no file), pipe.log (no file)" in told
    assert "../up.log (its name leads out of the archive) and 3 more" in told


def test_names_of_members_control_nothing(run: Any, tmp_path: Path) -> None:
    """A name with escape sequences, line feeds or a workflow command in it is shown harmlessly, read or passed over."""
    odd = "a\x1b[31m\n::error::b\u202e"
    tar(tmp_path / "x.tar", {f"{odd}.log": LOGS["node11.log"], f"{odd}.json": b"{}", f"../{odd}": b"x"})
    for form in ("text", "github", "markdown", "junit", "json"):
        done = run("analyze", "x.tar", "--format", form)
        assert done.returncode == 1
        shown = done.stdout
        assert not [sign for sign in ("\x1b", "\u202e", "\n::error::b") if sign in shown], form
        assert "passed over" in shown


def test_links_in_a_zip(rules: RuleSet, tmp_path: Path) -> None:
    """A link, and what needs a password, is passed over in a zip archive too."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        entry = zipfile.ZipInfo("link.log")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
        archive.writestr("..\\up.log", "x")
        archive.writestr("locked.log", "x")
        archive.writestr("node0.log", LOGS["node0.log"])
    data = bytearray((tmp_path / "x.zip").read_bytes())
    place = data.index(b"PK\1\2", data.index(b"PK\1\2", data.index(b"PK\1\2") + 1) + 1)
    data[place + 8] |= 1  # the flag for a password, of the third entry
    (tmp_path / "x.zip").write_bytes(data)
    report = judge(str(tmp_path / "x.zip"), rules)
    assert report["source"]["files"] == [f"{tmp_path}/x.zip!node0.log"]
    told = "".join(report["notes"])
    assert "link.log (a link)" in told
    assert "leads out of the archive" in told
    assert "locked.log (needs a password)" in told


def bomb(path: Path, kind: str) -> Path:
    """An archive that is meant to exhaust whoever reads it."""
    zeros = gzip.compress(b"\0" * (2 << 20)) * 20  # 40 MiB
    if kind == "tar.gz of one huge log":
        entry = tarfile.TarInfo("a.log")
        entry.size = 40 << 20
        path.write_bytes(gzip.compress(entry.tobuf()) + zeros)
    elif kind == "tar.gz with a huge header":
        entry = tarfile.TarInfo("a.log")
        entry.type, entry.size = tarfile.XHDTYPE, 30 << 20
        path.write_bytes(gzip.compress(entry.tobuf(tarfile.USTAR_FORMAT)) + zeros)
    elif kind == "tar with endless headers":
        entry = tarfile.TarInfo("././@LongLink")
        entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 512
        path.write_bytes((entry.tobuf(tarfile.GNU_FORMAT) + b"a" * 512) * 9000)
    elif kind == "tar of many files":
        path.write_bytes(tarfile.TarInfo("a.json").tobuf() * 10_001 + b"\0" * 1024)
    elif kind == "zip of one huge log":
        zipped(path, {"a.log": b"x" * (40 << 20)})
    elif kind == "zip of many files":
        zipped(path, {f"{n}.json": b"" for n in range(10_001)}, zipfile.ZIP_STORED)
    elif kind == "zip with a huge table":
        entry = b"PK\1\2" + struct.pack("<4B4HL2L5H2L", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
        table = entry * 120_000
        path.write_bytes(b"PK\3\4" + table + b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 65535, 65535, len(table), 4, 0))
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("tar.gz of one huge log", "800 times its size"),
        ("tar.gz with a huge header", "4 MiB to describe a file"),
        ("tar with endless headers", "is a damaged tar archive"),
        ("tar of many files", "more than 10,000 files"),
        ("zip of one huge log", "800 times its size"),
        ("zip of many files", "more than 10,000 files"),
        ("zip with a huge table", "4 MiB to list the files"),
    ],
)
def test_bombs_are_refused(
    rules: RuleSet, tmp_path: Path, kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What unpacks to far more than logs do, or needs far more to be described, is refused with its name."""
    monkeypatch.setattr(compression, "RATIO_FROM", 16 << 20)
    path = bomb(tmp_path / "bomb", kind)
    assert path.stat().st_size < 24 << 20
    with pytest.raises(InputError, match=message) as caught:
        judge(str(path), rules)
    assert str(path) in str(caught.value)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="needs Linux: the memory of a process is read there"
)
def test_a_large_member_needs_little_memory(tmp_path: Path) -> None:
    """A log of 160 MiB in an archive is read in pieces."""
    line = b"[2026-01-12 10:00:00 TP0] Decode batch, #running-req: 1, #token: 81, token usage: 0.00, #queue-req: 0\n"
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz", compresslevel=1) as archive:
        data = LOGS["node11.log"] + line * ((160 << 20) // len(line))
        entry = tarfile.TarInfo("a.log")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    code = (
        "import re, sys; from logtriage import pipeline\n"
        "print(pipeline.analyze(sys.argv[1], rules=pipeline.load_rules()).label)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "x.tar.gz")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    label, peak = done.stdout.split()
    assert label == "oom-weight-load"
    assert int(peak) < 150 << 10  # KiB


@pytest.mark.parametrize("kind", ["tar", "tgz", "zip"])
def test_a_damaged_archive(rules: RuleSet, tmp_path: Path, kind: str) -> None:
    """Of an archive that is cut off the logs before the cut are read, and a note says so; a zip needs its end."""
    path = tmp_path / gathered(tmp_path, kind, {**LOGS, "z.log": os.urandom(200_000).hex().encode()})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 150_000])
    if kind == "zip":
        with pytest.raises(InputError, match="damaged zip"):
            judge(str(path), rules)
        return
    report = judge(str(path), rules)
    assert report["verdict"]["label"] == "oom-weight-load"
    assert "damaged" in "".join(report["notes"])


def test_what_stands_in_a_folder(rules: RuleSet, tmp_path: Path) -> None:
    """Logs of folders in it count, a link to a log that is there once; links to folders, sockets and pipes do not."""
    base = folder(tmp_path / "logs", {"a/node0.log": LOGS["node0.log"], "b/node11.log": LOGS["node11.log"]})
    (base / "latest.log").symlink_to("b/node11.log")
    (base / "loop").symlink_to(base)
    (base / "gone.log").symlink_to("nowhere")
    os.mkfifo(base / "pipe.log")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(base / "s.log"))
        report = judge(str(base), rules)
    assert len(report["source"]["files"]) == 2
    assert report["root_cause"]["node"] == 11
    told = "".join(report["notes"])
    assert "pipe.log (no file)" in told
    assert "gone.log (No such file or directory)" in told


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_a_log_that_cannot_be_unpacked_is_passed_over(
    rules: RuleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Without the package for Zstandard the others are read, and a note says what is missing."""
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    packed = b"\x28\xb5\x2f\xfd" + b"packed" * 9
    files = {**LOGS, "node99.log.zst": packed}
    place = folder(tmp_path / "logs", files) if kind == "folder" else tar(tmp_path / "x.tar", files)
    report = judge(str(place), rules)
    assert report["root_cause"]["node"] == 11
    assert "node99.log.zst (Zstandard, which needs pip install 'logtriage[zstd]')" in "".join(report["notes"])
    alone = folder(tmp_path / "alone", {"node99.log.zst": packed})
    with pytest.raises(InputError, match=r"holds no log .*logtriage\[zstd\]"):
        judge(str(alone), rules)


def test_a_log_that_may_not_be_read_is_passed_over(
    rules: RuleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read. (Root may read everything, so the answer of the system is put in its place.)"""
    base = folder(tmp_path / "logs", LOGS)
    monkeypatch.setattr(os, "access", lambda name, _mode: not str(name).endswith("node0.log"))
    report = judge(str(base), rules)
    assert report["root_cause"]["node"] == 11
    assert "node0.log (permission denied)" in "".join(report["notes"])


def test_a_kernel_log_in_an_archive(rules: RuleSet, tmp_path: Path) -> None:
    """A member that is named like the kernel's log is read as such, and tells what happened on its node."""
    launch = nodes.Launch(2)
    files = {f"n/node{n}.log": nodes.Log(launch, n).start("weight-load").text.encode() for n in range(2)}
    files["n/dmesg-node1.txt"] = b"[81234.51] Out of memory: Killed process 48326 (sglang::schedul) total-vm:9kB\n"
    report = judge(str(tar(tmp_path / "x.tar", files)), rules)
    assert (report["verdict"]["label"], report["root_cause"]["node"]) == ("oom-host", 1)
    assert len(report["nodes"]) == 2


def test_messages(run: Any, tmp_path: Path) -> None:
    """What holds no log is told with what was passed over; a name with brackets that exists is a file."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/x.json").write_text("{}")
    done = run("analyze", "empty")
    assert (done.returncode, done.stderr) == (
        2, "logtriage: empty: holds no log (passed over: empty/x.json (no log by its name))\n"
    )  # fmt: skip
    assert "no file that fits the pattern" in run("analyze", "logs/node*.log").stderr
    (tmp_path / "run[1].log").write_bytes(LOGS["node11.log"])
    assert run("analyze", "run[1].log").returncode == 1
    (tmp_path / "x.zip").write_bytes(b"PK\3\4" + b"x" * 600)
    assert "x.zip: is a damaged zip archive" in run("analyze", "x.zip").stderr


def test_separate_logs_of_a_folder(run: Any, tmp_path: Path) -> None:
    """With --separate each log in it gets a report, and the worst counts."""
    folder(tmp_path / "logs", LOGS)
    done = run("analyze", "--separate", "--format", "json", "logs")
    labels = [json.loads(line)["verdict"]["label"] for line in done.stdout.splitlines()]
    assert (done.returncode, labels) == (1, ["unknown", "oom-weight-load", "incomplete", "unknown"])
    tar(tmp_path / "x.tar", LOGS)
    again = run("analyze", "--separate", "--format", "json", "x.tar")
    assert [json.loads(line)["verdict"]["label"] for line in again.stdout.splitlines()].count("oom-weight-load") == 1


def test_options_of_one_node(run: Any, tmp_path: Path) -> None:
    """An exit code and a kernel's log may be those of one LOG; what cannot be meant is a usage error."""
    launch = nodes.Launch(2)
    for n in range(2):
        (tmp_path / f"node{n}.log").write_text(nodes.Log(launch, n).start("weight-load").text)
    (tmp_path / "k=1").write_text("[81234.51] Out of memory: Killed process 48326 (sglang::schedul) total-vm:9kB\n")
    logs = ("analyze", "node0.log", "node1.log", "--format", "json")
    report = json.loads(run(*logs, "--exit-code", "node1.log=137", "--exit-code", "node0.log=0").stdout)
    assert report["verdict"]["label"] == "killed-unexplained"
    assert "exit codes (node 1: 137)" in report["notes"]
    report = json.loads(run(*logs, "--kernel-log", "node1.log=k=1").stdout)
    assert (report["verdict"]["label"], report["root_cause"]["node"]) == ("oom-host", 1)
    assert json.loads(run(*logs, "--kernel-log", "k=1").stdout)["root_cause"]["node"] is None
    one = json.loads(run("analyze", "node0.log", "--format", "json", "--exit-code", "node0.log=-9").stdout)
    assert one["verdict"]["label"] == "killed-unexplained"
    for words, message in (
        (("--exit-code", "nine"), "node3.log=137"),
        (("--exit-code", "1", "--exit-code", "2"), "LOG=N"),
        (("--exit-code", "x.log=1"), "x.log: is none of the logs"),
        (("--separate", "--exit-code", "node0.log=1"), "--separate says"),
        (("--kernel-log", "=x"), "LOG=FILE"),
        (("--kernel-log", "x.log=k=1"), "x.log: is none of the logs"),
    ):
        done = run(*logs, *words)
        assert (done.returncode, message in done.stderr) == (2, True), (words, done.stderr)


def test_one_member(run: Any, tmp_path: Path) -> None:
    """A place that a report names in an archive can be given as it stands there."""
    tar(tmp_path / "x.tar", LOGS)
    data = json.loads(run("analyze", "x.tar!node11.log", "--format", "json").stdout)
    assert (data["verdict"]["label"], data["source"]["files"]) == ("oom-weight-load", ["x.tar!node11.log"])
    assert "gpu-oom-loading-weights" in run("explain", "x.tar!node11.log:29").stdout
    assert "holds no log 'node3.log'" in run("analyze", "x.tar!node3.log").stderr
