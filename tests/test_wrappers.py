"""A log means the same whatever another program put around its lines, and however it was stored."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import html
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.intake import compression, parts, printed, rows
from logtriage.intake import source as intake_source
from logtriage.intake.blocks import Block, count_rows
from logtriage.intake.source import open_source
from logtriage.intake.wrappers import CODED, detect
from logtriage.report import json_v1
from tests.conftest import Case, cases
from tests.test_intake import PIECES

if TYPE_CHECKING:
    from pathlib import Path

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
# Nothing is not wrapped: what a wrapper says of itself is then all there is.
HEALTHY = [case for case in CASES if case.verdict["label"] in ("healthy", "incomplete") and case.log.stat().st_size]


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
    "docker-json": _docker_json,
    "cri": _prefix("{t}.{n:05d}0000Z stderr F "),
    "kubectl-timestamps": _prefix("{t}.{n:05d}0000+08:00 "),
    "kubectl-prefix": _prefix("[pod/sglang-0/server] "),
    "ray": _prefix("(RayWorkerWrapper pid=123, ip=127.0.0.1) "),
    "ray-coloured": _coloured_ray,
    "ray-bare": _prefix("(pid=123) "),
    "pytest": _prefix("E   "),
    "indented-block": _prefix("    "),
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
    "line-numbers": _numbered("{n:6d}\t"),
    "line-numbers-close": _numbered("{n:7d} "),
    "grep-n": _numbered("{n}:"),
    "github": _prefix("{t}.{n:05d}00Z "),
    "github-error": _prefix("{t}.{n:05d}00Z ##[error]"),
    "github-job": _prefix("serve\tRun server\t{t}.{n:05d}00Z "),
    "pm2": _prefix("0|sglang  | "),
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
    ("record-json", "compose"), ("rank", "record-json"),
]  # fmt: skip
"""Inner and outer wrapper."""


def _lines(case: Case) -> list[str]:
    return case.log.read_bytes().decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")


def _data(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _root(report: Report) -> tuple[int, str]:
    if report.root is None:
        return 0, ""
    line = report.lines[report.root.line]
    return line.number, line.text


def _same(case: Case, rules: RuleSet, data: bytes, added: dict[int, int] | int = 0) -> Report:
    """Check that `data` gives the verdict of the case's log; its root line may stand `added` lines further down."""
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(data, rules=rules)
    assert report.label == bare.label
    number, text = _root(bare)
    shift = added if isinstance(added, int) else added.get(number, 0)
    if number:
        assert _root(report)[0] == number + shift
        assert _root(report)[1].endswith(text)
        assert report.root is not None
        assert bare.root is not None
        assert (report.root.component, report.root.flag) == (bare.root.component, bare.root.flag)
        start, end = report.root.span
        assert _root(report)[1][start:end] == text[slice(*bare.root.span)]
    assert report.verdict.stage == bare.verdict.stage
    assert report.verdict.rule == bare.verdict.rule
    return report


def _added(case: Case, name: str) -> dict[int, int] | int:
    if name == "supervisord":
        return {number: (number - 1) // 7 + 1 for number in range(1, len(_lines(case)) + 1)}
    return ADDED.get(name, 0)


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_a_wrapped_log_means_the_same(case: Case, rules: RuleSet, name: str) -> None:
    """Label, root line and blame stay, whatever is put around every line."""
    _same(case, rules, _data(WRAPPERS[name](_lines(case))), _added(case, name))


@pytest.mark.parametrize("pair", PAIRS, ids="-in-".join)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_wrappers_in_pairs(case: Case, rules: RuleSet, pair: tuple[str, str]) -> None:
    """One wrapper around another is undone too."""
    lines = _lines(case)
    for name in pair:
        lines = WRAPPERS[name](lines)
    _same(case, rules, _data(lines), ADDED.get(pair[1], 0))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_healthy_log_stays_healthy(rules: RuleSet, name: str) -> None:
    """A wrapper makes no failure."""
    for case in HEALTHY:
        report = pipeline.analyze(_data(WRAPPERS[name](_lines(case))), rules=rules)
        assert (case.folder.name, report.label) == (case.folder.name, case.verdict["label"])
    assert len(HEALTHY) >= 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_bare_log_is_left_alone(case: Case, rules: RuleSet) -> None:
    """Nothing in a bare log is taken for a wrapper. Some written logs are wrapped: then many lines are."""
    names = detect(_lines(case)[: printed.SAMPLE_ROWS], rules.wrappers).names
    report = pipeline.analyze(case.log, rules=rules)
    coded = {item["name"] for item in rules.wrappers["wrappers"] if item["kind"] in CODED}
    if case.folder.parent.name != "recorded" and names:
        assert coded & {*names} or sum(line.body > 0 for line in report.lines) > 0.3 * len(report.lines)
        return
    assert names == ()
    assert len({line.origin for line in report.lines}) > 1 or all(line.row == line.number for line in report.lines)
    if case.folder.parent.name == "recorded":
        assert {(line.body, line.role == "fence") for line in report.lines} == {(0, False)}


def test_every_wrapper_of_the_rules_is_tested(rules: RuleSet) -> None:
    """The wrappers of the tests above are those of the rules."""
    known = {item["name"] for item in rules.wrappers["wrappers"] if item["kind"] != "fence"}
    seen = {
        name for wrap in WRAPPERS.values() for name in detect(wrap(['Load "weight" begin.'] * 9), rules.wrappers).names
    }
    assert known - seen == {"loki-json", "compose-exit"}


def test_a_few_look_alikes_are_no_wrapper(rules: RuleSet) -> None:
    """Lines that look wrapped among others that do not are left alone."""
    lines = ["Load weight begin.", "3: RuntimeError: boom", "host  | x", "> quoted", "2026-01-01T10:00:00Z started"] * 8
    assert detect(lines, rules.wrappers).names == ()
    report = pipeline.analyze(_data(lines), rules=rules)
    assert {line.body for line in report.lines} == {0}


def test_a_wrapper_in_a_part_of_the_log(rules: RuleSet) -> None:
    """A job's log is mostly not of the server: `docker compose up` and Ray are undone where they begin."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    setup = [f"Step {number}/900 : RUN pip install something" for number in range(900)]
    for name in ("compose", "ray", "rank"):
        lines = WRAPPERS["github"](setup + WRAPPERS[name](_lines(case)))
        _same(case, rules, _data(lines), len(setup))


def test_ray_says_that_a_line_was_repeated(rules: RuleSet) -> None:
    """What Ray appends to a line that several workers printed does no harm."""
    case = next(case for case in FAILED if case.folder.name == "moe-fp8-postprocess-oom")
    bare = pipeline.analyze(case.log, rules=rules)
    number, _ = _root(bare)
    lines = _coloured_ray(_lines(case))
    lines[number - 1] += "\x1b[32m [repeated 7x across cluster] (Ray deduplicates logs by default.)\x1b[0m"
    report = pipeline.analyze(_data(lines), rules=rules)
    assert (report.label, _root(report)[0]) == (bare.label, number)


def test_partial_lines_of_kubernetes(rules: RuleSet) -> None:
    """Parts of a long line are joined again; the line has the number of its first part."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    bare = pipeline.analyze(case.log, rules=rules)
    number, text = _root(bare)
    lines, parts = [], {}
    for index, line in enumerate(_lines(case), start=1):
        parts[index] = len(lines) - index + 1
        chunks = [line[at : at + 60] for at in range(0, len(line), 60)] or [""]
        for position, chunk in enumerate(chunks):
            flag = "F" if position == len(chunks) - 1 else "P"
            lines.append(f"2026-01-01T10:00:00.1Z stderr {flag} {chunk}")
            if flag == "P":
                lines.append("2026-01-01T10:00:00.1Z stdout F INFO: 127.0.0.1")
                parts[index + 1] = 0
    report = pipeline.analyze(_data(lines), rules=rules)
    assert report.label == bare.label
    assert _root(report) == (
        number + parts[number],
        f"2026-01-01T10:00:00.1Z stderr {'P' if len(text) > 60 else 'F'} {text}",
    )
    assert parts[number] > 0


HALVES = ['{"time":[{"log":"a\\n"}', '{"log":"b\\n"}],"log":"c\\n"}']
ODD = st.sampled_from([
    "", "no JSON", "null", '{"log":[[1', '2]]}', *HALVES,
    '{"log":"a\\n"},{"log":"b\\n"}', '{"log":"NaN\\n","time":NaN}', '{"log":"a","time":null}', '{"time":"t"}',
    '{"log":"a","log":"b\\n","stream":"stdout"}', '{"log":"inner\\nend\\n"}', '{"log":"a\\n","time":5}\r',
    '{"log":"\\ud83d\\n","stream":"stderr"}', '{"log":"cut at the end', '{"stream":"stderr","log":"\x1b[1mbold\\n"}',
    '{"log":"' + "long " * 40 + '","stream":"stderr","time":"t"}', '{"log":"\u00fc\\n","attrs":{"a":"b"}}',
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=20).map(lambda text: _docker_json([text])[0]), ODD), min_size=1, max_size=12),
    st.one_of(st.none(), st.integers(1, 200)),
)
@example([*HALVES, '{"log":"a\\n"},{"log":"b\\n"}'], None)
@example([*HALVES, '{"log":"a\\n"},NaN,{"log":"b\\n"}'], None)
def test_json_is_decoded_at_once_as_it_is_line_by_line(rules: RuleSet, lines: list[str], end: int | None) -> None:
    """Broken lines do not complete each other, and each message stands where its line does."""
    wrappers = {**rules.wrappers, "wrappers": [dict(item) for item in rules.wrappers["wrappers"]]}
    for item in wrappers["wrappers"]:
        if item.get("splits_at"):
            item["splits_at"] = 200
    found = detect(_docker_json(["calm"] * 10), wrappers)
    stored = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")[:end]
    blocks = [Block(stored, 7, 3, count_rows(stored))]
    at_once = _undone(found, blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printed, "decoded_block", lambda *_: None)
        assert _undone(found, blocks) == at_once


def _undone(found: Any, blocks: list[Block]) -> list[Any]:
    undo = printed.Undo(found)
    parts = [part for block in blocks for part in undo.add(block)] + list(undo.rest())
    assert all(part.rows == len(part.places or ()) for part in parts)
    return [(part.data, part.byte, part.number, part.rows, list(part.places or ())) for part in parts]


def test_most_json_is_decoded_at_once(rules: RuleSet) -> None:
    """Lines as Docker writes them need no second look, whatever they hold."""
    lines = _docker_json(['GET "/" 200', "a\tb \u2588", "", "\rLoading 7%", "-"])
    docker = detect(lines, rules.wrappers).coded
    assert docker is not None
    stored = "".join(f"{line}\n" for line in lines).encode()
    block = parts.decoded_block(Block(stored, 0, 1, len(lines)), docker)
    assert block is not None
    assert block.data.decode() == 'GET "/" 200\na\tb \u2588\n\n\rLoading 7%\n-\n'


def test_records_of_an_array(rules: RuleSet) -> None:
    """Records of JSON that stand in an array, one a line, end with commas."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    _same(case, rules, _data(["[", *(f"{record}," for record in _records(_lines(case))), "]"]), 1)


def test_parts_of_docker_json_are_joined(rules: RuleSet) -> None:
    """Docker breaks messages at 16 KiB; a last message without a line feed is whole."""
    text = "x" * 20_000 + " torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    parts = [text[:16_384], text[16_384:] + "\n", "short"]
    data = _data([json.dumps({"log": part, "stream": "stderr", "time": "2026-01-01T10:00:00Z"}) for part in parts])
    report = pipeline.analyze(data, rules=rules)
    assert [(line.number, len(line.text)) for line in report.lines] == [(1, len(text)), (3, 5)]


def test_a_message_of_several_lines(rules: RuleSet) -> None:
    """journald keeps a traceback in one message: its lines have one number, and their roles."""
    trace = 'Traceback (most recent call last):\n  File "/a/x.py", line 3, in f\n    f()\nRuntimeError: odd'
    data = _data(_journald_json(["first", trace, "last"]))
    report = pipeline.analyze(data, rules=rules)
    assert [line.number for line in report.lines] == [1, 2, 2, 2, 2, 3]
    assert [line.role for line in report.lines] == ["text", "head", "frame", "source", "exception", "message"]


def test_time_of_the_wrapper(rules: RuleSet) -> None:
    """A line's own time counts; one without gets the wrapper's, as the server's clock would show it."""
    data = (
        b"2026-01-01T18:00:00.500000000Z [2026-01-01 10:00:00 TP0] Load weight begin.\n"
        b"2026-01-01T18:00:07.250000000Z bare line\n"
    )
    first, second = pipeline.analyze(data, rules=rules).lines
    assert first.time is not None
    assert second.time == first.time + 7
    assert (first.rank, first.text[first.start :], second.text[second.start :]) == (
        "TP0",
        "Load weight begin.",
        "bare line",
    )


# Storage


def _zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))


STORED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "gzip in parts": lambda data: gzip.compress(data[:999], mtime=0) + gzip.compress(data[999:], mtime=0) + b"\0" * 512,
    "zstd": _zstd,
    "zstd in parts": lambda data: _zstd(data[:999]) + _zstd(data[999:]),
    "utf-16-le": lambda data: codecs.BOM_UTF16_LE + data.decode("utf-8", "replace").encode("utf-16-le"),
    "utf-16-be": lambda data: codecs.BOM_UTF16_BE + data.decode("utf-8", "replace").encode("utf-16-be"),
    "utf-8 with mark": lambda data: codecs.BOM_UTF8 + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "crlf in utf-16 in gzip": lambda data: gzip.compress(
        data.decode("utf-8", "replace").replace("\n", "\r\n").encode("utf-16")
    ),
    "NUL bytes": lambda data: b"\0" * 5000 + data.replace(b"\n", b"\n\0\0"),
    "compose in gzip": lambda data: gzip.compress(
        _data(_coloured_compose(data.decode("utf-8", "replace").split("\n")))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_a_stored_log_means_the_same(case: Case, rules: RuleSet, name: str) -> None:
    """Compression and encoding change nothing."""
    report = _same(case, rules, STORED[name](case.log.read_bytes()))
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


def test_kernel_logs_are_unwrapped_too(rules: RuleSet) -> None:
    """Every input goes the same way."""
    kernel = gzip.compress(b"Nov 29 10:00:00 host kernel: Out of memory: Killed process 48326 (python3)\n" * 3)
    options = pipeline.Options(kernel_logs=[kernel])
    report = pipeline.analyze(b"bash: line 14: 48326 Killed\n", rules=rules, options=options)
    own = [line for line in report.lines if line.file == 1]
    assert own[0].text[own[0].start :] == "Out of memory: Killed process 48326 (python3)"


# Terminals and exports


def _printed(case: Case) -> list[str]:
    """The lines as a terminal shows them."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in _lines(case)]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", FAILED[:-1], ids=lambda case: case.folder.name)
def test_lines_that_a_terminal_broke(case: Case, rules: RuleSet, width: int) -> None:
    """Phrases cut at the edge of a terminal are whole again; the line number is that of the first part."""
    broken, numbers = [], {}
    for number, line in enumerate(_printed(case), start=1):
        numbers[number] = len(broken) + 1
        broken += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(_data(broken), rules=rules)
    assert report.label == bare.label
    assert _root(report) == (numbers[_root(bare)[0]], _root(bare)[1])
    assert f"broke at {width} columns" in report.notes[0]


def test_full_lines_alone_are_not_joined(rules: RuleSet) -> None:
    """Some lines of a terminal's width prove nothing where others are wider, or where there are few."""
    for lines in (["1234" * 20] * 3 + ["y"], ["1234" * 20] * 30 + ["y" * 81], ["=" * 80] * 30):
        assert len(pipeline.analyze(_data(lines), rules=rules).lines) == len(lines)


@pytest.mark.parametrize("name", ["docker-time", "docker-json", "github", "cri"])
@pytest.mark.parametrize("case", [c for c in FAILED if len(_lines(c)) > 25], ids=lambda case: case.folder.name)
def test_newest_first(case: Case, rules: RuleSet, name: str) -> None:
    """An export that begins with the newest line is read from its end; numbers are those of the file."""
    lines = [line.rpartition("\r")[2] for line in _lines(case)]
    if name == "docker-json":
        stamps = [stamped.split("Z")[0] for stamped in WRAPPERS["docker-time"](lines)]
        wrapped = [
            json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"{stamp}Z"})
            for line, stamp in zip(lines, stamps, strict=True)
        ]
    else:
        wrapped = WRAPPERS[name](lines)
    bare, report = pipeline.analyze(case.log, rules=rules), pipeline.analyze(_data(wrapped[::-1]), rules=rules)
    assert "newest first" in report.notes[0]
    assert report.label == bare.label
    assert _root(report)[0] == len(lines) + 1 - _root(bare)[0]
    assert _root(report)[1].endswith(_root(bare)[1])


def test_newest_record_first_with_upright_tracebacks(rules: RuleSet) -> None:
    """Where the lines of a record stand in their order, only the records are turned around."""
    record = "[2026-01-01 10:00:0{} TP0] {}"
    trace = ["Traceback (most recent call last):", '  File "/a/x.py", line 3, in f', "    f()", "RuntimeError: odd"]
    lines = [record.format(9, "end"), record.format(8, f"Scheduler hit an exception: {trace[0]}"), *trace[1:]]
    lines += [record.format(second, "x") for second in range(7, 0, -1)]
    report = pipeline.analyze(_data(lines), rules=rules)
    assert [line.number for line in report.lines] == [12, 11, 10, 9, 8, 7, 6, 2, 3, 4, 5, 1]
    assert [line.role for line in report.lines][7:11] == ["head", "frame", "source", "exception"]


def test_a_huge_newest_first_log_is_not_turned(monkeypatch: pytest.MonkeyPatch, rules: RuleSet) -> None:
    """Above the limit a note tells what to do."""
    monkeypatch.setattr(printed, "MAX_REVERSED", 100)
    lines = [f"[2026-01-01 10:00:{second:02d}] x" for second in range(50, 0, -1)]
    report = pipeline.analyze(_data(lines), rules=rules)
    assert "sort it by time" in report.notes[0]
    assert [line.number for line in report.lines] == list(range(1, 51))


# Files


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
        name: (lambda lines, wrap=wrap: _data(wrap(lines)))  # type: ignore[misc]
        for name, wrap in WRAPPERS.items()
        if name in ("compose-coloured", "docker-json", "journald-json", "cri", "ray", "github", "markdown", "quote")
    },
    "cri-partial": lambda lines: _data(
        [f"2026-01-01T10:00:00Z stderr {'P' if number % 3 else 'F'} {line}" for number, line in enumerate(lines)]
    ),
    "gzip": lambda lines: gzip.compress(_data(lines), mtime=0),
    "zstd": lambda lines: _zstd(_data(lines)),
    "utf-16": lambda lines: _data(lines).decode("utf-8", "replace").encode("utf-16"),
    "newest-first": lambda lines: _data(
        [f"2026-01-01T10:00:{59 - n % 60:02d}Z {line}" for n, line in enumerate(lines)]
    ),
    "broken": lambda lines: _data([line[at : at + 80] for line in lines for at in range(0, len(line), 80)]),
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
