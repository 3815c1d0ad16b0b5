"""Where a command would run: here, in a container or elsewhere; in which folder, with which variables and Python.

Nothing is started; the file system is asked only for the interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from logtriage.environment import CONTAINER, ELSEWHERE, HERE
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.records import Launch

_OPERATORS = frozenset({"&&", "||", "|", "|&", ";", "&", "\n"})
_ACTIVATE = re.compile(r"(?P<folder>.*/)?bin/activate|activate")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?(?:\.exe)?")
_EXEC = re.compile(r"""'''exec'\s+["']?(?P<python>[^"'\s]+)""")


class Target(Record):
    """Where a command would run.

    Attributes:
        where: `HERE`, `CONTAINER` or `ELSEWHERE`; `by` the program that takes it there.
        python: the interpreter, or None, and then `why` it is not known; `missing` a program that is not there.
        env: all variables that the command sees, as far as they are set here or in the command.
        own_network: whether ports of the command are not those of this machine.
    """

    where: str
    by: str | None
    cwd: str
    env: dict[str, str]
    python: str | None
    why: str
    missing: str | None
    own_network: bool


def find(launch: Launch, known: Mapping[str, Any], environ: Mapping[str, str], cwd: str) -> Target:
    """Return where the command of a launch would run, started in `cwd` with the variables `environ`."""
    wrapper = list(launch.wrapper)
    folder = _folder(wrapper, environ, cwd)
    env = {**environ, **launch.env}
    where, by = HERE, _one_of(known["elsewhere"], wrapper)
    if by is not None:
        where = ELSEWHERE
    elif (by := _one_of(known["containers"], wrapper)) is not None:
        where = CONTAINER
    python, why, missing = None, f"it is the one that {by} finds", None
    if where == HERE:
        env["PATH"] = os.pathsep.join([*_activated(wrapper, folder), env.get("PATH", os.defpath)])
        python, why, missing = _python(launch, known, env, folder)
    hosts = {"--network=host", "--net=host"}
    shares = bool(hosts & set(wrapper)) or any(
        word in ("--network", "--net") and after == "host" for word, after in pairwise(wrapper)
    )
    own_network = where == ELSEWHERE or (by in ("docker", "podman", "nerdctl") and not shares)
    return Target(where, by, folder, env, python, why, missing, own_network)


def _one_of(programs: Sequence[Mapping[str, Any]], words: Sequence[str]) -> str | None:
    """The first of some programs that stands among words where a command may stand."""
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        before = words[place - 1] if place else ""
        if before == "cd" or before.startswith("-"):
            continue
        for item in programs:
            if item["program"] == name and (not item["verbs"] or set(item["verbs"]) & set(words[place + 1 :])):
                return name
    return None


def _folder(wrapper: Sequence[str], environ: Mapping[str, str], cwd: str) -> str:
    for word, after in pairwise(wrapper):
        if word == "cd" and after not in _OPERATORS:
            cwd = os.path.normpath(os.path.join(cwd, expanded(after, environ)))
    return cwd


def expanded(path: str, environ: Mapping[str, str]) -> str:
    """Return a path with `~` and variables as a shell would have replaced them; an unknown variable stays."""
    text = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda m: environ.get(m[1] or m[2], m[0]), path)
    home = environ.get("HOME") or os.path.expanduser("~")
    return home + text[1:] if text == "~" or text.startswith("~/") else text


def _activated(wrapper: Sequence[str], folder: str) -> list[str]:
    """The folders of programs that `source …/bin/activate` puts in front."""
    return [
        os.path.join(folder, found["folder"] or "", "bin" if after.endswith("bin/activate") else "")
        for word, after in pairwise(wrapper)
        if word in ("source", ".") and (found := _ACTIVATE.fullmatch(after))
    ][::-1]


def _python(
    launch: Launch, known: Mapping[str, Any], env: Mapping[str, str], folder: str
) -> tuple[str | None, str, str | None]:
    """The interpreter that the command runs, or None, why it is not known, and what is not there."""
    words = [expanded(word, env) for word in launch.command or ()]
    if not words:
        return None, "no command of a server is known", None
    if (by := _one_of(known["own_python"], [*launch.wrapper, *words[:2]])) is not None:
        return None, f"it is the one that {by} chooses", None
    if "$" in words[0]:
        return None, f"{words[0]} stands for it", None
    found = shutil.which(os.path.join(folder, words[0]) if "/" in words[0] else words[0], path=env["PATH"])
    if found is None:
        return None, f"{words[0]} is not found on PATH", words[0]
    if _PYTHON.fullmatch(os.path.basename(found)) or _PYTHON.fullmatch(os.path.basename(words[0])):
        return found, "", None
    return (*_of_script(found, env), None)


def _of_script(path: str, env: Mapping[str, str]) -> tuple[str | None, str]:
    """The interpreter in the first lines of a script, as pip and uv write them."""
    try:
        with open(path, "rb") as file:
            lines = file.read(1000).decode("utf-8", "replace").splitlines()[:2]
    except OSError as error:
        return None, f"{path} cannot be read: {error.strerror}"
    words = lines[0][2:].split() if lines and lines[0].startswith("#!") else []
    if len(lines) > 1 and (found := _EXEC.match(lines[1])):
        return found["python"], ""
    if len(words) > 1 and words[0].endswith("/env"):
        words = [shutil.which(words[-1], path=env["PATH"]) or words[-1]]
    if words and _PYTHON.fullmatch(os.path.basename(words[0])):
        return words[0], ""
    return None, f"{path} does not say which Python runs it"
