"""Probes the machine that a command would run on: GPUs, driver, toolkit, packages, model files, ports and limits.

Every part has a time limit, and what cannot be found out is said in the `gaps` of the result. Nothing is changed.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from logtriage.engine import launch as launches
from logtriage.environment import CONTAINER, ELSEWHERE, HERE, Environment, Model
from logtriage.runner import container, gpus, host, installed, model_files, target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Launch
    from logtriage.runner.target import Target

LIMIT_S = 30.0
"""Seconds after which the parts that have not answered are left out."""


def probe(
    command: Sequence[str],
    rules: RuleSet,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    model: str | None = None,
    limit_s: float = LIMIT_S,
) -> Environment:
    """Return what a command, given as words or as one text for a shell, would run on.

    `environ` and `cwd` are those that it would be started with, by default our own. `model` is a folder or a
    ``config.json`` to read in place of the model that the command names. A part that takes longer than `limit_s`
    seconds is left out.
    """
    environ, cwd = os.environ if environ is None else environ, cwd or os.getcwd()
    known: Mapping[str, Any] = rules.server["preflight"]
    launch = launches.from_command(command, rules)
    goal = target.find(launch, known, environ, cwd)
    if goal.where == ELSEWHERE:
        why = f"The command runs on another machine ({goal.by}), which is not looked at."
        return elsewhere(command, rules, why, environ=environ, cwd=cwd, model=model, limit_s=limit_s)
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "GPUs": lambda: _gpus(launch, goal),
        "model files": lambda: _model(launch, goal, known, model),
        "ports": lambda: _ports(launch, goal, rules),
    }
    if goal.where == HERE:
        jobs["installed packages"] = lambda: _installed(launch, goal, known)
        jobs["limits of this machine"] = lambda: _host(launch, goal, known)
    found = _within(limit_s, jobs)
    gaps = found.pop("gaps")
    if goal.where == CONTAINER:
        gaps.insert(0, f"The command runs in a container ({goal.by}): its packages, toolkit and folders are not seen.")
    return Environment(**found, where=goal.where, gaps=tuple(gaps))


def elsewhere(
    command: Sequence[str],
    rules: RuleSet,
    why: str,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    model: str | None = None,
    limit_s: float = LIMIT_S,
) -> Environment:
    """Return what is known of another machine: only the model, if it is `model` or among the downloaded ones here.

    `why` says that nothing else was looked at; the rest is as for `probe`.
    """
    known: Mapping[str, Any] = rules.server["preflight"]
    launch = launches.from_command(command, rules)
    goal = target.find(launch, known, os.environ if environ is None else environ, cwd or os.getcwd())
    found = _within(limit_s, {"model files": lambda: _model(launch, goal.replace(where=ELSEWHERE), known, model)})
    return Environment(**{**found, "gaps": (why, *found["gaps"])}, where=ELSEWHERE)


def _gpus(launch: Launch, goal: Target) -> dict[str, Any]:
    visible, most = goal.env.get("CUDA_VISIBLE_DEVICES"), None
    if goal.where == CONTAINER:
        visible, most = container.visible_gpus(launch.wrapper)
    found = gpus.read(visible)
    return {"platform": found.platform, "gpus": found.gpus and found.gpus[:most], "driver": found.driver,
            "driver_cuda": found.driver_cuda, "gaps": found.gaps}  # fmt: skip


def _installed(launch: Launch, goal: Target, known: Mapping[str, Any]) -> dict[str, Any]:
    gap = f"The Python of the launch is not known: {goal.why}."
    found = installed.Installed(gaps=() if goal.missing else (gap,))
    if goal.python is not None:
        flags = launch.flags
        wanted = [item["module"] for item in known["modules_for"] if flags.get(item["flag"]) in item["values"]]
        modules = [*known["modules"], *wanted]
        found = installed.ask(goal.python, known["packages"], modules, goal.env, goal.cwd)
    return {
        "python": goal.python,
        "packages": found.versions,
        "missing": (goal.missing,) if goal.missing else found.missing,
        "torch_cuda": found.torch_cuda,
        "ptxas": None if found.ptxas is None else tuple(installed.assemblers(found.ptxas, goal.env, goal.cwd)),
        "nvcc": tuple(installed.nvccs(goal.env, goal.cwd)),
        "gaps": found.gaps,
    }


def _model(launch: Launch, goal: Target, known: Mapping[str, Any], given: str | None) -> dict[str, Any]:
    name = given or launch.flags.get("--model-path")
    if name is None:
        return {"gaps": ("No --model-path is known.",) if launch.command else ()}
    env, cwd, seen = goal.env, goal.cwd, None
    if given is None and goal.where == CONTAINER:
        seen = container.mounts(launch.wrapper, goal.cwd, goal.env)
        env, cwd = {"HOME": "/root", **launch.env}, "/"
    path, why = model_files.find(name, launch.flags.get("--revision"), known["hub"], env, cwd, seen)
    if path and (given is not None or goal.where != ELSEWHERE or model_files.is_of_hub(name)):
        model = model_files.read(path, known)
        is_complete = not (model.faults or model.weight_faults)
        if given is None and model_files.is_download(path) and not is_complete and not model_files.is_offline(env):
            gap = f"The model {name} is only partly here: the rest would be downloaded first."
            return {"model": model.replace(faults=(), weight_faults=()), "gaps": (gap,)}
        if given is not None and model.weight_faults and not model_files.has_weights(path):
            gap = f"{path} holds no weights, so whether those of the launch are whole is not known."
            return {"model": model.replace(weight_faults=()), "gaps": (gap,)}
        return {"model": model}
    if goal.where == ELSEWHERE:
        return {"gaps": (f"The files of {name} are not looked at here: --model-config has a folder read.",)}
    if (variable := model_files.is_offline(env)) and "elsewhere" not in why:
        fault = f"{name} was not downloaded before, and {variable} forbids it now"
        return {"model": Model(name, faults=(fault,)), "gaps": (why,)}
    return {"gaps": (why,)}


def _ports(launch: Launch, goal: Target, rules: RuleSet) -> dict[str, Any]:
    if goal.own_network:
        return {"gaps": ("Ports are those of the container, so whether they are free is not known.",)}
    defaults = {name: rules.server["flags"][name].get("defaults") or {} for name in ("--host", "--port")}
    usual = {name: str(list(values.values())[-1]) for name, values in defaults.items()}
    address = launch.flags.get("--host", usual["--host"])
    wanted = [
        (flag, address, launch.flags.get(flag, usual.get(flag, ""))) for flag in rules.server["preflight"]["ports"]
    ]
    numbers = [(flag, at, int(port)) for flag, at, port in wanted if port.isdecimal() and int(port) < 65536]
    return {"ports": tuple(host.ports(numbers if launch.command else ()))}


def _host(launch: Launch, goal: Target, known: Mapping[str, Any]) -> dict[str, Any]:
    paths = [(flag, path) for flag in known["paths"] for path in launch.flags.get(flag, "").split()]
    address = launch.flags.get("--host", "127.0.0.1")
    rooms = list(host.spaces(known["caches"], goal.env))
    name = launch.flags.get("--model-path", "")
    if model_files.find(name, launch.flags.get("--revision"), known["hub"], goal.env, goal.cwd)[1]:
        rooms += filter(None, [host.space(known["hub"]["what"], model_files.hub_folder(known["hub"], goal.env))])
    return {"absent": tuple(host.absent(paths, goal.env, goal.cwd)), "proxy": host.proxy_for(address, goal.env),
            "spaces": tuple(rooms), "shm": host.shared_memory(),
            "open_files": host.open_files()}  # fmt: skip


def _within(limit_s: float, jobs: Mapping[str, Callable[[], dict[str, Any]]]) -> dict[str, Any]:
    """Run jobs at the same time; one that has not ended in time, on a dead file system say, is left behind."""
    results: dict[str, dict[str, Any]] = {}
    defects: list[Exception] = []

    def run(name: str, job: Callable[[], dict[str, Any]]) -> None:
        try:
            results[name] = job()
        except OSError as error:
            results[name] = {"gaps": (f"{name}: {error.strerror or error}.",)}
        except Exception as error:  # not lost in the thread
            defects.append(error)

    threads = {name: threading.Thread(target=run, args=(name, job), daemon=True) for name, job in jobs.items()}
    for thread in threads.values():
        thread.start()
    end = time.monotonic() + limit_s
    for thread in threads.values():
        thread.join(max(0.0, end - time.monotonic()))
    if defects:
        raise defects[0]
    found: dict[str, Any] = {}
    gaps: list[str] = []
    for name in jobs:
        result = results.get(name, {"gaps": (f"{name}: no answer within {limit_s:g} s.",)})
        gaps += result.get("gaps", ())
        found |= {key: value for key, value in result.items() if key != "gaps"}
    return {**found, "gaps": gaps}
