"""analyze(): bytes → lines → events → matches → incident → verdict → advice → report, in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage import choosing, judging, resources
from logtriage import verdict as ladder
from logtriage.advice import planner
from logtriage.engine.ruleset import RuleSet
from logtriage.reading import Options, Reading, near_misses, read, read_each, read_growing, searches
from logtriage.records import Report, RootCause, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.answers import Finding
    from logtriage.intake import growing
    from logtriage.reading import Log
    from logtriage.records import Attempt, Verdict

_UNJUDGED = ("a log does not show whether the answers make sense: `--response FILE` or `logtriage smoke URL` does",)
_FOR_ALL = ("each node has a command of its own: change it on all of them",)

__all__ = [
    "Options", "Reading", "Seen", "analyze", "attempt", "load_rules", "near_misses", "read", "report_on",
    "report_on_growing", "searches",
]  # fmt: skip


def analyze(*logs: Log, rules: RuleSet | None = None, options: Options | None = None) -> Report:
    """Analyze the log of one SGLang launch, given as paths, as bytes or as iterables of lines.

    Several logs are parts of the same launch (one for each node, say). Raises InputError for what cannot be read and
    RuleError for broken rules; a broken *log* never raises.
    """
    rules = rules or load_rules()
    options = options or Options()
    return report_on(read(logs, rules, options), rules, options)


def analyze_each(log: Log, rules: RuleSet, options: Options) -> Iterator[Report]:
    """Analyze each log of a folder, a pattern or an archive (or the one that `log` is) as a launch of its own."""
    for reading in read_each(log, rules, options):
        yield report_on(reading, rules, options)


def report_on_growing(log: growing.GrowingLog, notes: Sequence[str], rules: RuleSet, options: Options) -> Report:
    """Report on a log that grows as if it ended here."""
    return report_on(read_growing(log, notes, rules, options), rules, options)


def report_on(reading: Reading, rules: RuleSet, options: Options) -> Report:
    """Judge a log that was read, and return the report."""
    finding, answered = _answers(options)
    pasted = _pasted_body(reading, rules, options)
    judged, notes = _judge(reading, rules, options, pasted[1] if pasted else finding)
    has_failed = bool(judged.incident.root or judged.incident.troubles or judged.incident.endings)
    is_open = judged.verdict.decided_by == "classifier" or not (has_failed or pasted)
    if is_open and not (options.responses or options.finding):
        from logtriage import pasted as answers_in_it  # most logs have failed

        if pasted := answers_in_it.text(reading, rules):
            judged, notes = _judge(reading, rules, options, pasted[1])
        elif judged.verdict.label == "healthy" and answers_in_it.complaint(reading, rules) is not None:
            judged = judged.replace(verdict=ladder.doubted(judged.verdict))
    if pasted and judged.verdict.decided_by == "response":
        line = reading.lines[pasted[0]]
        judged = judged.replace(root=RootCause(pasted[0], (line.start, len(line.text))))
    verdict, advice = planner.plan(
        judged.verdict, judged.root, judged.incident, judged.launch, rules,
        options.after, options.pinned, [file.name for file in reading.files],
        reading.lines[judged.root.line].text if judged.root else "", reading.notes,
    )  # fmt: skip
    return Report(
        files=reading.files,
        lines=tuple(reading.lines),
        events=tuple(reading.clock.events),
        launches=choosing.count_launches(reading),
        launch=judged.launch,
        verdict=verdict,
        root=judged.root,
        incident=judged.incident,
        advice=advice,
        rules_digest=rules.digest,
        label_title=_title(judged.verdict, rules),
        secrets=tuple(rules.secrets),
        marks=judged.marks,
        nodes=judged.nodes,
        notes=(
            *reading.notes,
            *notes,
            *answered,
            *(_UNJUDGED if judged.verdict.outcome == "healthy" and not (options.responses or options.finding) else ()),
            *_draft_note(reading, judged),
            *(_FOR_ALL if judged.nodes and advice.changes else ()),
        ),
        fingerprint=_fingerprint(reading, judged),
    )


def _draft_note(reading: Reading, judged: judging.Judged) -> list[str]:
    """How to make a rule of what only the classifier recognised, or nothing did."""
    verdict = judged.verdict
    at = None
    if verdict.label == "unknown" and verdict.outcome == "failed":
        at = next(iter((*judged.incident.troubles, *verdict.lines)), None)  # no root: it tells only how it ended
    elif verdict.decided_by == "classifier" and judged.root is not None:
        at = judged.root.line
    if at is None:
        return []
    import shlex

    line = reading.lines[at]
    name = reading.files[line.file].name
    if name.startswith("<"):  # a pipe, or no file at all: it cannot be read again
        return []
    place = shlex.quote(f"{name}:{line.number}")
    label = "LABEL" if verdict.label == "unknown" else verdict.label
    return [f"`logtriage rules new --from {place} --label {label}` drafts a rule for it"]


def _fingerprint(reading: Reading, judged: judging.Judged) -> str | None:
    """The name of the failure, for any launch that failed; where no line shows the cause, of what is said about it."""
    if judged.verdict.outcome not in ("failed", "degenerate"):
        return None
    from logtriage.classifier import fingerprint

    if judged.root is None:
        return fingerprint.of_text(f"{judged.verdict.label} {judged.verdict.because}")
    return fingerprint.of(judged.root.line, reading.lines, reading.clock.events)


def attempt(log: Log, rules: RuleSet, options: Options | None = None) -> Attempt:
    """Analyze the log of an earlier launch, for `Options.after`.

    Facts in `options` only fill what the log does not tell: it may come from another machine.
    """
    from logtriage.advice import history

    given = options or Options()
    report = analyze(log, rules=rules, options=given.replace(facts={}, after=(), pinned=()))
    launch = report.launch.replace(facts={**given.facts, **report.launch.facts})
    return history.attempt(report.replace(launch=launch), report.files[0].name)


def _judge(
    reading: Reading, rules: RuleSet, options: Options, finding: Finding | None
) -> tuple[judging.Judged, list[str]]:
    if len(reading.files) < 2 and not options.exit_codes:
        return choosing.judge(reading, rules, options, finding)
    from logtriage import several  # most launches have one log

    return several.judge(reading, rules, options, finding)


def _pasted_body(reading: Reading, rules: RuleSet, options: Options) -> tuple[int, Finding] | None:
    """The first answer in the log that is garbage, unless the caller gave answers."""
    known = set(rules.log["answers"])
    found = {at: hit for at, hits in sorted(reading.hits.items()) for hit in hits if hit.signature in known}
    if options.responses or options.finding or not found:
        return None
    from logtriage import pasted  # most logs hold no answers

    logged = [(at, hit.groups["answer"]) for at, hit in found.items() if "answer" in hit.groups]
    pieces = [at for at in found if "answer" not in found[at].groups]
    return pasted.body(reading, pieces, rules) or pasted.logged(logged, reading, rules)


def _title(verdict: Verdict, rules: RuleSet) -> str:
    return "No SGLang launch was recognised" if verdict.outcome == "unknown" else rules.labels[verdict.label]["title"]


def _answers(options: Options) -> tuple[Finding | None, list[str]]:
    """What is wrong with the answers of the server that were given, and notes on those that tell nothing."""
    if options.finding or not options.responses:
        return options.finding, []
    from logtriage import answers  # most logs come without answers

    names = [*options.response_names, *(f"response {n}" for n in range(1, len(options.responses) + 1))]
    read = [answers.read_response(body) for body in options.responses]
    notes = [f"{name} holds no answer" for name, found in zip(names, read, strict=False) if not found]
    finding = answers.judge([answer for found in read for answer in found])
    if finding is None and (count := sum(map(len, read))):
        notes.append(
            "1 answer was read, nothing is wrong with it" if count == 1
            else f"{count} answers were read, nothing is wrong with them"
        )  # fmt: skip
    return finding, notes


def load_rules(folders: Sequence[Any] = (), disable: Sequence[str] = ()) -> RuleSet:
    """Return the built-in rules, or these together with the rule files in `folders` and without those in `disable`.

    Raises RuleError with all faults of all files.
    """
    if folders or disable:
        from logtriage.engine.compile import compile_rules

        return RuleSet(compile_rules([resources.rules_folder(), *folders], disable))
    compiled = resources.shipped_rules() or resources.cached_rules()
    if compiled is None:
        from logtriage.engine.compile import compile_rules

        compiled = compile_rules([resources.rules_folder()])
        resources.cache_rules(compiled)
    return RuleSet(compiled, linted=True, server=lambda: _server_knowledge(compiled["server_file"]))


def _server_knowledge(path: str) -> dict[str, Any]:
    known = resources.server_knowledge(path)
    if known is not None:
        return known
    from logtriage.engine.compile import compile_rules  # it was removed since, or is damaged

    compiled = compile_rules([resources.rules_folder()])
    resources.cache_rules(compiled)
    knowledge: dict[str, Any] = compiled["server"]
    return knowledge
