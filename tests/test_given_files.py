"""Files that are named beside the log: pipes that nobody writes to, devices without an end, numbers that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logtriage import resources
from logtriage.classifier import predict
from logtriage.errors import InputError
from logtriage.runner import model_files
from tests.conftest import ROOT

LOG = str(ROOT / "corpus" / "recorded" / "kv-fp4" / "run.log")


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", LOG, "--response", "/dev/urandom"),
        ("analyze", LOG, "--response", "pipe"),
        ("analyze", LOG, "--baseline", "pipe"),
        ("analyze", LOG, "--kernel-log", "pipe"),
        ("ledger", "import", "/dev/urandom"),
        ("run", "--plan", "pipe"),
    ],
)
def test_what_may_never_end_is_refused(run: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A device or a named pipe in the place of a file is an error of the user's, said at once."""
    os.mkfifo(tmp_path / "pipe")
    done = run(*words, env={**os.environ, "HOME": str(tmp_path), "LOGTRIAGE_STATE": str(tmp_path)})
    assert (done.returncode, "is a device, a socket or a named pipe" in done.stderr) == (2, True), done.stderr


def test_a_file_that_is_too_large_is_refused(run: Any, tmp_path: Path) -> None:
    """No more than 64 MiB of an answer are read."""
    with (tmp_path / "answer.json").open("wb") as file:
        file.truncate((64 << 20) + 1)
    done = run("analyze", LOG, "--response", "answer.json")
    assert (done.returncode, "larger than 64 MiB" in done.stderr) == (2, True)


def test_a_pipe_of_the_shell_is_read(run: Any) -> None:
    """What ``<(…)`` gives is a pipe, and is read."""
    reads, writes = os.pipe()
    os.write(writes, b"Paris is the capital of France.\n")
    os.close(writes)
    done = run("analyze", LOG, "--response", f"/dev/fd/{reads}", pass_fds=(reads,))
    os.close(reads)
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_pipe_in_the_folder_of_a_model_is_not_opened(tmp_path: Path, name: str) -> None:
    """A named pipe is a fault of the model; nothing waits for it."""
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    known = {"nested": [], "config": {}, "position_scales": [], "quantizations": []}
    model = model_files.read(str(tmp_path), known)
    assert f"{tmp_path / name} is no file" in (*model.faults, *model.weight_faults)


@pytest.mark.parametrize(
    "wrong", [{"idf": "x"}, {"bias": "x"}, {"bias": float("nan")}, {"threshold": "x"}, {"labels": 3}, {"scale": []}]
)
def test_weights_with_wrong_values_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A value of the wrong type or none that is finite is an error in the file, not a defect of the tool."""
    data = json.loads(Path(str(resources.weights_file())).read_text(encoding="utf-8"))
    for name, value in wrong.items():
        data[name] = [value, *data[name][1:]] if isinstance(data[name], list) else value
    (tmp_path / "weights.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match="is no weights file"):
        predict.load(str(tmp_path / "weights.json"))


@pytest.mark.parametrize("needs", [None, {"oom-host": 5}])
def test_weights_with_a_wrong_lexicon_are_refused(tmp_path: Path, needs: Any) -> None:
    """So are words of another form."""
    data = json.loads(Path(str(resources.weights_file())).read_text(encoding="utf-8"))
    data["lexicon"]["needs"] = needs
    (tmp_path / "weights.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match="is no weights file"):
        predict.load(str(tmp_path / "weights.json"))


def test_weights_without_an_end_are_refused() -> None:
    """A device is no weights file."""
    with pytest.raises(InputError, match="is a device"):
        predict.load("/dev/zero")


@pytest.mark.parametrize("command", ["evaluate", "train"])
@pytest.mark.parametrize("case", ["label: [", "- a list", "split: train", "label: oom-host\nacceptable: 5"])
def test_a_broken_case_is_named(run: Any, tmp_path: Path, command: str, case: str) -> None:
    """A case.yaml that cannot be understood is an error with its name."""
    (tmp_path / "corpus" / "one").mkdir(parents=True)
    (tmp_path / "corpus" / "one" / "case.yaml").write_text(case, encoding="utf-8")
    (tmp_path / "corpus" / "one" / "run.log").write_bytes(Path(LOG).read_bytes())
    done = run(command, *(["corpus"] if command == "evaluate" else ["--corpus", "corpus", "--output", "w.json"]))
    assert (done.returncode, "one/case.yaml" in done.stderr) == (2, True), done.stderr


def test_a_log_named_twice_is_read_once(run: Any, tmp_path: Path) -> None:
    """The same file again, by another name too, is no further node."""
    (tmp_path / "again.log").symlink_to(LOG)
    once, twice = run("analyze", LOG), run("analyze", LOG, LOG, "again.log")
    assert (twice.returncode, twice.stdout) == (1, once.stdout)
    assert "again.log is a file that was named before; it is read once" in twice.stderr
    assert "standard input (-) can be read once only" in run("analyze", "-", "-").stderr


def test_a_suffix_that_tells_no_form_is_said(run: Any, tmp_path: Path) -> None:
    """A report in a file with a suffix that means nothing is text, and a message says so."""
    done = run("analyze", LOG, "--output", "report.foo")
    assert (done.returncode, "report.foo is written as text" in done.stderr) == (1, True)
    assert (tmp_path / "report.foo").read_text(encoding="utf-8") == run("analyze", LOG).stdout
    assert run("analyze", LOG, "--output", "report.txt").stderr == ""
    assert run("analyze", LOG, "--output", "report.foo", "--format", "text").stderr == ""


@pytest.mark.parametrize("group", ["corpus", "ledger", "rules"])
def test_the_commands_of_a_group_are_listed_whole(run: Any, group: str) -> None:
    """No line of the list ends in the middle of a sentence."""
    assert "..." not in run(group, "--help").stdout.partition("Commands:")[2]


def test_a_port_that_none_can_have(run: Any) -> None:
    """A port above 65535 is an error of the user's."""
    done = run("smoke", "http://127.0.0.1:99999")
    assert (done.returncode, "there is no port 99999" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("size", ["0", "abc"])
def test_a_size_that_is_no_number_is_not_reckoned_with(run: Any, size: str) -> None:
    """Preflight says nothing about GPUs being enough for a size that is none."""
    words = ("preflight", "--sm", "120", "--gpus", "8", "-v", "--", "python3", "-m", "sglang.launch_server")
    shown = run(*words, "--model-path", "m", "--tp", size).stdout
    assert "takes a whole number from 1" in shown
    assert "enough for" not in shown


def test_a_gpu_whose_number_is_not_known(run: Any) -> None:
    """With --sm alone the GPU is named in the head."""
    shown = run("preflight", "--elsewhere", "--sm", "120", "--", "python3", "-m", "sglang.launch_server").stdout
    assert "GPU (SM120), number not known" in shown


def test_explain_tells_the_rank_of_the_event(run: Any, tmp_path: Path) -> None:
    """The line of an exception below a traceback carries no rank of its own; that of its head counts."""
    log = tmp_path / "run.log"
    log.write_text(
        "[2026-01-01 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/sglang/srt/managers/scheduler.py", line 9, in run\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        encoding="utf-8",
    )
    assert "rank TP3" in run("explain", "run.log:3").stdout
