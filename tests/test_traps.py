"""The lines that mislead most: each trap has logs in the formats of two SGLang versions, and none falls into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logtriage import pipeline
from tests.conftest import Case, cases

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

CASES = {case.folder.name: case for case in cases()}

TRAPS = {
    "Killed, -9 or 137 after a failed launch": (
        "triton-shared-memory-is-no-oom",
        "missing-shard-and-exit-code-137",
        "killed-minus-9-after-graph-oom",
        "oom-load-creating-parameters",
        "kv-advice-both-ways-in-0-5-20",
        "registry-blames-architecture-in-0-5-20",
        "hopper-attention-package-on-b200",
    ),
    "capture failed for anything but memory, with memory advice": (
        "sm100-fp4-gemm-wrapped-as-capture",
        "sm100-cutedsl-capture-newer-wording",
        "triton-shared-memory-in-0-5-18",
    ),
    "sentence about the OOM killer for -3": (
        "oom-killer-sentence-for-minus-3",
        "oom-killer-sentence-for-minus-3-in-0-5-23",
    ),
    "sentence about the OOM killer for 1": ("oom-killer-sentence-for-1", "oom-killer-sentence-for-1-in-0-5-23"),
    "sentence about the OOM killer for 255": ("oom-killer-sentence-for-255", "oom-killer-sentence-for-255-in-0-5-23"),
    "SM100-only kernels were avoided": ("healthy-trtllm-gen-avoided", "healthy-msa-avoided-on-hopper"),
    "a folder sm100 while a library is missing": (
        "loader-banner-sm100-folder-nvrtc",
        "loader-banner-sm100-folder-libnuma",
        "loader-banner-sm100-folder-cudart-in-0-5-20",
    ),
    "a folder sm100 while a symbol is missing": (
        "loader-banner-sm100-folder-symbol",
        "loader-banner-sm100-folder-symbol-in-0-5-20",
    ),
    "Blackwell means SM100, on SM120 or SM121": (
        "blackwell-in-the-text-means-sm100",
        "blackwell-in-the-text-means-sm100-on-gb10",
    ),
    "a kernel of Hopper on SM100": (
        "fa3-asked-for-on-b200",
        "dense-mla-of-hopper-on-b200",
        "hopper-attention-package-on-b200",
    ),
    "[10] with a known GPU": ("majors-10-interleaved-ranks", "majors-10-on-rtx-5090-in-0-5-5"),
    "[10] with an unknown GPU": ("sm100-only-the-wrapper-is-left", "majors-10-gpu-unknown"),
    "[10, 11] with a known GPU": ("majors-10-and-11-on-h100", "majors-10-and-11-on-pro-6000-in-0-5-20"),
    "[10, 11] with an unknown GPU": ("majors-10-and-11-gpu-unknown", "majors-10-and-11-gpu-unknown-in-0-5-5"),
    "[9] with a known GPU": ("majors-9-on-b200", "majors-9-on-b300-in-0-5-20"),
    "[9] with an unknown GPU": ("majors-9-gpu-unknown", "majors-9-gpu-unknown-in-0-5-5"),
    "[9, 10] with a known GPU": ("majors-9-and-10-allreduce", "majors-9-and-10-on-l40s-in-0-5-20"),
    "[9, 10] with an unknown GPU": ("majors-9-and-10-gpu-unknown", "majors-9-and-10-gpu-unknown-in-0-5-5"),
    "[10, 12] with a known GPU": ("majors-10-and-12-on-h200", "majors-10-and-12-on-l40s"),
    "[10, 12] with an unknown GPU": ("majors-10-and-12-gpu-unknown", "majors-10-and-12-gpu-unknown-in-0-5-12"),
    "[12] on an SM12x": ("majors-12-with-nvcc-too-old", "majors-12-with-nvcc-too-old-in-0-5-20"),
    "[12] on another GPU": ("majors-12-on-b200", "majors-12-on-h200-in-0-5-20"),
    "[12] with an unknown GPU": ("majors-12-gpu-unknown", "majors-12-gpu-unknown-in-0-5-20"),
    "sm_100f in a kernel's name on a healthy card": ("healthy-sm100f-cubins", "healthy-sm100f-cubins-in-0-5-23"),
    "unsupported because an import error was swallowed": (
        "registry-blames-architecture-after-failed-import",
        "registry-blames-architecture-in-0-5-20",
    ),
    "KV shortage without out of memory": ("oom-kv-version-0-4", "kv-frac-too-low"),
    "a negative token count": ("oom-kv-negative-token-count", "kv-negative-tokens-in-0-5-20"),
    "advice to raise and to lower the fraction": ("oom-kv-advice-both-ways", "kv-advice-both-ways-in-0-5-20"),
    "an exception above its progress bar": (
        "oom-graph-before-progress-bar",
        "graph-oom-printed-before-its-bar-in-0-5-18",
    ),
    "a KV pool that runs dry while serving": ("oom-serving-kv-pool-dry", "serving-kv-pool-dry-in-0-5-18"),
    "out of memory inside a shared-memory limit": (
        "triton-shared-memory-is-no-oom",
        "inductor-calls-it-out-of-memory",
        "triton-shared-memory-in-0-5-18",
    ),
    "out of memory inside a skipped tactic": (
        "incomplete-autotune-skips",
        "oom-autotune-after-skipped-tactic",
        "healthy-autotune-oom-in-0-5-18",
    ),
    "out of memory inside an allocator hint": ("healthy-allocator-hint-0-4", "healthy-allocator-hint-in-0-5-20"),
    "host allocation refused with terabytes free": (
        "host-oom-with-terabytes-free",
        "host-allocation-refused-in-container-0-4",
    ),
    "unified memory": (
        "host-oom-unified-memory",
        "oom-load-unified-memory",
        "host-oom-unified-memory-in-0-5-20",
    ),
    "device-side assert after NaN": (
        "nan-in-sampler-then-device-assert",
        "nan-check-then-device-assert-in-0-5-23",
    ),
    "CUBLAS failure after a guard for sm100f": (
        "cublas-fails-after-sm100f-guard",
        "cublas-fails-after-sm100f-guard-in-0-5-20",
    ),
    "Xid 13": ("xid-13-illegal-access", "xid-13-in-0-5-18"),
    "Xid 79": ("xid-79-behind-launch-failure", "xid-79-in-0-5-18"),
    "NCCL error from /dev/shm": ("nccl-fails-on-full-dev-shm", "nccl-no-room-in-shm-0-4"),
    "NCCL error from the network": ("nccl-connects-through-docker-bridge", "nccl-no-route-in-0-5-18"),
    "NCCL error as an echo": ("oom-serving-nccl-echoes", "nccl-echoes-of-an-oom-in-0-5-18"),
    "port clash without address already in use": (
        "internal-port-taken-by-old-scheduler",
        "internal-port-taken-in-0-5-18",
    ),
    "watchdog stop with a py-spy dump": ("watchdog-with-py-spy-dump", "scheduler-watchdog-in-0-5-18"),
    "a proxy answers the warm-up": ("web-proxy-answers-warmup", "web-proxy-answers-warmup-0-4"),
    "exit without a Python traceback": ("numactl-cannot-bind-0-5-5", "loader-does-not-find-libpython"),
    "a compiler that speaks Chinese": ("gcc-speaks-chinese", "gcc-speaks-chinese-in-0-5-18"),
    "stop by SIGTERM": (
        "healthy-0-5-16-sigterm",
        "healthy-child-got-sigterm",
        "healthy-sigterm-in-0-5-12",
        "healthy-sigterm-in-0-5-23",
    ),
    "a healthy log full of noise": (
        "healthy-noise-of-0-5-5",
        "healthy-pcie-autotune-skips",
        "healthy-deepgemm-precompile",
        "healthy-noise-of-0-5-20",
    ),
}
"""What misleads, and the logs that hold it."""

HEALTHY = [case for case in CASES.values() if case.verdict["label"] == "healthy"]


@pytest.mark.parametrize("trap", TRAPS)
def test_trap(trap: str, rules: RuleSet) -> None:
    """The logs exist, are of two versions at least, and get their label and root line."""
    chosen = [CASES[name] for name in TRAPS[trap]]
    versions = {case.verdict.get("sglang_version") for case in chosen} - {None}
    assert len(versions) >= 2, versions
    for case in chosen:
        report = pipeline.analyze(case.log, rules=rules)
        assert report.label == case.verdict["label"], case.folder.name
        if case.verdict["root_line"]:
            assert report.root is not None
            assert report.lines[report.root.line].text == case.verdict["root_line"], case.folder.name


def test_lists_of_majors_are_told_apart() -> None:
    """The same message has four labels, by its list and the GPU."""
    labels = {name: CASES[name].verdict["label"] for trap in TRAPS if trap.startswith("[") for name in TRAPS[trap]}
    assert {labels["majors-10-gpu-unknown"], labels["majors-10-and-11-on-h100"]} == {"sm100-only-kernel"}
    assert {labels["majors-9-gpu-unknown"], labels["majors-12-on-b200"]} == {"arch-unsupported-kernel"}
    assert labels["majors-12-with-nvcc-too-old"] == "cuda-toolkit-mismatch"
    assert {labels["majors-12-gpu-unknown"], labels["majors-10-and-12-gpu-unknown"]} == {"unknown"}


def _ranks(case: Case) -> int:
    number, _, rest = str(case.verdict.get("gpu") or "").partition("x ")
    return int(number) if rest and number.isdecimal() else 0


def test_enough_healthy_logs() -> None:
    """At least 40, of four versions and more, from 1 to 16 ranks, on NVIDIA and AMD."""
    assert len(HEALTHY) >= 40
    versions = {str(case.verdict.get("sglang_version")).rpartition(".post")[0] for case in HEALTHY}
    versions |= {str(case.verdict["sglang_version"]) for case in HEALTHY if case.verdict.get("sglang_version")}
    assert len(versions - {"", "None"}) >= 8
    assert {_ranks(case) for case in HEALTHY} >= {1, 2, 4, 8, 16}
    amd = [case for case in HEALTHY if "MI3" in str(case.verdict.get("gpu"))]
    assert {_ranks(case) for case in amd} >= {2, 8}
    assert len({case.verdict["sglang_version"] for case in amd}) >= 3
    assert {case.folder.parent.name for case in HEALTHY} == {"recorded", "written", "blind"}


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.folder.name)
def test_no_failure_label_on_a_healthy_log(case: Case, rules: RuleSet) -> None:
    """A healthy log is never given a failure, nor is any beginning of it that ends with the ready line."""
    assert pipeline.analyze(case.log, rules=rules).label == "healthy"
    rows = case.log.read_bytes().splitlines(keepends=True)
    ready = [at for at, row in enumerate(rows) if b"fired up and ready to roll" in row]
    if ready:
        assert pipeline.analyze(b"".join(rows[: ready[-1] + 1]), rules=rules).label == "healthy"
