"""Machines and models that the tests write: environments as records, model folders with real safetensors headers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from logtriage import pipeline
from logtriage.advice.preflight.judge import Outlook, judge
from logtriage.engine.launch import from_command
from logtriage.environment import ELSEWHERE, Environment, Gpu

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
RULES = pipeline.load_rules()
CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
    "num_attention_heads": 64, "num_key_value_heads": 4, "num_experts": 128, "num_hidden_layers": 94,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "max_position_embeddings": 40960,
}  # fmt: skip
NVFP4 = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}


def machine(sm: int | None = 120, count: int = 8, memory: float | None = 96, **more: Any) -> Environment:
    """A machine with GPUs of one kind; `memory` in GiB."""
    size = None if memory is None else int(memory * GIB)
    gpus = tuple(Gpu(index, "GPU", sm, size, size) for index in range(count))
    return Environment(**{"where": ELSEWHERE, "platform": "cuda", "gpus": gpus, **more})


def look(command: str, environment: Environment, version: str | None = "0.5.9", **facts: Any) -> Outlook:
    """What preflight says of a command on a machine."""
    facts |= {"server_version": version} if version else {}
    return judge(from_command([command], RULES, facts), environment, RULES)


def launch(*flags: str) -> str:
    """A command with some flags."""
    return " ".join(["python3 -m sglang.launch_server --model-path some/model", *flags])


def found(outlook: Outlook, *severities: str) -> dict[str, str]:
    """The findings of some severities: check → what."""
    return {item.check: item.what for item in outlook.findings if item.severity in severities}


def tensors(path: Path, size: int, cut: int = 0) -> None:
    """Write a safetensors file with one tensor of `size` bytes without `cut` of them; it takes no room on the disk."""
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size - cut)


def model(folder: Path, *sizes: int, quantized: bool = False, **config: Any) -> Path:
    """Write a model folder with weights of some sizes in bytes."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}), encoding="utf-8")
    if quantized:
        (folder / "hf_quant_config.json").write_text(json.dumps(NVFP4), encoding="utf-8")
    names = [f"model-{number:05}-of-{len(sizes):05}.safetensors" for number in range(1, len(sizes) + 1)]
    for name, size in zip(names, sizes, strict=True):
        tensors(folder / name, size)
    table = {f"layer.{number}": name for number, name in enumerate(names)}
    if names:
        index = {"metadata": {"total_size": sum(sizes)}, "weight_map": table}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder
