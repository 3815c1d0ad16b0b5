"""What is installed for a launch: versions of the packages of its Python, its PyTorch's CUDA, nvcc and ptxas.

A Python is asked by running it, without importing the packages; every program that is run has a time limit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from logtriage.environment import Compiler
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LIMIT_S = 20.0
_QUESTION = r"""
import importlib.metadata, importlib.util, json, os, re, sys
def folder(name):
    try:
        return list(importlib.util.find_spec(name).submodule_search_locations)[0]
    except Exception:
        return ""
versions = {}
MODULES = sys.argv[1].split()
for name in sys.argv[2:]:
    try:
        versions[name] = importlib.metadata.version(name)
    except Exception:
        pass
cuda = None
try:
    with open(os.path.join(folder("torch"), "version.py")) as file:
        cuda = re.search(r"^cuda\b.*?=\s*['\"]([\d.]+)['\"]", file.read(), re.M).group(1)
except Exception:
    pass
programs = os.path.join(folder("triton"), "backends", "nvidia", "bin")
found = [name for name in MODULES if folder(name)]
names = ["ptxas", "ptxas-blackwell"]
ptxas = [os.path.join(programs, name) for name in names if os.path.isfile(os.path.join(programs, name))]
version = ".".join(map(str, sys.version_info[:3]))
print()
print(json.dumps({"versions": versions, "cuda": cuda, "ptxas": ptxas, "python": version, "found": found}))
"""


class Installed(Record):
    """What a Python has.

    Attributes:
        versions: by fact name; None where it could not be asked, and then the rest is not known either.
        torch_cuda: the CUDA of its PyTorch; `ptxas` the assemblers of its Triton; `missing` modules.
    """

    versions: dict[str, str] | None = None
    torch_cuda: str | None = None
    ptxas: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    gaps: tuple[str, ...] = ()


def ask(
    python: str, packages: Mapping[str, Sequence[str]], modules: Sequence[str], env: Mapping[str, str], cwd: str
) -> Installed:
    """Return what an interpreter, run in `cwd` with `env`, has.

    `packages` maps names of facts to distributions that tell the version, the first that is there; `modules` are looked
    for and not imported.
    """
    names = [name for several in packages.values() for name in several]
    answer, why = _run([python, "-c", _QUESTION, " ".join(modules), *names], env, cwd)
    try:
        told: dict[str, Any] = json.loads(answer.strip().rpartition("\n")[2]) if answer else {}
        versions = dict(told["versions"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return Installed(gaps=(f"{python} could not be asked for its packages: {why or 'its answer is unclear'}.",))
    found = {"python": str(told["python"])}
    for fact, several in packages.items():
        version = next((versions[name] for name in several if name in versions), None)
        found |= {fact: str(version)} if version else {}
    return Installed(
        found, told["cuda"], tuple(told["ptxas"]), tuple(name for name in modules if name not in told["found"])
    )


def nvccs(env: Mapping[str, str], cwd: str) -> Iterator[Compiler]:
    """Yield the CUDA compilers in the order in which FlashInfer and PyTorch look for one."""
    places = [(name, os.path.join(env[name], "bin", "nvcc")) for name in ("CUDA_HOME", "CUDA_PATH") if env.get(name)]
    on_path = shutil.which("nvcc", path=env.get("PATH", os.defpath))
    places += [("PATH", os.path.realpath(on_path))] if on_path else []  # the toolkit is where a link leads to
    places += [("the default folder", path) for path in ("/usr/local/cuda/bin/nvcc",) if os.path.exists(path)]
    yield from _releases(places, env, cwd)


def assemblers(bundled: Iterable[str], env: Mapping[str, str], cwd: str) -> Iterator[Compiler]:
    """Yield the assemblers that Triton may use: those that variables name, then those that it brings along."""
    names = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
    places = [(name, env[name]) for name in names if env.get(name)]
    yield from _releases([*places, *(("Triton's package", path) for path in bundled)], env, cwd)


def _releases(places: Iterable[tuple[str, str]], env: Mapping[str, str], cwd: str) -> Iterator[Compiler]:
    seen: set[str] = set()
    for found, path in places:
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        answer, _ = _run([path, "--version"], env, cwd)
        release = re.search(r"\brelease (\d+\.\d+)", answer)
        yield Compiler(found, path, release[1] if release else None)


def _run(words: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[str, str]:
    """The output of a program, or nothing and why."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own interpreter or compiler, which the launch would run too
            words, stdin=subprocess.DEVNULL, capture_output=True,
            env=dict(env), cwd=cwd if os.path.isdir(cwd) else None, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"no answer within {_LIMIT_S:g} s"
    except OSError as error:
        return "", error.strerror or str(error)
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    ended = f"exit code {done.returncode}" if done.returncode else ""
    return done.stdout.decode("utf-8", "replace"), last[:200] or ended
