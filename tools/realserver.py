"""Runs the runner's scenarios against a real SGLang on a real GPU, and writes what came of them into a folder.

Needs one NVIDIA GPU, an SGLang that its Python can import, and the models of docs/realserver.md. Without a GPU it says
so and ends with 0. Usage: python tools/realserver.py --models /models --out out [--only abf] [--side-by-side 4]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMON = [
    "--sampling-backend", "pytorch", "--mem-fraction-static", "0.3", "--max-total-tokens", "20000",
    "--disable-prefill-cuda-graph", "--cuda-graph-max-bs-decode", "8",
]  # fmt: skip
PROMPTS = """\
builtin: false
prompts:
  - {id: france, ask: What is the capital of France?, expect: The capital of France is Paris}
  - {id: product, ask: What is 17 times 23? Answer with the number only., expect: '391'}
  - {id: week, ask: List the days of the week., expect: 'Monday, Tuesday'}
  - {id: hello, language: German, ask: Say hello in German., expect: Guten Tag}
  - {id: china, language: Chinese, ask: 中国的首都是哪里？, expect: 北京}
  - {id: japan, language: Japanese, ask: 日本で一番高い山は何ですか。, expect: 富士山}
  - {id: egypt, language: Arabic, ask: 'ما هي عاصمة مصر؟', expect: القاهرة}
  - {id: story, ask: Tell a long story about a lighthouse., expect: ninety steps, max_tokens: 1000, long: true}
"""


class Scenarios:
    """The scenarios, each a method `run_X` that returns what it saw; they share nothing but the GPU."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.end = time.monotonic() + given.total
        self.out = Path(given.out).resolve()
        self.prompts = self.out / "prompts.yaml"
        self.out.mkdir(parents=True, exist_ok=True)
        self.prompts.write_text(
            PROMPTS.replace("expect: Monday, Tuesday", "expect: 'Monday, Tuesday'"), encoding="utf-8"
        )

    def server(self, name: str, model: str, *flags: str) -> list[str]:
        """The command of a server on a port of its own."""
        words = [self.given.python, "-m", "sglang.launch_server", "--host", "127.0.0.1", "--port", str(self.port(name))]
        return [*words, "--model-path", f"{self.given.models}/{model}", *COMMON, *flags]

    def port(self, name: str) -> int:
        """The port of a scenario."""
        return int(self.given.first_port) + 100 * (ord(name) - ord("a"))

    def logtriage(self, name: str, *words: str, command: list[str] | None = None) -> subprocess.Popen[str]:
        """Begin `logtriage run` with a ledger and logs of the scenario's own."""
        folder = self.out / name
        folder.mkdir(exist_ok=True)
        line = [sys.executable, "-m", "logtriage", "run", "--format", "json", "--ledger", str(folder / "ledger.sqlite"),
                "--logs", str(folder / "logs"), "--record", str(folder / "cases"), *told_by_hand(), *words]  # fmt: skip
        line += ["--", *command] if command else []
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}
        return subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=(folder / "stderr.txt").open("a"), text=True, env=env
        )

    def to_end(self, name: str, *words: str, command: list[str] | None = None) -> dict[str, Any]:
        """Run to the end and return the result as data, its exit code with it."""
        left = max(30.0, self.end - time.monotonic())
        budget = min(self.given.budget, left)
        process = self.logtriage(name, *words, "--budget", f"{budget:.0f}s", command=command)
        try:
            out, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:  # it is stopping a server, or measuring one
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        (self.out / name / "result.json").write_text(out, encoding="utf-8")
        return {**(json.loads(out) if out.strip() else {}), "exit_code": process.returncode}

    # ---- the scenarios

    def run_a(self) -> dict[str, Any]:
        """A refused backend: the message's own way out, marlin, is tried; it builds kernels in silence."""
        command = self.server("a", "moe-nvfp4", "--load-format", "dummy", "--quantization", "modelopt_fp4",
                              "--attention-backend", "triton", "--moe-runner-backend", "flashinfer_trtllm")  # fmt: skip
        found = self.to_end("a", "--once", command=command)
        return self.checked(found, {
            "first is refused": label(found, 0) in ("sm100-only-kernel", "arch-unsupported-kernel"),
            "then marlin is tried": "--moe-runner-backend marlin" in text(found, 1),
            "silence is not taken for a hang": all(one["ending"] != "stalled" for one in attempts(found)),
        })  # fmt: skip

    def run_b(self) -> dict[str, Any]:
        """SM100-only attention: another backend that works, with answers that are right."""
        command = self.server("b", "parrot-moe", "--attention-backend", "trtllm_mha", "--moe-runner-backend", "triton")
        found = self.to_end("b", "--once", "--prompts", str(self.prompts), command=command)
        return self.checked(found, {
            "first is SM100-only": label(found, 0) == "sm100-only-kernel",
            "it ends with a server that answers": found["exit_code"] == 0,
            "the smoke test passed": bool(found.get("working")) and smoke(found, -1),
        })  # fmt: skip

    def run_c(self) -> dict[str, Any]:
        """Healthy, and "!!!!" under two kernel classes that share nothing: suspect the checkpoint."""
        return self._garbage("c", "zeros")

    def run_d(self) -> dict[str, Any]:
        """The same with NaN logits, told apart by null logprobs."""
        found = self._garbage("d", "nans")
        found["checks"]["null logprobs tell it apart"] = found["kinds"] == ["nan-logprobs"]
        return found | {"passed": all(found["checks"].values())}

    def _garbage(self, name: str, model: str) -> dict[str, Any]:
        found = self.to_end(name, "--once", command=self.server(name, model, "--attention-backend", "triton"))
        bad = [one for one in attempts(found) if one["report"]["verdict"]["label"] == "degenerate-output"]
        kinds = sorted({one["smoke"]["finding"]["kind"] for one in bad if one["smoke"] and one["smoke"]["finding"]})
        return self.checked(found, {
            "garbage under two kernel classes": len(bad) == 2,
            "it stops": found["exit_code"] == 1,
            "it suspects the checkpoint": "checkpoint" in found.get("because", ""),
        }) | {"kinds": kinds}  # fmt: skip

    def run_e(self) -> dict[str, Any]:
        """A port in use: nothing is launched, and who holds it is said."""
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", self.port("e")))
            holder.listen()
            found = self.to_end(
                "e", "--once", command=self.server("e", "parrot-dense", "--attention-backend", "triton")
            )
        return self.checked(found, {
            "nothing was launched": not any(Path(one["log"]).exists() for one in attempts(found)),
            "the holder is named": f"pid {os.getpid()}" in found.get("because", ""),
        })  # fmt: skip

    def run_f(self) -> dict[str, Any]:
        """SIGKILL of the runner in the middle of an attempt, then --resume."""
        command = self.server("f", "parrot-dense", "--attention-backend", "triton")
        process = self.logtriage("f", "--once", "--prompts", str(self.prompts), command=command)
        log = self.out / "f" / "logs" / "attempt-1.log"
        wait_for(lambda: log.exists() and b"Load weight begin" in log.read_bytes(), 240)
        process.kill()
        process.communicate()
        orphans = running(self.port("f"))
        found = self.to_end("f", "--resume", "--once", "--prompts", str(self.prompts))
        told = (self.out / "f" / "stderr.txt").read_text(encoding="utf-8")
        return self.checked(found, {
            "the kill left a server behind": bool(orphans),
            "resume names what was left": bool(orphans) and any(str(pid) in told for pid in orphans),
            "nothing is left": not running(self.port("f")),
            "it ends with a server that answers": found["exit_code"] == 0,
        })  # fmt: skip

    def run_g(self) -> dict[str, Any]:
        """--explore over attention backends, with the ranking."""
        command = self.server("g", "parrot-dense", "--attention-backend", "triton")
        words = ("--once", "--explore", "--prompts", str(self.prompts))
        found = self.to_end("g", *words, command=command)
        ranked = sorted((one for one in attempts(found) if one["speed"]), key=lambda one: -(rate(one) or 0))
        return self.checked(found, {
            "at least two configurations were measured": len(ranked) >= 2,
            "it ends well": found["exit_code"] == 0,
        }) | {"ranking": [{"changed": one["changed"], "speed": one["speed"]} for one in ranked]}  # fmt: skip

    def checked(self, found: dict[str, Any], checks: dict[str, bool]) -> dict[str, Any]:
        """A scenario's result: what was checked, and each attempt in short."""
        short = [{"changed": one["changed"], "ending": one["ending"], "label": one["report"]["verdict"]["label"],
                  "because": one["because"], "seconds": one["seconds"]} for one in attempts(found)]  # fmt: skip
        return {"passed": all(checks.values()), "checks": checks, "because": found.get("because"), "attempts": short}


def told_by_hand() -> list[str]:
    """The compute capability, for a Python without nvidia-ml-py: then the runner cannot ask for it itself."""
    if importlib.util.find_spec("pynvml") is not None:
        return []
    asked = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    return ["--sm", subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]]


def attempts(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The attempts of a result, the oldest first."""
    return list(found.get("attempts", ()))


def label(found: dict[str, Any], number: int) -> str:
    """The label of an attempt; empty if there was none."""
    return str(attempts(found)[number]["report"]["verdict"]["label"]) if len(attempts(found)) > number else ""


def text(found: dict[str, Any], number: int) -> str:
    """The command of an attempt; empty if there was none."""
    return str(attempts(found)[number]["command_text"]) if len(attempts(found)) > number else ""


def smoke(found: dict[str, Any], number: int) -> bool:
    """Whether the smoke test of an attempt was passed."""
    last = attempts(found)[number]["smoke"]
    return bool(last and last["passed"])


def rate(one: dict[str, Any]) -> float | None:
    """Tokens per second of an attempt that was measured."""
    return one["speed"]["tokens_per_s_32"] or one["speed"]["tokens_per_s_1"]


def running(port: int) -> list[int]:
    """The processes of servers that were told to listen on a port."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "sglang.launch_server" in words and str(port) in words and "logtriage" not in words:
            found.append(int(folder.name))
    return found


def wait_for(is_true: Any, seconds: float) -> bool:
    """Wait until something holds; return whether it did in time."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def versions(python: str) -> dict[str, str]:
    """What the scenarios ran on."""
    asked = "from importlib.metadata import version as v\n"
    asked += "print(*(f'{n}={v(n)}' for n in ('sglang', 'torch', 'flashinfer-python')))"
    packages = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                         capture_output=True, text=True, check=False).stdout  # fmt: skip
    return {"packages": packages.strip(), "gpu": gpu.strip(), "date": time.strftime("%Y-%m-%d", time.gmtime())}


def main() -> int:
    """Run the scenarios; return 0 if all passed, or if there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="/models", help="folder of the models")
    parser.add_argument("--out", default="realserver-out", help="folder for results, logs and cases")
    parser.add_argument("--only", default="abcdefg", help="scenarios to run, such as abf")
    parser.add_argument("--python", default="python3", help="the Python that has SGLang")
    parser.add_argument("--side-by-side", type=int, default=4, help="how many at the same time")
    parser.add_argument("--budget", type=int, default=420, help="seconds for each scenario")
    parser.add_argument(
        "--total", type=int, default=1800, help="seconds after which every scenario is brought to its end"
    )
    parser.add_argument("--first-port", type=int, default=31000, help="ports of the scenarios lie 100 apart")
    given = parser.parse_args()
    if (
        shutil.which("nvidia-smi") is None
        or subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode
    ):
        print("realserver: skipped, since there is no NVIDIA GPU here")
        return 0
    if not Path(given.models, "zeros").is_dir():
        print(f"realserver: {given.models} has no models; docs/realserver.md says how they are made")
        return 2
    scenarios = Scenarios(given)
    chosen = re.findall(r"[a-g]", given.only)
    results: dict[str, Any] = {"on": versions(given.python), "scenarios": {}}
    with concurrent.futures.ThreadPoolExecutor(given.side_by_side) as pool:
        futures = {pool.submit(getattr(scenarios, f"run_{name}")): name for name in chosen}
        for future in concurrent.futures.as_completed(futures):
            name = futures[future]
            try:
                found = future.result()
            except Exception as error:  # one scenario that breaks must not take the others' results along
                found = {"passed": False, "checks": {}, "because": repr(error), "attempts": []}
            results["scenarios"][name] = found
            (scenarios.out / "results.json").write_text(
                json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
            )
            print(f"{name}: {'passed' if found['passed'] else 'FAILED'}  {found['because']}", flush=True)
            for what, held in found["checks"].items():
                print(f"   {'yes' if held else 'NO '}  {what}", flush=True)
    return 0 if all(found["passed"] for found in results["scenarios"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
