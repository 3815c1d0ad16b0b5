"""A log means the same whatever another program put around its lines."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.intake import parts, printed
from logtriage.intake.blocks import Block, count_rows
from logtriage.intake.wrappers import CODED, detect
from tests.wrapping import (
    ADDED,
    CASES,
    FAILED,
    HEALTHY,
    PAIRS,
    WRAPPERS,
    added_by,
    data_of,
    lines_of,
    root_of,
    same,
)

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from tests.conftest import Case


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_a_wrapped_log_means_the_same(case: Case, rules: RuleSet, name: str) -> None:
    """Label, root line and blame stay, whatever is put around every line."""
    same(case, rules, data_of(WRAPPERS[name](lines_of(case))), added_by(case, name))


@pytest.mark.parametrize("pair", PAIRS, ids="-in-".join)
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.folder.name)
def test_wrappers_in_pairs(case: Case, rules: RuleSet, pair: tuple[str, str]) -> None:
    """One wrapper around another is undone too."""
    lines = lines_of(case)
    for name in pair:
        lines = WRAPPERS[name](lines)
    same(case, rules, data_of(lines), ADDED.get(pair[1], 0))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_healthy_log_stays_healthy(rules: RuleSet, name: str) -> None:
    """A wrapper makes no failure."""
    for case in HEALTHY:
        report = pipeline.analyze(data_of(WRAPPERS[name](lines_of(case))), rules=rules)
        assert (case.folder.name, report.label) == (case.folder.name, case.verdict["label"])
    assert len(HEALTHY) >= 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_bare_log_is_left_alone(case: Case, rules: RuleSet) -> None:
    """Nothing in a bare log is taken for a wrapper. Written logs may be wrapped, and recorded ones of several servers
    are, as compose does it: then many lines are.
    """
    names = detect(lines_of(case)[: printed.SAMPLE_ROWS], rules.wrappers).names
    report = pipeline.analyze(case.log, rules=rules)
    coded = {item["name"] for item in rules.wrappers["wrappers"] if item["kind"] in CODED}
    is_one = case.folder.parent.name == "recorded" and " & " not in str(case.verdict.get("command"))
    if names and not is_one:
        assert coded & {*names} or sum(line.body > 0 for line in report.lines) > 0.3 * len(report.lines)
        return
    assert names in ((), ("rank",))  # which torch puts before the lines of a traceback itself
    assert len({line.origin for line in report.lines}) > 1 or all(line.row == line.number for line in report.lines)
    if case.folder.parent.name == "recorded":
        starts = {line.body for line in report.lines if not line.text.startswith("[rank")}
        assert (starts, any(line.role == "fence" for line in report.lines)) == ({0}, False)


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
    report = pipeline.analyze(data_of(lines), rules=rules)
    assert {line.body for line in report.lines} == {0}


def test_a_wrapper_in_a_part_of_the_log(rules: RuleSet) -> None:
    """A job's log is mostly not of the server: `docker compose up` and Ray are undone where they begin."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    setup = [f"Step {number}/900 : RUN pip install something" for number in range(900)]
    for name in ("compose", "ray", "rank"):
        lines = WRAPPERS["github"](setup + WRAPPERS[name](lines_of(case)))
        same(case, rules, data_of(lines), len(setup))


def test_ray_says_that_a_line_was_repeated(rules: RuleSet) -> None:
    """What Ray appends to a line that several workers printed does no harm."""
    case = next(case for case in FAILED if case.folder.name == "moe-fp8-postprocess-oom")
    bare = pipeline.analyze(case.log, rules=rules)
    number, _ = root_of(bare)
    lines = WRAPPERS["ray-coloured"](lines_of(case))
    lines[number - 1] += "\x1b[32m [repeated 7x across cluster] (Ray deduplicates logs by default.)\x1b[0m"
    report = pipeline.analyze(data_of(lines), rules=rules)
    assert (report.label, root_of(report)[0]) == (bare.label, number)


def test_partial_lines_of_kubernetes(rules: RuleSet) -> None:
    """Parts of a long line are joined again; the line has the number of its first part."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    bare = pipeline.analyze(case.log, rules=rules)
    number, text = root_of(bare)
    lines, parts = [], {}
    for index, line in enumerate(lines_of(case), start=1):
        parts[index] = len(lines) - index + 1
        chunks = [line[at : at + 60] for at in range(0, len(line), 60)] or [""]
        for position, chunk in enumerate(chunks):
            flag = "F" if position == len(chunks) - 1 else "P"
            lines.append(f"2026-01-01T10:00:00.1Z stderr {flag} {chunk}")
            if flag == "P":
                lines.append("2026-01-01T10:00:00.1Z stdout F INFO: 127.0.0.1")
                parts[index + 1] = 0
    report = pipeline.analyze(data_of(lines), rules=rules)
    assert report.label == bare.label
    assert root_of(report) == (
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
    st.lists(
        st.one_of(st.text(max_size=20).map(lambda text: WRAPPERS["docker-json"]([text])[0]), ODD),
        min_size=1,
        max_size=12,
    ),
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
    found = detect(WRAPPERS["docker-json"](["calm"] * 10), wrappers)
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
    lines = WRAPPERS["docker-json"](['GET "/" 200', "a\tb \u2588", "", "\rLoading 7%", "-"])
    docker = detect(lines, rules.wrappers).coded
    assert docker is not None
    stored = "".join(f"{line}\n" for line in lines).encode()
    block = parts.decoded_block(Block(stored, 0, 1, len(lines)), docker)
    assert block is not None
    assert block.data.decode() == 'GET "/" 200\na\tb \u2588\n\n\rLoading 7%\n-\n'


def test_records_of_an_array(rules: RuleSet) -> None:
    """Records of JSON that stand in an array, one a line, end with commas."""
    case = next(case for case in FAILED if case.folder.name == "kv-fp4")
    same(case, rules, data_of(["[", *(f"{record}," for record in WRAPPERS["record-json"](lines_of(case))), "]"]), 1)


def test_parts_of_docker_json_are_joined(rules: RuleSet) -> None:
    """Docker breaks messages at 16 KiB; a last message without a line feed is whole."""
    text = "x" * 20_000 + " torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    parts = [text[:16_384], text[16_384:] + "\n", "short"]
    data = data_of([json.dumps({"log": part, "stream": "stderr", "time": "2026-01-01T10:00:00Z"}) for part in parts])
    report = pipeline.analyze(data, rules=rules)
    assert [(line.number, len(line.text)) for line in report.lines] == [(1, len(text)), (3, 5)]


def test_a_message_of_several_lines(rules: RuleSet) -> None:
    """journald keeps a traceback in one message: its lines have one number, and their roles."""
    trace = 'Traceback (most recent call last):\n  File "/a/x.py", line 3, in f\n    f()\nRuntimeError: odd'
    data = data_of(WRAPPERS["journald-json"](["first", trace, "last"]))
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


def test_kernel_logs_are_unwrapped_too(rules: RuleSet) -> None:
    """Every input goes the same way."""
    kernel = gzip.compress(b"Nov 29 10:00:00 host kernel: Out of memory: Killed process 48326 (python3)\n" * 3)
    options = pipeline.Options(kernel_logs=[kernel])
    report = pipeline.analyze(b"bash: line 14: 48326 Killed\n", rules=rules, options=options)
    own = [line for line in report.lines if line.file == 1]
    assert own[0].text[own[0].start :] == "Out of memory: Killed process 48326 (python3)"


# Terminals and exports
