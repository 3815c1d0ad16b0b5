"""Advice for want of memory rests on the figures of the message, and lowers only what the launch uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests import launches
from tests.conftest import ROOT

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report

CACHE = "--enable-hierarchical-cache"
KILLED = "[183122.401] Out of memory: Killed process 41877 (sglang::schedul) total-vm:412345678kB\n"


def _refused(*flags: str, wanted: float, free: float, rules: RuleSet) -> Report:
    end = (
        f"[2026-02-11 09:20:13 TP0] ValueError: Not enough host memory available. Requesting {wanted:.2f} GB but only "
        f"have {free:.2f} GB free. Please reduce the size of the hierarchical cache.\n"
    )
    return pipeline.analyze(launches.log(*flags, end=end), rules=rules)


@pytest.mark.parametrize(
    ("flags", "wanted", "free", "flag", "value"),
    [
        ([CACHE, "--hicache-size 4000"], 4000, 800, "--hicache-size", "90"),
        ([CACHE, "--hicache-size 4000", "--tp 1"], 4000, 800, "--hicache-size", "720"),
        ([CACHE, "--hicache-size 4000", "--nnodes 2"], 4000, 800, "--hicache-size", "180"),
        ([CACHE, "--hicache-ratio 9"], 90, 400, "--hicache-ratio", "4.5"),
        ([CACHE, "--hicache-ratio 9", "--hicache-size 100"], 100, 80, "--hicache-size", "9"),
        ([CACHE], 200, 800, "--hicache-size", "90"),
    ],
    ids=["eight ranks", "one rank", "four ranks of a node", "ratio", "size beats ratio", "neither"],
)
def test_a_host_cache_gets_what_fits(
    rules: RuleSet, flags: list[str], wanted: float, free: float, flag: str, value: str
) -> None:
    """Nine tenths of what was free, for all ranks of the machine, by the flag that the command has."""
    report = _refused(*flags, wanted=wanted, free=free, rules=rules)
    (change,) = report.advice.changes
    assert report.root is not None
    assert (report.root.flag, change.flag, change.new) == (flag, flag, value)
    assert f"{free:.2f} GB of host memory were free" in change.why
    assert not any("flags that are known" in note for note in report.advice.notes)
    assert f"{flag} {value}" in str(report.advice.command_text)


def test_the_least_ratio_is_tried_before_nothing(rules: RuleSet) -> None:
    """Other ranks may have taken their part already: the least value is advised if it fits one rank, with a warning."""
    report = _refused(CACHE, "--hicache-ratio 9", wanted=812.5, free=467.88, rules=rules)
    assert [change.new for change in report.advice.changes] == ["1.1"]
    assert any("too much still for 8 ranks" in note for note in report.advice.notes)
    least = _refused(CACHE, "--hicache-ratio 1.1", wanted=90, free=10, rules=rules)
    assert least.advice.changes == ()


@pytest.mark.parametrize("flags", ["--cpu-offload-gb 0", "--hicache-size 64", f"{CACHE} --hicache-size 0"])
def test_what_is_not_used_is_not_lowered(rules: RuleSet, flags: str) -> None:
    """Nothing is offloaded with 0, and a size of the host cache means nothing without the cache."""
    advice = pipeline.analyze(launches.log(flags, end=KILLED), rules=rules).advice
    assert advice.changes == ()
    assert "--" not in advice.summary
    assert not any("no value left" in note for note in advice.notes)


def test_defaults_that_the_server_prints_are_not_used_either(rules: RuleSet) -> None:
    """The server prints 0 for an offload and 2 for a ratio that nobody asked for."""
    log = (ROOT / "corpus/recorded/scheduler-killed/run.log").read_bytes() + KILLED.encode()
    report = pipeline.analyze(log, rules=rules)
    assert report.label == "oom-host"
    assert (report.advice.changes, report.advice.notes) == ((), ())


def test_a_small_neighbour_is_not_to_blame(rules: RuleSet) -> None:
    """This launch holds 136 of 139.8 GiB: its own fraction is lowered, whoever holds another 1.4 GiB."""
    advice = pipeline.analyze(ROOT / "corpus/recorded/h200-frac-099/run.log", rules=rules).advice
    assert [(change.flag, change.old, change.new) for change in advice.changes] == [
        ("--mem-fraction-static", "0.99", "0.94")
    ]
    assert "Process 22779 holds" not in advice.summary
    assert "process 22779 with 1.37 GiB" in advice.notes[0]


def test_what_is_known_of_nvidia_is_not_told_of_others(rules: RuleSet) -> None:
    """On an AMD GPU neither a format of NVIDIA's nor its compute capability matters, and no backend is "dead"."""
    log = ROOT / "corpus/blind/supervisord-mi300x-kimi-aiter-shuffle-oom/run.log"
    advice = pipeline.analyze(log, rules=rules).advice
    told = " ".join([advice.summary, *advice.notes])
    assert not [word for word in ("nvfp4", "--sm", "no other value left") if word in told]
    assert [change.flag for change in advice.changes] == ["--tp-size"]
