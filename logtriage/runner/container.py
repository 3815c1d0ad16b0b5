"""What `docker run` and its like say about a container: which folders of this machine it sees, and which GPUs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from logtriage.runner.target import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_GPUS = re.compile(r"[\"']*(?:device=)?(?P<ids>[\w,-]+)[\"']*")


def mounts(words: Sequence[str], cwd: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the folders that a container sees: path inside → path on this machine."""
    found: dict[str, str] = {}
    for text in [*_values(words, "-v"), *_values(words, "--volume"), *_values(words, "-B"), *_values(words, "--bind")]:
        outside, _, rest = text.partition(":")
        inside = rest.partition(":")[0] or outside
        if "/" in outside or outside.startswith("~"):  # else it is a volume of the engine
            found[os.path.normpath(inside)] = os.path.normpath(os.path.join(cwd, expanded(outside, env)))
    for text in _values(words, "--mount"):
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        source = parts.get("source") or parts.get("src")
        goal = parts.get("target") or parts.get("dst") or parts.get("destination")
        if source and goal and parts.get("type", "bind") == "bind":
            found[os.path.normpath(goal)] = os.path.normpath(os.path.join(cwd, expanded(source, env)))
    return found


def outside(path: str, seen: Mapping[str, str]) -> str | None:
    """Return where a path of a container is on this machine, or None if it is in the container alone."""
    path = os.path.normpath(path)
    for inside in sorted(seen, key=len, reverse=True):
        if path == inside or path.startswith(inside.rstrip("/") + "/"):
            return os.path.normpath(os.path.join(seen[inside], os.path.relpath(path, inside)))
    return None


def visible_gpus(words: Sequence[str]) -> tuple[str | None, int | None]:
    """Return the GPUs that ``--gpus`` names, as CUDA_VISIBLE_DEVICES would, and how many it asks for; None for all."""
    text = next(_values(words, "--gpus"), "all")
    match = _GPUS.fullmatch(text)
    ids = match["ids"] if match else "all"
    if ids in ("all", "-1"):
        return None, None
    if "device=" not in text and ids.isdecimal():
        return None, int(ids)
    return ids, None


def _values(words: Sequence[str], name: str) -> Iterator[str]:
    """The values of an option, however it is written."""
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            yield words[place + 1]
        elif word.startswith(f"{name}="):
            yield word.partition("=")[2]
