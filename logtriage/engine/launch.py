"""What was started: command, flags, GPU and versions, from the signatures that hit a launch's lines."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from logtriage.intake.launch_command import Command, LaunchSpec, find_command
from logtriage.intake.server_args import from_server_args
from logtriage.records import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.engine.ruleset import Hit, RuleSet
    from logtriage.records import Event, Line


def describe(
    lines: Sequence[Line],
    events: Sequence[Event],
    hits: Mapping[int, list[Hit]],
    rules: RuleSet,
    given: Mapping[str, Any],
    argv: Sequence[str],
) -> dict[int, Launch]:
    """Return what is known of each launch, by its index.

    `given` are facts from the caller and `argv` the caller's command: both beat what the log says. Facts of the machine
    that stand before or after a launch (a table of versions, say) count for every launch that tells nothing else.
    """
    spec = spec_of(rules)
    told = _told(lines, events, hits, rules)
    anywhere: dict[str, Any] = {}
    for facts in told.values():
        anywhere = {**facts, **anywhere}
    found, resolved = _commands(lines, events, hits, rules, spec)
    given_command = find_command(argv, spec) if argv else None, argv[0] if len(argv) == 1 else None
    launches = {}
    for index in range(max((event.launch for event in events), default=0) + 1):
        command, text = given_command if given_command[0] else found.get(index, (None, None))
        launches[index] = _launch(command, resolved.get(index, {}), {**anywhere, **told[index]}, given, rules, text)
    return launches


def from_command(argv: Sequence[str], rules: RuleSet, given: Mapping[str, Any] | None = None) -> Launch:
    """Return what a command alone tells of a launch; a launch without command where it starts no known server."""
    return describe((), (), {}, rules, given or {}, argv)[0]


def spec_of(rules: RuleSet) -> LaunchSpec:
    """Return how the server of the rules is launched, and how its flags are spelt."""
    return LaunchSpec(rules.flags["modules"], rules.flags["commands"], rules.flags["aliases"])


def nothing(given: Mapping[str, Any]) -> Launch:
    """Return what is known of a launch of which there is no line: what the caller says."""
    return Launch(facts=dict(given))


def _told(
    lines: Sequence[Line], events: Sequence[Event], hits: Mapping[int, list[Hit]], rules: RuleSet
) -> dict[int, dict[str, Any]]:
    """Facts that each launch's lines tell; the first line that tells a fact wins."""
    source_of = {number: item for item in rules.log["sources"] for number in item["any"]}
    told: dict[int, dict[str, Any]] = defaultdict(dict)
    for at in sorted(hits):
        for hit in hits[at]:
            if (item := source_of.get(hit.signature)) is None:
                continue
            facts = {**item["gives"], **rules.typed(hit.groups)}
            launch = told[events[lines[at].event].launch]
            for name, value in facts.items():
                launch.setdefault(name, value)
    return told


def _commands(
    lines: Sequence[Line],
    events: Sequence[Event],
    hits: Mapping[int, list[Hit]],
    rules: RuleSet,
    spec: LaunchSpec,
) -> tuple[dict[int, tuple[Command, str | None]], dict[int, dict[str, str]]]:
    boundaries, notices = set(rules.log["boundaries"]), set(rules.log["notices"])
    commands: dict[int, tuple[Command, str | None]] = {}
    resolved: dict[int, dict[str, str]] = {}
    for at in sorted(hits):
        notice = next((hit for hit in hits[at] if hit.signature in notices), None)
        if notice is None and not any(hit.signature in boundaries for hit in hits[at]):
            continue
        line = lines[at]
        launch = events[line.event].launch
        text = line.text[line.start + (notice.end if notice else 0) :]
        if "server_args=" in text:
            if launch not in resolved and (found := from_server_args(text, spec)):
                resolved[launch] = found
        elif launch not in commands and (command := find_command(text, spec)):
            commands[launch] = (command, text)
    return commands, resolved


def _launch(
    command: Command | None,
    resolved: dict[str, str],
    told: Mapping[str, Any],
    given: Mapping[str, Any],
    rules: RuleSet,
    text: str | None,
) -> Launch:
    flags = dict(command.flags) if command else {}
    facts: dict[str, Any] = {f"--{name.replace('_', '-')}": value for name, value in resolved.items()}
    facts.update(flags)
    if quantization := facts.get("--quantization"):
        facts["quantization"] = quantization
    if model := facts.get("--model-path"):
        facts["model"] = model
    if command and command.image and (version := _image_version(command.image)):
        facts["server_version"] = version
    facts.update(told)
    facts.update(given)
    if "sm" not in facts and (sm := rules.sm_of(str(facts.get("gpu_name", "")))) is not None:
        facts["sm"] = sm
    if facts.get("platform", "cuda") != "cuda" and "sm" not in given:
        facts.pop("sm", None)  # other platforms print a compute capability too, of another scale
    elif "sm" in facts:
        facts.setdefault("platform", "cuda")
    return Launch(
        command=command.words if command else None,
        wrapper=command.wrapper if command else (),
        env=command.env if command else {},
        flags=flags,
        resolved=resolved,
        facts=facts,
        redirect=command.redirect if command else "",
        text=text,
    )


def _image_version(image: str) -> str | None:
    """The version in an image name such as ``lmsysorg/sglang:v0.5.9-cu129``."""
    tag = image.rpartition(":")[2].split("-")[0].removeprefix("v")
    return tag if tag[:1].isdigit() and "." in tag else None
