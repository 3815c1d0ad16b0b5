"""From bytes to lines and events, whatever the size of the blocks and however the search is done."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.engine.prefilter import AhoCorasick, PlainSearch
from logtriage.intake import lines as intake_lines
from logtriage.intake import source as intake_source
from logtriage.intake.events import group
from logtriage.report import json_v1

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Event, Line

PIECES = st.sampled_from(
    [
        "[2026-01-01 10:00:00 TP0] Load weight begin. avail mem=93.11 GB",
        "[2026-01-01 10:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/a/sglang/srt/x.py", line 3, in process_weights_after_loading',
        "    y = f(x)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "",
        "During handling of the above exception, another exception occurred:",
        "Traceback (most recent call last):",
        "RuntimeError: odd",
        "  0%|  | 0/4 [00:00<?, ?it/s]\rCapturing batches:  50%| | 2/4 [00:00<?, ?it/s][2026-01-01 10:00:02 TP0] hello",
        "\x1b[33mKilled\x1b[0m",
        "The server is fired up and ready to roll!",
        "é ü 日本語 \udcff".encode("utf-8", "replace").decode(),
        "x" * 300,
    ]
)


def _read(data: bytes, prefixes: list[str]) -> tuple[list[Line], list[Event]]:
    source = intake_source.open_source(data)
    return group(
        intake_lines.select(source.blocks(), PlainSearch([b"Traceback", b"begin", b"Killed"]).offsets), prefixes
    )


def test_carriage_returns_and_glued_messages(rules: RuleSet) -> None:
    """A progress bar and the message printed onto its end are two lines of the same number, each with its byte."""
    data = b"Bar:  0%\rBar: 50% [00:01<00:00, 5it/s][2026-01-01 10:00:02 TP3] Load weight begin. avail\n[x]\n"
    lines, _ = _read(data, rules.log["prefixes"])
    assert [line.number for line in lines] == [1, 1, 1, 2]
    assert lines[2].text == "[2026-01-01 10:00:02 TP3] Load weight begin. avail"
    assert data[lines[2].byte :].startswith(b"[2026-01-01 10:00:02 TP3]")
    assert lines[2].rank == "TP3"


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[2026-01-01 10:00:00] ", ""),
        ("[2026-01-01 10:00:00 TP0] ", "TP0"),
        ("[2026-01-01 10:00:00 DP1 TP3 EP3] ", "DP1 TP3 EP3"),
        ("[2026-01-01 10:00:00 DP0 PP1 ATTN_CP0 MOE_DP0 TP2 EP2] ", "DP0 PP1 ATTN_CP0 MOE_DP0 TP2 EP2"),
        ("[2026-01-01 10:00:00.123 TP7] ", "TP7"),
        ("[2026-01-01 10:00:00,123] ", ""),
        ("[2026-01-01 10:00:00 encode_dp_worker[1]] ", "encode_dp_worker[1]"),
    ],
)
def test_rank_tags_of_every_version(rules: RuleSet, prefix: str, rank: str) -> None:
    """The prefix of every version is cut, and its tags are kept as the rank."""
    lines, _ = _read(f"{prefix}Load weight begin.\n".encode(), rules.log["prefixes"])
    assert (lines[0].rank, lines[0].text[lines[0].start :]) == (rank, "Load weight begin.")
    assert lines[0].time is not None


def test_a_chain_is_one_event(rules: RuleSet) -> None:
    """A traceback with its chained causes is one event; echoed source and carets are no evidence."""
    data = (
        b"[2026-01-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        b'  File "/a/x.py", line 3, in f\n    raise RuntimeError("CUDA out of memory")\n    ^^^^^^^^\n'
        b"RuntimeError: first\nsecond line of it\n\n"
        b"The above exception was the direct cause of the following exception:\n\n"
        b'Traceback (most recent call last):\n  File "/a/y.py", line 5, in g\nException: wrapper\n\n'
        b"[2026-01-01 10:00:01] Received sigquit from a child process.\n"
    )
    lines, events = _read(data, rules.log["prefixes"])
    assert len(events) == 2
    roles = [line.role for line in lines]
    assert roles[:6] == ["head", "frame", "source", "source", "exception", "message"]
    assert [line.text for line in lines if line.role == "exception"] == ["RuntimeError: first", "Exception: wrapper"]
    assert lines[-1].event == 1


def test_a_traceback_whose_every_line_is_stamped_is_one_event(rules: RuleSet) -> None:
    """Some loggers stamp each line: frames and the exception of the same rank go on; the next record does not."""
    stamp = "[2026-01-01 10:00:00 TP0] "
    data = (
        f"{stamp}Scheduler hit an exception: Traceback (most recent call last):\n"
        f'{stamp}  File "/a/x.py", line 3, in f\n{stamp}    do_it()\n{stamp}RuntimeError: it cannot be done\n'
        f"{stamp}RuntimeError: of another record\n"
        f"{stamp}Worker hit an exception: Traceback (most recent call last):\n"
        '[2026-01-01 10:00:00 TP1]   File "/a/x.py", line 3, in f\n'
    ).encode()
    lines, events = _read(data, rules.log["prefixes"])
    assert [(event.first, event.last) for event in events] == [(0, 3), (4, 4), (5, 5), (6, 6)]
    assert [line.role for line in lines[:5]] == ["head", "frame", "source", "exception", "text"]


def test_a_usage_block_is_no_evidence(rules: RuleSet) -> None:
    """The usage text of argparse names every flag and value; only the error line after it counts."""
    data = b"usage: launch_server.py [-h]\n      [--attention-backend {fa3,Traceback}]\nx: error: argument --tp\n"
    lines, _ = _read(data, rules.log["prefixes"])
    assert [line.role for line in lines] == ["text", "source", "text"]


def test_long_lines_keep_head_and_tail() -> None:
    """A line above the limit is cut in the middle."""
    data = b"Traceback " + b"a" * (3 * intake_source.MAX_LINE) + b" end\n"
    line = _read(data, [])[0][0]
    assert len(line.text) < intake_source.MAX_LINE + 100
    assert line.text.startswith("Traceback a")
    assert line.text.endswith("a end")


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=60), st.integers(1, 400))
def test_block_size_changes_nothing(rules: RuleSet, pieces: list[str], size: int) -> None:
    """One report for one log, whatever the size of the blocks that it is read in."""
    data = "\n".join(pieces).encode()
    whole = json_v1.to_dict(pipeline.analyze(data, rules=rules))
    block = intake_source.BLOCK
    try:
        intake_source.BLOCK = size
        parts = json_v1.to_dict(pipeline.analyze(data, rules=rules))
    finally:
        intake_source.BLOCK = block
    assert parts == whole


@settings(max_examples=100, deadline=None)
@given(
    st.lists(PIECES, max_size=60), st.lists(st.sampled_from(["Trace", "raceb", "Killed", "begin", "File "]), min_size=1)
)
def test_both_searches_find_the_same_lines(pieces: list[str], gates: list[str]) -> None:
    """The fast search and the plain one find the same lines."""
    data = "\n".join(pieces).encode()
    encoded = [gate.encode() for gate in gates]
    found = []
    for search in (AhoCorasick(encoded), PlainSearch(encoded)):
        found.append({data.count(b"\n", 0, offset) for offset in search.offsets(data)})
    assert found[0] == found[1]


def test_lines_and_streams_are_read_like_files(rules: RuleSet) -> None:
    """An iterable of lines, bytes and a stream give the same report."""
    texts = ["[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')", "bash: line 14: 48326 Killed"]
    data = "".join(f"{text}\n" for text in texts).encode()
    reports = [pipeline.analyze(log, rules=rules) for log in (texts, data, io.BytesIO(data))]
    assert len({report.label for report in reports}) == 1
    assert reports[0].lines == reports[1].lines
