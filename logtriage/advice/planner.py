"""The one next step for a verdict: what the message itself names first, then what is known of the server and the GPU.

In: a verdict with its evidence, the launch, earlier attempts and flags that must stay. Out: advice, and the verdict
with candidates that only history can give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.advice import hints
from logtriage.records import Advice, Attempt, Change, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.advice.case import Case, Step
    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Incident, Launch, RootCause

_FAILED = ("failed", "degenerate")
_REPAIRS = ("missing-dependency", "cuda-toolkit-mismatch", "jit-compile-failure")
_NO_LAUNCH = "Give the file that standard output and standard error of the launch went to, from its start."
_CUT, _EMPTY = "the compressed data", "the log is empty"
_IN_ENVIRONMENT = ("--model-path", "--tokenizer-path", "--speculative-draft-model-path")
_SM, _VERSION, _FORMAT = "compute capability of the GPU (--sm)", "version of SGLang (--server-version)", "quantization"


def plan(
    verdict: Verdict,
    root: RootCause | None,
    incident: Incident,
    launch: Launch,
    rules: RuleSet,
    history: Sequence[Attempt] = (),
    pinned: Sequence[str] = (),
    files: Sequence[str] = (),
    text: str = "",
    notes: Sequence[str] = (),
) -> tuple[Verdict, Advice]:
    """Return the verdict, with candidates that history gives, and the advice for it.

    `history` are earlier attempts, the oldest first; `pinned` flags that are never changed; `files` the names of the
    logs that were read; `text` the line that shows the cause; `notes` how they were read. A rule's own action and hint
    beat the label's.
    """
    head = rules.labels[verdict.label]
    match = incident.root
    rule: dict[str, Any] = match.rule if match is not None and match.rule["id"] == verdict.rule else {}
    facts = {**(match.facts if match is not None and rule else {}), **(root.facts if root else {})}
    hint = hints.of(rule, root, facts)
    action = str(rule.get("action") or head["action"])
    told = hint.get("text") if "…" not in hint.get("text", "") else None
    summary = str(told or (head.get("remedy") or {}).get("advice") or head["title"])
    if verdict.outcome == "unknown" and not incident.troubles:
        return verdict, Advice("investigate", _NO_LAUNCH)
    if verdict.outcome == "incomplete" and (ended := _ended(verdict, incident, notes)) is not None:
        return verdict, Advice("investigate", ended)
    if verdict.outcome not in _FAILED or action in ("none", "wait", "fix-request"):
        return verdict, Advice(action, summary)
    now = Attempt(
        source=next(iter(files), "this launch"),
        label=verdict.label,
        retry=verdict.retry,
        action=action,
        outcome=verdict.outcome,
        launch=launch,
        rule=verdict.rule,
        text=text or verdict.because,
        flag=root.flag if root else None,
        value=root.value if root else None,
        component=root.component if root else None,
        blocks=dict(rule.get("blocks", {})),
        hint=hint,
        facts=facts,
    )
    if action == "investigate" and not history and (launch.command is None or _is_bare(launch)):
        notes = ("No command is known; give it after `--`.",) if launch.command is None else ()
        return verdict, Advice(action, summary, notes=notes)
    return _with_knowledge(verdict, now, summary, rules, history, pinned, files)


def advise(
    now: Attempt, rules: RuleSet, history: Sequence[Attempt] = (), pinned: Sequence[str] = (), confidence: float = 0.9
) -> Advice:
    """Return the advice for an attempt that is known only as evidence, such as one of a ledger."""
    head = rules.labels[now.label]
    # Ledgers hold hints that were written down before they were filled.
    now = now.replace(hint={key: hints.filled(text, now.facts) for key, text in now.hint.items()})
    verdict = Verdict(now.label, confidence, "rule", now.outcome, now.retry, now.rule)
    told = now.hint.get("text") if not hints.has_gap(now.hint.get("text", "")) else None
    summary = str(told or (head.get("remedy") or {}).get("advice") or head["title"])
    return _with_knowledge(verdict, now, summary, rules, history, pinned, ())[1]


def _ended(verdict: Verdict, incident: Incident, notes: Sequence[str]) -> str | None:
    """What to do about a log that is not going to grow, or None if waiting may help."""
    if any(_CUT in note for note in notes):
        return "Give the whole file: the compressed data ends too early, and the cause may stand in what is missing."
    if verdict.because == _EMPTY:
        return "Give the file that standard output and standard error of the launch went to: this one is empty."
    if any(match.rule["id"] == "ordered-stop" for match in incident.outcomes):
        return "Start it again if it was not meant to stop: somebody asked it to stop before it was ready."
    ending = next((match for match in incident.endings if match.rule["id"] == verdict.rule), None)
    return ending.rule.get("hint", {}).get("text") if ending is not None else None


def _is_bare(launch: Launch) -> bool:
    """Whether neither the GPU nor a file that the output went to is known: then knowledge has nothing to add."""
    return launch.facts.get("sm") is None and not launch.redirect


def _with_knowledge(
    verdict: Verdict,
    now: Attempt,
    summary: str,
    rules: RuleSet,
    earlier: Sequence[Attempt],
    pinned: Sequence[str],
    files: Sequence[str],
) -> tuple[Verdict, Advice]:
    from logtriage.advice import backends, case, command, history, servers

    known = servers.Servers(rules.server)
    this, notes = case.build(now, earlier, rules.labels[now.label], known, pinned, verdict.confidence)
    if now.action == "investigate":
        found = history.likely(this.launch, this.ruled_out, known, this.setting) if now.label != "unknown" else []
        verdict = verdict.replace(candidates=(*found, *verdict.candidates))
        step = _investigate(this, summary, files)
        notes += ["The likely reading is a candidate only: nothing in this log proves it."] if found else []
    else:
        step = _step(this, summary)
    if step.stop is None and this.setting.is_nvidia:
        step = backends.with_forced(this, step)
    changes = step.changes
    notes = [*step.notes, *_blamed(this, step), *notes, *_gaps(this, step)]
    rendered = command.render(this.launch, changes, rules) if changes else None
    if changes and this.launch.command is None:
        notes.append("No command is known; give it after `--` to get the full one.")
    elif changes and rendered is None:
        notes.append("The command cannot be given in full, since a value has to be chosen first.")
    return verdict, Advice(
        action=step.action or now.action,
        summary=step.summary,
        changes=changes,
        command=rendered[0] if rendered else None,
        command_text=rendered[1] if rendered else None,
        ruled_out=tuple(_ruled_out(this)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _step(this: Case, summary: str) -> Step:
    """The step for a failure that is understood."""
    from logtriage.advice import arguments, backends, case, memory

    now = this.now
    if memory.holder(this) is not None and now.action in ("free-memory", "change-flag"):
        return memory.step(this).replace(action="free-memory")
    if (named := arguments.named_way_out(this, summary)) is not None:
        return named
    if now.action == "free-memory":
        return memory.step(this)
    if now.outcome == "degenerate":
        return backends.garbage(this)
    if now.action == "fix-environment":
        return _repair(this, summary)
    if now.label == "port-in-use":
        return arguments.other_port(this, summary)
    flag = now.flag
    if flag is not None and (fixed := arguments.respelt(this, flag)) is not None:
        return fixed
    if now.label == "oom-weight-shuffle":
        flag = this.servers.components["moe"]
        found = backends.step(this, flag, no_repack=True, sure=True)
        return found if found.changes else memory.step(this)
    if flag is None and now.label != "unsupported-config" and (this.launch.flags or this.launch.resolved):
        return _most_often(this, summary)
    if flag is not None and now.label == "unsupported-config" and (gone := arguments.unknown_flag(this, flag)):
        return gone
    if flag is not None and this.servers.choices(flag, this.setting.version) and flag in this.servers.backends:
        return backends.step(this, flag)
    if flag is not None and flag in this.pinned:
        return case.Step(f"{flag} is pinned, and only another value of it could help.", stop=f"{flag} is pinned")
    if flag is None or flag in _IN_ENVIRONMENT:
        return case.Step(summary, stop="no flag is known to help")
    cause = "the message rejects it" if now.label == "unsupported-config" else "it is to blame"
    why = f"{cause}, and no value that would do is known"
    return case.Step(summary, (Change(flag, this.value(flag), None, why, this.sure("direction"), f"rule {now.rule}"),))


def _most_often(this: Case, summary: str) -> Step:
    """The step for the component that is most often at fault for the label, where none is to blame."""
    from logtriage.advice import backends, case, history

    for flag in this.head.get("remedy", {}).get("flags", ()):
        if flag in this.servers.backends and history.concerns(flag, this.launch, this.servers, this.setting):
            found = backends.step(this, flag)
            if found.changes:
                note = "It is not clear which part failed; this one is most often at fault."
                change = found.changes[0].replace(confidence=round(found.changes[0].confidence / 2, 2))
                return case.Step(f"{summary.rstrip('.')}. First to try: {found.summary}", (change,), (note,))
    return case.Step(summary, stop="no flag is known to help")


def _repair(this: Case, summary: str) -> Step:
    """What to repair. First, though, whether that could work here at all; second, what needs no repair."""
    from logtriage.advice import arguments, backends, case

    now, servers = this.now, this.servers
    name, new = now.hint.get("flag"), now.hint.get("value")
    new = "true" if name and new is None and servers.is_switch(name) else new
    if name and new and "…" not in new and name not in this.pinned and not this.servers.choices(name, None):
        why = arguments.names_way_out(this, name, new)
        old = this.value(name) if name.startswith("-") else this.launch.env.get(name)
        return case.Step(summary, (Change(name, old, new, why, this.sure("rule"), f"rule {now.rule}"),))
    flag = now.flag if now.flag in servers.backends else servers.components.get(now.component or "")
    if flag is None or flag not in servers.backends:
        return case.Step(summary, stop="the environment has to be repaired first")
    value = now.value if now.flag == flag and now.value else this.value(flag)
    status = servers.status_of(flag, value, this.setting)
    if status.is_dead and this.setting.sm is not None and now.label in _REPAIRS:
        found = backends.step(this, flag)
        note = f" ({status.note})" if status.note else ""
        text = f"{flag} {value} could not work on SM{this.setting.sm} anyway{note}: repairing this would not help."
        summary = f"{text} {found.summary}"
        return found.replace(summary=summary, action="change-flag", notes=(*found.notes, f"Source: {status.source}."))
    if now.label not in _REPAIRS:
        return case.Step(summary, stop="the environment has to be repaired first")
    kernels = servers.kernels(flag, value, this.setting)
    broken = servers.broken_by.get(now.flag or "")
    if broken is None and len(kernels) != 1:
        return case.Step(summary, stop="the environment has to be repaired first")
    needs = [broken] if broken else servers.library(min(kernels))["needs"]
    found = backends.step(this, flag, avoid=needs, sure=True)
    if not found.changes:
        return case.Step(summary, stop="the environment has to be repaired first")
    second = f"Without the repair: {flag} {found.changes[0].new}, which does not need what is broken here."
    return found.replace(summary=summary, notes=(second,))


def _investigate(this: Case, summary: str, files: Sequence[str]) -> Step:
    """Where to look; and what to replace before the next launch, since it could not work."""
    from logtriage.advice import backends, case, command

    target = command.redirect_target(this.launch)
    read = {name.replace("\\", "/").rpartition("/")[2] for name in files}
    if target is not None and target.rpartition("/")[2] not in read:
        summary = f"Read {target} first: the output of this launch went there. {summary}"
    flag = this.now.flag
    if this.now.label == "unknown" and flag in this.servers.backends:
        found = backends.step(this, str(flag), sure=True)
        if found.changes:
            return found.replace(summary=summary, notes=(f"If that tells nothing: {found.summary}",))
    return case.Step(summary)


def _blamed(this: Case, step: Step) -> list[str]:
    """Name what is to blame where neither the changes nor the summary do."""
    flag = this.now.flag
    if not flag or flag in step.summary or any(flag == change.flag for change in step.changes):
        return []
    value = this.now.value if this.now.value is not None else this.value(flag)
    return [f"To blame: {flag} {value}" if value else f"To blame: {flag}"]


def _gaps(this: Case, step: Step) -> list[str]:
    """What is not known, and so could not be taken into account."""
    setting = this.setting
    concerned = {this.now.flag, *(change.flag for change in step.changes)} & set(this.servers.backends)
    concerned = concerned if setting.is_nvidia else set()
    missing = [name for name, value in ((_SM, setting.sm), (_VERSION, setting.version)) if value is None and concerned]
    quantization = this.launch.facts.get("--quantization") or this.launch.facts.get("quantization")
    if setting.format is None and concerned - {this.servers.components["attention"]}:
        missing.append(f"{_FORMAT} {quantization} (nothing is known of it)" if quantization else _FORMAT)
    notes = [f"Not known, so not taken into account: {', '.join(missing)}."] if missing else []
    if setting.version is not None and not this.servers.covers(setting.version):
        first, last = this.servers.versions[0], this.servers.versions[-1]
        notes.append(f"SGLang {setting.version} lies outside the versions that are known ({first} to {last}).")
    removed = [change.flag for change in step.changes if change.removed]
    for flag in this.launch.flags:
        if flag not in removed and flag.startswith("--") and flag not in this.servers.flags(None):
            notes.append(f"{flag} is not among the flags that are known here.")
    return notes


def _ruled_out(this: Case) -> list[dict[str, str | None]]:
    """What is ruled out, and what each exclusion rests on."""
    from logtriage.advice.history import dead_values

    found: list[dict[str, str | None]] = []
    everywhere = {item.kernels for item in this.ruled_out if item.flag is None}
    for item in this.ruled_out:
        if item.flag is not None and (item.kernels in everywhere or item.flag in _IN_ENVIRONMENT):
            continue
        if item.config:
            value = " ".join(f"{flag} {value}" for flag, value in item.config if value) or "the command as a whole"
            found.append({"flag": None, "value": value, "why": item.why, "source": item.source})
            continue
        named = item.value or f"every value served by {item.kernels}"
        found.append({"flag": item.flag, "value": named, "why": item.why, "source": item.source})
    for flag, dead, why, source, _ in dead_values(this.launch, (), this.servers, this.setting):
        found.append({"flag": flag, "value": dead or "auto", "why": why, "source": source})
    return list({(item["flag"], item["value"]): item for item in reversed(found)}.values())[::-1]
