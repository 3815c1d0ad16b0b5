"""Prints the parts of a generated log, row by row: the launch up to a stage, the failure, what comes after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from logtriage.workbench.scene import Scene
    from logtriage.workbench.templates import Family


class Row(NamedTuple):
    """A line of the log; `part` is head, mark (of a stage), chain (a shared frame), own (the failure's) or after."""

    text: str
    part: str
    time: datetime
    is_root: bool = False


_MARKER = re.compile(r"%([a-z]+) ")
_OPTIONAL, _BARE, _STAMPED, _PARENT, _ALL, _ROOT = "o", "b", "s", "p", "a", "r"
_SHOWN = 0.5
_STAGE = "stage"
_CAPTURE = "cuda-graph"
_ARGUMENTS = "args"


def head(scene: Scene, family: Family) -> Iterator[Row]:
    """Yield the launch from the command up to the stage in which the family's failure happens."""
    shared = scene.shared
    if not scene.at:
        return
    if scene.rng.random() < 0.6:
        flags = scene.fill(scene.rng.choice(family.flags)) if family.flags else ""
        yield from _print(scene, f"%b {scene.fill('{prompt}{command}')} {flags}".rstrip(), "head", "")
    for stage in shared["stages"]:
        last = stage["stage"] == scene.at
        for line in stage["opens"]:
            yield from _print(scene, line, "mark", _PARENT)
        goes_on = stage.get("goes_on") or []
        shown = goes_on[: scene.rng.randrange(len(goes_on) + 1)] if last else goes_on
        for line in shown:
            yield from _print(scene, line, "mark" if last else "head", _PARENT)
        noise = shared["noise"][stage["stage"]]
        for line in scene.rng.sample(noise, min(len(noise), scene.rng.choice([0, 0, 1, 1, 2]))):
            yield from _print(scene, line, "head", _PARENT)
        scene.wait(scene.rng.uniform(1, 40))
        if last:
            return


def failure(scene: Scene, family: Family) -> Iterator[Row]:
    """Yield what the family itself prints."""
    how = _how(scene, family)
    how = "exception" if family.print == "capture" and scene.at != _CAPTURE else family.print
    tag = "" if how in ("record", "exception", "capture") else _BARE
    for line in family.before:
        yield from _print(scene, line, "own", "")
        scene.wait(scene.rng.uniform(0, 3))
    cause = scene.fill(scene.rng.choice(family.cause)).rstrip("\n").split("\n") if family.cause else []
    if how == "exception":
        yield Row(_stamp(scene, scene.rank) + scene.fill("{hit}"), "own", scene.time)
        yield from _traceback(scene, family, cause)
    elif how == "capture":
        yield from _wrapped(scene, family, cause)
    elif how == "parent":
        yield Row("Traceback (most recent call last):", "own", scene.time)
        yield from _traceback(scene, family, cause)
    else:
        marked = any(_letters(line) & {_ROOT} for line in cause)
        for at, line in enumerate(cause):
            yield from _print(scene, line, "own", tag, root=not marked and at == 0)
    for line in family.after:
        yield from _print(scene, line, "own", "")


def rest(scene: Scene, family: Family) -> Iterator[Row]:
    """Yield the confusers that come later, other ranks' echoes and how the launch ends."""
    shared = scene.shared
    for name in family.confusers:
        for line in shared["confusers"][name]:
            yield from _print(scene, line, "after", _PARENT)
    how = _how(scene, family)
    ends = "parent" if family.ends == "child" and how == "parent" else family.ends
    if ends == "child":
        if scene.ranks > 1 and how in ("exception", "capture") and scene.rng.random() < _SHOWN:
            yield from _echo(scene)
        served = scene.at == "serving"
        for line in scene.rng.choice(shared["teardown"]["served" if served else "launch"]):
            yield from _print(scene, line, "after", _PARENT)
    elif ends == "parent":
        for line in scene.rng.choice(shared["teardown"]["parent"]):
            yield from _print(scene, line, "after", _PARENT)
    elif ends == "serving":
        for line in scene.rng.choice(shared["teardown"]["goes_on"]):
            yield from _print(scene, line, "after", _PARENT)


def _how(scene: Scene, family: Family) -> str:
    """Say how a failure is printed at the drawn stage: only a capture is wrapped, and arguments have no scheduler."""
    if family.print in ("exception", "capture") and scene.at == _ARGUMENTS:
        return "parent"
    return "exception" if family.print == "capture" and scene.at != _CAPTURE else family.print


def root_lines(texts: Iterable[str], *, marked: bool = False) -> Iterator[str]:
    """Yield the root line of each text of a template, its places not filled; only those with a mark, if `marked`."""
    for text in texts:
        lines = text.split("\n")
        roots = [line for line in lines if _ROOT in _letters(line)] or ([] if marked else lines[:1])
        yield from (_MARKER.sub("", line, count=1) for line in roots)


def _print(scene: Scene, line: str | dict[str, Any], part: str, default: str, *, root: bool = False) -> Iterator[Row]:
    """Yield the rows of one line of a template; `default` is how a line without a marker is printed."""
    if isinstance(line, dict):
        if ("since" in line and not scene.newer_than(line["since"])) or (
            "until" in line and scene.newer_than(line["until"]) and scene.version != line["until"]
        ):
            return
        line = str(line["line"])
    letters = _letters(line)
    if _OPTIONAL in letters and scene.rng.random() >= _SHOWN:
        return
    text = _MARKER.sub("", line, count=1) if letters else line
    how = next((letter for letter in (_BARE, _STAMPED, _PARENT, _ALL) if letter in letters), default)
    ranks: Iterable[int | None] = [None if how == _PARENT else scene.rank]
    for rank in range(scene.ranks) if how == _ALL else ranks:
        shown = scene.fill(text).split("\n")
        stamp = "" if how == _BARE else _stamp(scene, rank)
        for at, words in enumerate(shown):
            yield Row(stamp + words if at == 0 else words, part, scene.time, (root or _ROOT in letters) and at == 0)
    scene.wait(scene.rng.choice([0, 0, 0, 1, 2]))


def _letters(line: str) -> set[str]:
    found = _MARKER.match(line)
    return set(found[1]) if found else set()


def _stamp(scene: Scene, rank: int | None) -> str:
    tag = "" if rank is None else scene.tag(rank)
    return f"[{scene.time:%Y-%m-%d %H:%M:%S}{tag}] "


def _traceback(scene: Scene, family: Family, cause: list[str]) -> Iterator[Row]:
    of_stage = scene.shared["chain_of_stage"].get(scene.at, [])
    names = [part for name in family.frames or [_STAGE] for part in (of_stage if name == _STAGE else [name])]
    sources = scene.fill("{shows-sources}") == "yes"
    for name in names:
        chain = scene.shared["chains"].get(name)
        for frame in chain or [name]:
            for text in _frame(scene, frame, sources=sources):
                yield Row(text, "chain" if chain else "own", scene.time)
    yield from _cause(scene, cause)


def _cause(scene: Scene, cause: list[str]) -> Iterator[Row]:
    marked = any(_ROOT in _letters(line) for line in cause)
    for at, line in enumerate(cause):
        text = _MARKER.sub("", line, count=1)
        yield Row(text, "own", scene.time, _ROOT in _letters(line) if marked else at == 0)
    yield Row("", "own", scene.time)


def _frame(scene: Scene, frame: str, *, sources: bool) -> Iterator[str]:
    place, _, source = frame.partition(" | ")
    path, _, function = scene.fill(place).rpartition(" ")
    path = path.replace("~/", "sglang/srt/", 1) if path.startswith("~/") else path
    full = path if path.startswith("/") else scene.fill("{site}/") + path
    yield f'  File "{full}", line {scene.rng.randint(31, 3900)}, in {function}'
    if sources:
        yield f"    {scene.fill(source or '{source-line}')}"


def _wrapped(scene: Scene, family: Family, cause: list[str]) -> Iterator[Row]:
    """Yield an exception that the graph capture caught and raised again with its own advice."""
    only_the_wrapper = scene.rng.random() < 0.2
    yield Row(_stamp(scene, scene.rank) + scene.fill("{hit}"), "own", scene.time)
    if not only_the_wrapper:
        yield from _traceback(scene, family, cause)
        yield from _bare(scene, ["During handling of the above exception, another exception occurred:", ""])
        yield Row("Traceback (most recent call last):", "own", scene.time)
    sources = scene.fill("{shows-sources}") == "yes"
    for frame in scene.shared["chains"]["capture-wrapper"]:
        for text in _frame(scene, frame, sources=sources):
            yield Row(text, "chain", scene.time)
    first = next((line for line in cause if _ROOT in _letters(line)), cause[0])
    message = _MARKER.sub("", first, count=1).partition(": ")[2] or first
    yield Row(scene.fill("{capture-failed} ") + message, "own", scene.time, only_the_wrapper)
    yield from _bare(scene, scene.fill("{capture-hints}").split("\n"))


def _bare(scene: Scene, lines: list[str]) -> Iterator[Row]:
    for line in lines:
        yield Row(line, "own", scene.time)


def _echo(scene: Scene) -> Iterator[Row]:
    """Yield what another rank prints because the first one died."""
    other = (scene.rank + 1) % scene.ranks
    scene.wait(scene.rng.choice([3, 5, 9]))
    yield Row(_stamp(scene, other) + scene.fill("{hit}"), "after", scene.time)
    for frame in scene.shared["chains"]["echo"]:
        for text in _frame(scene, frame, sources=False):
            yield Row(text, "after", scene.time)
    yield Row(scene.fill("{echo}"), "after", scene.time)
    yield Row("", "after", scene.time)
