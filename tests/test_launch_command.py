"""A server command is found in whatever stands around it, and its arguments are read without running anything."""

from __future__ import annotations

import shlex

import pytest

from logtriage.intake.launch_command import Command, LaunchSpec, canonical, find_command
from logtriage.intake.server_args import from_server_args

SPEC = LaunchSpec(
    modules=("sglang.launch_server", "sglang.srt.entrypoints.http_server", "sglang_router.launch_server"),
    commands=(("sglang", "serve"),),
    aliases={
        "--model": "--model-path",
        "--tp": "--tp-size",
        "--tensor-parallel-size": "--tp-size",
        "--dp": "--dp-size",
        "--fp4-gemm-runner-backend": "--fp4-gemm-backend",
    },
)
SERVER = "python3 -m sglang.launch_server"
WORDS = ("python3", "-m", "sglang.launch_server", "--model-path", "/m", "--tp", "8")
CORE = f"{SERVER} --model-path /m --tp 8"
FLAGS = {"--model-path": "/m", "--tp-size": "8"}


def found(text: str | list[str]) -> Command:
    command = find_command(text, SPEC)
    assert command is not None, text
    return command


# text → wrapper, env, image, redirect; the server command is CORE in each.
WRAPPED: list[tuple[str, tuple[str, ...], dict[str, str], str | None, str]] = [
    (CORE, (), {}, None, ""),
    (f"+ {CORE}", (), {}, None, ""),
    (f"++ {CORE}", (), {}, None, ""),
    (f"$ {CORE}", (), {}, None, ""),
    (f"user@host:~$ {CORE}", (), {}, None, ""),
    (f"root@3f2a:/sgl-workspace# {CORE}", (), {}, None, ""),
    (f"(venv) user@gpu-01:~/x$ {CORE}", (), {}, None, ""),
    (f"[user@gpu01 work]$ {CORE}", (), {}, None, ""),
    (f"[2026-11-29 12:00:00] {CORE}", (), {}, None, ""),
    (f"[2026-11-29 12:00:00] Launching: {CORE}", (), {}, None, ""),
    (f"Running command: nohup {CORE}", ("nohup",), {}, None, ""),
    (f"Starting {CORE}", (), {}, None, ""),
    (f"Launching: A=b {CORE}", (), {"A": "b"}, None, ""),
    (f"Executing A=b {CORE}", (), {"A": "b"}, None, ""),
    (f"Running: bash -c 'A=b {CORE}'", ("bash", "-c"), {"A": "b"}, None, ""),
    (
        f"docker run -dp 30000:30000 -itv /a:/b -uroot img:1 {CORE}",
        ("docker", "run", "-dp", "30000:30000", "-itv", "/a:/b", "-uroot", "img:1"),
        {},
        "img:1",
        "",
    ),
    (f"# {SERVER} --tp 2\n{CORE}", (), {}, None, ""),
    (f"nohup {CORE} > run.log 2>&1 &", ("nohup",), {}, None, "> run.log 2>&1 &"),
    (f"{CORE} 2>&1 | tee run.log", (), {}, None, "2>&1 | tee run.log"),
    (f"{CORE} &> run.log & echo $!", (), {}, None, "&> run.log & echo $!"),
    (f"{CORE}; echo done", (), {}, None, "; echo done"),
    (f"numactl --membind=0 {CORE}", ("numactl", "--membind=0"), {}, None, ""),
    (f"srun -N2 --gpus=8 {CORE}", ("srun", "-N2", "--gpus=8"), {}, None, ""),
    (
        f"srun --container-image=lmsysorg/sglang:v0.5.9 {CORE}",
        ("srun", "--container-image=lmsysorg/sglang:v0.5.9"),
        {},
        "lmsysorg/sglang:v0.5.9",
        "",
    ),
    (f"timeout 600 {CORE}", ("timeout", "600"), {}, None, ""),
    (f"sudo -E {CORE}", ("sudo", "-E"), {}, None, ""),
    (f"sudo A=b {CORE}", ("sudo", "A=b"), {"A": "b"}, None, ""),
    (f"exec {CORE}", ("exec",), {}, None, ""),
    (f"uv run {CORE}", ("uv", "run"), {}, None, ""),
    (f"cd /opt/x && {CORE}", ("cd", "/opt/x", "&&"), {}, None, ""),
    (f"export A=b C='d e' && {CORE}", (), {"A": "b", "C": "d e"}, None, ""),
    (f"source v/bin/activate; A=b {CORE}", ("source", "v/bin/activate", ";"), {"A": "b"}, None, ""),
    (f"CUDA_VISIBLE_DEVICES=0,1 A= {CORE}", (), {"CUDA_VISIBLE_DEVICES": "0,1", "A": ""}, None, ""),
    (f"env A=b C=d {CORE}", (), {"A": "b", "C": "d"}, None, ""),
    (f"env -i A=b {CORE}", ("env", "-i", "A=b"), {"A": "b"}, None, ""),
    (f"nohup env A=b C=d {CORE}", ("nohup", "env", "A=b", "C=d"), {"A": "b", "C": "d"}, None, ""),
    (f"bash -c '{CORE}'", ("bash", "-c"), {}, None, ""),
    (f"bash -lc 'cd /x && A=b {CORE} > y' &", ("bash", "-lc", "cd", "/x", "&&"), {"A": "b"}, None, "> y &"),
    (f'/bin/sh -c "{CORE}"', ("/bin/sh", "-c"), {}, None, ""),
    (f"kubectl exec -it pod-0 -- {CORE}", ("kubectl", "exec", "-it", "pod-0", "--"), {}, None, ""),
    (
        f"docker run --gpus all --rm -it --shm-size 32g -p 30000:30000 -v ~/.cache:/root/.cache -e A=b --env C=d "
        f'--env=E=f --ipc=host lmsysorg/sglang:v0.5.9-cu129 bash -c "{CORE}"',
        (
            *("docker", "run", "--gpus", "all", "--rm", "-it", "--shm-size", "32g", "-p", "30000:30000"),
            *("-v", "~/.cache:/root/.cache", "-e", "A=b", "--env", "C=d", "--env=E=f", "--ipc=host"),
            *("lmsysorg/sglang:v0.5.9-cu129", "bash", "-c"),
        ),
        {"A": "b", "C": "d", "E": "f"},
        "lmsysorg/sglang:v0.5.9-cu129",
        "",
    ),
    (
        f"sudo docker run -d -eA=b --label x=y lmsysorg/sglang:latest {CORE}",
        ("sudo", "docker", "run", "-d", "-eA=b", "--label", "x=y", "lmsysorg/sglang:latest"),
        {"A": "b"},
        "lmsysorg/sglang:latest",
        "",
    ),
    (
        f"apptainer exec --nv docker://lmsysorg/sglang:v0.5.9 {CORE}",
        ("apptainer", "exec", "--nv", "docker://lmsysorg/sglang:v0.5.9"),
        {},
        "docker://lmsysorg/sglang:v0.5.9",
        "",
    ),
    (f"set -x\nexport A=b\ncd /x\n{CORE}\necho done", (), {"A": "b"}, None, ""),
    (f"A=b \\\n  {SERVER} \\\n  --model-path /m \\\n  --tp 8", (), {"A": "b"}, None, ""),
    (f"$ {SERVER} \\\n> --model-path /m \\\n> --tp 8", (), {}, None, ""),
    (f"{CORE}  # eight GPUs", (), {}, None, ""),
    ("command: " + str(list(WORDS)), (), {}, None, ""),
    ('command: ["python3","-m","sglang.launch_server"]\nargs: ["--model-path", "/m", "--tp", "8"]', (), {}, None, ""),
    ('"Cmd": ["python3", "-m", "sglang.launch_server", "--model-path", "/m", "--tp", 8]', (), {}, None, ""),
    (f'command: ["bash", "-c", "A=b {CORE}"]', ("bash", "-c"), {"A": "b"}, None, ""),
]


@pytest.mark.parametrize(("text", "wrapper", "env", "image", "redirect"), WRAPPED)
def test_what_stands_around_a_command(
    text: str, wrapper: tuple[str, ...], env: dict[str, str], image: str | None, redirect: str
) -> None:
    assert found(text) == Command(wrapper, env, WORDS, FLAGS, image, redirect)


@pytest.mark.parametrize(
    ("text", "words", "flags"),
    [
        (
            "sglang serve --model-path /m --dp=2",
            ("sglang", "serve", "--model-path", "/m", "--dp=2"),
            {"--model-path": "/m", "--dp-size": "2"},
        ),
        ("/opt/venv/bin/sglang serve --tp 2", ("/opt/venv/bin/sglang", "serve", "--tp", "2"), {"--tp-size": "2"}),
        (
            "python -u -X dev -m sglang.launch_server --tp 2",
            ("python", "-u", "-X", "dev", "-m", "sglang.launch_server", "--tp", "2"),
            {"--tp-size": "2"},
        ),
        (
            "/usr/bin/python3.12 -m sglang.launch_server --tp 2",
            ("/usr/bin/python3.12", "-m", "sglang.launch_server", "--tp", "2"),
            {"--tp-size": "2"},
        ),
        (
            "python /w/python/sglang/launch_server.py --tp 2",
            ("python", "/w/python/sglang/launch_server.py", "--tp", "2"),
            {"--tp-size": "2"},
        ),
        (
            "uv run -m sglang.launch_server --tp 2",
            ("uv", "run", "-m", "sglang.launch_server", "--tp", "2"),
            {"--tp-size": "2"},
        ),
    ],
)
def test_spellings_of_the_server(text: str, words: tuple[str, ...], flags: dict[str, str]) -> None:
    command = found(text)
    assert (command.wrapper, command.words, command.flags) == ((), words, flags)


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ("", {}),
        ("--trust-remote-code", {"--trust-remote-code": "true"}),
        ("--tp 2 --tp 4", {"--tp-size": "4"}),
        ("--tp 2 --tensor-parallel-size=4", {"--tp-size": "4"}),
        ("--cuda-graph-bs 1 2 4 8 --tp 2", {"--cuda-graph-bs": "1 2 4 8", "--tp-size": "2"}),
        ("--random-seed -1 --x -0.5", {"--random-seed": "-1", "--x": "-0.5"}),
        ("--a '{\"k\": [1, -2]}' --tp 2", {"--a": '{"k": [1, -2]}', "--tp-size": "2"}),
        ('--a "{\\"k\\": 1}"', {"--a": '{"k": 1}'}),
        ("--a='x=y z'", {"--a": "x=y z"}),
        ("--chat-template '' --tp 2", {"--chat-template": "", "--tp-size": "2"}),
        ("--tp_size 2", {"--tp-size": "2"}),
        ("--api-key <redacted:flag-value> --tp 2", {"--api-key": "<redacted:flag-value>", "--tp-size": "2"}),
        ("--a 'open --tp 2", {"--a": "open", "--tp-size": "2"}),
        ("--a 'open --tp 2 > run.log 2>&1 &", {"--a": "open", "--tp-size": "2"}),
        ("--m $(pwd)/x --h ${HOST}", {"--m": "$(pwd)/x", "--h": "${HOST}"}),
    ],
)
def test_flags(arguments: str, flags: dict[str, str]) -> None:
    assert found(f"{SERVER} {arguments}").flags == flags


def test_an_unclosed_quote_in_another_line_does_no_harm() -> None:
    text = f"don't care\n+ {CORE} --a 'x y' > log\nit isn't here"
    assert found(text).flags == {**FLAGS, "--a": "x y"}
    assert found(text).redirect == "> log"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "torchrun --nproc-per-node 8 -m sglang.launch_server --tp 8",
        "torchrun train.py",
        "python -m torch.distributed.run -m sglang.launch_server --tp 8",
        "python3 -m sglang.bench_serving --port 30000",
        "pip install sglang",
        "usage: sglang serve [-h] --model-path MODEL_PATH",
        "You can also run sglang serve",
        "  Example: sglang serve --model-path <model> [options]",
        "try: sglang serve --model-path /m",
        "'python -m sglang.launch_server' is still supported, but 'sglang serve' is recommended",
        '  File "/opt/sglang/launch_server.py", line 30, in <module>',
        "ls /opt/sglang/launch_server.py",
        "server_args=ServerArgs(model_path='/m')",
    ],
)
def test_what_is_no_launch(text: str) -> None:
    assert find_command(text, SPEC) is None
    assert find_command(text.split(), SPEC) is None


@pytest.mark.parametrize(
    "argv",
    [
        list(WORDS),
        ["docker", "run", "img:1", *WORDS],
        ["bash", "-c", CORE],
        ["A=b", "nohup", *WORDS],
        [f"A=b {CORE}"],
    ],
)
def test_words_that_a_shell_has_split(argv: list[str]) -> None:
    command = found(argv)
    assert (command.words, command.flags, command.redirect) == (WORDS, FLAGS, "")


def test_words_with_shell_characters_are_words() -> None:
    command = found([*WORDS, "--a", "x > y; z & 'q", "--b", '{"k": "v"}'])
    assert command.flags == {**FLAGS, "--a": "x > y; z & 'q", "--b": '{"k": "v"}'}


def test_canonical() -> None:
    assert canonical("--tp", SPEC) == "--tp-size"
    assert canonical("--tp=8", SPEC) == "--tp-size"
    assert canonical("--model_path", SPEC) == "--model-path"
    assert canonical("-h", SPEC) == "-h"


# Recorded launches: name, variables, port and what follows it.
COMMON = "--sampling-backend pytorch --mem-fraction-static 0.5 --max-total-tokens 20000"
GRAPH = "--disable-prefill-cuda-graph --cuda-graph-max-bs-decode 8"
DENSE = "--model-path /models/dense --load-format dummy --attention-backend"
MOE = "--model-path /models/moe --load-format dummy --attention-backend triton --sampling-backend pytorch"
BIG = "--model-path /models/bigmoe --load-format dummy --attention-backend triton"
TRITON = f"--attention-backend triton {COMMON} {GRAPH}"
LOW = "--sampling-backend pytorch --mem-fraction-static 0.1 --disable-prefill-cuda-graph"
PARROT = "--attention-backend triton --sampling-backend pytorch --mem-fraction-static 0.3 --max-total-tokens 20000"
RECORDED: list[tuple[str, dict[str, str], str]] = [
    ("attn-cutlass-mla", {}, f"31360 {DENSE} cutlass_mla {COMMON} {GRAPH}"),
    ("attn-fa3", {}, f"31340 {DENSE} fa3 {COMMON} {GRAPH}"),
    ("attn-flashinfer-jit", {}, f"31000 {DENSE} flashinfer {COMMON} {GRAPH}"),
    ("attn-trtllm-mha", {}, f"31160 {DENSE} trtllm_mha {LOW}"),
    ("bad-architecture", {}, f"31520 --model-path /models/badarch --load-format dummy {TRITON}"),
    (
        "bogus-choice",
        {},
        f"31600 {DENSE} triton {COMMON} {GRAPH} --moe-runner-backend flashinfer_cutedls",
    ),
    ("context-too-long", {}, f"31620 {DENSE} triton {COMMON} {GRAPH} --context-length 1000000"),
    ("dense-triton-ok", {}, f"31000 {DENSE} triton {LOW}"),
    (
        "fi-nvcc-118",
        {
            "CUDA_HOME": "/usr/local/cuda-11.8",
            "PATH": "/usr/local/cuda-11.8/bin:/opt/venv/bin:/usr/bin:/bin",
            "FLASHINFER_WORKSPACE_BASE": "/cache/fi2",
        },
        f"31160 {DENSE} flashinfer {COMMON} {GRAPH}",
    ),
    ("kv-fp4", {}, f"31440 {DENSE} triton {COMMON} {GRAPH} --kv-cache-dtype fp4_e2m1"),
    (
        "kv-frac-too-low",
        {},
        f"31020 {BIG} --sampling-backend pytorch --mem-fraction-static 0.05 --moe-runner-backend triton",
    ),
    ("kv-oom-hog", {}, f"31060 {DENSE} triton {COMMON} {GRAPH}"),
    ("model-path-missing", {}, "31200 --model-path /models/not-there"),
    (
        "moe-flashinfer-trtllm",
        {},
        f"31080 {MOE} --moe-runner-backend flashinfer_trtllm --mem-fraction-static 0.1 --disable-prefill-cuda-graph",
    ),
    (
        "moe-fp8-postprocess-oom",
        {},
        f"31000 {BIG} {COMMON} {GRAPH} --quantization fp8 --moe-runner-backend triton",
    ),
    ("moe-load-oom", {}, f"31040 {BIG} {COMMON} {GRAPH} --moe-runner-backend triton"),
    (
        "moe-triton-ok-2",
        {},
        f"31120 --model-path /models/moe --load-format dummy {TRITON} --moe-runner-backend triton",
    ),
    (
        "moe-triton-ok",
        {},
        f"31020 {MOE} --moe-runner-backend triton --mem-fraction-static 0.1 --disable-prefill-cuda-graph",
    ),
    ("nans-degenerate", {}, f"31080 --model-path /models/nans {TRITON}"),
    ("no-gpu-visible", {"CUDA_VISIBLE_DEVICES": ""}, f"31420 {DENSE} triton {COMMON} {GRAPH}"),
    (
        "nvfp4-dense-fp4cudnn",
        {},
        f"31280 --model-path /models/dense-nvfp4 --load-format dummy {TRITON} --quantization modelopt_fp4 "
        "--fp4-gemm-backend flashinfer_cudnn",
    ),
    (
        "nvfp4-moe-cutlass",
        {},
        "31100 --model-path /models/moe-nvfp4 --load-format dummy --quantization modelopt_fp4 "
        "--attention-backend triton --sampling-backend pytorch --moe-runner-backend flashinfer_cutlass "
        "--mem-fraction-static 0.1 --disable-prefill-cuda-graph",
    ),
    ("parrot-moe", {}, f"31020 --model-path /models/parrot-moe {PARROT} {GRAPH} --moe-runner-backend triton"),
    ("port-in-use", {}, f"34000 {DENSE} triton {COMMON} {GRAPH}"),
    ("remote-code", {}, f"31540 --model-path /models/remotecode --load-format dummy {TRITON}"),
    ("scheduler-killed", {}, f"31680 {DENSE} triton {COMMON} {GRAPH}"),
    (
        "tp2-one-gpu",
        {},
        "31220 --model-path /models/dense --load-format dummy --tp 2 --attention-backend triton "
        "--disable-prefill-cuda-graph",
    ),
    ("truncated-weights", {}, f"31500 --model-path /models/truncated {TRITON}"),
    ("zeros", {}, f"31040 --model-path /models/zeros {PARROT} {GRAPH}"),
]


@pytest.mark.parametrize(("name", "env", "rest"), RECORDED, ids=[row[0] for row in RECORDED])
def test_a_recorded_launch(name: str, env: dict[str, str], rest: str) -> None:
    line = " ".join([*(f"{key}={value}" for key, value in env.items()), f"{SERVER} --host 127.0.0.1 --port {rest}"])
    words = tuple(shlex.split(f"{SERVER} --host 127.0.0.1 --port {rest}"))
    command = found(f"+ {line}")
    assert (command.wrapper, command.env, command.words) == ((), env, words)
    assert command.flags["--host"] == "127.0.0.1"
    assert command.flags["--model-path"].startswith("/models/")
    assert len(command.flags) == sum(word.startswith("--") for word in words)
    assert ("--tp" not in words) or command.flags["--tp-size"] == "2"
    assert all(value == "true" for flag, value in command.flags.items() if flag.startswith("--disable"))


REPR = (
    "[2026-11-29 12:04:35] server_args=ServerArgs(model_path='/models/dense', tp_size=8, quantization=None, "
    "mem_fraction_static=0.1, offload_group_size=-1, model_loader_extra_config='{\"a\": [1, 2]}', host='', "
    "trust_remote_code=False, cuda_graph_config=CudaGraphConfig(decode=PhaseConfig(backend='full', bs=[1, 2, 4], "
    "x=None)), mm_process_config={}, encoder_urls=[], chat_template='it, (is) \\'so\\'', title=\"it's\", "
    "limit={'image': 4}, fp4_gemm_runner_backend='auto', attention_backend='triton') and more"
)


def test_server_args_repr() -> None:
    assert from_server_args(REPR, SPEC) == {
        "model_path": "/models/dense",
        "tp_size": "8",
        "mem_fraction_static": "0.1",
        "offload_group_size": "-1",
        "model_loader_extra_config": '{"a": [1, 2]}',
        "host": "",
        "trust_remote_code": "False",
        "cuda_graph_config": "CudaGraphConfig(decode=PhaseConfig(backend='full', bs=[1, 2, 4], x=None))",
        "mm_process_config": "{}",
        "encoder_urls": "[]",
        "chat_template": "it, (is) 'so'",
        "title": "it's",
        "limit": "{'image': 4}",
        "fp4_gemm_backend": "auto",
        "attention_backend": "triton",
    }


@pytest.mark.parametrize(
    "text",
    [
        "server_args={'model_path': '/m', 'tp_size': 8, 'x': None, 'flag': True, 'bs': [1, {'a': (2, 3)}]}",
        'server_args={"model_path": "/m", "tp_size": 8, "x": null, "flag": true, "bs": [1, {\'a\': (2, 3)}]} end',
        "server_args={'model_path':'/m','tp_size':8,'x':None,'flag':True,'bs':[1, {'a': (2, 3)}]}",
    ],
)
def test_server_args_dict(text: str) -> None:
    assert from_server_args(text, SPEC) == {
        "model_path": "/m",
        "tp_size": "8",
        "flag": "True",
        "bs": "[1, {'a': (2, 3)}]",
    }


def test_a_cut_line_gives_what_was_read_and_never_half_a_value() -> None:
    whole = from_server_args(REPR, SPEC)
    assert whole is not None
    for length in range(len(REPR)):
        part = from_server_args(REPR[:length], SPEC) or {}
        assert part.items() <= whole.items()
    assert from_server_args(REPR[: REPR.index("8, quant") + 1], SPEC) == {"model_path": "/models/dense"}


@pytest.mark.parametrize(
    "text", ["", "server_args=", "def f(server_args: ServerArgs) -> None:", "ServerArgs(**kwargs)"]
)
def test_no_server_args(text: str) -> None:
    assert from_server_args(text, SPEC) is None


@pytest.mark.parametrize(
    "text",
    [
        "sglang serve " + "'" * 65001,
        "sglang serve " + '"\\' * 32000,
        "sglang.launch_server " + "; " * 32000,
        "sglang.launch_server " + "bash -c ' " * 6000,
        "sglang serve " + "[1," * 20000,
        "sglang serve --a " + "x " * 30000,
        "python3 " + "-m sglang.launch_server_ " * 2600,
        "sglang.launch_server " + "[" * 64000,
        "server_args={'a': " + "[" * 64000,
        "server_args={'a': '" + "\\" * 64001,
        "server_args={" + "'a'" * 20000,
    ],
    ids=lambda text: text[:34],
)
def test_hostile_text_comes_back(text: str) -> None:
    command = find_command(text, SPEC)
    assert command is None or command.words
    assert not from_server_args(text, SPEC)
