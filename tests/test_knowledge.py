"""The knowledge about the server is read strictly, is consistent, and is kept out of the way of reading a log."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline, resources
from logtriage.advice.evidence import Setting
from logtriage.advice.servers import Servers
from logtriage.engine.compile import compile_rules
from logtriage.engine.ruleset import RuleSet
from logtriage.errors import RuleError
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


KERNELS = "servers/sglang/kernels.yaml"
FLAGS = "servers/sglang/flags.yaml"
PREFLIGHT = "servers/sglang/preflight.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(ROOT / "rules", tmp_path / "rules", ignore=shutil.ignore_patterns("*.json"))


@pytest.fixture(scope="module")
def servers(rules: RuleSet) -> Servers:
    return Servers(rules.server)


@pytest.mark.parametrize(
    ("file", "before", "after", "fault"),
    [
        (KERNELS, "status: garbage", "status: rubbish", "Input should be 'works', 'refused' or 'garbage'"),
        (KERNELS, "kernels: cudnn}", "kernels: cudna}", "no kernel library 'cudna'"),
        (KERNELS, "{sm: [120], status: garbage", "{sm: [122], status: garbage", "SM 122 is not in 'sms'"),
        (KERNELS, "order: [marlin]}", "order: [merlin]}", "has no choice 'merlin' in any version"),
        (KERNELS, "{id: trtllm-gen,", "{id: trtllm-general,", "no kernel library 'trtllm-gen'"),
        (KERNELS, "moe_names: ['moe'", "moe_names: ['moe('", "not a regular expression"),
        (FLAGS, "since: 0.5.12, added: [aiter, marlin]", "since: 0.5.13, added: [aiter, marlin]", "version '0.5.13'"),
        (FLAGS, "versions: '>=0.5.9'", "versions: 'since 0.5.9'", "not a range of versions"),
        (
            PREFLIGHT,
            "values: [w8a8_fp8, modelopt_fp8]",
            "values: [w8a8_fp9]",
            "has no choice 'w8a8_fp9' in any version",
        ),
        (PREFLIGHT, "whole_numbers: [--port,", "whole_numbers: [--prot,", "no flag '--prot'"),
        (PREFLIGHT, "103: '12.9'", "103: twelve", "not a release such as '12.8'"),
        (PREFLIGHT, "mem_fraction_guess: 0.9", "mem_fraction_guess: 9", "less than 1"),
        (FLAGS, "equivalent:\n", "equivalent: []\nequivalents:\n", "Extra inputs are not permitted"),
    ],
)
def test_faults_name_file_and_line(folder: Path, file: str, before: str, after: str, fault: str) -> None:
    """A wrong word, a reference to nothing or an unknown key is a fault of that line."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        compile_rules([folder])
    assert any(fault in item for item in caught.value.faults)
    first = next(item for item in caught.value.faults if fault in item)
    assert int(first.removeprefix(f"{folder}/").split(":")[1]) >= 1


def test_the_knowledge_is_a_file_of_its_own(tmp_path: Path) -> None:
    """What only advice needs is written beside the rules, and read when it is first asked for."""
    compiled = compile_rules([ROOT / "rules"])
    resources.write_rules(compiled, str(tmp_path / "compiled.json"))
    assert "server" not in json.loads((tmp_path / "compiled.json").read_text(encoding="utf-8"))
    known = resources.server_knowledge(str(tmp_path / "compiled-server.json"))
    assert known == json.loads(json.dumps(compiled["server"]))
    assert resources.server_knowledge(str(tmp_path / "nothing.json")) is None


def test_rules_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules come back as they were written; a file that was cut is not used."""
    compiled = compile_rules([ROOT / "rules"])
    resources.write_rules(compiled, str(tmp_path / "compiled.json"))
    monkeypatch.setattr(resources, "_IN_WHEEL", str(tmp_path))
    read = resources.shipped_rules()
    assert read is not None
    rules = RuleSet(read)
    assert list(rules.rules) == json.loads(json.dumps(compiled["rules"]))
    for number, (anchor, (expression, owners)) in enumerate(
        zip(compiled["anchors"], compiled["signatures"], strict=True)
    ):
        assert rules.expression(number) == (expression or anchor)
        assert list(rules.rules_of([number])) == [rules.rules[owner] for owner in owners]
    lines = tmp_path / "compiled-rules.jsonl"
    for cut in (lines.read_bytes()[:-1], lines.read_bytes().partition(b"\n")[2]):
        lines.write_bytes(cut)
        assert resources.shipped_rules() is None


def test_a_healthy_log_does_not_need_it() -> None:
    """Only advice for a failure reads the knowledge."""
    rules = pipeline.load_rules()
    rules._server, rules._read_server = None, pytest.fail
    pipeline.analyze(ROOT / "corpus/recorded/dense-triton-ok/run.log", rules=rules)


def test_every_entry_has_a_source_and_a_confidence(rules: RuleSet) -> None:
    """A cell without a source would be an opinion."""
    cells = [cell for row in rules.server["matrix"] for cell in row["cells"]]
    assert len(cells) >= 150
    assert all(cell["source"] and cell["confidence"] in ("high", "medium", "low") for cell in cells)
    assert all(item["source"] for item in rules.server["kernels"])


def test_what_every_kernel_is_blocked_by_exists(rules: RuleSet, servers: Servers) -> None:
    """Rules block kernel libraries that the knowledge has."""
    blocked = {rule["blocks"]["kernels"] for rule in rules.rules if "kernels" in rule.get("blocks", {})}
    assert len(blocked) >= 5
    assert blocked <= servers.libraries


@pytest.mark.parametrize(
    ("flag", "value", "setting", "status"),
    [
        ("--moe-runner-backend", "flashinfer_trtllm", Setting("0.5.9", 120, "nvfp4"), "refused"),
        ("--moe-runner-backend", "flashinfer_cutedsl", Setting("0.5.9", 120, "nvfp4"), "garbage"),
        ("--moe-runner-backend", None, Setting("0.5.9", 120, "nvfp4"), "garbage"),
        ("--moe-runner-backend", None, Setting("0.5.12", 120, "nvfp4"), "refused"),
        ("--moe-runner-backend", None, Setting("0.5.16", 120, "nvfp4"), "works"),
        ("--moe-runner-backend", "flashinfer_cutlass", Setting("0.5.9", 120, "nvfp4"), "works"),
        ("--fp4-gemm-backend", "flashinfer_trtllm", Setting(None, 90), "refused"),
        ("--fp4-gemm-backend", None, Setting("0.5.16", 90), "works"),
        ("--attention-backend", "trtllm_mha", Setting("0.5.16", 90), "refused"),
        ("--attention-backend", "trtllm_mha", Setting("0.5.20", 120), "works"),
        ("--attention-backend", "fa3", Setting(None, 100), "refused"),
        ("--decode-attention-backend", "fa3", Setting(None, 90), "works"),
        ("--fp8-gemm-backend", "deep_gemm", Setting("0.5.9", 120), "refused"),
        ("--moe-runner-backend", "flashinfer_trtllm", Setting(None, 90), "refused"),
        ("--moe-runner-backend", "bogus", Setting("0.5.9", 120, "nvfp4"), "unknown"),
    ],
)
def test_what_is_known_of_a_value(
    servers: Servers, flag: str, value: str | None, setting: Setting, status: str
) -> None:
    """The matrix as asked by preflight and planner: `value` None is a flag that is not given."""
    found = servers.status_of(flag, value, setting)
    assert found.status == status
    assert status == "unknown" or found.source


def test_names_that_changed(servers: Servers) -> None:
    """Renamed flags and values, only where the old name is gone; the nearest spelling."""
    assert servers.renamed("--nsa-prefill-backend", "0.5.23") == "--dsa-prefill-backend"
    assert servers.renamed("--nsa-prefill-backend", "0.5.16") is None
    assert servers.value_renamed("--quantization", "marlin", "0.5.20") == "gptq_marlin"
    assert (
        servers.closest("flashinfer_cutledsl", servers.choices("--moe-runner-backend", "0.5.16"))
        == "flashinfer_cutedsl"
    )
    assert servers.closest("xyz", servers.flags(None)) is None
    assert servers.exists("--fp4-gemm-backend", "0.5.7") is False
    assert servers.exists("--fp4-gemm-backend", "0.5.9") is True
    assert servers.exists("--frobnicate", "0.5.9") is None
    assert servers.default("--fp4-gemm-backend", "0.5.9") == "flashinfer_cutlass"
    assert servers.is_switch("--trust-remote-code")
    assert not servers.is_switch("--tp-size")
    assert servers.is_moe("nvidia/Qwen3.5-397B-A17B-NVFP4")
    assert not servers.is_moe("Qwen/Qwen3-32B")


def test_choices_agree_with_the_sources(servers: Servers) -> None:
    """Spot checks against srt/server_args.py of three versions."""
    moe = "--moe-runner-backend"
    assert servers.choices(moe, "0.5.5") == servers.choices(moe, "0.5.9")
    assert "marlin" not in servers.choices(moe, "0.5.10")
    assert "marlin" in servers.choices(moe, "0.5.12.post1")
    assert len(servers.choices(moe, "0.5.23")) == 22
    assert servers.choices("--kv-cache-dtype", "0.5.23")[-1] == "fp4_mx_block16"
    assert "cutlass_mla" not in servers.choices("--attention-backend", "0.5.20")
