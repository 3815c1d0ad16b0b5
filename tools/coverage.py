"""Run the messages of corpus/messages.tsv through the rules and write docs/coverage.md: which rules know which message.

With --missing, only print the messages that have no rule or get another label than expected.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from logtriage import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from logtriage.engine.ruleset import RuleSet

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = ROOT / "corpus" / "messages.tsv"
PAGE = ROOT / "docs" / "coverage.md"
BREAK = " ⏎ "
STRENGTHS = ("decisive", "supporting", "symptom", "harmless", "outcome", "mark")
STATES = (
    "known by a decisive rule", "by a supporting one", "as a symptom", "as harmless", "as an outcome",
    "as a mark of a stage", "deliberately without a rule",
)  # fmt: skip
SECTIONS = {
    "a4": "what a crash prints afterwards",
    "a5": "watchdog, health, slow starts",
    "a6": "lines that look like errors on a healthy start",
    "d1": "a command line is rejected",
    "d2": "SGLang: kernels for SM100 only",
    "d3": "SGLang: other refusals of a GPU",
    "d4": "toolkit, driver, library versions",
    "d5": "GPU memory",
    "d6": "quantization",
    "d7": "MoE backends",
    "d8": "attention and KV cache backends",
    "d9": "parallelism and arguments",
    "d10": "model path, weights, tokenizer",
    "d11": "optional packages",
    "d12": "communication and ports",
    "d13": "processes, crashes, hangs",
    "d14": "degenerate output",
    "d15": "resources of the host",
    "d16": "outside SGLang's Python",
    "e2": "advice on memory",
    "k1a": "FlashInfer: filter by architecture",
    "k1b": "trtllm-gen and CUTLASS MoE",
    "k1c": "dense GEMM",
    "k1d": "attention kernels",
    "k1e": "CuTe DSL",
    "k1f": "DeepGEMM, FlashMLA, FlashAttention",
    "k1g": "SGLang checks that mention SM100",
    "k2": "other kernels that do not run on a GPU",
    "k3a": "compilers",
    "k3b": "driver",
    "k3c": "libraries, loader, ABI",
    "k4": "builds",
    "k5a": "torch's words for out of memory",
    "k5b": "frames: weights are loaded",
    "k5c": "frames: weights are rearranged",
    "k5d": "KV cache, graph capture, serving",
    "k6": "host memory and kills",
    "k7": "CUDA runtime and driver",
    "k8": "cuBLAS, cuDNN",
    "k9": "NCCL and process groups",
    "k10": "kernel log",
    "k11": "model files",
    "k12a": "signs of degenerate output",
    "k13": "lines that look like failures",
}
NO_FAILURE = frozenset({"healthy", "incomplete", "unknown"})
NO_LABEL = frozenset({"wrapper", "advice", "secondary", "healthy", "unknown", "frame"})
"""What `expected` says of messages that must never give a failure label by themselves."""


class Message(NamedTuple):
    """One row of corpus/messages.tsv.

    Attributes:
        id: section and number.
        phrase: the message, or as much of it as is fixed.
        context: further lines, separated by ``BREAK``; ``> `` marks those after the phrase, ``name=value`` are facts.
        expected: the label, or several separated by `` or ``; ``by stage`` for any out-of-memory; or one of `NO_LABEL`.
        left_out: why no rule knows the message.
        agreed: why another label than the expected one is right.
    """

    id: str
    phrase: str
    context: str
    expected: str
    left_out: str
    agreed: str

    @property
    def section(self) -> str:
        """The part of the id before the number."""
        return self.id.rpartition("-")[0]


class Outcome(NamedTuple):
    """What the rules make of a message."""

    message: Message
    rules: tuple[tuple[str, str], ...]
    label: str

    @property
    def is_known(self) -> bool:
        """Whether a rule or a mark of the server's log fires, or the reason for none is told."""
        return bool(self.rules or self.message.left_out)

    @property
    def contradicts(self) -> bool:
        """Whether the label is a failure, and another one than expected."""
        if self.label in NO_FAILURE:
            return False
        expected = self.message.expected
        if expected in NO_LABEL:
            return True
        if expected == "by stage":
            return not self.label.startswith("oom-")
        return self.label not in expected.split(" or ")


def messages(path: Path = MESSAGES) -> list[Message]:
    """Read the list of messages."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        head = tuple(next(rows))
        if head != Message._fields:
            raise ValueError(f"{path}: the columns are {head}, not {Message._fields}")
        return [Message(*row) for row in rows]


def _parts(message: Message) -> tuple[bytes, dict[str, object]]:
    before, after, facts = [], [], {}
    for part in message.context.split(BREAK) if message.context else []:
        if fact := re.fullmatch(r"([a-z_]+)=(\S+)", part):
            facts[fact[1]] = int(fact[2]) if fact[2].isdecimal() else fact[2]
        elif part.startswith("> "):
            after.append(part[2:])
        else:
            before.append(part)
    return "\n".join([*before, message.phrase, *after, ""]).encode(), facts


def run(message: Message, rules: RuleSet) -> Outcome:
    """Run one message through the rules."""
    log, facts = _parts(message)
    options = pipeline.Options(facts=facts, deciders=("rules",))
    reading = pipeline.read([log], rules, options)
    at = {i for i, line in enumerate(reading.lines) if message.phrase in line.text}
    known = {(m.rule["id"], m.strength) for m in reading.matched.matches if not at or _touches(reading, m.event, at)}
    known |= {(f"stage {mark.stage}", "mark") for mark in reading.clock.marks if mark.stage}
    return Outcome(message, tuple(sorted(known)), pipeline.report_on(reading, rules, options).label)


def _touches(reading: pipeline.Reading, event: int, at: set[int]) -> bool:
    found = reading.clock.events[event]
    return any(found.first <= line <= found.last for line in at)


def outcomes(rules: RuleSet | None = None) -> list[Outcome]:
    """Run all messages."""
    rules = rules or pipeline.load_rules()
    return [run(message, rules) for message in messages()]


def page(results: Sequence[Outcome]) -> str:
    """Return the text of docs/coverage.md."""
    counts = Counter(_state(result) for result in results)
    lines = [
        "# Which messages the rules know",
        "",
        "Written by `make coverage` from `corpus/messages.tsv`: what SGLang and the programs below it are known to",
        "print, each run through the rules alone or with the lines and facts that it needs. The label is that of the",
        "message standing alone; most logs hold more. Rules that only support a label give `unknown` here, as they",
        "should.",
        "",
        f"{len(results)} messages: " + ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) + ".",
        "",
        "| section | what | messages | with a rule | left out |",
        "|---|---|---|---|---|",
    ]
    sections = list(dict.fromkeys(result.message.section for result in results))
    for section in sections:
        own = [result for result in results if result.message.section == section]
        known = sum(bool(result.rules) for result in own)
        lines.append(f"| {section} | {SECTIONS[section]} | {len(own)} | {known} | {len(own) - known} |")
    if agreed := [result for result in results if result.contradicts]:
        lines += ["", "## Agreed differences", "", "| id | expected | label | why |", "|---|---|---|---|"]
    lines += [f"| {r.message.id} | {r.message.expected} | {r.label} | {_cell(r.message.agreed)} |" for r in agreed]
    for section in sections:
        lines += [
            "",
            f"## {section}: {SECTIONS[section]}",
            "",
            "| id | message | rules | label | expected |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(result) for result in results if result.message.section == section]
    return "\n".join(lines) + "\n"


def _state(result: Outcome) -> str:
    strengths = {strength for _, strength in result.rules}
    return next((STATES[i] for i, strength in enumerate(STRENGTHS) if strength in strengths), STATES[-1])


def _row(result: Outcome) -> str:
    message = result.message
    known = ", ".join(f"{name} ({strength})" for name, strength in result.rules) or f"none: {message.left_out}"
    facts = [part for part in message.context.split(BREAK) if re.fullmatch(r"[a-z_]+=\S+", part)]
    text = f"`` {message.phrase[:150]} ``" if "`" in message.phrase else f"`{message.phrase[:150]}`"
    where = f" ({', '.join(facts)})" if facts else ""
    return f"| {message.id} | {_cell(text)}{where} | {_cell(known)} | {result.label} | {message.expected} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\t", " ")


def faults(results: Iterable[Outcome]) -> list[str]:
    """Return what keeps the list from being complete, one line for each message."""
    found = []
    for result in results:
        row = f"{result.message.id} {result.message.phrase!r}"
        if not result.is_known:
            found.append(f"{row}: no rule and no reason")
        if result.rules and result.message.left_out:
            found.append(f"{row}: left out, but {result.rules} fires")
        if result.contradicts and not result.message.agreed:
            found.append(f"{row}: {result.label} by {result.rules}, expected {result.message.expected}")
        if result.message.agreed and not result.contradicts:
            found.append(f"{row}: an agreed difference that is none")
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the page, or print the faults."""
    results = outcomes()
    missing = faults(results)
    print("\n".join(missing))
    if "--missing" not in arguments:
        PAGE.write_text(page(results), encoding="utf-8")
    print(f"{len(results)} messages, {len(missing)} faults")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
