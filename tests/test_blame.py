"""Which flag the frames of a traceback blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

PACKAGES = "/usr/lib/python3.12/site-packages"
START = f"""Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "{PACKAGES}/sglang/launch_server.py", line 6, in <module>
    from sglang.srt.entrypoints.http_server import launch_server
"""
CHOICE = f"""[2026-01-12 10:03:44] Scheduler hit an exception: Traceback (most recent call last):
  File "{PACKAGES}/sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process
    scheduler = Scheduler(server_args)
  File "{PACKAGES}/sglang/srt/model_executor/model_runner.py", line 900, in _get_attention_backend
    from sglang.srt.layers.attention.other_backend import OtherBackend
"""
IMPORT = f"""  File "{PACKAGES}/sglang/srt/layers/attention/other_backend.py", line 12, in <module>
    import othernel
ModuleNotFoundError: No module named 'othernel'
"""


def blamed(text: str, folder: Path, rules: RuleSet) -> tuple[str | None, str | None]:
    log = folder / "run.log"
    log.write_text(text, encoding="utf-8")
    root = pipeline.analyze(str(log), rules=rules).root
    assert root is not None
    return root.component, root.flag


def test_a_module_that_a_choice_imports_blames_its_flag(tmp_path: Path, rules: RuleSet) -> None:
    assert blamed(CHOICE + IMPORT, tmp_path, rules) == ("attention", "--attention-backend")


def test_a_module_that_is_imported_at_the_start_blames_nothing(tmp_path: Path, rules: RuleSet) -> None:
    assert blamed(START + IMPORT, tmp_path, rules) == (None, None)


def test_a_module_that_the_check_of_the_arguments_imports_blames_nothing(tmp_path: Path, rules: RuleSet) -> None:
    """It is imported on every launch, whatever the flags say."""
    check = f"""  File "{PACKAGES}/sglang/srt/server_args.py", line 7498, in use_mla_backend
    from sglang.srt.configs.model_config import AttentionArch
  File "{PACKAGES}/sglang/srt/configs/model_config.py", line 30, in <module>
    from sglang.srt.layers.attention.other_backend import OtherBackend
"""
    assert blamed(START + check + IMPORT, tmp_path, rules) == (None, None)


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        ("--tp-size 2", "--tp-size"),
        ("--pp-size 2", "--pp-size"),
        ("--dp-size 2 --tp-size 1", "--dp-size"),
        ("--base-gpu-id 3", "--base-gpu-id"),
        ("--port 30000", "--tp-size"),
    ],
)
def test_a_gpu_that_is_not_there_blames_the_size_that_was_given(
    flags: str, flag: str, tmp_path: Path, rules: RuleSet
) -> None:
    """Ranks come from several flags; the server prints the sizes that nobody gave as 1."""
    command = f"+ python3 -m sglang.launch_server --model-path /models/a {flags}\n"
    told = "[2026-01-12 10:03:40] server_args={'model_path': '/models/a', 'host': '127.0.0.1'}\n"
    text = command + told + CHOICE.rsplit("\n", 3)[0] + "\ntorch.AcceleratorError: CUDA error: invalid device ordinal\n"
    assert blamed(text, tmp_path, rules) == ("parallelism", flag)


def test_a_storage_backend_blames_its_own_flag(tmp_path: Path, rules: RuleSet) -> None:
    """Its files stand among those of the KV cache, whose size has nothing to do with it."""
    frame = IMPORT.replace("layers/attention/other_backend.py", "mem_cache/storage/other/other_storage.py")
    assert blamed(CHOICE + frame, tmp_path, rules) == ("kv-cache", "--hicache-storage-backend")


def test_a_backend_that_nobody_chose_is_not_blamed(tmp_path: Path, rules: RuleSet) -> None:
    """Of two that do not go together the one that was given is blamed; the server prints the other as none."""
    told = "[2026-01-12 10:03:40] server_args={'model_path': '/models/a', 'moe_a2a_backend': 'none'}\n"
    command = "+ python3 -m sglang.launch_server --model-path /models/a --moe-runner-backend cutlass\n"
    text = "NotImplementedError: Runner backend cutlass requires a fused func for a2a backend none.\n"
    assert blamed(command + told + text, tmp_path, rules) == ("moe", "--moe-runner-backend")


def test_what_a_rule_supposes_blames_rather_than_a_frame(tmp_path: Path, rules: RuleSet) -> None:
    """Memory that ran out below a layer of a model is no matter of that layer."""
    capture = f"""[2026-01-12 10:05:20] Capture cuda graph begin. This can take up to several minutes. avail mem=0.12 GB
[2026-01-12 10:05:21] Scheduler hit an exception: Traceback (most recent call last):
  File "{PACKAGES}/sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process
    scheduler = Scheduler(server_args)
  File "{PACKAGES}/sglang/srt/model_executor/cuda_graph_runner.py", line 583, in capture_one_batch_size
    run_once()
  File "{PACKAGES}/sglang/srt/layers/quantization/unquant.py", line 82, in apply
    return F.linear(x, layer.weight, bias)
RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
"""
    assert blamed(capture, tmp_path, rules) == ("device", "--mem-fraction-static")
