"""The logs of several nodes are one incident: the cause wherever it stands, echoes explained, silent nodes named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.report import json_v1
from tests import nodes
from tests.conftest import ROOT
from tests.nodes import Launch, Log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

STOP = "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
KERNEL_OOM = "Out of memory: Killed process 48326 (sglang::schedul) total-vm:912345678kB, anon-rss:90123456kB\n"


def write(folder: Path, logs: Mapping[str, Log]) -> list[str]:
    for name, log in logs.items():
        (folder / name).write_text(log.text)
    return [str(folder / name) for name in logs]


def judge(rules: RuleSet, folder: Path, logs: Mapping[str, Log], **options: Any) -> dict[str, Any]:
    """The report, as data, on logs with these names."""
    report = pipeline.analyze(*write(folder, logs), rules=rules, options=pipeline.Options(**options))
    return json_v1.to_dict(report)


def root(report: dict[str, Any]) -> tuple[str, str, int | None]:
    found = report["root_cause"]
    return found["file"].rpartition("/")[2], found["text"], found["node"]


def silent(report: dict[str, Any]) -> list[int | None]:
    return [node["node"] for node in report["nodes"] if node["silent"]]


def note(report: dict[str, Any], words: str) -> str:
    """The note with these words; fails if there is none."""
    return next(text for text in report["notes"] if words in text)


def test_sixteen_nodes(rules: RuleSet, tmp_path: Path) -> None:
    """The cause is found on node 11, rank 3, although clocks are off by 40 s; node 5, which fell silent, is named."""
    report = judge(rules, tmp_path, nodes.incident())
    assert report["verdict"]["label"] == "oom-weight-load"
    file, text, node = root(report)
    assert (file, node) == ("node11.log", 11)
    assert text == nodes.OOM.format(gpu=3)
    assert (report["root_cause"]["rank"], report["root_cause"]["local_rank"]) == ("TP91", 3)
    assert silent(report) == [5]
    assert "node 5 " in note(report, "is silent")
    assert report["unexplained"] == []
    echoes = {item["file"].rpartition("/")[2] for item in report["explained"] if item["rule"] == "peer-lost"}
    assert echoes == {f"node{n}.log" for n in range(16) if n not in (5, 11)}
    skews = {node["node"]: node["skew_s"] for node in report["nodes"] if node["skew_s"]}
    assert skews == {0: -40.0, 2: 7.0, 5: 12.0, 11: 25.0, 15: 40.0}
    assert "node 15 40 s ahead" in note(report, "clocks differ")


def test_nodes_without_times(rules: RuleSet, tmp_path: Path) -> None:
    """Where nothing tells when, a lost partner still yields to the node that failed."""
    logs = nodes.incident(stamps=False)
    report = judge(rules, tmp_path, logs)
    assert (report["verdict"]["label"], root(report)[0], silent(report)) == ("oom-weight-load", "node11.log", [5])
    assert {node["skew_s"] for node in report["nodes"]} == {None}


def test_each_log_alone_gives_the_verdict_that_stands_in_the_list(rules: RuleSet, tmp_path: Path) -> None:
    """The list of nodes tells the verdict on each log as if it were given alone."""
    paths = write(tmp_path, nodes.incident())
    told = json_v1.to_dict(pipeline.analyze(*paths, rules=rules))["nodes"]
    alone = [pipeline.analyze(node["file"], rules=rules) for node in told]
    assert [node["label"] for node in told] == [report.label for report in alone]
    assert {node["label"] for node in told} == {"oom-weight-load", "unknown", "incomplete"}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("stamps", [True, False])
def test_the_order_of_the_logs_changes_nothing(
    rules: RuleSet, tmp_path: Path, data: st.DataObject, stamps: bool
) -> None:
    """The same logs in any order give the same report."""
    chosen = {name: log for name, log in nodes.incident(stamps=stamps).items() if log.node in (0, 3, 5, 10, 11, 15)}
    paths = write(tmp_path, chosen)
    expected = json_v1.to_dict(pipeline.analyze(*paths, rules=rules))
    shuffled = data.draw(st.permutations(paths))
    assert json_v1.to_dict(pipeline.analyze(*shuffled, rules=rules)) == expected
    assert expected["root_cause"]["node"] == 11


def test_launches_drawn_by_lot(rules: RuleSet, tmp_path: Path) -> None:
    """Whatever the number of nodes, their clocks, the cause and its echoes: the rank that failed is found."""
    labels = set()
    for seed in range(40):
        logs, node, rank, label = nodes.drawn(seed)
        (tmp_path / str(seed)).mkdir()
        report = judge(rules, tmp_path / str(seed), logs)
        found = report["root_cause"] or {"node": None, "rank": None}
        assert (report["verdict"]["label"], found["node"], found["rank"]) == (label, node, f"TP{rank}"), seed
        labels.add(label)
    assert len(labels) == 3


def two(**ahead: float) -> tuple[Log, Log]:
    launch = Launch(2)
    return Log(launch, 0, ahead.get("zero", 0.0)), Log(launch, 1, ahead.get("one", 0.0))


@pytest.mark.parametrize("ahead", [0.0, 40.0, -40.0, 7200.0])
def test_memory_runs_out_on_one_and_the_other_times_out(rules: RuleSet, tmp_path: Path, ahead: float) -> None:
    """The collective that timed out ten minutes later on node 0 follows from node 1, whatever node 1's clock says."""
    zero, one = two(one=ahead)
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1))
    zero.start("weight-load").say(648, "still waiting", 0)
    zero.rows.append(nodes.WATCHDOG.format(rank=0))
    report = judge(rules, tmp_path, {"a.log": zero, "b.log": one})
    assert (report["verdict"]["label"], root(report)[0], root(report)[2]) == ("oom-weight-load", "b.log", 1)
    assert "collective-timed-out" in {item["rule"] for item in report["explained"]}
    assert [node["skew_s"] for node in report["nodes"]] == [0.0, ahead]


def test_a_node_that_never_came(rules: RuleSet, tmp_path: Path) -> None:
    """Three of four nodes wait in vain at the rendezvous; the one without a log, or with an empty one, is named."""
    launch = Launch(4)
    logs = {f"n{n}.log": Log(launch, n).start("init") for n in (0, 1, 3)}
    for log in logs.values():
        log.crash(612, launch.ranks(log.node)[0], nodes.MISSING.format(there=24, all=32)).end(613)
    report = judge(rules, tmp_path, logs)
    assert report["verdict"]["label"] == "distributed-init"
    assert note(report, "no log was given") == "no log was given of node 2"
    assert silent(report) == [2]
    logs = {f"node{n}.log": log for n, log in zip((0, 1, 3), logs.values(), strict=True)}
    report = judge(rules, tmp_path, {**logs, "node2.log": Log(launch, 2)})
    assert (report["verdict"]["label"], silent(report)) == ("distributed-init", [2])
    assert "its log is empty" in note(report, "node 2 ")
    assert "may be the cause" in note(report, "node 2 ")


def test_the_same_wrong_argument_everywhere(rules: RuleSet, tmp_path: Path) -> None:
    """An argument that every node refuses is one failure, not four."""
    launch = Launch(4)
    refused = "AssertionError: tp_size must be divisible by number of nodes"
    logs = {f"node{n}.log": Log(launch, n, n).start("args").crash(5, 8 * n, refused) for n in range(4)}
    report = judge(rules, tmp_path, logs)
    assert report["verdict"]["label"] == "unsupported-config"
    assert report["unexplained"] == []
    assert silent(report) == []


def test_healthy_nodes(rules: RuleSet, tmp_path: Path) -> None:
    """A server on four nodes is healthy though only node 0 says so, and though others print no more for hours."""
    launch = Launch(4)
    logs = {f"node{n}.log": Log(launch, n, 3 * n).start() for n in range(4)}
    logs["node0.log"].say(9000, 'INFO:     127.0.0.1:5000 - "POST /generate HTTP/1.1" 200 OK')
    logs["node2.log"].rows.insert(20, "Traceback (most recent call last):")
    logs["node2.log"].rows.insert(21, '  File "/a/x.py", line 1, in f')
    logs["node2.log"].rows.insert(22, "FrobnicationError: the frobnicator is out of phase")
    report = judge(rules, tmp_path, logs)
    assert report["verdict"]["label"] == "healthy"
    assert report["verdict"]["stage"] == "serving"
    assert silent(report) == []
    assert not [text for text in report["notes"] if "silent" in text or "no log" in text]


def test_the_dummy_server_of_another_node_proves_nothing(rules: RuleSet, tmp_path: Path) -> None:
    """A node other than the first answers /health while the server is still starting."""
    zero, one = two()
    zero.start("weight-load")
    one.start("weight-load").say(50, 'INFO:     10.0.0.9:5000 - "GET /health HTTP/1.1" 200 OK')
    assert judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})["verdict"]["label"] == "incomplete"


def test_a_node_that_was_killed_without_a_word(rules: RuleSet, tmp_path: Path) -> None:
    """A bare kill on node 3 comes before the time-outs of the others, so it is the cause, and stays unexplained."""
    launch = Launch(4)
    logs = {f"node{n}.log": Log(launch, n).start() for n in range(4)}
    logs["node3.log"].say(200, "Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT...")
    logs["node3.log"].end(201)
    for n in range(3):
        log = logs[f"node{n}.log"].say(800, "Decode batch, #running-req: 1", 8 * n)
        log.rows.append(nodes.WATCHDOG.format(rank=8 * n))
        log.end(802)
    report = judge(rules, tmp_path, logs)
    assert (report["verdict"]["label"], root(report)[0]) == ("killed-unexplained", "node3.log")


def test_an_unknown_failure_before_the_echo(rules: RuleSet, tmp_path: Path) -> None:
    """What no rule knows on node 1 is not given the label of the time-out that followed on node 0."""
    zero, one = two()
    one.start("weight-load").crash(48, 9, "FrobnicationError: the frobnicator is out of phase").end(49)
    zero.start("weight-load").say(648, "still waiting", 0)
    zero.rows.append(nodes.WATCHDOG.format(rank=0))
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert report["verdict"]["label"] == "unknown"
    assert root(report) == ("node1.log", "FrobnicationError: the frobnicator is out of phase", 1)


def test_a_stop_on_one_node(rules: RuleSet, tmp_path: Path) -> None:
    """After node 0 was told to stop, node 1 loses it: no failure. Before that it is one."""
    for at, label in ((300, "healthy"), (340, "unknown")):
        zero, one = two()
        zero.start().say(at, STOP)
        one.start().crash(305, 8, nodes.LOST).end(306)
        assert judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})["verdict"]["label"] == label


def test_the_nodes_that_an_orchestrator_stops_after_a_failure(rules: RuleSet, tmp_path: Path) -> None:
    """Where the others are told to stop because one has failed, the stop explains nothing away."""
    zero, one = two()
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1))
    zero.start("weight-load").say(
        49, "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
    )
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert (report["verdict"]["label"], root(report)[2]) == ("oom-weight-load", 1)


def test_a_node_that_hangs(rules: RuleSet, tmp_path: Path) -> None:
    """Of two nodes one waits until its time-out; the other, which printed nothing for ten minutes, is named."""
    zero, one = two()
    zero.start().say(800, "still waiting", 0)
    zero.rows.append(nodes.WATCHDOG.format(rank=0))
    one.start()
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert (report["verdict"]["label"], silent(report)) == ("hang-timeout", [1])
    assert "680 s before the first failure" in note(report, "node 1 ")


def test_a_silent_rank(rules: RuleSet, tmp_path: Path) -> None:
    """Of sixteen ranks one stays behind while the others wait for it: it is named with its node."""
    zero, one = two()
    for log in (zero, one):
        log.start("kv-cache").say(690, "still waiting", log.node * 8)
    one.rows = [row for row in one.rows if "TP13] Memory pool end" not in row and "TP13] Load weight end" not in row]
    zero.rows.append(nodes.WATCHDOG.format(rank=0))
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert "TP13 of node 1" in note(report, "silent since long before the other ranks")
    one.rows = [row for row in one.rows if "TP13]" not in row]
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert "node 1 " in note(report, "prints nothing of TP13")


@pytest.mark.parametrize("names", [("prefill.log", "decode.log"), ("0.log", "1.log")])
def test_prefill_and_decode_are_two_launches(rules: RuleSet, tmp_path: Path, names: tuple[str, str]) -> None:
    """Servers that only work together are launches of their own: the one that failed is judged, the other is told."""
    prefill = Log(Launch(1, more=", disaggregation_mode='prefill'"), 0).start()
    decode = Log(Launch(1, more=", disaggregation_mode='decode'"), 0, 30).start("weight-load")
    logs = {names[0]: prefill, names[1]: decode.crash(48, 3, nodes.LOADING, nodes.OOM.format(gpu=3))}
    report = judge(rules, tmp_path, logs)
    assert (report["verdict"]["label"], root(report)[0], report["nodes"]) == ("oom-weight-load", names[1], [])
    assert f"{names[0]}: healthy" in note(report, "2 launches")
    healthy = {names[0]: prefill, names[1]: Log(Launch(1), 0, 30).start()}
    assert judge(rules, tmp_path, healthy)["verdict"]["label"] == "healthy"
    waiting = {names[0]: prefill, names[1]: Log(Launch(1), 0, 30).start("weight-load")}
    assert judge(rules, tmp_path, waiting)["verdict"]["label"] == "incomplete"


@pytest.mark.parametrize(("until", "label"), [("serving", "healthy"), ("weight-load", "oom-weight-load")])
def test_a_second_attempt(rules: RuleSet, tmp_path: Path, until: str, label: str) -> None:
    """Of a launch that was tried again the last attempt is judged on all nodes, unless it has come to nothing yet."""
    zero, one = two()
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1)).end(49)
    zero.start("weight-load").crash(49, 0, nodes.GLOO.format(node=1)).end(50)
    for log in (zero, one):
        log.rows += Log(Launch(2), log.node, 600).start(until).rows
    report = judge(rules, tmp_path, {"node0.log": zero, "node1.log": one})
    assert report["verdict"]["label"] == label
    assert "and 1 more: each holds 2 launches" in report["notes"][0]
    assert [node["skew_s"] for node in report["nodes"]] == [0.0, 0.0]


def test_what_a_driver_collects_from_its_workers(rules: RuleSet, tmp_path: Path) -> None:
    """A log into which Ray prints the workers of two machines gives the worker that failed first."""
    worker = "(SchedulerActor pid={pid}, ip=10.0.0.{node}) "
    zero, one = two()
    zero.start("weight-load").crash(50, 2, nodes.GLOO.format(node=2))
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1))
    rows = [worker.format(pid=100 + log.node, node=log.node) + row for log in (zero, one) for row in log.rows]
    (tmp_path / "driver.log").write_text("\n".join(rows) + "\n")
    report = json_v1.to_dict(pipeline.analyze(str(tmp_path / "driver.log"), rules=rules))
    assert report["verdict"]["label"] == "oom-weight-load"
    assert "ip=10.0.0.1" in report["root_cause"]["text"]
    assert (report["root_cause"]["rank"], report["root_cause"]["node"]) == ("TP9", 1)


def test_kernel_logs_and_exit_codes_of_nodes(rules: RuleSet, tmp_path: Path) -> None:
    """A kernel's log is of the node that its name or the caller tells, an exit code too; an unknown name is refused."""
    launch = Launch(4)
    logs = {f"node{n}.log": Log(launch, n).start("weight-load") for n in range(4)}
    (tmp_path / "dmesg-node2").write_text(f"[81234.51] {KERNEL_OOM}")
    kernel = str(tmp_path / "dmesg-node2")
    report = judge(rules, tmp_path, logs, kernel_logs=[kernel])
    assert (report["verdict"]["label"], report["root_cause"]["node"]) == ("oom-host", 2)
    (tmp_path / "kern.log").write_text(f"[81234.51] {KERNEL_OOM}")
    report = judge(rules, tmp_path, logs, kernel_logs_of={"node3.log": [str(tmp_path / "kern.log")]})
    assert (report["verdict"]["label"], report["root_cause"]["node"]) == ("oom-host", 3)
    report = judge(rules, tmp_path, logs, exit_codes={"node1.log": 137, "node0.log": 0})
    assert report["verdict"]["label"] == "killed-unexplained"
    assert note(report, "exit codes") == "exit codes (node 1: 137)"
    for wrong in ({"exit_codes": {"node9.log": 137}}, {"kernel_logs_of": {"node9.log": [kernel]}}):
        with pytest.raises(InputError, match=r"node9\.log: is none of the logs"):
            judge(rules, tmp_path, logs, **wrong)


def test_the_report_on_the_screen(run: Any, tmp_path: Path) -> None:
    """The text names node and rank, the file of each effect, and has a line for a silent node, none for the others."""
    write(tmp_path, nodes.incident())
    done = run("analyze", *(f"node{n}.log" for n in range(15, -1, -1)))
    assert "--> node11.log:29  node 11, TP91 (rank 3 there), weight-load" in done.stdout
    assert "explains  node0.log:28: " in done.stdout
    assert done.stdout.count("is silent") == 1
    assert "node 9 " not in done.stdout
    data = json.loads(run("analyze", "node11.log", "--format", "json").stdout)
    assert (data["nodes"], data["root_cause"]["node"], data["root_cause"]["local_rank"]) == ([], 11, 3)


def test_pieces_of_one_log(rules: RuleSet, tmp_path: Path) -> None:
    """A log that was rotated, or errors that stand apart, are no node of their own, and nobody is silent."""
    log = Log(Launch(1), 0).start()
    before, after = Log(Launch(1), 0), Log(Launch(1), 0)
    before.rows = log.rows
    serving = '  File "/a/sglang/srt/managers/scheduler.py", line 9, in event_loop_overlap'
    after.say(4000, "still serving", 0).crash(4001, 0, serving, nodes.OOM.format(gpu=0)).end(4002)
    report = judge(rules, tmp_path, {"run.log.1": before, "run.log": after})
    assert (report["verdict"]["label"], root(report)[0], report["nodes"]) == ("oom-runtime", "run.log", [])
    zero, one = two()
    zero.start("weight-load")
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1))
    errors = Log(Launch(2), 0)
    errors.rows = ["some library says something", "and something else"]
    report = judge(rules, tmp_path, {"out0.log": zero, "out1.log": one, "err0.log": errors})
    assert (report["verdict"]["label"], [node["node"] for node in report["nodes"]]) == ("oom-weight-load", [0, 1])
    assert silent(report) == []


def test_a_log_without_its_beginning(rules: RuleSet, tmp_path: Path) -> None:
    """A node whose log lacks the arguments is known by its ranks, with the layout that another log tells."""
    zero, one = two()
    zero.start("weight-load")
    one.start("weight-load").crash(48, 9, nodes.LOADING, nodes.OOM.format(gpu=1))
    one.rows = one.rows[3:]
    report = judge(rules, tmp_path, {"x.log": zero, "y.log": one})
    assert root(report) == ("y.log", nodes.OOM.format(gpu=1), 1)


def test_a_change_concerns_every_node(rules: RuleSet, tmp_path: Path) -> None:
    """Where a flag is to change, a note says that each node has its own command."""
    report = judge(rules, tmp_path, nodes.incident())
    assert report["advice"]["changes"]
    assert note(report, "each node has a command of its own")


@pytest.mark.parametrize(
    ("name", "label", "node", "echo"),
    [
        ("node1-killed", "killed-unexplained", 1, "killed-after-ready"),
        ("dup-gpu", "distributed-init", 0, "nccl-duplicate-gpu"),
    ],
)
def test_recorded_pairs(rules: RuleSet, name: str, label: str, node: int, echo: str) -> None:
    """Two nodes of a real launch: the node that was killed is the cause, what the other says of it an echo."""
    logs = [str(ROOT / f"corpus/recorded/h200x2-nodes2-{name}-n{number}/run.log") for number in (0, 1)]
    report = json_v1.to_dict(pipeline.analyze(*logs, rules=rules))
    assert (report["verdict"]["label"], report["root_cause"]["node"]) == (label, node)
    echoes = [item["rule"] for item in report["explained"] if f"{name}-n{1 - node}" in item["file"]]
    assert echo in echoes
    assert report["unexplained"] == []
    assert silent(report) == []
