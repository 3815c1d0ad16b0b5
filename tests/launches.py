"""Logs of launches that the tests write: an NVFP4 MoE model on eight GPUs, and how a launch of it may end."""

from __future__ import annotations

MODEL = "nvidia/Qwen3.5-397B-A17B-NVFP4"
GPUS = {
    75: "Tesla T4", 80: "NVIDIA A100-SXM4-80GB", 86: "NVIDIA GeForce RTX 3090", 89: "NVIDIA L40S",
    90: "NVIDIA H200", 100: "NVIDIA B200", 103: "NVIDIA B300 SXM6 AC", 110: "NVIDIA Thor",
    120: "NVIDIA RTX PRO 6000 Blackwell Server Edition", 121: "NVIDIA GB10",
}  # fmt: skip

TRTLLM_MOE = """\
[2026-02-11 09:20:19 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/sglang/srt/managers/scheduler.py", line 3120, in run_scheduler_process
    scheduler = Scheduler(
  File "/opt/sglang/sglang/srt/layers/moe/fused_moe_triton/layer.py", line 1090, in forward
    return self.forward_impl(hidden_states, topk_output)
  File "/opt/sglang/flashinfer/fused_moe/core.py", line 2104, in trtllm_fp4_block_scale_moe
    return get_trtllm_moe_sm100_module().trtllm_fp4_block_scale_moe(
  File "/opt/sglang/flashinfer/jit/fused_moe.py", line 218, in gen_trtllm_gen_fused_moe_sm100_module
    nvcc_flags = current_compilation_context.get_nvcc_flags_list(
  File "/opt/sglang/flashinfer/compilation_context.py", line 71, in get_nvcc_flags_list
    raise RuntimeError(
RuntimeError: No supported CUDA architectures found for major versions [10].

"""
TRTLLM_GEMM = """\
[2026-02-11 09:20:19 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/sglang/srt/managers/scheduler.py", line 3120, in run_scheduler_process
    scheduler = Scheduler(
  File "/opt/sglang/sglang/srt/layers/quantization/modelopt_quant.py", line 1201, in apply
    out = fp4_gemm(x_fp4, w, x_scale_interleaved, w_scale_interleaved, layer.alpha, output_dtype, w_n)
  File "/opt/sglang/flashinfer/utils.py", line 1004, in wrapper
    raise BackendSupportedError(
flashinfer.utils.BackendSupportedError: mm_fp4 does not support backend 'trtllm' with capability 120

"""
KILLED = "bash: line 14: 48326 Killed\n"
READY = """\
[2026-02-11 09:22:41] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-02-11 09:22:43] The server is fired up and ready to roll!
"""
GARBAGE = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "' + b"!" * 120 + b'"}}]}'
GOOD = b'{"choices": [{"message": {"role": "assistant", "content": "The capital of France is Paris."}}]}'


def command(*flags: str, redirect: str = "") -> str:
    """Return the command of a launch with further flags."""
    words = [
        f"python3 -m sglang.launch_server --model-path {MODEL} --quantization modelopt_fp4 --tp 8",
        *flags,
        redirect,
    ]
    return " ".join(word for word in words if word)


def log(
    *flags: str, end: str = READY, sm: int | None = 120, version: str | None = "0.5.9", redirect: str = ""
) -> bytes:
    """Return the log of a launch of the NVFP4 MoE model with further flags and an end."""
    lines = [f"+ {command(*flags, redirect=redirect)}"]
    lines += [f"GPU 0: {GPUS[sm]} (UUID: GPU-0f1e2d3c)"] if sm is not None else []
    lines += [f"sglang: {version}"] if version is not None else []
    lines += [
        "[2026-02-11 09:14:21 TP0] Init torch distributed begin.",
        "[2026-02-11 09:14:29 TP0] Load weight begin. avail mem=93.11 GB",
        "[2026-02-11 09:20:11 TP0] Load weight end. elapsed=342.07 s, type=Qwen3_5MoeForConditionalGeneration, "
        "dtype=torch.bfloat16, avail mem=62.40 GB, mem usage=30.71 GB.",
    ]
    return ("\n".join(lines) + "\n" + end).encode()
