"""Log lines as SGLang 0.5.9 and 0.5.16 print them, and what failures print. Written for the tests."""

from __future__ import annotations

GPUS = {90: "NVIDIA H200", 100: "NVIDIA B200", 120: "NVIDIA RTX PRO 6000 Blackwell Server Edition"}

STAGES = ("args", "init", "weight-load", "kv-cache", "cuda-graph", "warmup")

_OLD = {
    "init": ["{t}Init torch distributed begin.", "{t}Init torch distributed ends. elapsed=0.61 s, mem usage=0.13 GB"],
    "weight-load": [
        "{t}Load weight begin. avail mem=93.11 GB",
        "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.90it/s]",
        "{t}Load weight end. elapsed=1.07 s, type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=62.40 GB, "
        "mem usage=30.71 GB.",
    ],
    "kv-cache": [
        "{t}KV Cache is allocated. #tokens: 20000, K size: 0.08 GB, V size: 0.08 GB",
        "{t}Memory pool end. avail mem=60.02 GB",
    ],
    "cuda-graph": [
        "{t}Capture cuda graph begin. This can take up to several minutes. avail mem=59.90 GB",
        "{t}Capture cuda graph end. Time elapsed: 0.92 s. mem usage=0.11 GB. avail mem=59.79 GB.",
    ],
    "warmup": [
        "{t}max_total_num_tokens=20000, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=2048, context_len=32768, available_gpu_mem=59.79 GB",
    ],
}
_NEW = {
    **_OLD,
    "weight-load": [
        "{t}Load weight begin. avail mem=93.11 GB",
        "Multi-thread loading shards: 100% Completed | 2/2 [00:01<00:00,  1.90it/s]",
        "{t}Load weight end. elapsed=1.07 s, type=Qwen3MoeForCausalLM, avail mem=62.40 GB, mem usage=30.71 GB.",
    ],
    "kv-cache": [
        "{t}KV Cache is allocated. dtype: torch.bfloat16, #tokens: 20000, K size: 0.08 GB, V size: 0.08 GB",
        "{t}Memory pool end. avail mem=60.02 GB",
    ],
    "cuda-graph": [
        "{t}Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4, 8], "
        "avail mem=59.90 GB",
        "{t}Capture target decode CUDA graph end. elapsed=0.92 s, mem usage=0.11 GB, avail mem=59.79 GB.",
    ],
}

_HIT = """{t}Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/sglang/srt/managers/scheduler.py", line 3120, in run_scheduler_process
    scheduler = Scheduler(
"""
FAILURES = {
    "trtllm-moe": _HIT
    + """  File "/opt/sglang/sglang/srt/layers/moe/fused_moe_triton/layer.py", line 1090, in forward
    return self.forward_impl(hidden_states, topk_output)
  File "/opt/sglang/flashinfer/fused_moe/core.py", line 2104, in trtllm_fp4_block_scale_moe
    return get_trtllm_moe_sm100_module().trtllm_fp4_block_scale_moe(
  File "/opt/sglang/flashinfer/jit/fused_moe.py", line 218, in gen_trtllm_gen_fused_moe_sm100_module
    nvcc_flags = current_compilation_context.get_nvcc_flags_list(
  File "/opt/sglang/flashinfer/compilation_context.py", line 71, in get_nvcc_flags_list
    raise RuntimeError(
RuntimeError: No supported CUDA architectures found for major versions [10].
""",
    "trtllm-gemm": _HIT
    + """  File "/opt/sglang/sglang/srt/layers/quantization/modelopt_quant.py", line 1201, in apply
    out = fp4_gemm(x_fp4, w, x_scale_interleaved, w_scale_interleaved, layer.alpha, output_dtype, w_n)
  File "/opt/sglang/flashinfer/utils.py", line 1004, in wrapper
    raise BackendSupportedError(
flashinfer.utils.BackendSupportedError: mm_fp4 does not support backend 'trtllm' with capability {sm}
""",
    "trtllm-mha": """Traceback (most recent call last):
  File "/opt/sglang/sglang/launch_server.py", line 68, in <module>
    server_args = prepare_server_args(sys.argv[1:])
  File "/opt/sglang/sglang/srt/server_args.py", line 5025, in _handle_attention_backend_compatibility
    raise ValueError(
ValueError: TRTLLM MHA backend for prefill is only supported on Blackwell GPUs (SM100). \
Please use a different prefill backend.
""",
    "nvfp4-marlin": _HIT
    + """  File "/opt/sglang/sglang/srt/layers/quantization/modelopt_quant.py", line 1905, in __init__
    raise ValueError(
ValueError: Current platform does not support NVFP4 quantization with the selected MoE backend. \
Please use Blackwell and above, or use moe_runner_backend=marlin on SM80+.
""",
    "fa3": _HIT
    + """  File "/opt/sglang/sglang/srt/layers/attention/flashattention_backend.py", line 12, in <module>
    from sgl_kernel.flash_attn import flash_attn_varlen_func
ImportError: Can not import FA3 in sgl_kernel. Please check your installation.
""",
    "no-model": """Traceback (most recent call last):
  File "/opt/sglang/sglang/launch_server.py", line 68, in <module>
    server_args = prepare_server_args(sys.argv[1:])
  File "/opt/sglang/transformers/utils/hub.py", line 531, in cached_files
    raise OSError(
OSError: Can't load the configuration of 'missing'. If you were trying to load it from \
'https://huggingface.co/models', make sure you don't have a local directory with the same name.
""",
    "nvcc": _HIT
    + """  File "/opt/sglang/flashinfer/jit/cpp_ext.py", line 92, in get_cuda_path
    raise RuntimeError("Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist")
RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist
""",
}


def stage_lines(stage: str, version: str) -> list[str]:
    """What a stage prints, first half at its begin, the rest at its end; `{t}` stands for the prefix of a rank."""
    return (_OLD if version.startswith("0.5.9") else _NEW).get(stage, [])
