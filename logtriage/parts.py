"""Which of several logs belong together: the nodes of one launch, by their arguments, ranks and names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from logtriage.engine import identity
from logtriage.engine.launch import nothing
from logtriage.reading import log_named
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.reading import Options, Reading
    from logtriage.records import Launch


class Part(Record):
    """One of the logs: its launches that count, what was started, and which node it is."""

    file: int
    launches: tuple[int, ...]
    launch: Launch
    spread: identity.Layout
    node: int | None
    exit_code: int | None


def of(reading: Reading, chosen: Mapping[tuple[int, str], int], options: Options) -> list[Part]:
    """Return what each log is; `chosen` are the launches to judge. Raises InputError where options name no log."""
    launches: dict[int, list[int]] = defaultdict(list)
    for (file, _), launch in chosen.items():
        launches[file].append(launch)
    ranks: dict[int, set[str]] = defaultdict(set)
    for event in reading.clock.events:
        if event.rank:
            ranks[reading.lines[event.first].file].add(event.rank)
    names = [reading.files[file].name for file in reading.logs]
    codes = {reading.logs[log_named(name, names)]: code for name, code in options.exit_codes.items()}
    started = {file: [reading.launches[number] for number in launches[file]] for file in reading.logs}
    spreads = [identity.layout(item) for items in started.values() for item in items]
    common = next((spread for spread in spreads if (spread.nodes or 1) > 1), identity.Layout())
    parts = []
    for file, items in started.items():
        own = next((item for item in items if identity.layout(item).nodes), items[0] if items else nothing({}))
        spread = identity.layout(own)
        node = identity.node_of(own, sorted(ranks[file]), spread if spread.nodes else common)
        parts.append(Part(file, tuple(launches[file]), own, spread, node, codes.get(file)))
    return _numbered(parts, names)


def _numbered(parts: list[Part], names: Sequence[str]) -> list[Part]:
    """Number the nodes by the names of their logs where nothing else tells, or all tell the same."""
    told = [part.node for part in parts if part.node is not None]
    most = max((part.spread.nodes or 1 for part in parts), default=1)
    named = identity.by_name(names, most if most > 1 else None)
    if len(told) > 1 and len(set(told)) == 1 and most > 1:
        return [part.replace(node=number) for part, number in zip(parts, named, strict=True)]
    free = [number if number not in told else None for number in named]
    return [
        part if part.node is not None or part.spread.nodes == 1 else part.replace(node=number)
        for part, number in zip(parts, free, strict=True)
    ]


def grouped(parts: Sequence[Part]) -> list[list[Part]]:
    """Return the logs of each launch together. What says nothing belongs to the one launch that there is."""
    known: dict[tuple[object, ...], list[Part]] = defaultdict(list)
    loose = []
    for part in parts:
        if part.spread.nodes is None:
            loose.append(part)
        elif part.spread.nodes == 1:
            known["alone", part.file].append(part)
        else:
            known[part.launch.resolved.get("disaggregation_mode"), part.spread.nodes].append(part)
    groups = [group for found in known.values() for group in _by_address(found)]
    if len(groups) == 1 and len({_served(part) for part in (*groups[0], *loose)} - {None}) < 2:
        return [sorted([*groups[0], *loose], key=lambda part: part.file)]
    return [*groups, *_by_model(loose)]


def _by_model(parts: Sequence[Part]) -> list[list[Part]]:
    """The logs apart by what is served; those that do not tell belong together, or to the others if these are one."""
    found: dict[tuple[str, str] | None, list[Part]] = defaultdict(list)
    for part in parts:
        found[_served(part)].append(part)
    if len(found) == 2 and None in found:
        return [list(parts)]
    return list(found.values())


def _served(part: Part) -> tuple[str, str] | None:
    """The model and its tensor parallel size, which are the same on all nodes of a launch."""
    model = str(part.launch.facts.get("model", "")).rstrip("/").rpartition("/")[2]
    return (model, str(part.launch.facts.get("--tp-size", ""))) if model else None


def _by_address(parts: list[Part]) -> list[list[Part]]:
    """The logs apart by their rendezvous address, if two of them are of the same node."""
    numbers = [part.node for part in parts]
    if len(set(numbers)) == len(numbers):
        return [parts]
    found: dict[str | None, list[Part]] = defaultdict(list)
    for part in parts:
        found[part.launch.resolved.get("dist_init_addr")].append(part)
    return list(found.values())
