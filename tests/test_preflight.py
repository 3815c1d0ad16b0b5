"""Preflight says what will fail before anything is launched: the story's launches, and launches that were recorded."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.conftest import ROOT, Case, cases
from tests.launches import MODEL, command
from tests.machines import GIB, found, launch, look, machine, model

if TYPE_CHECKING:
    from pathlib import Path

STORY = ("preflight", "--sm", "120", "--gpus", "8", "--server-version", "0.5.9", "--format", "json")
MOE, DENSE = "--moe-runner-backend", "--fp4-gemm-backend"


def worst(data: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (item["severity"], item["flag"], item["value"], item["label"])
        for item in data["findings"]
        if item["severity"] in ("will-fail", "known-garbage")
    ]


def test_sm100_only_is_predicted_for_both(run: Any) -> None:
    """Eight SM120 GPUs, NVFP4 MoE, tp 8: MoE and dense flashinfer_trtllm are SM100-only, and each gets a successor."""
    both = (f"{MOE} flashinfer_trtllm", f"{DENSE} flashinfer_trtllm")
    done = run(*STORY, "--", command(*both, redirect="> run1.log 2>&1"))
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert worst(data) == [
        ("will-fail", MOE, "flashinfer_trtllm", "sm100-only-kernel"),
        ("will-fail", DENSE, "flashinfer_trtllm", "sm100-only-kernel"),
    ]
    first, second = data["findings"][:2]
    assert first["instead"][0]["to"] == "flashinfer_cutlass"
    assert {change["to"] for change in second["instead"]} == {"flashinfer_cudnn", "flashinfer_cutlass"}
    assert "SM100" in first["why"]
    assert first["source"]
    changed = command(f"{MOE} flashinfer_cutlass", f"{DENSE} flashinfer_cudnn", redirect="> run1.log 2>&1")
    assert data["command_text"] == changed


@pytest.mark.parametrize("flags", [f"{MOE} flashinfer_cutedsl", f"{MOE} auto", ""])
def test_known_garbage_has_its_source(run: Any, flags: str) -> None:
    """NVFP4 in 0.5.9: cutedsl and auto are one kernel, known to give garbage on SM120; the way out is no synonym."""
    done = run(*STORY, "--", command(flags))
    data = json.loads(done.stdout)
    assert done.returncode == 1
    [(severity, flag, value, label)] = worst(data)
    assert (severity, flag, label) == ("known-garbage", MOE, "degenerate-output")
    assert value == (flags.split() or ["auto"])[-1]
    bad = data["findings"][0]
    assert bad["source"] == "8 x RTX PRO 6000"
    assert "known to give garbage" in bad["what"]
    assert [change["to"] for change in bad["instead"]] == ["flashinfer_cutlass"]


@pytest.mark.parametrize("dense", ["flashinfer_cudnn", "flashinfer_cutlass"])
def test_the_end_of_the_story_passes(run: Any, dense: str) -> None:
    """MoE flashinfer_cutlass with dense cudnn or cutlass: nothing will fail."""
    done = run(*STORY, "--", command(f"{MOE} flashinfer_cutlass", f"{DENSE} {dense}"))
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert worst(data) == []
    fine = {item["flag"]: item["value"] for item in data["findings"] if item["severity"] in ("ok", "risk")}
    assert (fine[MOE], fine[DENSE]) == ("flashinfer_cutlass", dense)
    assert data["command_text"] is None


def test_the_text_is_a_page(run: Any) -> None:
    """The text names the flag, the value, the reason, what to use, and the command; it is exact."""
    done = run(*STORY[:-2], "--", command(f"{MOE} flashinfer_trtllm"))
    assert (
        done.stdout
        == f"""\
will fail: this launch would be wasted
  --> sglang 0.5.9, 8 x GPU (SM120), {MODEL}

  will-fail --moe-runner-backend flashinfer_trtllm cannot work on SM120  sm100-only-kernel
            TensorRT-LLM generated GEMM and MoE kernels: refused on SM120 (its kernels exist for SM100, SM103 only) \
(flashinfer 0.5.0 to 0.6.17 source; flashinfer#2725)
            use --moe-runner-backend flashinfer_cutlass  (FlashInfer CUTLASS fused MoE: works on SM120; 77% sure; \
8 x RTX PRO 6000; sglang 0.5.16 source)
  risk      --fp4-gemm-backend (not given) works on SM120, but sources disagree: judge it by its answers
            FlashInfer CUTLASS GEMM: zeros for some shapes with FlashInfer 0.6.3 (flashinfer#2577) and 0.6.12 \
(flashinfer#3398), correct on 8 x RTX PRO 6000 (8 x RTX PRO 6000)
  unknown   The machine that will run this is not looked at: no SM120 is here (--here looks at this one).
  unknown   The files of {MODEL} are not looked at here: --model-config has a folder read.
  ok        --attention-backend (not given) works on SM120; 8 GPUs are enough for tp 8

  run       {command(f"{MOE} flashinfer_cutlass")}
"""
    )


def test_json_keeps_its_schema(run: Any) -> None:
    """What is printed as JSON fits the schema that `logtriage schema preflight` prints."""
    schema = json.loads(run("schema", "preflight").stdout)
    for words in (("--sm", "120"), ("--sm", "90", "--gpus", "2", "--gpu-memory", "80"), ("--here",)):
        done = run("preflight", *words, "--format", "json", "--", command(f"{MOE} flashinfer_trtllm"))
        jsonschema.validate(json.loads(done.stdout), schema)
    assert json.loads(run("schema").stdout)["title"] == "ReportV1"


RECORDED = [case for case in cases() if case.folder.parent.name == "recorded" and case.verdict.get("command")]


def outlook_of(case: Case) -> Any:
    known = case.verdict
    gpus = machine(known["sm"], int(str(known["gpu"]).partition("x")[0]), 140)
    return look(known["command"], gpus, known["sglang_version"], sm=known["sm"])


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.folder.name)
def test_what_really_worked_is_never_called_failing(case: Case) -> None:
    """A launch that came far on a real GPU is not called failing: it was ready, or had at least chosen its kernels.

    What it died of later may be told before.
    """
    if case.verdict["label"] in ("healthy", "degenerate-output", "oom-kv-cache", "oom-cuda-graph", "oom-host"):
        told = [item for item in outlook_of(case).findings if item.severity in ("will-fail", "known-garbage")]
        assert [item for item in told if item.flag != case.verdict["responsible_flag"]] == []


def test_many_recorded_failures_are_predicted() -> None:
    """Of the failures that a command alone can tell of, these are seen before the launch."""
    seen = {case.folder.name for case in RECORDED if outlook_of(case).fails}
    assert seen >= {
        "attn-cutlass-mla", "attn-trtllm-mha", "bogus-choice", "h200-attn-cutedsl-mla", "h200-attn-trtllm-mla",
        "h200-bf16gemm-cutedsl", "h200-dp2", "h200-fp8gemm-cutlass", "h200-fp8gemm-flashinfer-cutlass",
        "h200-fp8gemm-flashinfer-trtllm", "h200-kv-mxfp8", "h200-kv-nvfp4", "h200-moe-flashinfer-cutedsl",
        "h200-moenv-flashinfer-trtllm", "h200-override-bad-json", "h200-port-text", "h200-quant-mxfp8",
        "h200-quant-nvfp4-online", "moe-flashinfer-trtllm", "nvfp4-dense-fp4cudnn", "nvfp4-moe-cutlass", "tp2-one-gpu",
    }  # fmt: skip


@pytest.mark.parametrize("words", [(), ("vllm", "serve", "m"), ("./launch.sh",), ("bash", "-c", "echo sglang"), ("",)])
def test_no_command_of_a_server_is_a_usage_error(run: Any, words: tuple[str, ...]) -> None:
    """No command, one for another program, a script: exit code 2, and an example of what is valid."""
    done = run("preflight", "--sm", "120", "--", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sglang.launch_server" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_text_of_a_script(run: Any) -> None:
    """A whole script as one word: its variables count, and the command that is offered is a line of it."""
    server = command(f"{MOE} flashinfer_trtllm")
    script = f"#!/bin/bash\nset -e\nexport SGLANG_CUTLASS_MOE=1\n# the server\n{server} \\\n  --port 31000\n"
    done = run(*STORY, "--", script)
    data = json.loads(done.stdout)
    assert data["launch"]["flags"]["--port"] == "31000"
    assert data["launch"]["env"] == {"SGLANG_CUTLASS_MOE": "1"}
    assert "flashinfer_cutlass" in data["command_text"]


def test_a_model_folder_decides_where_the_command_is_silent(run: Any, tmp_path: Path) -> None:
    """NVFP4 in the model's files and no flag for it: the same SM100-only kernels; 400 GiB do not fit into 320."""
    folder = model(tmp_path / "m", 200 * GIB, 200 * GIB, quantized=True)
    words = ("python3", "-m", "sglang.launch_server", "--model-path", "org/name", "--tp", "8", MOE, "flashinfer_trtllm")
    done = run(*STORY, "--model-config", str(folder), "--gpu-memory", "96", "--", *words)
    data = json.loads(done.stdout)
    assert worst(data) == [("will-fail", MOE, "flashinfer_trtllm", "sm100-only-kernel")]
    assert data["environment"]["model"]["weight_bytes"] == 400 * GIB
    small = json.loads(run(*STORY, "--model-config", str(folder), "--gpu-memory", "40", "--", *words).stdout)
    assert ("will-fail", "--tp-size", "8", "oom-weight-load") in worst(small)
    (folder / "model-00002-of-00002.safetensors").unlink()
    gone = json.loads(run(*STORY, "--model-config", str(folder), "--", *words).stdout)
    assert ("will-fail", "--model-path", None, "model-load") in worst(gone)


def test_secrets_do_not_come_out(run: Any) -> None:
    """Keys in the command and its variables are replaced, as text and as data, also in the command that is offered."""
    secret = "sk-proj-4f9d2c7a1b8e6f3d5a9c0b7e"  # noqa: S105 - made up
    text = f"HF_TOKEN=hf_{secret[8:]} {command(f'{MOE} flashinfer_trtllm', f'--api-key {secret}')}"
    for form in ("json", "text"):
        done = run(*STORY[:-1], form, "--", text)
        assert "flashinfer_cutlass" in done.stdout
        assert secret not in done.stdout
        assert secret[8:] not in done.stdout
    assert secret in run(*STORY, "--no-redact", "--", text).stdout


def test_it_works_without_gpu_and_sglang(run: Any, tmp_path: Path) -> None:
    """A machine with neither: what is missing is said, nothing is invented, an odd folder stops nothing."""
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9", "CUDA_HOME": "/nowhere"}
    env["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # compiled rules
    done = run("preflight", "--format", "json", "--", command(), env=env)
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert {item["check"]: item["what"] for item in data["findings"]}["package"] == "python3 is not found on PATH"
    assert data["environment"]["packages"] is None
    assert data["environment"]["cuda"]["nvcc"][0]["version"] is None


def test_every_check_is_explained() -> None:
    """docs/preflight.md names each check that the code makes, and no other."""
    folder = ROOT / "logtriage" / "advice" / "preflight"
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    made = set(re.findall(r"""(?:Finding|_indivisible)\(\s*"([a-z-]+)",""", source))
    table = (ROOT / "docs/preflight.md").read_text(encoding="utf-8").partition("| check |")[2].partition("\n\n")[0]
    told = {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    assert len(made) > 40
    assert told == made


def test_a_machine_with_two_kinds_of_gpu() -> None:
    """A backend that fails on one of the GPUs in use fails; the finding names that one."""
    mixed = machine(100, 1).gpus + machine(120, 1).gpus
    flags = launch("--quantization modelopt_fp4", f"{MOE} flashinfer_trtllm --tp 2")
    outlook = look(flags, machine().replace(gpus=mixed))
    assert "SM120" in found(outlook, "will-fail")["backend"]
    one = look(flags.replace("--tp 2", "--tp 1"), machine().replace(gpus=mixed))
    assert "SM100" in found(one, "ok", "risk")["backend"]


def test_what_is_not_known_is_said() -> None:
    """Without GPU, version and quantization nothing is called failing, and each gap is named once."""
    outlook = look(launch(f"{MOE} flashinfer_trtllm"), machine(None, 1, None), version=None)
    assert outlook.severity == "unknown"
    assert not outlook.fails
    texts = " ".join(found(outlook, "unknown").values())
    for gap in ("--server-version", "--sm"):
        assert gap in texts
    half = look(launch(f"{MOE} triton"), machine(90, 1), version=None)
    [moe] = [item for item in half.findings if item.flag == MOE]
    assert moe.severity == "unknown"
    assert "depends on the version of SGLang (--server-version) and the quantization" in moe.what
    later = look(launch(f"{MOE} flashinfer_trtllm --quantization modelopt_fp4"), machine(), version="0.9.1")
    assert "lies outside" in found(later, "unknown")["version"]
