"""What stands in action.yml and integrations/ is run as its system runs it: with its variables, files and commands.

Commands of other systems (buildkite-agent, journalctl, scontrol) are small programs that answer as the real ones do.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

from tests.conftest import ROOT

FOLDER = ROOT / "integrations"
FAILED = ROOT / "corpus/recorded/kv-fp4/run.log"
SERVE = f"#!/usr/bin/env bash\ncat '{FAILED}'\nexit 1\n"


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """Runs a command line in an empty folder, with `logtriage` on the path and nothing of another system set."""
    programs = tmp_path / "bin"
    programs.mkdir()
    _program(programs / "logtriage", f"exec '{sys.executable}' -m logtriage \"$@\"")
    _program(programs / "python3", f"exec '{sys.executable}' \"$@\"")
    work = tmp_path / "work"
    work.mkdir()

    def call(script: str, programs_of: dict[str, str] | None = None, **variables: str) -> Any:
        for name, text in (programs_of or {}).items():
            _program(programs / name, text)
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        environment = {**kept, "PYTHONPATH": str(ROOT), "PATH": f"{programs}:{os.defpath}:/usr/sbin:/sbin", **variables}
        return subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, cwd=work, env=environment, timeout=300, check=False
        )

    call.work = work  # type: ignore[attr-defined]
    return call


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


def _expanded(text: str, values: dict[str, str]) -> str:
    """The expressions of GitHub in a text, as the runner fills them in."""
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)


@pytest.mark.parametrize(("fail_on", "code"), [("", 1), ("oom-host", 0)])
def test_github_action(job: Any, fail_on: str, code: int) -> None:
    """The action annotates, adds to the summary, writes the page, and hands label and outcome to the next step."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
    given |= {"logs": f"{FAILED}\n", "fail-on": fail_on, "arguments": "--sm 90"}
    (job.work / "summary.md").touch()
    (job.work / "output").touch()
    done = job(
        step["run"],
        GITHUB_ACTIONS="true", CI="true", GITHUB_ACTION_PATH=str(ROOT), RUNNER_TEMP=str(job.work),
        GITHUB_STEP_SUMMARY=str(job.work / "summary.md"), GITHUB_OUTPUT=str(job.work / "output"),
        **{name: _expanded(text, given) for name, text in step["env"].items()},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    level = "error" if code else "warning"
    assert [line.split(" ")[0] for line in done.stdout.splitlines() if line.startswith("::")] == [f"::{level}"]
    assert "  --> " in done.stdout
    assert (job.work / "output").read_text() == "label=unsupported-config\noutcome=failed\n"
    assert (
        "unsupported\\-config" in (summary := (job.work / "summary.md").read_text()) or "unsupported-config" in summary
    )
    assert (job.work / "logtriage.html").read_text().startswith("<!doctype html>")
    assert set(re.findall(r"outputs\.(\w+)", str(action["outputs"]))) == {"label", "outcome"}


def test_an_input_of_the_action_is_no_script(job: Any) -> None:
    """What a workflow passes in stands in variables, never in the script itself."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    assert "${{" not in step["run"]
    assert "${{" not in (FOLDER / "github.sh").read_text()
    given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()}
    given |= {"logs": "$(touch pwned) `touch pwned` ;touch pwned *"}
    done = job(step["run"], GITHUB_ACTION_PATH=str(ROOT), GITHUB_OUTPUT=str(job.work / "output"),
        **{name: _expanded(text, given) for name, text in step["env"].items()})  # fmt: skip
    assert not (job.work / "pwned").exists()
    assert "$(touch" in done.stderr


@pytest.fixture
def action(job: Any) -> Any:
    """Runs the action's step with the inputs given, and returns what it printed and the outputs it set."""

    def call(**inputs: str) -> tuple[Any, str]:
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        (step,) = action["runs"]["steps"]
        given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | inputs
        outputs = job.work / "output"
        outputs.write_text("")
        done = job(
            step["run"], GITHUB_ACTION_PATH=str(ROOT), GITHUB_OUTPUT=str(outputs),
            GITHUB_STEP_SUMMARY=str(job.work / "summary.md"),
            **{name: _expanded(text, given) for name, text in step["env"].items()},
        )  # fmt: skip
        return done, outputs.read_text()

    return call


def test_outputs_of_several_launches_are_those_of_the_worst(job: Any, action: Any) -> None:
    """With --separate the JSON is one document a line."""
    (job.work / "well.log").write_bytes((ROOT / "corpus/recorded/parrot-moe/run.log").read_bytes())
    (job.work / "bad.log").write_bytes(FAILED.read_bytes())
    done, outputs = action(logs="well.log bad.log", arguments="--separate --exit-zero")
    assert (done.returncode, done.stderr) == (0, "")
    assert outputs == "label=unsupported-config\noutcome=failed\n"


def test_an_earlier_report_is_not_that_of_this_step(job: Any, action: Any) -> None:
    """Where analyze fails there are no outputs, and no report for a later step to upload."""
    assert action(logs=str(FAILED))[1]
    done, outputs = action(logs="missing.log")
    assert (done.returncode, outputs) == (2, "")
    assert not list(job.work.glob("logtriage.*"))


@pytest.mark.parametrize("logs", ["my run.log", "my run.log\n", "  my run.log\nother.log\n", "other.log third.log"])
def test_names_of_logs_with_blanks(job: Any, action: Any, logs: str) -> None:
    """A line is a path; only a single line that names no file holds several."""
    for name in ("my run.log", "other.log", "third.log"):
        (job.work / name).write_bytes(FAILED.read_bytes())
    done, outputs = action(logs=logs, arguments="--separate")
    assert (done.returncode, done.stderr) == (1, "")
    assert outputs.startswith("label=unsupported-config\n")


def test_a_baseline_begins_with_the_first_report(job: Any, action: Any) -> None:
    """A baseline that is not there yet is a note; the same failure is then no news, also where one file is both."""
    inputs = {"logs": str(FAILED), "baseline": "last.json", "json": "last.json", "fail-on": "oom-host, new"}
    first, _ = action(**inputs)
    assert first.returncode == 1
    assert first.stderr.startswith("logtriage: last.json is not there yet")
    second, outputs = action(**inputs)
    assert (second.returncode, second.stderr) == (0, "")
    assert outputs
    done, outputs = action(**(inputs | {"logs": "missing.log"}))
    assert (done.returncode, outputs, (job.work / "last.json").is_file()) == (2, "", True)


def test_gitlab_job(job: Any) -> None:
    """The template writes the report that GitLab reads as JUnit, and the page, whatever the job did."""
    template = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text())[".logtriage"]
    (job.work / "run.log").write_bytes(FAILED.read_bytes())
    (script,) = template["after_script"]
    done = job(script, GITLAB_CI="true", CI="true", CI_JOB_STATUS="failed", **template["variables"])
    assert (done.returncode, done.stderr) == (0, "")
    (suite,) = JUnitXml.fromfile(str(job.work / template["artifacts"]["reports"]["junit"]))
    assert suite.failures == 1
    assert all((job.work / path).exists() for path in template["artifacts"]["paths"])
    assert template["artifacts"]["when"] == "always"


def test_jenkins_pipeline(job: Any) -> None:
    """Both shell steps of the pipeline: the launch keeps its exit code, the step after it writes what is published."""
    pipeline = (FOLDER / "Jenkinsfile").read_text()
    launch, after = re.findall(r"sh '''(.*?)'''|sh '([^']*)'", pipeline, re.DOTALL)
    _program(job.work / "serve.sh", SERVE)
    assert job(launch[0], JENKINS_URL="http://jenkins/").returncode == 1
    done = job(after[1], JENKINS_URL="http://jenkins/")
    assert (done.returncode, done.stderr) == (0, "")
    published = re.findall(r"junit '([^']+)'|artifacts: '([^',]+)", pipeline)
    (suite,) = JUnitXml.fromfile(str(job.work / published[0][0]))
    assert suite.failures == 1
    assert (job.work / published[1][1]).exists()


@pytest.mark.parametrize(("serve", "code"), [(SERVE, 1), ("exit 0", 0)])
def test_buildkite_step(job: Any, serve: str, code: int) -> None:
    """A failed launch is annotated with the Markdown report, a good one with nothing; the step ends as it did."""
    (step,) = yaml.safe_load((FOLDER / "buildkite.yml").read_text())["steps"]
    _program(job.work / "serve.sh", serve)
    agent = 'echo "$@" > asked; cat > annotation.md'
    done = job(step["command"].replace("$$", "$"), {"buildkite-agent": agent}, BUILDKITE="true", CI="true")
    assert done.returncode == code
    assert (job.work / "asked").exists() == bool(code)
    if code:
        assert (job.work / "asked").read_text() == "annotate --style error --context logtriage\n"
        assert "unsupported-config" in (job.work / "annotation.md").read_text()
        assert (job.work / step["artifact_paths"][0]).exists()


def test_kubernetes_container(job: Any) -> None:
    """The container's command runs the server, keeps its log, and leaves the verdict as the termination message."""
    (container,) = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())["spec"]["containers"]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    mounted = container["volumeMounts"][0]["mountPath"]
    _program(job.work / "serve.sh", SERVE)
    command = " ".join(word.replace(mounted, str(FOLDER)) for word in container["command"])
    variables = {"LOGTRIAGE_LOG": "run.log", "LOGTRIAGE_MESSAGE": str(job.work / "termination-log")}
    assert {entry["name"] for entry in container["env"]} <= set(variables)
    done = job(f"{command} ./serve.sh --model-path /models/model", **variables)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == FAILED.read_text() == (job.work / "run.log").read_text()
    message = (job.work / "termination-log").read_bytes()
    assert len(message) <= 4096
    assert message.decode().startswith("unsupported-config: ")


def test_kubernetes_stops_the_server(job: Any, tmp_path: Path) -> None:
    """A signal for the container reaches the server, whose exit code is the container's; a good end says nothing."""
    _program(job.work / "serve.sh", "trap 'echo stopping; exit 0' TERM\necho up > up\nwhile :; do sleep 0.05; done")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
                   "LOGTRIAGE_LOG": "run.log", "LOGTRIAGE_MESSAGE": "message"}  # fmt: skip
    with subprocess.Popen(
        ["bash", str(FOLDER / "launch.sh"), "./serve.sh"],
        cwd=job.work,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as container:
        deadline = time.monotonic() + 60
        while not (job.work / "up").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        container.send_signal(signal.SIGTERM)
        said, _ = container.communicate(timeout=60)
    assert (container.returncode, said) == (0, "stopping\n")
    assert not (job.work / "message").exists()


@pytest.mark.parametrize(
    ("how", "status", "said"), [("exited", "1", "unsupported-config: "), ("killed", "KILL", "unsupported-config: ")]
)
def test_systemd_stop_post(job: Any, how: str, status: str, said: str) -> None:
    """The unit's own start is read from the journal; the verdict goes to the journal, the page to the state folder."""
    unit = (FOLDER / "sglang.service").read_text()
    script = Path(re.findall(r"ExecStopPost=(\S+)", unit)[0]).name
    assert (FOLDER / script).stat().st_mode & 0o111
    journal = f"echo \"$@\" > asked; cat '{FAILED}'"
    done = job(
        f"'{FOLDER / script}'", {"journalctl": journal}, SERVICE_RESULT="exit-code", EXIT_CODE=how, EXIT_STATUS=status,
        INVOCATION_ID="0123456789abcdef0123456789abcdef", STATE_DIRECTORY=str(job.work),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert (job.work / "asked").read_text().endswith("_SYSTEMD_INVOCATION_ID=0123456789abcdef0123456789abcdef\n")
    assert (job.work / "last-failure.html").exists()


def test_systemd_says_nothing_of_a_good_end(job: Any) -> None:
    """A unit that was stopped, or ended well, is not analyzed; the name of a signal becomes an exit code."""
    script = f"'{FOLDER / 'systemd-stop-post.sh'}'"
    done = job(script, SERVICE_RESULT="success", EXIT_CODE="exited", EXIT_STATUS="0", INVOCATION_ID="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    asked = 'echo "$@" > words; cat > /dev/null'
    job(script, {"logtriage": asked, "journalctl": "true"}, SERVICE_RESULT="signal", EXIT_CODE="killed",
        EXIT_STATUS="KILL", INVOCATION_ID="0")  # fmt: skip
    assert "--exit-code 137 " in (job.work / "words").read_text()


@pytest.mark.parametrize(
    ("ended", "node", "has_report"),
    [("1:0", "n1", True), ("0:9", "n1", True), ("0:0", "n1", False), ("1:0", "n2", False)],
)
def test_slurm_epilog(job: Any, ended: str, node: str, has_report: bool) -> None:
    """On the first node of a failed job the verdict is laid beside its output, as the job's user; never a failure."""
    log = job.work / "slurm-7.out"
    log.write_bytes(FAILED.read_bytes())
    record = f"JobId=7 JobName=sglang JobState=FAILED ExitCode={ended} StdErr={log} StdIn=/dev/null StdOut={log} Power="
    answers = f'case "$2" in job) echo "{record}" ;; hostnames) printf "n1\\nn2\\n" ;; esac'
    done = job(
        f"'{FOLDER / 'slurm-epilog.sh'}'", {"scontrol": answers, "runuser": 'shift 3; exec "$@"'},
        SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURMD_NODENAME=node, SLURM_JOB_USER="ada",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    made = [(job.work / f"slurm-7.out.logtriage.{kind}").exists() for kind in ("txt", "html")]
    assert made == [has_report, has_report]


def test_an_epilog_never_fails(job: Any) -> None:
    """Not even where Slurm does not answer or the output cannot be read."""
    script = f"'{FOLDER / 'slurm-epilog.sh'}'"
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_USER": "ada"}
    assert job(script, {"scontrol": "exit 1"}, **slurm).returncode == 0
    gone = 'case "$2" in job) echo "JobId=7 ExitCode=1:0 StdOut=/nonexistent" ;; *) echo n1 ;; esac'
    assert job(script, {"scontrol": gone, "runuser": 'shift 3; exec "$@"'}, **slurm).returncode == 0
