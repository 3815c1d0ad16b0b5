"""The probe of a machine: real interpreters, compilers, files and ports; what does not answer is not known."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from logtriage.engine.launch import from_command
from logtriage.environment import CONTAINER, ELSEWHERE, HERE, Environment, Gpu
from logtriage.runner import container, gpus, host, installed, model_files, target
from logtriage.runner.environment import probe
from tests.machines import GIB, NVFP4, RULES, machine, model, tensors

if TYPE_CHECKING:
    from pathlib import Path

ANY = "0.0.0.0"  # noqa: S104 - nothing is served there
KNOWN = RULES.server["preflight"]
SERVER = "-m sglang.launch_server --model-path some/model"


def program(path: Path, text: str) -> str:
    """Write a program that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def compiler(path: Path, release: str) -> str:
    return program(path, f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")


def site(folder: Path) -> Path:
    """A folder of packages as pip leaves them; importing one of them fails."""
    versions = {"sglang": "0.5.9", "torch": "2.9.1+cu128", "sgl-kernel": "0.3.21", "flashinfer-python": "0.6.3"}
    for name, version in versions.items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    for module in ("sglang", "torch", "triton"):
        (folder / module).mkdir()
        (folder / module / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    lines = "from typing import Optional\n__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\nhip = None\n"
    (folder / "torch" / "version.py").write_text(lines, encoding="utf-8")
    compiler(folder / "triton/backends/nvidia/bin/ptxas", "12.8")
    return folder


def goal(command: str, environ: dict[str, str] | None = None, cwd: str = "/srv") -> target.Target:
    environ = {"PATH": os.environ["PATH"], "HOME": "/home/me", **(environ or {})}
    return target.find(from_command([command], RULES), KNOWN, environ, cwd)


# ---- where a command runs


@pytest.mark.parametrize(
    ("command", "where", "by", "cwd"),
    [
        (f"python3 {SERVER}", HERE, None, "/srv"),
        (f"nohup env A=1 numactl -N 0 python3 {SERVER} > log 2>&1 &", HERE, None, "/srv"),
        (f"cd ~/run && python3 {SERVER}", HERE, None, "/home/me/run"),
        (f"bash -lc 'cd sub && python3 {SERVER}'", HERE, None, "/srv/sub"),
        (f"docker run --gpus all -v /docker:/ssh img python3 {SERVER}", CONTAINER, "docker", "/srv"),
        (f"docker exec box bash -c 'python3 {SERVER}'", CONTAINER, "docker", "/srv"),
        (f"docker pull img && python3 {SERVER}", HERE, None, "/srv"),
        (f"ssh -p 22 node1 'cd /x && python3 {SERVER}'", ELSEWHERE, "ssh", "/x"),
        (f"ssh node1 docker run img python3 {SERVER}", ELSEWHERE, "ssh", "/srv"),
        (f"srun -N 2 python3 {SERVER}", ELSEWHERE, "srun", "/srv"),
        (f"kubectl exec pod -- python3 {SERVER}", ELSEWHERE, "kubectl", "/srv"),
        (f"cd /data/ssh && python3 {SERVER}", HERE, None, "/data/ssh"),
    ],
)
def test_where_a_command_runs(command: str, where: str, by: str | None, cwd: str) -> None:
    """Wrappers that stay here, containers, and programs that go elsewhere; names of folders are none of them."""
    found = goal(command)
    assert (found.where, found.by, found.cwd) == (where, by, cwd)


def test_which_python_a_command_runs(tmp_path: Path) -> None:
    """The one named, of the activated environment, of the script's first line; else the reason why it is not known."""
    python = program(tmp_path / "env/bin/python3", "#!/bin/sh\n")
    assert goal(f"{python} {SERVER}").python == python
    assert goal(f"env/bin/python3 {SERVER}", cwd=str(tmp_path)).python == python
    assert goal(f"cd {tmp_path} && source env/bin/activate && python3 {SERVER}").python == python
    assert goal(f"python3 {SERVER}", {"PATH": str(tmp_path / "env/bin")}).python == python
    serve = "sglang serve --model-path some/model"
    for number, lines in enumerate((f"#!{python}\n", f'#!/bin/sh\n\'\'\'exec\' "{python}" "$0" "$@"\n')):
        program(tmp_path / f"{number}/sglang", lines)
        assert goal(serve, {"PATH": str(tmp_path / str(number))}).python == python
    reasons = {"uv run python": "uv chooses", "conda run -n x python": "conda chooses", "$PYTHON": "stands for it",
               "docker run img python3": "docker"}  # fmt: skip
    for words, why in reasons.items():
        found = goal(f"{words} {SERVER}")
        assert found.python is None
        assert why in found.why
    assert goal(f"/nowhere/python3 {SERVER}").missing == "/nowhere/python3"
    assert goal(f"$PYTHON {SERVER}", {"PYTHON": python}).python == python


# ---- what is installed


def test_an_interpreter_is_asked_and_imports_nothing(tmp_path: Path) -> None:
    """Versions, PyTorch's CUDA and Triton's ptxas come from files: the packages raise when they are imported."""
    env = {**os.environ, "PYTHONPATH": str(site(tmp_path / "site"))}
    found = installed.ask(sys.executable, KNOWN["packages"], ["sglang", "torch", "deep_ep"], env, str(tmp_path))
    assert found.versions is not None
    assert found.versions["server_version"] == "0.5.9"
    assert found.versions["sgl_kernel"] == "0.3.21"
    assert found.versions["flashinfer"] == "0.6.3"
    assert "flashinfer_cubin" not in found.versions
    assert found.torch_cuda == "12.8"
    assert found.missing == ("deep_ep",)
    [ptxas] = installed.assemblers(found.ptxas or (), env, str(tmp_path))
    assert ptxas.version == "12.8"


def test_an_interpreter_that_chats_or_fails_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other code prints does not matter; no answer, a bad one, or none in time is a gap with its reason."""
    chatty = tmp_path / "chatty"
    chatty.mkdir()
    (chatty / "sitecustomize.py").write_text("print('hello {')\n", encoding="utf-8")
    found = installed.ask(sys.executable, {}, [], {**os.environ, "PYTHONPATH": str(chatty)}, "/")
    assert found.versions is not None
    monkeypatch.setattr(installed, "_LIMIT_S", 1.0)
    cases = {
        "broken library": "#!/bin/sh\necho 'broken library' >&2\nexit 3\n",
        "unclear": "#!/bin/sh\necho '{}'\necho '[1]' >&1\n",
        "no answer within 1 s": "#!/bin/sh\nexec sleep 60\n",
    }
    for number, (why, text) in enumerate(cases.items()):
        python = program(tmp_path / str(number) / "python3", text)
        found = installed.ask(python, {}, [], dict(os.environ), "/")
        assert found.versions is None
        assert why in found.gaps[0] or why == "unclear"


def test_the_nvcc_that_counts_comes_first(tmp_path: Path) -> None:
    """CUDA_HOME before PATH, as FlashInfer and PyTorch look; one that is not there has no release."""
    old = compiler(tmp_path / "old/bin/nvcc", "11.8")
    compiler(tmp_path / "new/bin/nvcc", "13.0")
    env = {"PATH": f"{tmp_path / 'new/bin'}:/bin:/usr/bin", "CUDA_HOME": str(tmp_path / "old")}
    found = list(installed.nvccs(env, "/"))
    assert [(item.found, item.version) for item in found[:2]] == [("CUDA_HOME", "11.8"), ("PATH", "13.0")]
    assert found[0].path == old
    gone = list(installed.nvccs({**env, "CUDA_HOME": str(tmp_path / "gone")}, "/"))
    assert [(item.found, item.version) for item in gone[:2]] == [("CUDA_HOME", None), ("PATH", "13.0")]


# ---- GPUs


class NvmlError(Exception):
    """As nvidia-ml-py has it."""


def nvml(count: int = 2, **more: Any) -> Any:
    """A module like nvidia-ml-py's, for GPUs of one kind."""

    def refuse(*_: object) -> None:
        raise NvmlError("Not Supported")

    parts = {
        "NVMLError": NvmlError,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.159.04",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}abc",
        "nvmlDeviceGetName": lambda _: b"NVIDIA H200",
        "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=140 * GIB, free=20 * GIB),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [SimpleNamespace(pid=os.getpid(), usedGpuMemory=119 * GIB)],
        "nvmlDeviceGetMigMode": refuse,
    }
    return SimpleNamespace(**{**parts, **more})


@pytest.mark.parametrize(
    ("visible", "indexes", "gaps"),
    [(None, [0, 1, 2, 3], 0), ("2,0", [2, 0], 0), ("GPU-1a", [1], 0), ("", [], 0), ("1,7,2", [1], 1), ("-1", [], 1),
     ("MIG-1", [], 1)],
)  # fmt: skip
def test_visible_gpus(visible: str | None, indexes: list[int], gaps: int) -> None:
    """CUDA_VISIBLE_DEVICES by number and by name; it ends at the first entry that names no GPU, and that is said."""
    found = gpus.read(visible, nvml(4))
    assert [gpu.index for gpu in found.gpus or ()] == indexes
    assert len(found.gaps) == gaps


def test_what_nvml_tells_of_a_gpu() -> None:
    """Name, compute capability, memory, the process that holds it; memory that NVML does not tell is not known."""
    found = gpus.read(None, nvml(1))
    [gpu] = found.gpus or ()
    assert (gpu.name, gpu.sm, gpu.memory, gpu.free) == ("NVIDIA H200", 90, 140 * GIB, 20 * GIB)
    assert (gpu.holders[0].pid, gpu.holders[0].used) == (os.getpid(), 119 * GIB)
    assert gpu.holders[0].name
    assert (found.driver, found.driver_cuda, found.platform) == ("580.159.04", "13.0", "cuda")

    def refuse(*_: object) -> None:
        raise NvmlError("Not Supported")

    shared = gpus.read(None, nvml(1, nvmlDeviceGetMemoryInfo=refuse, nvmlDeviceGetComputeRunningProcesses=refuse))
    assert shared.gpus == (Gpu(0, "NVIDIA H200", 90),)
    none = gpus.read(None, nvml(nvmlInit=refuse))
    assert none.gpus is None
    assert "Not Supported" in none.gaps[0]


# ---- model files


def test_sizes_come_from_headers_alone(tmp_path: Path) -> None:
    """300 GiB of tensors are added up from headers of files that take no room."""
    found = model_files.read(str(model(tmp_path / "m", 100 * GIB, 200 * GIB, quantized=True)), KNOWN)
    assert found.weight_bytes == 300 * GIB
    assert (found.architecture, found.quantization, found.method) == (
        "Qwen3MoeForCausalLM",
        "modelopt_fp4",
        "modelopt NVFP4",
    )
    assert found.config["heads"] == 64
    assert found.faults == found.weight_faults == ()
    only = model_files.read(str(tmp_path / "m" / "config.json"), KNOWN)
    assert (only.config, only.weight_bytes) == (found.config, None)


def test_numbers_of_32_bits_count_half(tmp_path: Path) -> None:
    """SGLang loads a checkpoint in FP32 as 16 bits."""
    folder = model(tmp_path / "m")
    header = {"a": {"dtype": "F32", "data_offsets": [0, 400]}, "b": {"dtype": "BF16", "data_offsets": [400, 500]}}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(500))
    assert model_files.read(str(folder), KNOWN).weight_bytes == 300


def test_weights_that_cannot_be_loaded(tmp_path: Path) -> None:
    """A file that is missing, cut, a pointer of Git LFS, or no safetensors file: each is named."""
    folder = model(tmp_path / "m", GIB, GIB, GIB, GIB)
    first, second, third, fourth = sorted(folder.glob("*.safetensors"))
    first.unlink()
    tensors(second, GIB, cut=1)
    third.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n", encoding="utf-8")
    fourth.write_bytes(b"\xff" * 100)
    found = model_files.read(str(folder), KNOWN)
    assert found.weight_bytes is None
    for path, says in ((first, "No such file"), (second, "is cut"), (third, "Git LFS pointer"), (fourth, "is cut")):
        assert [says for fault in found.weight_faults if fault.startswith(str(path)) and says in fault] == [says]


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100000, "\x00"])
def test_a_broken_config_is_a_fault(tmp_path: Path, text: str) -> None:
    """A config.json that is none; a folder without one; no folder."""
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    [fault] = model_files.read(str(tmp_path), KNOWN).faults
    assert fault.startswith(str(tmp_path / "config.json"))
    assert model_files.read(str(tmp_path / "gone"), KNOWN).faults == (f"{tmp_path / 'gone'} does not exist",)


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "modelopt_fp4"),
        ({"text_config": {"quantization_config": {"quant_method": "mxfp4"}}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "brand-new"}}, None),
        ({}, "unquant"),
    ],
)
def test_the_quantization_of_the_files(tmp_path: Path, told: dict[str, Any], value: str | None) -> None:
    """As config.json tells it, in any part; a method that is not known is not guessed."""
    assert model_files.read(str(model(tmp_path / "m", GIB, **told)), KNOWN).quantization == value


def test_a_model_of_the_hub_is_found_where_it_was_downloaded(tmp_path: Path) -> None:
    """By its branch, in the folder that the variables name; what is not there is said, and not downloaded."""
    folder = tmp_path / "hub/models--org--name"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs/main").write_text("abc123", encoding="utf-8")
    (folder / "snapshots").mkdir()
    snapshot = model(folder / "snapshots/abc123", GIB)
    for env in ({"HF_HOME": str(tmp_path)}, {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HOME": "/nowhere"}):
        assert model_files.find("org/name", None, KNOWN["hub"], env, "/") == (str(snapshot), "")
    env = {"HF_HOME": str(tmp_path)}
    next(snapshot.glob("*.safetensors")).unlink()
    partly = probe([f"python3 {SERVER.replace('some/model', 'org/name')}"], RULES, environ=env, cwd=str(tmp_path))
    assert partly.model is not None
    assert partly.model.weight_faults == ()
    assert any("only partly here" in gap for gap in partly.gaps)
    offline = {**env, "HF_HUB_OFFLINE": "1"}
    cut_off = probe([f"python3 {SERVER.replace('some/model', 'org/name')}"], RULES, environ=offline, cwd=str(tmp_path))
    assert cut_off.model is not None
    assert "No such file" in cut_off.model.weight_faults[0]
    assert "would be downloaded" in model_files.find("org/other", None, KNOWN["hub"], env, "/")[1]
    assert "elsewhere" in model_files.find("s3://bucket/name", None, KNOWN["hub"], env, "/")[1]
    assert model_files.find("/no/folder", None, KNOWN["hub"], env, "/") == ("/no/folder", "")
    found = probe([f"HF_HUB_OFFLINE=1 python3 {SERVER}"], RULES, environ=env, cwd=str(tmp_path))
    assert found.model is not None
    assert "HF_HUB_OFFLINE forbids it" in found.model.faults[0]


# ---- the machine


def test_ports_are_tried() -> None:
    """A port where this process listens is taken by it; the one that is offered is free; an address of another."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        [taken] = host.ports([("--port", "127.0.0.1", port)])
        assert (taken.state, taken.pid) == ("taken", os.getpid())
        assert host.port_state(ANY, port) == "taken"
        assert taken.other is not None
    assert host.port_state("127.0.0.1", taken.other) == "free"
    assert host.port_state("127.0.0.1", port) == "free"
    assert host.port_state("192.0.2.1", port) == "no-address"
    assert host.port_state("no.such.host.invalid", port) == "no-address"


def test_folders_and_limits(tmp_path: Path) -> None:
    """The folder that a variable names, and one that is not made yet; limits are numbers of this machine."""
    env = {"HOME": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "t")}
    found = {space.path: space for space in host.spaces(KNOWN["caches"], env)}
    assert set(found) == {str(tmp_path / ".cache/flashinfer"), str(tmp_path / "t")}
    assert all(space.free > 0 and space.writable for space in found.values())
    assert host.open_files() is None or host.open_files() > 0
    paths = [("--chat-template", str(tmp_path)), ("--chat-template", "chatml"), ("--lora-paths", "a=/no/lora")]
    assert list(host.absent(paths, env, "/")) == [("--lora-paths", "/no/lora")]


def test_a_proxy_between_the_server_and_itself() -> None:
    """http_proxy counts unless no_proxy exempts the server's own address."""
    assert host.proxy_for("127.0.0.1", {}) is None
    assert host.proxy_for("127.0.0.1", {"http_proxy": "http://p:1"}) == "http_proxy"
    assert host.proxy_for(ANY, {"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.1"}) == "HTTP_PROXY"
    assert host.proxy_for(ANY, {"http_proxy": "http://p:1", "no_proxy": "localhost,127.0.0.1"}) is None


# ---- the whole


def test_the_probe_of_this_machine(tmp_path: Path) -> None:
    """Everything together: model, packages of the Python that the command names, compilers, ports."""
    folder = model(tmp_path / "m", GIB, quantized=True)
    compiler(tmp_path / "cuda/bin/nvcc", "12.8")
    environ = {**os.environ, "PYTHONPATH": str(site(tmp_path / "site")), "CUDA_HOME": str(tmp_path / "cuda")}
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(folder), "--port", "1"]
    found = probe(command, RULES, environ=environ, cwd=str(tmp_path))
    facts = found.facts()
    assert (facts["server_version"], facts["toolkit"], facts["quantization"]) == ("0.5.9", "12.8", "modelopt_fp4")
    assert found.missing == ()
    assert found.python == sys.executable
    assert [port.flag for port in found.ports] == ["--port"]
    assert found.identity()["architecture"] == "Qwen3MoeForCausalLM"


def test_a_dead_file_system_does_not_hold_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model files that never answer are left behind and named; the rest is told."""
    alive_again = threading.Event()
    monkeypatch.setattr(model_files, "read", lambda *given, **named: alive_again.wait(60))
    command = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(tmp_path)]
    found = probe(command, RULES, cwd=str(tmp_path), limit_s=2.0)
    alive_again.set()
    assert found.model is None
    assert "model files: no answer within 2 s." in found.gaps
    assert found.spaces


def test_containers_and_other_machines_are_not_looked_into(tmp_path: Path) -> None:
    """Of a container the GPUs alone are known, of another machine nothing; a model is read where it is given."""
    folder = model(tmp_path / "m", GIB)
    inside = probe([f"docker run --gpus all img python3 -m sglang.launch_server --model-path {folder}"], RULES)
    assert (inside.where, inside.packages, inside.nvcc, inside.model) == (CONTAINER, None, None, None)
    assert any("container (docker)" in gap for gap in inside.gaps)
    other = probe([f"ssh node python3 -m sglang.launch_server --model-path {folder}"], RULES)
    assert (other.where, other.gpus, other.ports, other.model) == (ELSEWHERE, None, (), None)
    given = probe([f"ssh node python3 {SERVER}"], RULES, model=str(folder))
    assert given.model is not None
    assert given.model.weight_bytes == GIB


def test_a_configuration_alone_is_no_failure(tmp_path: Path) -> None:
    """A folder given for its config.json need not hold weights; one that the launch loads from must."""
    folder = model(tmp_path / "m", GIB)
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    given = probe([f"python3 {SERVER}"], RULES, model=str(folder))
    assert given.model is not None
    assert given.model.weight_faults == ()
    assert any("holds no weights" in gap for gap in given.gaps)
    loaded = probe([f"python3 -m sglang.launch_server --model-path {folder}"], RULES)
    assert loaded.model is not None
    assert any("holds no weights" in fault for fault in loaded.model.weight_faults)


def test_a_container_sees_folders_and_gpus_of_this_machine(tmp_path: Path) -> None:
    """The model is read through the mount that holds it, a folder or the cache of the hub; GPUs as --gpus says."""
    folder = model(tmp_path / "m", GIB)
    snapshot = tmp_path / "hf/hub/models--org--name/snapshots"
    snapshot.mkdir(parents=True)
    model(snapshot / "main", 2 * GIB)
    run = "docker run --gpus all"
    sizes = {
        f"{run} -v {tmp_path}:/models:ro img python3 -m sglang.launch_server --model-path /models/m": GIB,
        f"{run} --mount type=bind,source={folder},target=/m img python3 -m sglang.launch_server --model-path /m": GIB,
        f"{run} -v {tmp_path}/hf:/root/.cache/huggingface img python3 -m sglang.launch_server --model org/name": 2
        * GIB,
        f"{run} -v {tmp_path}/hf:/hf -e HF_HOME=/hf img python3 -m sglang.launch_server --model org/name": 2 * GIB,
        f"{run} -v models:/models img python3 -m sglang.launch_server --model-path /models/m": None,
        f"{run} img python3 -m sglang.launch_server --model org/name": None,
    }
    for command, size in sizes.items():
        found = probe([command], RULES, environ={"HOME": "/home/me"}, cwd="/").model
        assert (found.weight_bytes if found else None) == size, command
    gone = probe([f"{run} -v {tmp_path}:/models img python3 -m sglang.launch_server --model-path /models/x"], RULES)
    assert gone.model is not None
    assert gone.model.faults == (f"{tmp_path}/x does not exist",)
    given = {"all": (None, None), "2": (None, 2), '"device=1,3"': ("1,3", None), "device=GPU-1a": ("GPU-1a", None)}
    for text, expected in given.items():
        assert container.visible_gpus(["docker", "run", "--gpus", text, "img"]) == expected


def test_the_key_names_what_evidence_depends_on() -> None:
    """The same machine has the same key; another driver, GPU or version has another; free memory does not count."""
    base = machine(120, 8, driver="580.1", packages={"server_version": "0.5.9", "torch": "2.9.1"})
    assert base.key() == machine(120, 8, driver="580.1", packages={"torch": "2.9.1", "server_version": "0.5.9"}).key()
    assert base.replace(shm=5, open_files=7).key() == base.key()
    busy = tuple(gpu.replace(free=0) for gpu in base.gpus or ())
    assert base.replace(gpus=busy).key() == base.key()
    others = (
        base.replace(driver="590.2"),
        base.replace(packages={"server_version": "0.5.10", "torch": "2.9.1"}),
        machine(90, 8, driver="580.1", packages=base.packages),
    )
    assert len({base.key(), *(other.key() for other in others)}) == 4
    assert Environment().key() == Environment().key()


def test_hf_quant_config_may_be_broken(tmp_path: Path) -> None:
    """A hf_quant_config.json that is none does not stop the probe: the quantization is what config.json tells."""
    folder = model(tmp_path / "m", GIB)
    (folder / "hf_quant_config.json").write_text(json.dumps(NVFP4)[:-5], encoding="utf-8")
    assert model_files.read(str(folder), KNOWN).quantization == "unquant"
