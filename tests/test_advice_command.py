"""The user's own command comes back with the changes and nothing else."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from logtriage.advice import command
from logtriage.engine.launch import describe, spec_of
from logtriage.intake.launch_command import find_command
from logtriage.records import Change, Launch
from logtriage.redact import Redactor
from logtriage.report.json_v1 import redact_shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet

MOE = "--moe-runner-backend"
SERVER = "python3 -m sglang.launch_server"


def change(flag: str = MOE, new: str | None = "flashinfer_cutlass") -> Change:
    return Change(flag, None, new, "why", 0.9, "source")


def launch(argv: Sequence[str], rules: RuleSet) -> Launch:
    return describe([], [], {}, rules, {}, argv)[0]


def rendered(text: str, rules: RuleSet, *changes: Change) -> str:
    found = command.render(launch([text], rules), changes or [change()], rules)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{SERVER} --tp 8 {MOE} triton --port 1", f"{SERVER} --tp 8 {MOE} flashinfer_cutlass --port 1"),
        (f"{SERVER} {MOE}=triton --port 1", f"{SERVER} {MOE}=flashinfer_cutlass --port 1"),
        (f"{SERVER} --tp 8 > run.log 2>&1", f"{SERVER} --tp 8 {MOE} flashinfer_cutlass > run.log 2>&1"),
        (f"{SERVER} --tp 8 2>&1 | tee run.log", f"{SERVER} --tp 8 {MOE} flashinfer_cutlass 2>&1 | tee run.log"),
        (
            f"CUDA_VISIBLE_DEVICES=0,1 HF_HOME='/data/my models' {SERVER} --tp 2 {MOE} triton &",
            f"CUDA_VISIBLE_DEVICES=0,1 HF_HOME='/data/my models' {SERVER} --tp 2 {MOE} flashinfer_cutlass &",
        ),
        (
            f"docker run --gpus all --shm-size 32g -e HF_TOKEN=$HF_TOKEN lmsysorg/sglang:v0.5.9 {SERVER} {MOE} triton",
            f"docker run --gpus all --shm-size 32g -e HF_TOKEN=$HF_TOKEN lmsysorg/sglang:v0.5.9 {SERVER} "
            f"{MOE} flashinfer_cutlass",
        ),
        (
            f"docker run --rm image bash -c 'cd /work && A=b {SERVER} --tp 8 {MOE} triton > /logs/run.log'",
            f"docker run --rm image bash -c 'cd /work && A=b {SERVER} --tp 8 {MOE} flashinfer_cutlass > /logs/run.log'",
        ),
        (
            f'ssh node1 "source env.sh; {SERVER} --tp 8"',
            f'ssh node1 "source env.sh; {SERVER} --tp 8 {MOE} flashinfer_cutlass"',
        ),
        (f"nohup {SERVER} {MOE} triton &> run.log &", f"nohup {SERVER} {MOE} flashinfer_cutlass &> run.log &"),
        (
            f"{SERVER} --json-model-override-args '{{\"a\": \"b c\"}}' {MOE} triton",
            f"{SERVER} --json-model-override-args '{{\"a\": \"b c\"}}' {MOE} flashinfer_cutlass",
        ),
        (f"sglang serve --model $M {MOE} 'triton'", f"sglang serve --model $M {MOE} flashinfer_cutlass"),
        (
            f"{SERVER} --model-path m \\\n  --tp 8 \\\n  {MOE} triton \\\n  --port 1",
            f"{SERVER} --model-path m \\\n  --tp 8 \\\n  {MOE} flashinfer_cutlass \\\n  --port 1",
        ),
    ],
)  # fmt: skip
def test_the_written_command_is_edited_in_place(rules: RuleSet, before: str, after: str) -> None:
    """Wrapper, environment, quoting, line breaks and redirection stay as they were written."""
    assert rendered(before, rules) == after


def test_a_prompt_is_no_part_of_it(rules: RuleSet) -> None:
    """What the log shows in front of a command is cut."""
    assert rendered(f"+ {SERVER} --tp 8", rules) == f"{SERVER} --tp 8 {MOE} flashinfer_cutlass"
    assert rendered(f"user@box:~$ A=b {SERVER} --tp 8", rules) == f"A=b {SERVER} --tp 8 {MOE} flashinfer_cutlass"


def test_other_spellings_are_kept(rules: RuleSet) -> None:
    """A flag keeps the name that the user gave it; a switch is added without a value."""
    text = f"{SERVER} --tp 8 --fp4-gemm-runner-backend flashinfer_trtllm"
    done = rendered(text, rules, change("--fp4-gemm-backend", "flashinfer_cudnn"), change("--tp-size", "4"))
    assert done == f"{SERVER} --tp 4 --fp4-gemm-runner-backend flashinfer_cudnn"
    assert rendered(text, rules, change("--trust-remote-code", "true")) == f"{text} --trust-remote-code"


@pytest.mark.parametrize(
    "words",
    [
        [*SERVER.split(), "--model-path", "/models/my model", "--tp", "8"],
        ["env", "A=b c", *SERVER.split(), "--chat-template", 'it\'s "fine"', MOE, "triton"],
        ["docker", "run", "-e", "A=b", "image:v0.5.9", *SERVER.split(), "--tp", "8"],
        ["docker", "run", "image", "bash", "-c", f"cd /x && A=1 {SERVER} --chat-template 'a b' {MOE} triton"],
        ["bash", "-lc", f"{SERVER} --tp 8"],
        ["ssh", "-p", "22", "node1", f"A=1 {SERVER} --tp 8"],
    ],
)
def test_words_are_put_together_so_that_a_shell_reads_them_back(rules: RuleSet, words: list[str]) -> None:
    """A command given as words, read by a shell and by the finder, has the same parts, and the change."""
    started = launch(words, rules)
    found = command.render(started, [change()], rules)
    assert found is not None
    assert shlex.split(found[1])
    again = find_command(found[1], spec_of(rules))
    assert again is not None
    assert again.words == found[0]
    assert again.flags == {**started.flags, MOE: "flashinfer_cutlass"}
    assert again.env == started.env
    if words[0] != "env":  # an `env` in front of assignments says nothing
        assert again.wrapper == started.wrapper


def test_text_of_a_shell_is_quoted_as_one_word(rules: RuleSet) -> None:
    """What `bash -c` is given stays one word."""
    words = ["docker", "run", "image", "bash", "-c", f"cd /x && {SERVER} --tp 8"]
    found = command.render(launch(words, rules), [change()], rules)
    assert found is not None
    assert shlex.split(found[1])[:5] == words[:5]
    assert shlex.split(found[1])[5] == f"cd /x && {SERVER} --tp 8 {MOE} flashinfer_cutlass"


@pytest.mark.parametrize(
    "wrapper",
    [
        ["bash", "-c", '. ./envs.sh; exec "$@"', "bash"],
        ["sh", "-c", '"$@"', "--"],
        ["A=b", "/bin/bash", "-euc", 'cd $HOME\nexec "${@}" # it\'s here', "x", "nice"],
        ["docker", "run", "image", "bash", "-c", "exec $0 $*"],
        ["cd", "/x", "&&", "A=b", "bash", "-c", 'exec "$@"', "bash"],
    ],
)
def test_a_script_that_gets_the_command_as_arguments(rules: RuleSet, wrapper: list[str]) -> None:
    """The script stays as it is, for the shell that reads it; the command stays words of its own."""
    words = [*wrapper, *SERVER.split(), "--tp", "8"]
    found = command.render(launch(words, rules), [change()], rules)
    assert found is not None
    assert shlex.split(found[1]) == [*words, MOE, "flashinfer_cutlass"]
    assert "'" in found[1]  # no variable of the script is for the shell that launches


def test_a_direction_makes_no_command(rules: RuleSet) -> None:
    """A change without a value cannot be written down; neither can one without a command."""
    started = launch([f"{SERVER} --tp 8"], rules)
    assert command.render(started, [change(new=None)], rules) is None
    assert command.render(Launch(), [change()], rules) is None


def test_a_variable_is_set_in_front(rules: RuleSet) -> None:
    """A variable is set or replaced; inside a container it cannot be, so there is no command."""
    variable = change("NCCL_NVLS_ENABLE", "0")
    assert rendered(f"{SERVER} --tp 8", rules, variable) == f"NCCL_NVLS_ENABLE=0 {SERVER} --tp 8"
    assert rendered(f"NCCL_NVLS_ENABLE=1 {SERVER} --tp 8", rules, variable) == f"NCCL_NVLS_ENABLE=0 {SERVER} --tp 8"
    assert command.render(launch([f"docker run image {SERVER} --tp 8"], rules), [variable], rules) is None


@pytest.mark.parametrize(
    ("tail", "target"),
    [
        ("> run.log 2>&1", "run.log"), (">> /var/log/a.log", "/var/log/a.log"), ("&> x.log &", "x.log"),
        ("2>&1 | tee -a logs/run.log", "logs/run.log"), ("> /dev/null", None), ("2>&1", None), ("", None),
    ],
)  # fmt: skip
def test_where_the_output_went(rules: RuleSet, tail: str, target: str | None) -> None:
    """The file of a redirection or of tee; not the null device, not another descriptor."""
    assert command.redirect_target(launch([f"{SERVER} --tp 8 {tail}"], rules)) == target


def test_secrets_become_variables_that_the_shell_fills_in(rules: RuleSet) -> None:
    """Also where the secret stood in single quotes, in which a shell fills in nothing."""
    redactor = Redactor(rules.secrets)
    text = f"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz123456 {SERVER} --api-key 'sk-abcdefghijklmnop1234' --tp 8"
    shown = redact_shell(text, redactor)
    assert "hf_abc" not in shown
    assert "sk-abc" not in shown
    assert '--api-key "$API_KEY"' in shown
    assert shown.startswith("HF_TOKEN=$HF_TOKEN ")
    assert redact_shell(f"{SERVER} --tp 8", redactor) == f"{SERVER} --tp 8"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{SERVER} --tp 8 --odd x --port 1", f"{SERVER} --tp 8 --port 1"),
        (f"{SERVER} --odd=x --port 1 --odd", f"{SERVER} --port 1"),
        (f"{SERVER} --tp 8 --odd > run.log 2>&1", f"{SERVER} --tp 8 > run.log 2>&1"),
        (f"{SERVER} --tp 8 --odd 7 2>&1 | tee run.log", f"{SERVER} --tp 8 2>&1 | tee run.log"),
        (f"{SERVER} --odd 'a b' --odder --tp 8", f"{SERVER} --odder --tp 8"),
        (f"bash -c '{SERVER} --odd x --tp 8'", f"bash -c '{SERVER} --tp 8'"),
        (f"{SERVER} --tp 8 --port 1", f"{SERVER} --tp 8 --port 1"),
    ],
)
def test_a_flag_that_goes(before: str, after: str, rules: RuleSet) -> None:
    """It goes with its value wherever it stands, and nothing else does."""
    gone = change("--odd", None).replace(removed=True)
    assert rendered(before, rules, gone) == after
