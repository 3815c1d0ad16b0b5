"""Each check of preflight on machines and models that the tests write: what fails, what passes, what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from logtriage.environment import CONTAINER, Compiler, Environment, Gpu, Holder, PortUse, Space
from logtriage.runner import model_files
from tests.machines import GIB, RULES, found, launch, look, machine, model

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = RULES.server["preflight"]
MOE = "--moe-runner-backend"


def with_model(path: Path, **more: Any) -> Environment:
    return machine(**more).replace(model=model_files.read(str(path), KNOWN))


# ---- flags and values


@pytest.mark.parametrize(
    ("version", "flags", "severity", "says", "use"),
    [
        ("0.5.9", f"{MOE} flashinfer_cutlas", "will-fail", "did you mean flashinfer_cutlass?", "flashinfer_cutlass"),
        ("0.5.9", f"{MOE} marlin", "will-fail", "no choice of --moe-runner-backend in SGLang 0.5.9", None),
        ("0.5.16", f"{MOE} marlin --quantization modelopt_fp4", None, "", None),
        ("0.5.16", "--fp4-gemm-backend cutlass", "will-fail", "did you mean flashinfer_cutlass?", "flashinfer_cutlass"),
        ("0.5.15", "--fp4-gemm-backend cutlass", "unknown", "some versions near 0.5.15", None),
        ("0.5.7", "--fp4-gemm-backend flashinfer_cutlass", "will-fail", "no flag of SGLang 0.5.7", None),
        ("0.5.20", "--nsa-prefill-backend fa3", "will-fail", "--dsa-prefill-backend", "fa3"),
        ("0.5.16", "--nsa-prefill-backend fa3", None, "", None),
        ("0.5.13", "--cuda-graph-config x", "unknown", "some versions near 0.5.13", None),
        ("0.5.10.dev7+gabc", f"{MOE} flashinfer_trtllm_routed", "unknown", "near 0.5.10.dev7", None),
        ("0.5.9.post1", f"{MOE} marlin", "will-fail", "no choice", None),
        ("0.5.9", "--port 70000", "will-fail", "takes a port up to 65535", None),
        ("0.5.9", "--moe-runer-backend auto", "risk", "did you mean --moe-runner-backend?", "auto"),
        ("0.5.9", "--fp8-gemm-runner-backend triton", None, "", None),
        ("0.5.9", "--trust-remote 1", None, "", None),  # argparse reads the beginning of a flag as the flag
        ("0.5.9", "--something-else 1", "unknown", "not checked", None),
        ("0.5.9", f"{MOE} auto stray", "will-fail", "takes one value", None),
        ("0.5.9", MOE, "will-fail", "needs a value", None),
        ("0.9.0", f"{MOE} brand_new", "risk", "versions that were read", None),
        (None, f"{MOE} nonsense", "risk", "no version has", None),
        (None, f"{MOE} marlin", "unknown", "some versions only", None),
        ("0.5.9", "--port abc", "will-fail", "takes a whole number", None),
        ("0.5.9", "--chunked-prefill-size -1", None, "", None),
        ("0.5.9", "--json-model-override-args '{bad'", "will-fail", "takes JSON", None),
        ("0.5.9", "--json-model-override-args '{\"a\": 1}'", None, "", None),
    ],
)  # fmt: skip
def test_spelling_by_version(version: str | None, flags: str, severity: str | None, says: str, use: str | None) -> None:
    """A flag or value that the version lacks, with what it may have meant; what it has passes."""
    outlook = look(launch(flags), machine(90, 1), version=version)
    named = [item for item in outlook.findings if item.check in ("flag-version", "flag-value", "flag-spelling",
             "flag-unlisted", "flag-number", "flag-json")]  # fmt: skip
    if severity is None:
        assert named == []
        return
    [item] = named
    assert item.severity == severity
    assert says in item.what + item.why
    if use is not None:
        assert item.instead[0].new == use


def test_the_changed_command_has_the_new_name_of_a_flag() -> None:
    """A value is put right in the command; wrapper, variables and redirection stay."""
    text = f"cd /srv && A=1 nohup {launch(MOE, 'flashinfer_cutlas')} > run.log 2>&1 &"
    outlook = look(text, machine(120, 1), quantization="modelopt_fp4")
    assert outlook.command_text == text.replace("flashinfer_cutlas", "flashinfer_cutlass")


def test_a_variable_that_is_read_no_longer() -> None:
    """SGLANG_CUTLASS_MOE is gone in 0.5.23."""
    text = f"SGLANG_CUTLASS_MOE=1 {launch()}"
    assert "--moe-runner-backend cutlass" in found(look(text, machine(90, 1), version="0.5.23"), "risk")["variable"]
    assert "variable" not in found(look(text, machine(90, 1), version="0.5.9"), "risk")


# ---- sizes


@pytest.mark.parametrize(
    ("flags", "count", "fails", "says"),
    [
        ("--tp 8", 8, None, ""),
        ("--tp 8", 4, "gpu-count", "needs 8 GPUs here, and there are 4"),
        ("--tp 2 --pp 2 --dp 2", 8, None, ""),
        ("--tp 2 --pp 2 --dp 3", 8, "gpu-count", "tp 2 x pp 2 x dp 3 needs 12 GPUs"),
        ("--tp 16 --nnodes 2", 8, None, ""),
        ("--tp 16 --nnodes 3", 8, "size-divides", "not divisible by the number of machines 3"),
        ("--tp 4 --dp 4 --enable-dp-attention", 4, None, ""),
        ("--tp 8 --dp 3 --enable-dp-attention", 8, "size-divides", "not divisible by --dp-size 3"),
        ("--tp 2 --base-gpu-id 3 --gpu-id-step 2", 6, None, ""),
        ("--tp 2 --base-gpu-id 3 --gpu-id-step 3", 6, "gpu-count", "counted from GPU 3 in steps of 3"),
        ("--tp 7", 8, "heads", "64 attention heads cannot be divided among 7 ranks"),
        ("--tp 64", 64, None, ""),
        ("--tp 8 --ep 16", 8, "size-divides", "not divisible by --ep-size 16"),
        ("--tp 8 --ep 8", 8, None, ""),
        ("--tp 0", 8, "size-number", "whole number from 1"),
        ("--tp two", 8, "size-number", "whole number from 1"),
    ],
)
def test_parallel_sizes(tmp_path: Path, flags: str, count: int, fails: str | None, says: str) -> None:
    """Sizes against the GPUs of one machine, against each other, and against 64 heads and 128 experts."""
    environment = with_model(model(tmp_path / "m"), count=count)
    checks = found(look(launch("--load-format dummy", flags), environment), "will-fail")
    sizes = {name: what for name, what in checks.items() if name in ("gpu-count", "size-divides", "heads", "kv-heads",
             "experts", "size-number")}  # fmt: skip
    assert set(sizes) == ({fails} if fails else set())
    assert says in "".join(sizes.values())


@pytest.mark.parametrize(
    "flags",
    [
        "--tp 0",
        "--nnodes 0",
        "--pp 0 --dp 0",
        "--gpu-id-step 0",
        "--ep 0 --attn-cp-size 0",
        "--mem-fraction-static 0.5",
    ],
)
@pytest.mark.parametrize("memory", [0, 1, 96])
def test_zeros_divide_nothing(tmp_path: Path, flags: str, memory: int) -> None:
    """Sizes, counts of the model, blocks and memory of 0 end in findings, not in a defect."""
    sizes = dict.fromkeys(["num_attention_heads", "num_key_value_heads", "num_experts", "num_hidden_layers",
                           "intermediate_size"], 0)  # fmt: skip
    block = {"quant_method": "fp8", "weight_block_size": [0, 0]}
    for number, weights in enumerate((0, 400 * GIB)):
        folder = model(tmp_path / str(number), weights, **sizes, quantization_config=block)
        assert look(launch("--quantization fp8", flags), with_model(folder, memory=memory)).findings


def test_a_smaller_tp_is_offered_that_divides_the_heads(tmp_path: Path) -> None:
    """40 heads on six GPUs: tp 5 divides them, 6 does not."""
    environment = with_model(model(tmp_path / "m", num_attention_heads=40, num_key_value_heads=40), count=6)
    outlook = look(launch("--load-format dummy --tp 8"), environment)
    [item] = [item for item in outlook.findings if item.check == "gpu-count"]
    assert [change.new for change in item.instead] == ["5"]


def test_key_value_heads_and_experts(tmp_path: Path) -> None:
    """6 key-value heads on 4 ranks; 100 experts on 8; a model with latent attention has none to divide."""
    six = with_model(model(tmp_path / "a", num_key_value_heads=6), count=4)
    assert "kv-heads" in found(look(launch("--load-format dummy --tp 4"), six), "will-fail")
    latent = with_model(model(tmp_path / "b", num_key_value_heads=6, kv_lora_rank=512), count=4)
    assert "kv-heads" not in found(look(launch("--load-format dummy --tp 4"), latent), "will-fail")
    hundred = with_model(model(tmp_path / "c", num_experts=100))
    flags = "--load-format dummy --tp 8 --ep 8"
    assert "100 experts" in found(look(launch(flags), hundred), "will-fail")["experts"]
    assert "experts" not in found(look(launch(flags, "--ep-num-redundant-experts 4"), hundred), "will-fail")


def test_blocks_of_fp8_weights_are_not_cut(tmp_path: Path) -> None:
    """1536 rows of an expert over 8 ranks are 192, which is no multiple of 128; with expert parallelism none is cut."""
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    environment = with_model(model(tmp_path / "m", quantization_config=block), sm=90)
    checks = found(look(launch("--load-format dummy --tp 8"), environment), "will-fail")
    assert "no multiple of the weight block 128" in checks["weight-blocks"]
    for fine in ("--tp 4", "--tp 8 --ep 8"):
        outlook = look(launch("--load-format dummy", fine), environment)
        assert "weight-blocks" not in found(outlook, "will-fail"), fine


def test_the_text_part_of_a_model_counts(tmp_path: Path) -> None:
    """A model that sees has its heads in text_config."""
    inner = {"num_attention_heads": 6, "num_key_value_heads": 6}
    folder = model(tmp_path / "m", num_attention_heads=None, num_key_value_heads=None, text_config=inner)
    assert "heads" in found(look(launch("--load-format dummy --tp 4"), with_model(folder)), "will-fail")


# ---- memory


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    """400 GiB over two GPUs of 96 GiB; eight would do, and there are eight."""
    environment = with_model(model(tmp_path / "m", 200 * GIB, 200 * GIB))
    outlook = look(launch("--tp 2"), environment)
    [item] = [item for item in outlook.findings if item.check == "weights-fit"]
    assert (item.severity, item.label) == ("will-fail", "oom-weight-load")
    assert "200.0 GiB for each GPU of 96.0 GiB" in item.what
    assert [(change.flag, change.new) for change in item.instead] == [("--tp-size", "8")]
    eight = look(launch("--tp 8"), environment)
    assert "50.0 GiB of 96.0 GiB" in found(eight, "ok")["weights-fit"]
    offloaded = look(launch("--tp 4 --cpu-offload-gb 40.5"), environment)
    assert "59.5 GiB of 96.0 GiB" in found(offloaded, "ok")["weights-fit"]
    close = with_model(model(tmp_path / "n", 100 * GIB), count=1)  # 5 % may be layers that are not loaded
    assert "weights-fit" in found(look(launch(), close), "risk")


def test_a_fraction_without_room_for_the_cache(tmp_path: Path) -> None:
    """60 of 96 GiB are weights: 0.5 leaves nothing for the KV cache, 0.68 is offered; 85 is no fraction."""
    environment = with_model(model(tmp_path / "m", 60 * GIB), count=1)
    outlook = look(launch("--mem-fraction-static 0.5"), environment)
    [item] = [item for item in outlook.findings if item.check == "weights-fit"]
    assert (item.severity, item.label) == ("will-fail", "oom-kv-cache")
    assert [(change.flag, change.new) for change in item.instead] == [("--mem-fraction-static", "0.68")]
    assert not look(launch("--mem-fraction-static 0.68"), environment).fails
    for text in ("85", "0", "1.0", "much"):
        assert "memory-fraction" in found(look(launch(f"--mem-fraction-static {text}"), environment), "will-fail"), text


def test_a_command_is_offered_only_if_it_would_do(tmp_path: Path) -> None:
    """tp 1 divides 3 key-value heads, but 240 GiB do not fit on one GPU; an old name of a flag cannot stay."""
    environment = with_model(model(tmp_path / "m", 240 * GIB, num_key_value_heads=3), count=2, memory=140)
    outlook = look(launch("--tp 2"), environment)
    assert [(change.flag, change.new) for change in outlook.changes] == [("--tp-size", "1")]
    assert outlook.command_text is None
    small = with_model(model(tmp_path / "n", 20 * GIB, num_key_value_heads=3), count=2)
    assert "--tp 1" in str(look(launch("--tp 2"), small).command_text)
    renamed = look(launch("--nsa-prefill-backend fa3"), machine(90, 1), version="0.5.20")
    assert renamed.fails
    assert renamed.command_text is None
    taken = PortUse("--port", "127.0.0.1", 30000, "taken", other=30001)
    assert "--port 30001" in str(look(launch(), machine(90, 1, ports=(taken,))).command_text)


def test_another_process_is_named_first(tmp_path: Path) -> None:
    """What another process holds is told with its id and size; it fails where the weights need that room."""
    environment = with_model(model(tmp_path / "m", 60 * GIB), count=1)
    gpu = Gpu(0, "GPU", 120, 96 * GIB, 30 * GIB, (Holder(4711, "python3", 65 * GIB),))
    outlook = look(launch(), environment.replace(gpus=(gpu,)))
    [item] = [item for item in outlook.findings if item.check == "gpu-in-use"]
    assert item.severity == "will-fail"
    assert "process 4711 (python3): 65.0 GiB" in item.why
    small = with_model(model(tmp_path / "n", 6 * GIB), count=1).replace(gpus=(gpu,))
    assert "gpu-in-use" in found(look(launch(), small), "risk")
    unseen = environment.replace(gpus=(gpu.replace(holders=()),))
    [item] = [item for item in look(launch(), unseen).findings if item.check == "gpu-in-use"]
    assert "another container" in item.why


def test_kernels_that_rearrange_weights_need_a_second_copy(tmp_path: Path) -> None:
    """93 of 94 GiB and one of 94 layers more: trtllm rearranges, cutlass does not."""
    folder = model(tmp_path / "m", int(93.5 * GIB), quantized=True)
    environment = with_model(folder, sm=100, count=1, memory=94)
    flags = "--mem-fraction-static 0.999 --quantization modelopt_fp4"
    assert "weights-repacked" in found(look(launch(flags, f"{MOE} flashinfer_trtllm"), environment), "risk")
    assert "weights-repacked" not in found(look(launch(flags, f"{MOE} flashinfer_cutlass"), environment), "risk")


def test_weights_that_are_quantized_while_loading_are_not_counted(tmp_path: Path) -> None:
    """BF16 files with --quantization fp8 take less than their size: nothing is claimed."""
    environment = with_model(model(tmp_path / "m", 150 * GIB), count=1)
    assert "weights-fit" in found(look(launch(), environment), "will-fail")
    assert "weights-fit" not in found(look(launch("--quantization fp8"), environment), "will-fail")


# ---- the model's files


def test_quantization_of_the_command_and_of_the_files(tmp_path: Path) -> None:
    """NVFP4 files: --quantization fp8 contradicts them; without the flag they decide which kernels run."""
    environment = with_model(model(tmp_path / "m", GIB, quantized=True))
    outlook = look(launch("--tp 8 --quantization fp8"), environment)
    assert "nvfp4" in found(outlook, "will-fail")["quantization-files"]
    outlook = look(launch(f"--tp 8 {MOE} flashinfer_trtllm"), environment)
    assert outlook.launch.facts["quantization"] == "modelopt_fp4"
    assert [item.label for item in outlook.findings if item.severity == "will-fail"] == ["sm100-only-kernel"]


@pytest.mark.parametrize(
    ("version", "sm", "fails"),
    [("0.5.12", 90, True), ("0.5.14", 90, False), ("0.5.14", 75, True), ("0.5.9", 120, False)],
)
def test_quantization_starts_on_some_gpus_only(version: str, sm: int, fails: bool) -> None:
    """NVFP4 takes SM100 up to 0.5.12 and SM80 from 0.5.14 on."""
    outlook = look(launch("--quantization modelopt_fp4"), machine(sm, 1), version=version)
    assert ("gpu-demand" in found(outlook, "will-fail")) == fails


def test_context_and_remote_code(tmp_path: Path) -> None:
    """A longer context than the model's, unless it is allowed; scaled positions are not judged; code of its own."""
    environment = with_model(model(tmp_path / "m", GIB, auto_map={"AutoConfig": "c.C"}))
    risks = found(look(launch("--tp 8 --context-length 50000"), environment), "risk")
    assert "40960" in risks["context-length"]
    assert "remote-code" in risks
    allowed = (
        f"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 {launch('--tp 8 --context-length 50000 --trust-remote-code')}"
    )
    assert not {"context-length", "remote-code"} & set(found(look(allowed, environment), "risk"))
    scaled = with_model(model(tmp_path / "s", GIB, rope_scaling={"rope_type": "yarn", "factor": 4.0}))
    assert "context-length" not in found(look(launch("--tp 8 --context-length 50000"), scaled), "risk")


# ---- toolkit


def nvcc(version: str | None, where: str = "CUDA_HOME", path: str = "/opt/cuda/bin/nvcc") -> Compiler:
    return Compiler(where, path, version)


TWO = (Compiler("Triton's package", "/t/ptxas", "12.8"), Compiler("Triton's package", "/t/ptxas-blackwell", "12.9"))
PACKAGES = {"server_version": "0.5.9", "torch": "2.9.1", "flashinfer": "0.6.6", "flashinfer_cubin": "0.6.6"}
FLAGS = launch("--quantization modelopt_fp4", f"{MOE} flashinfer_cutlass")


@pytest.mark.parametrize(
    ("sm", "more", "check", "severity", "says"),
    [
        (120, {"nvcc": (nvcc("12.6"),)}, "nvcc", "will-fail", "does not know SM120, which takes 12.8"),
        (120, {"nvcc": (nvcc("12.8"),)}, "nvcc", "will-fail", "too old for FlashInfer on SM120, which takes 12.9"),
        (120, {"nvcc": (nvcc("12.9"),)}, "nvcc", "ok", "knows the GPU"),
        (100, {"nvcc": (nvcc("12.8"),)}, "nvcc", "ok", "knows the GPU"),
        (103, {"nvcc": (nvcc("12.8"),)}, "nvcc", "will-fail", "does not know SM103, which takes 12.9"),
        (120, {"nvcc": ()}, "nvcc", "risk", "there is no nvcc"),
        (120, {"nvcc": (nvcc(None),)}, "nvcc", "risk", "which is not there"),
        (120, {"nvcc": None}, "nvcc", None, ""),
        (120, {"nvcc": (nvcc("13.0"),), "torch_cuda": "12.8"}, "nvcc-torch", "risk", "extensions"),
        (100, {"nvcc": (nvcc("12.8"),), "torch_cuda": "12.9"}, "nvcc-torch", "risk", "older than the CUDA 12.9"),
        (100, {"nvcc": (nvcc("12.9"),), "torch_cuda": "12.8"}, "nvcc-torch", None, ""),
        (120, {"torch_cuda": "12.6"}, "torch-gpu", "will-fail", "does not run on SM120"),
        (90, {"torch_cuda": "12.6"}, "torch-gpu", None, ""),
        (90, {"torch_cuda": "13.0", "driver": "570.1", "driver_cuda": "12.8"}, "driver", "will-fail", "driver 570.1"),
        (90, {"torch_cuda": "12.8", "driver": "550.1", "driver_cuda": "12.4"}, "driver", None, ""),
        (121, {"ptxas": (Compiler("Triton's package", "/t/ptxas", "12.8"),)}, "ptxas", "will-fail", "SM121"),
        (103, {"ptxas": TWO}, "ptxas", None, ""),
        (90, {"ptxas": TWO}, "ptxas", None, ""),
        (120, {"missing": ("sglang",), "python": "/usr/bin/python3"}, "package", "will-fail", "has no sglang"),
        (120, {"missing": ("python3",)}, "package", "will-fail", "python3 is not found on PATH"),
    ],
)  # fmt: skip
def test_toolkit(sm: int, more: dict[str, Any], check: str, severity: str | None, says: str) -> None:
    """nvcc, ptxas, PyTorch and the driver against the GPU."""
    outlook = look(FLAGS, machine(sm, 1, packages=PACKAGES, **more))
    named = {item.severity: item.what for item in outlook.findings if item.check == check}
    assert set(named) == ({severity} if severity else set())
    assert says in "".join(named.values())


def test_a_newer_toolkit_of_the_machine_is_offered() -> None:
    """CUDA_HOME leads to 12.6 and 13.0 is on PATH: CUDA_HOME is to lead there; Triton is given its ptxas."""
    both = (nvcc("12.6"), nvcc("13.0", "PATH", "/usr/local/cuda-13/bin/nvcc"))
    old = (Compiler("Triton's package", "/t/ptxas", "12.6"),)
    outlook = look(FLAGS, machine(120, 1, packages=PACKAGES, nvcc=both, ptxas=old))
    ways = {item.check: [(change.flag, change.new) for change in item.instead] for item in outlook.findings}
    assert ways["nvcc"] == [("CUDA_HOME", "/usr/local/cuda-13")]
    assert ways["ptxas"] == [("TRITON_PTXAS_PATH", "/usr/local/cuda-13/bin/ptxas")]
    assert outlook.command_text is not None
    assert outlook.command_text.startswith("CUDA_HOME=/usr/local/cuda-13 TRITON_PTXAS_PATH=")


def test_prebuilt_kernels_make_nvcc_a_risk_only() -> None:
    """With flashinfer-jit-cache an old nvcc may never be run, and none is no finding."""
    packages = {**PACKAGES, "flashinfer_jit_cache": "0.6.6"}
    old = look(FLAGS, machine(120, 1, packages=packages, nvcc=(nvcc("12.6"),)))
    assert "nvcc" in found(old, "risk")
    none = look(FLAGS, machine(120, 1, packages=packages, nvcc=()))
    assert "nvcc" not in found(none, "risk", "will-fail")


@pytest.mark.parametrize(
    ("packages", "severity", "says"),
    [
        ({"flashinfer": "0.6.3", "torch": "2.9.1+cu128", "sgl_kernel": "0.3.21"}, None, ""),
        ({"flashinfer": "0.6.2"}, "risk", "older than the 0.6.3 that SGLang 0.5.9 asks for"),
        ({"torch": "2.10.0"}, "risk", "newer than the 2.9.1"),
        ({"flashinfer": "0.6.3", "flashinfer_cubin": "0.6.2"}, "will-fail", "does not go with flashinfer-python 0.6.3"),
        ({"flashinfer": "0.6.3", "flashinfer_jit_cache": "0.6.3+cu130"}, None, ""),
    ],
)
def test_versions_that_go_together(packages: dict[str, str], severity: str | None, says: str) -> None:
    """What SGLang 0.5.9 is made with; FlashInfer's parts have one version, whatever they are built for."""
    outlook = look(launch(), machine(90, 1, packages={"server_version": "0.5.9", **packages}))
    named = {item.severity: item.what for item in outlook.findings if item.check == "package-versions"}
    assert set(named) == ({severity} if severity else set())
    assert says in "".join(named.values())


def test_cubins_that_are_downloaded() -> None:
    """trtllm kernels without flashinfer-cubin need the network, which is only a risk."""
    packages = {name: version for name, version in PACKAGES.items() if name != "flashinfer_cubin"}
    flags = launch("--quantization modelopt_fp4", f"{MOE} flashinfer_trtllm")
    assert "flashinfer-cubin" in found(look(flags, machine(100, 1, packages=packages)), "risk")["cubins"]
    assert "cubins" not in found(look(flags, machine(100, 1, packages=PACKAGES)), "risk")


# ---- the machine


def test_ports() -> None:
    """A port that is taken, who holds it and one that is free; an address of another machine; one for root."""
    taken = PortUse("--port", "127.0.0.1", 30000, "taken", 4711, "nginx", 30001)
    outlook = look(launch(), machine(90, 1, ports=(taken,)))
    [item] = [item for item in outlook.findings if item.check == "port"]
    assert item.what == "--port 30000 is taken by process 4711 (nginx)"
    assert [(change.flag, change.new) for change in item.instead] == [("--port", "30001")]
    assert item.label == "port-in-use"
    for state, says in (("no-address", "no address of this machine"), ("refused", "takes root")):
        use = taken.replace(state=state, pid=None, process=None, other=None)
        assert says in found(look(launch(), machine(90, 1, ports=(use,))), "will-fail")["port"]


def test_room_limits_and_shared_memory() -> None:
    """Little room for kernels, a folder that cannot be written, few open files, little shared memory for two ranks."""
    caches = [cache["what"] for cache in KNOWN["caches"]]
    spaces = (Space(caches[0], "/c", GIB, writable=True), Space(caches[1], "/t", 99 * GIB, writable=False))
    environment = machine(90, 2, spaces=spaces, open_files=1024, shm=64 << 20)
    risks = found(look(launch("--tp 2"), environment), "risk")
    assert {"disk", "cache-folder", "open-files", "shared-memory"} <= set(risks)
    assert "shared-memory" not in found(look(launch(), environment), "risk")
    assert "proxy" in found(look(launch(), machine(90, 1, proxy="http_proxy")), "risk")


def test_containers_need_shared_memory_and_gpus() -> None:
    """docker run gives 64 MiB of shared memory and no GPU unless it is told."""
    inside = f"lmsysorg/sglang:v0.5.9 {launch('--tp 2')}"
    risks = found(look(f"docker run --rm {inside}", machine(90, 2, where=CONTAINER)), "risk")
    assert {"shared-memory", "container-gpus"} <= set(risks)
    fine = look(f"docker run --gpus all --ipc=host {inside}", machine(90, 2, where=CONTAINER))
    assert not {"shared-memory", "container-gpus"} & set(found(fine, "risk"))
    assert fine.launch.facts["server_version"] == "0.5.9"


def test_no_gpu_at_all() -> None:
    """CUDA_VISIBLE_DEVICES that leaves no GPU fails, unless the server is to run on the processor."""
    assert "gpu-count" in found(look(launch(), machine(count=0)), "will-fail")
    assert "gpu-count" not in found(look(launch("--device cpu"), machine(count=0)), "will-fail")


def test_an_attention_backend_for_another_kind_of_model(tmp_path: Path) -> None:
    """trtllm_mla serves latent attention only, aiter AMD's GPUs."""
    environment = with_model(model(tmp_path / "m", GIB), sm=100, count=1)
    risks = found(look(launch("--attention-backend trtllm_mla"), environment), "risk")
    assert risks["backend-model"] == "--attention-backend trtllm_mla is for MLA models; this one has MHA"
    risks = found(look(launch("--attention-backend aiter"), environment), "risk")
    assert risks["backend-platform"] == "--attention-backend aiter is for rocm; this is cuda"
