"""Hostile names, files and streams: always one plain message or a right report, never a traceback or a hang."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logtriage import pipeline, resources
from logtriage.engine.conditions import in_range, version_key
from logtriage.engine.yaml_source import Document
from logtriage.report import json_v1, plain, text
from logtriage.workbench import laws
from tests.conftest import ROOT

RECORDED = ROOT / "corpus" / "recorded"
FAILED, HEALTHY = RECORDED / "kv-fp4/run.log", RECORDED / "parrot-moe/run.log"
EVIL = "\x1b[2J\n\r\x9b31m\u202e"
CONTROLS = {"\x1b", "\r", "\x9b", "\u202e"}
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")


def _shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of sh with `logtriage` as $L and a failed log as $F."""
    head = f'L="{shlex.quote(sys.executable)} -m logtriage"; F={shlex.quote(str(FAILED))}; '
    return subprocess.run(
        ["sh", "-c", head + line], capture_output=True, text=True, cwd=folder, timeout=120, check=False
    )


def _is_one_message(done: subprocess.CompletedProcess[str]) -> bool:
    return len(done.stderr.splitlines()) == 1 and done.stderr.startswith("logtriage: ")


# ---- output and streams


def test_an_input_is_never_the_output(run: Any, tmp_path: Path) -> None:
    """A log that is named as output too, by another name or as standard input, stays as it was."""
    log, link = tmp_path / "a.log", tmp_path / "link.log"
    log.write_bytes(FAILED.read_bytes())
    link.symlink_to(log)
    options = (["--kernel-log", "a.log"], ["--response", "a.log"], ["--after", "a.log", "--pin", "--tp"])
    for words in (["a.log"], ["a.log", "--separate"], *([str(HEALTHY), *more] for more in options)):
        done = run("analyze", *words, "-o", "link.log")
        assert (done.returncode, "is one of the files that are read" in done.stderr) == (2, True)
    assert _shell("$L analyze - < a.log -o link.log", tmp_path).returncode == 2
    assert log.read_bytes() == FAILED.read_bytes()


def test_an_old_report_stays_where_there_is_no_new_one(run: Any, tmp_path: Path) -> None:
    """A log that cannot be read leaves the file named as output as it was."""
    (tmp_path / "report.txt").write_text("old")
    assert run("analyze", "missing.log", "-o", "report.txt").returncode == 2
    assert (tmp_path / "report.txt").read_text() == "old"


@needs_full
@pytest.mark.parametrize(
    "line",
    ["$L analyze $F > /dev/full", "$L analyze $F -o /dev/full", "$L explain oom-host > /dev/full",
     "$L rules list > /dev/full", "$L schema > /dev/full", "$L --help > /dev/full", "$L analyze $F >&-",
     "$L explain oom-host >&-", "$L analyze - <&-", "$L next - <&-"],
)  # fmt: skip
def test_streams_that_fail(line: str, tmp_path: Path) -> None:
    """A full disk and closed standard streams give one message and exit code 2."""
    done = _shell(line, tmp_path)
    assert (done.returncode, _is_one_message(done)) == (2, True), done.stderr


@needs_full
def test_a_message_that_cannot_be_shown(tmp_path: Path) -> None:
    """Where standard error fails, the exit code still tells."""
    for stream in ("2> /dev/full", "2>&-"):
        assert _shell(f"$L analyze missing.log {stream}", tmp_path).returncode == 2
    assert _shell("$L analyze $F -o report.txt >&-", tmp_path).returncode == 1


def test_a_reader_that_has_gone(tmp_path: Path) -> None:
    """The exit code is that of the verdict, though nobody reads the report."""
    for log, code in ((FAILED, 1), (HEALTHY, 0)):
        read, write = os.pipe()
        os.close(read)
        words = [sys.executable, "-m", "logtriage", "analyze", str(log), "--format", "json"]
        done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, timeout=120, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (code, b"")


def test_an_interruption_while_modules_are_imported(tmp_path: Path) -> None:
    """Control-C at any import, the first one included, exits with 130 and shows no traceback."""
    for module in ("click", "logtriage.pipeline", "logtriage.cli.commands", "json"):
        code = (
            "import sys\n"
            "class Interrupt:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {module!r}: raise KeyboardInterrupt\n"
            "from logtriage.cli.main import main\n"
            f"sys.modules.pop({module!r}, None)\n"
            "sys.meta_path.insert(0, Interrupt())\n"
            f"main(['analyze', {str(FAILED)!r}])\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr


# ---- what reaches a terminal


def test_names_and_words_do_not_control_the_terminal(run: Any, tmp_path: Path) -> None:
    """Names of logs, words after -- and names in messages are shown without control characters."""
    name = f"a{EVIL}.log"
    (tmp_path / name).write_bytes(FAILED.read_bytes())
    (tmp_path / f"b{EVIL}.log").write_text("no launch\n")
    trailing = ["--", "python3", "-m", "sglang.launch_server", "--model-path", f"m{EVIL}", "--kv-cache-dtype", "x"]
    for words in (
        ["analyze", name], ["analyze", name, *trailing], ["next", name, *trailing], ["explain", f"{name}:3"],
        ["analyze", f"none{EVIL}"], ["explain", EVIL], ["explain", f"none{EVIL}:3"], [name], ["analyze", "--x" + EVIL],
        ["analyze", name, "--format", "json"], ["analyze", name, "--fail-on", EVIL], ["rules", "list", EVIL],
        ["analyze", "--separate", f"none{EVIL}", name],
    ):  # fmt: skip
        done = run(*words)
        assert done.returncode != 70
        assert not CONTROLS & set(done.stdout + done.stderr), words
        assert done.stdout + done.stderr != ""
    forged = run("analyze", name).stdout
    assert "a\ufffd[2J\ufffd\ufffd\ufffd31m\ufffd.log:" in forged
    assert json.loads(run("analyze", name, "--format", "json").stdout)["source"]["files"] == [name]


def test_rules_of_a_user_do_not_control_the_terminal(run: Any, tmp_path: Path) -> None:
    """Title, summary and hint of a rule, and faults of rule files, are shown without control characters."""
    folder = tmp_path / "mine"
    folder.mkdir()
    odd = json.dumps(f"odd{EVIL}")
    (folder / "odd-label.yaml").write_text(
        f"label: odd-label\ntitle: {odd}\nabout: {odd}\nfamily: outcome\nretry: never\naction: investigate\n"
        f"remedy: {{advice: {odd}}}\nrules:\n  - id: odd\n    summary: {odd}\n    strength: decisive\n"
        f"    any: [{{anchor: odd thing}}]\n    hint: {{text: {odd}}}\n    references: [ours]\n"
        "    examples: {hit: [odd thing]}\n"
    )
    (tmp_path / "a.log").write_text("odd thing\n")
    for words in (["analyze", "a.log"], ["explain", "odd-label"], ["explain", "a.log:1"], ["rules", "list"],
                  ["rules", "list", "odd-label"], ["next", "a.log"]):  # fmt: skip
        done = run(*words, "--rules", "mine")
        assert "odd\ufffd" in done.stdout + done.stderr, (words, done.stdout, done.stderr)
        assert not CONTROLS & set(done.stdout + done.stderr), words
    (folder / "odd-label.yaml").write_text(f"{odd}: 1\n")
    done = run("rules", "lint", "--rules", "mine")
    assert (done.returncode, CONTROLS & set(done.stdout + done.stderr)) == (2, set())


def test_plain_text_keeps_what_is_harmless() -> None:
    """Tabs, letters of all scripts and emoji stay; each control character becomes one character."""
    assert plain.one_line("a\tb\u05d0\u4e2d\U0001f600") == "a\tb\u05d0\u4e2d\U0001f600"
    assert plain.one_line(EVIL + "\udcff") == "\ufffd[2J\ufffd\ufffd\ufffd31m\ufffd\ufffd"
    assert plain.lines("a\nb\r") == "a\nb\ufffd"
    assert json.loads(plain.in_json(json.dumps(EVIL, ensure_ascii=False))) == EVIL


def test_the_command_of_a_report_can_be_pasted(rules: Any) -> None:
    """A line feed inside an argument of the command stays one."""
    words = ["python3", "-m", "sglang.launch_server", "--json-model-override-args", '{\n"a": 1}']
    log = b"RuntimeError: No supported CUDA architectures found for major versions [10].\n"
    options = pipeline.Options(command=[*words, "--moe-runner-backend", "flashinfer_trtllm"], facts={"sm": 120})
    data = json_v1.to_dict(pipeline.analyze(log, rules=rules, options=options))
    assert data["advice"]["command_text"] is not None
    assert data["advice"]["command_text"] in text.render(data)


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are any bytes")
def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    """A name with other bytes is shown with U+FFFD, on standard output and in a file, as text and as JSON."""
    name = os.fsencode(tmp_path) + b"/a\xff.log"
    Path(os.fsdecode(name)).write_bytes(FAILED.read_bytes())
    for form in ("text", "json"):
        words = [sys.executable.encode(), b"-m", b"logtriage", b"analyze", name, b"--format", form.encode()]
        shown = subprocess.run(words, capture_output=True, timeout=120, check=False)
        assert (shown.returncode, shown.stderr) == (1, b"")
        assert "a\ufffd.log".encode() in shown.stdout
        output = tmp_path / "report"
        done = subprocess.run([*words, b"-o", str(output).encode()], capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stderr, output.read_bytes()) == (1, b"", shown.stdout)


# ---- numbers and usage


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "a.log:\u00b2"], "no label"),
        (["explain", "a.log:" + "9" * 5000], "5000 digits"),
        (["rules", "new", "--from", "a.log:\u00b2", "--label", "oom-host"], "give a log and a line"),
        (["analyze", ""], "the name of a LOG is empty"),
        (["next", ""], "the name of a LOG is empty"),
        (["analyze", "a.log", "--server-version", "abc"], "is no version"),
        (["next", "a.log", "--server-version", "9" * 5000], "is no version"),
        (["analyze", "a.log", "--sm", "\u00b2"], "is no compute capability"),
        (["analyze", "a.log", "--sm", "9" * 5000], "is no compute capability"),
        (["analyze", "-", "--kernel-log", "-"], "once only"),
    ],
    ids=str,
)  # fmt: skip
def test_usage_errors(run: Any, tmp_path: Path, words: list[str], message: str) -> None:
    """What cannot be meant is a usage error with a clear message."""
    (tmp_path / "a.log").write_text("x\n")
    done = run(*words)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("version", ["0.5.9", "v0.5.9", "0.5.12.post1", "0.5.9rc1", "0.5.10.dev20+g1a2b3c4"])
def test_versions_as_they_are_printed(run: Any, tmp_path: Path, version: str) -> None:
    """Releases, candidates and builds from source are versions."""
    (tmp_path / "a.log").write_text("x\n")
    assert run("analyze", "a.log", "--server-version", version).returncode == 3


def test_versions_of_thousands_of_digits(run: Any, tmp_path: Path) -> None:
    """A version with a number that Python refuses to read is compared all the same."""
    long = "9" * 5000
    assert version_key(f"{long}.{long}.post{long}") > version_key("0.5.9")
    assert in_range(long, ">=0.5.9")
    (tmp_path / "a.log").write_text(f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\nsglang {long}\n")
    words = ["pip", "install", f"sglang=={long}"]
    assert run("analyze", "a.log", "--", *words).returncode in (3, 4)


# ---- rule files

RULE = "label: host-resources\nrules:\n  - id: mine\n    summary: Ours.\n    strength: {}\n    colour: red\n"


@pytest.mark.parametrize(
    "bad", ["2026-13-45", "!!int abc", '!!binary "%%%"', "!!python/name:os.system x", "9" * 5000, "!!timestamp x"]
)
def test_bad_scalars_are_faults(bad: str, tmp_path: Path) -> None:
    """A value that YAML cannot make is a fault with its line, and the others are reported too."""
    path = tmp_path / "host-resources.yaml"
    path.write_text(RULE.format(bad))
    faults = laws.check([resources.rules_folder(), tmp_path], examples=False).faults
    assert any(f"{path}:5: " in fault and "is no valid" in fault for fault in faults), faults
    assert any(f"{path}:6: " in fault for fault in faults)
    assert sum(f"{path}:5: " in fault for fault in faults) == 1


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "aliases included"),
        ("rules: &a [*a]\n", "alias of what it is part of"),
        ("rules: &a {b: {c: *a}}\n", "alias of what it is part of"),
        ("{[a, b]: c}\n", "a key is a word"),
        ("[" * 5000 + "]" * 5000, ""),
        ("[" * 400 + "]" * 400, ""),
        ("a: \0\n", "cannot be read"),
        ("\udcff", "cannot be read"),
    ],
    ids=["bomb", "cycle", "cycle of two", "list as key", "very deep", "deep", "NUL", "no UTF-8"],
)
def test_hostile_rule_files_are_faults(content: str, message: str, tmp_path: Path) -> None:
    """Alias bombs, cycles, depth and odd bytes are faults with the file and a line."""
    path = tmp_path / "port-in-use.yaml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    faults = laws.check([resources.rules_folder(), tmp_path], examples=False).faults
    assert any(fault.startswith(f"{path}:") and message in fault for fault in faults), faults


def test_aliases_are_allowed(tmp_path: Path) -> None:
    """An alias that repeats a value is no fault."""
    path = tmp_path / "x.yaml"
    path.write_text("a: &a [1, 2]\nb: [*a, *a]\n")
    document = Document(path)
    assert (document.faults, document.data) == ([], {"a": [1, 2], "b": [[1, 2], [1, 2]]})


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_rule_file_is_a_fault(kind: str, tmp_path: Path, run: Any) -> None:
    """A named pipe, a device and a folder called x.yaml are faults; none is waited for."""
    folder = tmp_path / "mine"
    folder.mkdir()
    path = folder / "x.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    done = run("rules", "lint", "--rules", "mine")
    assert (done.returncode, "x.yaml:1: cannot be read: is not a file" in done.stdout) == (2, True)


# ---- caches


@pytest.mark.parametrize("content", ["{}", '{"rules": 1}', "[]", "", "[" * 100_000, "\0"], ids=str)
def test_a_damaged_cache_is_made_again(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the wrong shape is not used; the rules and the knowledge about servers are compiled anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(resources, "_cache_folder", lambda: str(tmp_path))
    digest = pipeline.load_rules().digest
    server, rules = sorted(tmp_path.glob("*.json"), key=lambda path: "-server" not in path.name)
    whole = {path: path.read_text() for path in (server, rules)}
    rules.write_text(content)
    assert pipeline.load_rules().digest == digest
    assert rules.read_text() == whole[rules]
    server.write_text(content)
    assert pipeline.load_rules().server["aliases"]
    assert server.read_text() == whole[server]


# ---- what a report says


@pytest.mark.parametrize(
    ("bodies", "notes"),
    [
        ([b""], ["answer.json holds no answer"]),
        ([b'{"error": "busy"}'], ["answer.json holds no answer"]),
        ([b"The capital of France is Paris."], ["1 answer was read, nothing is wrong with it"]),
        (
            [b"", b"Paris.", b"Rome."],
            ["answer.json holds no answer", "2 answers were read, nothing is wrong with them"],
        ),
        ([b"!" * 200], []),
        ([], ["a log does not show whether the answers make sense: `--response FILE` or `logtriage smoke URL` does"]),
    ],
)
def test_what_was_read_of_answers_is_told(bodies: list[bytes], notes: list[str], rules: Any) -> None:
    """A note tells of answers that are fine, of a file that holds none, and that nobody gave an answer."""
    options = pipeline.Options(responses=bodies, response_names=["answer.json"][: len(bodies)])
    assert list(pipeline.analyze(HEALTHY, rules=rules, options=options).notes) == notes


def test_launches_are_counted_by_container(rules: Any, tmp_path: Path) -> None:
    """The parts of one launch, its containers and the kernel's log are one launch; a second start is a second."""
    log = HEALTHY.read_bytes()
    options = pipeline.Options(kernel_logs=[b"[81234.51] eth0: link up\n"])
    assert pipeline.analyze(log, log, rules=rules, options=options).launches == 1
    prefixed = b"".join(
        name + b" | " + line for name in (b"node-0", b"node-1") for line in log.splitlines(keepends=True)
    )
    assert pipeline.analyze(prefixed, rules=rules).launches == 1
    assert pipeline.analyze(log + log, rules=rules).launches == 2


def test_a_stopped_launch_says_so(rules: Any) -> None:
    """A log that ends with an ordered stop before the server was ready is incomplete because of that."""
    log = b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m')\n"
    stop = b"[2026-01-01 10:00:09] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    assert pipeline.analyze(log, rules=rules).verdict.because == "neither a ready line nor a failure is in the log"
    verdict = pipeline.analyze(log + stop, rules=rules).verdict
    assert (verdict.label, verdict.because) == ("incomplete", "it was stopped before it was ready")


def test_no_launch_is_no_failure(rules: Any) -> None:
    """The headline of a text that is no launch does not speak of a failure."""
    report = pipeline.analyze(b"Dear diary,\ntoday nothing happened.\n", rules=rules)
    assert (report.label, report.label_title) == ("unknown", "No SGLang launch was recognised")
