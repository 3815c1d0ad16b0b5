"""The real command: exit codes, messages, and what never reaches a terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logtriage import resources
from logtriage.workbench import laws, new_rule
from tests.conftest import ROOT

RECORDED = ROOT / "corpus" / "recorded"
HEALTHY, FAILED = RECORDED / "parrot-moe/run.log", RECORDED / "kv-fp4/run.log"
INCOMPLETE = RECORDED / "moe-triton-ok-2/run.log"


@pytest.mark.parametrize(("log", "code"), [(HEALTHY, 0), (FAILED, 1), (INCOMPLETE, 4)])
def test_exit_code_follows_the_label(run: Any, log: Path, code: int) -> None:
    """Healthy 0, a failure 1, incomplete 4."""
    assert run("analyze", str(log)).returncode == code
    assert run("analyze", str(log), "--exit-zero").returncode == 0


def test_fail_on(run: Any) -> None:
    """--fail-on narrows what counts; an unknown label is a usage error."""
    assert run("analyze", str(FAILED), "--fail-on", "oom-host").returncode == 0
    assert run("analyze", str(FAILED), "--fail-on", "oom-host,unsupported-config").returncode == 1
    done = run("analyze", str(FAILED), "--fail-on", "oom-hots")
    assert (done.returncode, "no label 'oom-hots'" in done.stderr) == (2, True)


def _bad(folder: Path, kind: str) -> Path:
    path = folder / "bad.log"
    if kind == "directory":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(bytes(range(256)) * 40)
    elif kind == "only NUL":
        path.write_bytes(b"\0" * 5000)
    elif kind == "unreadable":
        path.write_text("x")
        path.chmod(0)
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "no such file"),
        ("directory", "holds no log"),
        ("binary", "looks binary"),
        ("only NUL", "looks binary"),
        pytest.param(
            "unreadable", "permission denied", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root reads all")
        ),
    ],
)  # fmt: skip
def test_unreadable_input(run: Any, tmp_path: Path, kind: str, message: str) -> None:
    """A clear message, exit code 2, no traceback."""
    done = run("analyze", str(_bad(tmp_path, kind)))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_file_that_fails_while_it_is_read(run: Any) -> None:
    """An error of the operating system in the middle of reading is a message too."""
    done = run("analyze", "/proc/self/mem")
    assert (done.returncode, "/proc/self/mem: cannot be read" in done.stderr) == (2, True)


def test_empty_file_is_incomplete(run: Any, tmp_path: Path) -> None:
    """An empty file says so and exits with 4."""
    (tmp_path / "empty.log").write_bytes(b"")
    done = run("analyze", "empty.log")
    assert (done.returncode, "the log is empty" in done.stdout) == (4, True)


def test_no_launch_is_unknown(run: Any, tmp_path: Path) -> None:
    """Text that is no launch of this server is unknown (3), not incomplete."""
    (tmp_path / "notes.txt").write_text("Dear diary,\ntoday nothing happened.\n")
    assert run("analyze", "notes.txt").returncode == 3


def test_invalid_utf8(run: Any, tmp_path: Path) -> None:
    """Invalid bytes in a line change nothing about the verdict."""
    data = (
        FAILED.read_bytes().replace(b"ValueError: --kv", b"\xff\xfe ValueError: --kv").replace(b"torchao", b"\xc3(ao")
    )
    (tmp_path / "odd.log").write_bytes(data)
    done = run("analyze", "odd.log", "--format", "json")
    assert json.loads(done.stdout)["verdict"]["label"] == "unsupported-config"


def test_standard_input_and_several_files(run: Any, tmp_path: Path) -> None:
    """`-` is standard input; the parts of one launch may be given as several files."""
    text = FAILED.read_text()
    done = run("analyze", "-", "--format", "json", input=text)
    assert json.loads(done.stdout)["source"]["files"] == ["<stdin>"]
    (tmp_path / "node0.log").write_text(HEALTHY.read_text().split("[2026-11-29 12:45:05] Load weight end")[0])
    (tmp_path / "node1.log").write_text(text)
    done = run("analyze", "node0.log", "node1.log", "--format", "json")
    report = json.loads(done.stdout)
    assert report["verdict"]["label"] == "unsupported-config"
    assert report["root_cause"]["file"] == "node1.log"


def test_separate_logs(run: Any) -> None:
    """Unrelated logs get a report each, and the worst exit code counts: 2, 1, 3, 4, 0."""
    done = run("analyze", "--separate", "--format", "json", str(HEALTHY), str(INCOMPLETE), str(FAILED))
    labels = [json.loads(line)["verdict"]["label"] for line in done.stdout.splitlines()]
    assert labels == ["healthy", "incomplete", "unsupported-config"]
    assert done.returncode == 1
    done = run("analyze", "--separate", str(HEALTHY), "missing.log")
    assert (done.returncode, "no such file" in done.stderr, "healthy" in done.stdout) == (2, True, True)


def test_command_after_dashes(run: Any, tmp_path: Path) -> None:
    """The command given after -- tells flags that the log lacks."""
    (tmp_path / "a.log").write_text("RuntimeError: No supported CUDA architectures found for major versions [10].\n")
    words = ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "8"]
    report = json.loads(run("analyze", "a.log", "--format", "json", "--sm", "120", "--", *words).stdout)
    assert report["launch"]["flags"]["--tp-size"] == "8"
    assert report["launch"]["gpu"]["sm"] == 120


def test_exit_code_and_kernel_log(run: Any, tmp_path: Path) -> None:
    """What the log cannot know: the exit code turns an incomplete log into a kill, the kernel's log explains it."""
    done = run("analyze", str(INCOMPLETE), "--exit-code", "137", "--format", "json")
    assert json.loads(done.stdout)["verdict"]["label"] == "killed-unexplained"
    (tmp_path / "dmesg").write_text(
        "[81234.51] Out of memory: Killed process 48326 (sglang::schedul) total-vm:912345678kB, anon-rss:90123456kB\n"
    )
    done = run("analyze", str(INCOMPLETE), "--exit-code", "137", "--kernel-log", "dmesg", "--format", "json")
    assert json.loads(done.stdout)["verdict"]["label"] == "oom-host"


def test_nothing_of_a_log_controls_the_terminal(run: Any, tmp_path: Path) -> None:
    """Escape sequences, control characters and rich markup of a log are shown harmlessly or not at all."""
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold red]x[/bold red] \x9b31m \u202e ValueError: \x1b[5mboom\x08\x08\x07"
    (tmp_path / "evil.log").write_text(
        f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\nTraceback (most recent call last):\n{evil}\n"
    )
    for words in (["analyze", "evil.log"], ["analyze", "evil.log", "--format", "json"], ["explain", "evil.log:3"]):
        out = run(*words).stdout
        assert "boom" in out
        assert not {"\x1b", "\x07", "\x08", "\x9b", "\u202e"} & set(out)
    coloured = run("analyze", "evil.log").stdout
    assert "[bold red]x[/bold red]" in coloured


def test_secrets_are_redacted(run: Any, tmp_path: Path) -> None:
    """A planted token appears in no output, quoted lines and the command included, unless asked for."""
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    line = f"[2026-01-01 10:00:00] server_args=ServerArgs(api_key='sk-verysecretkey123')\nOSError: 401 {token}\n"
    command = f"+ HF_TOKEN={token} python3 -m sglang.launch_server --model-path m --api-key sk-verysecretkey123\n"
    (tmp_path / "secret.log").write_text(command + line)
    for form in ("json", "text"):
        out = run("analyze", "secret.log", "--format", form).stdout
        assert token not in out
        assert "verysecret" not in out
    assert token in run("analyze", "secret.log", "--format", "json", "--no-redact").stdout


def test_user_rules(run: Any, tmp_path: Path) -> None:
    """A rule in a folder of the user decides; a broken folder is refused with every fault."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "host-resources.yaml").write_text(
        "label: host-resources\nrules:\n  - id: my-quota\n    summary: Our scheduler's quota.\n    strength: decisive\n"
        "    any: [{anchor: quota of team exceeded}]\n    references: [ours]\n"
        "    examples: {hit: [quota of team exceeded]}\n"
    )
    (tmp_path / "a.log").write_text("2026 quota of team exceeded\n")
    report = json.loads(run("analyze", "a.log", "--rules", "mine", "--format", "json").stdout)
    assert (report["verdict"]["label"], report["verdict"]["rule"]) == ("host-resources", "my-quota")
    environment = {**os.environ, "LOGTRIAGE_RULES": str(folder)}
    assert "my-quota" in run("analyze", "a.log", env=environment).stdout
    (folder / "host-resources.yaml").write_text("label: host-resources\nrules: [{id: x}]\n")
    done = run("analyze", "a.log", "--rules", "mine")
    assert done.returncode == 2
    assert done.stderr.count("host-resources.yaml:2") >= 4


def test_a_rule_can_be_disabled(run: Any, tmp_path: Path) -> None:
    """`disable:` in a folder of the user switches a built-in rule off; an unknown id is a fault with its line."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "disable.yaml").write_text("disable:\n  - shell-says-killed\n")
    (tmp_path / "a.log").write_text("bash: line 14: 48326 Killed\n")
    assert "killed-unexplained" in run("analyze", "a.log").stdout
    assert "shell-says-killed" not in run("analyze", "a.log", "--rules", "mine").stdout
    (folder / "disable.yaml").write_text("disable:\n  - no-such-rule\n")
    done = run("analyze", "a.log", "--rules", "mine")
    assert (done.returncode, "disable.yaml:2: no rule 'no-such-rule'" in done.stderr) == (2, True)


def test_a_drafted_rule_works(run: Any, tmp_path: Path) -> None:
    """`rules new` prints a file that passes the rule test once it has a summary, and fires on lines like that one."""
    (tmp_path / "a.log").write_text(
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\n"
        "[2026-01-01 10:00:01] Frobnicator 7 at 127.0.0.1:3000 can't read /var/frob/7.bin after 12.5 s\n"
    )
    done = run("rules", "new", "--from", "a.log:2", "--label", "host-resources")
    assert done.returncode == 0
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "host-resources.yaml").write_text(done.stdout)
    refused = run("rules", "lint", "--rules", "mine")
    assert refused.returncode == 2
    assert "the summary is that of a draft" in refused.stdout
    (folder / "host-resources.yaml").write_text(done.stdout.replace(new_rule.PLACEHOLDER, "A frobnicator is stuck."))
    (tmp_path / "b.log").write_text("Frobnicator 12 at 127.0.0.1:4000 can't read /tmp/x/y after 3 s\n")
    checked = laws.check([resources.rules_folder(), folder], examples=True, within=folder)
    assert (checked.looked_at["hits"], checked.faults) == (1, [])
    assert "(host-resources, supporting)" in run("explain", "b.log:1", "--rules", "mine").stdout
    assert run("rules", "new", "--from", "a.log:2", "--label", "nonsense").returncode == 2
    assert run("rules", "new", "--from", "a.log", "--label", "host-resources").returncode == 2


@pytest.mark.parametrize(
    "line",
    ["Killed", "[2026-01-01 10:00:02] Received sigquit from a child process. It usually means the child failed."],
)
def test_a_draft_for_how_a_launch_ended_is_warned_of(run: Any, tmp_path: Path, line: str) -> None:
    """Such a line stands at the end of every failed launch; the draft is printed all the same."""
    (tmp_path / "a.log").write_text(f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\n{line}\n")
    done = run("rules", "new", "--from", "a.log:2", "--label", "oom-host")
    assert (done.returncode, done.stdout.count("anchor:")) == (0, 1)
    assert "tells only that something ended" in done.stderr


def test_an_unknown_failure_names_the_line_for_a_rule(run: Any, tmp_path: Path) -> None:
    """The command is whole but for the label, and how sure it is that nothing is known is not told as text."""
    log = "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\n"
    log += "Traceback (most recent call last):\nQuuxError: frobnicated\n"
    (tmp_path / "my run.log").write_text(log)
    shown = run("analyze", "my run.log").stdout
    assert shown.startswith("unknown: Something failed that no rule knows\n")
    assert "`logtriage rules new --from 'my run.log:3' --label LABEL` drafts a rule for it" in shown
    assert json.loads(run("analyze", "my run.log", "--format", "json").stdout)["verdict"]["confidence"] > 0
    assert "rules new --from" not in run("analyze", "-", input=log).stdout


@pytest.mark.parametrize("command", ["lint", "test"])
def test_where_a_folder_of_rules_is_given(run: Any, command: str) -> None:
    """A folder without its option is told the option."""
    done = run("rules", command, "mine")
    assert (done.returncode, "given with --rules mine" in done.stderr) == (2, True)


def test_explain(run: Any) -> None:
    """A label is explained; a line shows what fired, what almost fired and why it did not."""
    out = run("explain", "oom-kv-cache").stdout
    assert "KV cache" in out
    assert "rules:" in out
    done = run("explain", f"{RECORDED}/moe-fp8-postprocess-oom/run.log:31")
    assert done.returncode == 0
    assert "fired" in done.stdout
    assert "oom-weight-shuffle" in done.stdout
    assert "almost" in done.stdout
    assert run("explain", "no-such-label").returncode == 2
    near = run("explain", "shell-say-killed")
    assert (near.returncode, "did you mean shell-says-killed" in near.stderr) == (2, True)
    assert "did you mean oom-kv-cache" in run("explain", "oom-kvcache").stderr
    assert run("explain", f"{FAILED}:999999").returncode == 2


def test_explain_a_rule(run: Any, tmp_path: Path) -> None:
    """The name of a rule, as reports print it, tells all that stands in its file; so does a name that it had before."""
    own = tmp_path / "mine"
    own.mkdir()
    (own / "host-resources.yaml").write_text(
        "label: host-resources\nrules:\n  - id: frobnicator-stuck\n    was: [frobnicator-old]\n"
        "    summary: The frobnicator is stuck.\n    strength: decisive\n"
        "    when: {sm: {at_least: 90}}\n"
        "    any:\n      - anchor: frobnicator stuck at\n        regex: 'frobnicator stuck at \\d+'\n"
        "      - use: gpu-oom\n"
        "    hint: {text: Oil it.}\n    references: [the manual]\n"
        "    examples:\n      hit: [frobnicator stuck at 7]\n"
        "      miss: [{log: frobnicator stuck at last, because: it is a figure of speech}]\n"
    )
    shown = run("explain", "frobnicator-stuck", "--rules", "mine").stdout
    for told in (
        "frobnicator-stuck: The frobnicator is stuck.\n", "  label         host-resources\n",
        "  strength      decisive\n", "  when          sm at_least 90\n", "  hint          Oil it.\n",
        '    "frobnicator stuck at"  as frobnicator stuck at \\d+\n', "    the group gpu-oom of signatures.yaml\n",
        "    the manual\n", "    | frobnicator stuck at 7\n", "because it is a figure of speech:\n",
        "mine/host-resources.yaml:3",
    ):  # fmt: skip
        assert told in shown
    assert run("explain", "frobnicator-old", "--rules", "mine").stdout == shown


def test_usage_errors_and_version(run: Any) -> None:
    """Usage errors exit with 2; --version and --help work everywhere."""
    assert run("analyze").returncode == 2
    assert run("nonsense").returncode == 2
    assert run("--version").stdout.startswith("logtriage ")
    assert "LOG..." in run("analyze", "--help").stdout
    assert run("analyze", str(FAILED), "--output", "/no/such/folder/x").returncode == 2


def test_output_file(run: Any, tmp_path: Path) -> None:
    """--output writes the same bytes to a file."""
    shown = run("analyze", str(FAILED), "--format", "json").stdout
    assert run("analyze", str(FAILED), "--format", "json", "--output", "out.json").stdout == ""
    assert (tmp_path / "out.json").read_text() == shown


@pytest.mark.parametrize(
    ("pin", "told"),
    [
        ("attention-backend", "--pin --attention-backend"),
        ("-tp", "--pin --tp"),
        ("--atention-backend", "did you mean --attention-backend?"),
    ],
)
@pytest.mark.parametrize("command", [("analyze",), ("next",)])
def test_a_pin_that_cannot_be_meant_is_refused(command: tuple[str], pin: str, told: str, run: Any) -> None:
    """A pin that would hold nothing is told, with what it should have been."""
    done = run(*command, str(ROOT / "corpus/recorded/parrot-moe/run.log"), "--pin", pin)
    assert done.returncode == 2
    assert told in done.stderr
    known = run(*command, str(ROOT / "corpus/recorded/parrot-moe/run.log"), "--pin", "--tp", "--pin", "--some-new-flag")
    assert known.returncode != 2
