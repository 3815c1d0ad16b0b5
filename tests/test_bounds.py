"""Work and memory are bounded, and a failure that is printed once is found among a million others."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.engine import gates, prefilter, ruleset
from logtriage.engine.prefilter import AhoCorasick, AnchorAutomaton, PlainAnchors, PlainSearch
from logtriage.intake import anchored, kept, windows
from logtriage.intake import lines as intake_lines
from logtriage.intake import source as intake_source
from logtriage.intake.growing import GrowingLog
from logtriage.report import json_v1
from tests.conftest import ROOT
from tests.test_intake import PIECES
from tests.test_stored import FORMS
from tests.wrapping import zstd

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

START = b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2)\n"
LIKE = st.sampled_from(["exit 138", "exit 137", "exit 13a", "bad", "add", "b0d", "sm_120a", "sm_120f", "sm_1204", ""])
RARE = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def _spam(count: int, first: int = 0) -> bytes:
    return b"".join(
        b"[2026-01-01 10:%02d:%02d TP%d] ERROR: request %d was not found in the cache\n"
        % (number // 6000 % 60, number // 100 % 60, number % 8, number)
        for number in range(first, first + count)
    )


def _report(log: Any, rules: RuleSet) -> dict[str, Any]:
    return _plain(pipeline.analyze(log, rules=rules))


def _plain(report: Report) -> dict[str, Any]:
    file = report.files[0]
    return json_v1.to_dict(report.replace(files=(file.replace(name="run.log"),)))


@pytest.mark.parametrize("at", [3, 500_000, 999_998])
def test_a_rare_failure_among_a_million_error_lines(rules: RuleSet, at: int) -> None:
    """It is found wherever it stands, with its line number, although nearly all lines look like errors."""
    log = START + _spam(at) + RARE + _spam(1_000_000 - at, at)
    report = pipeline.analyze(log, rules=rules)
    assert report.label == "oom-gpu"
    assert report.root is not None
    assert report.lines[report.root.line].number == at + 2
    assert len(report.lines) < 3 * kept.MAX_KEPT


def _make_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windows, "WINDOW", 2000)
    patch.setattr(windows, "MAX_OPEN", 600)
    patch.setattr(kept, "MAX_KEPT", 60)
    patch.setattr(kept, "MAX_BYTES", 6000)
    patch.setattr(anchored, "MAX_BYTES", 6000)
    patch.setattr(anchored, "ROW_COST", 10)
    patch.setattr(anchored, "_WAITING", 2)
    patch.setattr(intake_lines, "MAX_HOT", 5)
    patch.setattr(intake_lines, "_PROBE", 300)
    patch.setattr(intake_lines, "_MAX_PROBED", 2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, max_size=150), st.lists(PIECES, max_size=60), st.integers(1, 400), st.sampled_from(sorted(FORMS))
)
def test_one_report_for_one_dense_log(rules: RuleSet, spam: list[str], rest: list[str], size: int, form: str) -> None:
    """File, pipe, follow, gzip, zstd, pieces of any size and both searches give one report, however dense the log."""
    with pytest.MonkeyPatch.context() as patch:
        _make_small(patch)
        data = FORMS[form](["[2026-01-01 10:00:00] ServerArgs", *spam, *spam, *rest, *spam])
        whole = _report(data, rules)
        patch.setattr(intake_source, "BLOCK", size)
        assert _report(data, rules) == whole
        stream = io.BytesIO(data)
        stream.name = "<bytes>"
        assert _report(stream, rules) == whole
        if form not in ("gzip", "zstd", "utf-16"):
            assert _report(gzip.compress(data), rules) == whole
            assert _report(zstd(data), rules) == whole
            search, anchors = pipeline.searches(rules)
            log = GrowingLog("<bytes>", rules.wrappers, search.offsets, anchors)
            for at in range(0, len(data), size * 9):
                log.add(data[at : at + size * 9])
            assert _plain(pipeline.report_on_growing(log, [], rules, pipeline.Options())) == whole
        patch.setattr(prefilter, "make", lambda words: PlainSearch([word.encode() for word in words]))
        patch.setattr(prefilter, "make_anchors", lambda words: PlainAnchors([word.encode() for word in words]))
        assert _report(data, rules) == whole


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4 << 20))
def test_pieces_up_to_four_mebibytes(rules: RuleSet, size: int) -> None:
    """A log of several windows gives one report, whatever is read at a time."""
    data = START + _spam(9000) + RARE + b"x" * 900_000 + b"\n" + _spam(3000)
    with pytest.MonkeyPatch.context() as patch:
        whole = _report(data, rules)
        patch.setattr(intake_source, "BLOCK", size)
        assert _report(data, rules) == whole


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(PIECES, LIKE), min_size=1, max_size=40),
    st.lists(st.sampled_from(["GB", "exit 137", "exit ", "Error: 4", "TP0", "0/4", "bad", "sm_120a"]), min_size=1),
    st.integers(0, 300),
)
def test_both_searches_find_the_same_anchors(pieces: list[str], anchors: list[str], known: int) -> None:
    """Lines that only differ in digits are looked at once, and still anchors with digits are told from others."""
    encoded = [anchor.encode() for anchor in dict.fromkeys(anchors)]
    fast, plain = AnchorAutomaton(encoded), PlainAnchors(encoded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefilter, "MAX_KNOWN", known)
        for part in (pieces[::2], pieces, pieces[::-1]):
            data = "\n".join(part).encode()
            assert _anchors_of(fast, data) == _anchors_of(plain, data)


def _anchors_of(search: prefilter.AnchorSearch, data: bytes) -> list[tuple[bytes, ...]]:
    held = search.held(data)
    assert held.anchors[0] == ()
    return [held.anchors[kind] for kind in held.kinds]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_messages_seen_before_are_hit_by_the_same_signatures(rules: RuleSet, data: st.DataObject) -> None:
    """That another message with other digits was searched before changes no hit."""
    anchor = data.draw(st.sampled_from(rules.anchors))
    digits = st.lists(st.sampled_from("0123456789"), min_size=len(anchor), max_size=len(anchor))
    others = [
        "".join(new if old.isdigit() else old for old, new in zip(anchor, data.draw(digits), strict=True))
        for _ in range(3)
    ]
    for text in (anchor, *others):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ruleset, "_SHORT", 0)  # bytes up to which a message is remembered
            expected = list(rules.hits(text))
        for other in (*others, *others, anchor, text):
            list(rules.hits(other))
        assert list(rules.hits(text)) == expected
    assert any(True for _ in rules.anchored(anchor))


def test_gates_do_not_seem_to_be_in_busy_lines(rules: RuleSet) -> None:
    """Every anchor holds a gate, a healthy server's lines hold none, and the searches are few."""
    healthy = (ROOT / "rules/servers/sglang/log.yaml").read_text(encoding="utf-8")
    import yaml

    busy = yaml.safe_load(healthy)["busy"]
    assert AhoCorasick([gate.encode() for gate in rules.gates]).offsets("\n".join(busy).encode()) == []
    assert all(any(gate in anchor for gate in rules.gates) for anchor in rules.anchors)
    assert len(prefilter.groups(rules.gates)) <= 3
    assert sorted(gates.choose(rules.anchors, rules.failures, busy)) == sorted(rules.gates)


WORDS = st.sampled_from(["calm", "ERROR: one 7", "ERROR: one 8", "Killed", "Error: two", "it is not ready"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(WORDS, st.integers(1, 30)), min_size=1, max_size=30), st.integers(0, 4))
def test_the_first_and_the_last_rows_of_each_anchor_are_kept(runs: list[tuple[str, int]], waiting: int) -> None:
    """However many windows wait, and whether or not gates were looked at, each anchor's ends are among the lines."""
    rows = [word for word, count in runs for _ in range(count)]
    anchors = [b"ERROR: one 7", b"ERROR: one 8", b"Killed", b"Error: two"]
    gates_of_all = AhoCorasick([b"ERROR", b"Killed", b"Error"])
    with pytest.MonkeyPatch.context() as patch:
        _make_small(patch)
        patch.setattr(windows, "WINDOW", 200)
        patch.setattr(anchored, "MAX_BYTES", 1 << 20)
        patch.setattr(anchored, "_WAITING", waiting)
        patch.setattr(anchored, "FIRST", 2)
        patch.setattr(anchored, "LAST", 3)
        blocks = list(windows.Windows().add("".join(row + "\n" for row in rows).encode()))
        lines = intake_lines.select(blocks, gates_of_all.offsets, anchors=lambda: AnchorAutomaton(anchors))
        patch.setattr(anchored, "_WAITING", 0)
        patch.setattr(intake_lines.Selector, "_add_noisy", lambda *_: False)
        assert lines == intake_lines.select(blocks, gates_of_all.offsets, anchors=lambda: PlainAnchors(anchors))
    kept_rows = {line.number - 1 for line in lines}
    for anchor in anchors:
        held = [number for number in range(sum(block.rows for block in blocks)) if anchor.decode() in rows[number]]
        assert kept_rows.issuperset({*held[:2], *held[-3:]})


# ru_maxrss of a new process begins with what its parent took, VmHWM does not. Rules may have to be compiled first.
MEASURE = """
import os, re, resource, sys
from logtriage import pipeline

def peak():
    if os.path.exists("/proc/self/status"):
        return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

rules = pipeline.load_rules()
before = peak()
pipeline.analyze(sys.argv[1], rules=rules)
print(peak() - before)
"""


@pytest.mark.parametrize("kind", ["spam", "long lines", "one line", "prose"])
def test_memory_is_bounded(tmp_path: Path, kind: str) -> None:
    """Analyzing 96 MiB of the worst kinds takes far less memory than they are long."""
    path = tmp_path / "run.log"
    unit = {
        "spam": _spam(10_000),
        "long lines": (b"Error " + b"x" * 60_000 + b"\n") * 16,
        "one line": b"Error " * 200_000,
        "prose": b"".join(b"[2026-01-01 10:00:00] it is not ready %d\n%s" % (n, b"calm\n" * 200) for n in range(1000)),
    }[kind]
    with path.open("wb") as file:
        for _ in range((96 << 20) // len(unit)):
            file.write(unit)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    path.unlink()
    assert int(done.stdout) < 80, done.stdout
