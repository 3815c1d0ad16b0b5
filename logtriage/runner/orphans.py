"""What an earlier runner left behind: attempts that never came to an end in the ledger, and processes that live on."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from logtriage.errors import InputError
from logtriage.runner import cleanup, launcher, ledger, processes, results
from logtriage.runner.processes import Family, birth, described

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet
    from logtriage.following import Clock
    from logtriage.runner.results import Observer

_VARIABLE = re.compile(r"\$\{?([A-Z_][A-Z0-9_]*)\}?")


def settle(book: ledger.Ledger, resumed: str | None, rules: RuleSet, clock: Clock, observer: Observer) -> None:
    """Name what earlier runners left behind; end what the run that is resumed left. Raises InputError if it stays.

    Processes of a run that is not resumed are not touched: they are named, and the port or the memory that they hold
    decides whether the new run can go on.
    """
    for run in book.runs():
        if run["ended"] is not None or _lives(run):
            continue
        is_left = False
        for row in book.attempts("run = ?", (run["id"],)):  # one without an id may have been launched all the same
            family = Family(row["pid"], row["birth"], row["id"])
            living = family.alive(thorough=True)
            names = "; ".join(described(process) for process in living)
            if living and run["id"] == resumed:
                observer.note(f"what {row['id']} left behind is ended: {names}")
                stopped = cleanup.stop(family, row["pid"] or 0, rules.server["runner"]["stop"], clock)
                if stopped.left:
                    raise InputError(f"what {row['id']} left behind does not end: {'; '.join(stopped.left)}")
            elif living:
                is_left = True  # until a later runner finds it gone
                observer.note(f"the runner of {row['id']} was killed and left this behind: {names}; "
                              f"`logtriage run --resume` ends it and goes on")  # fmt: skip
                continue
            if row["ended"] is None:
                observer.note(f"{row['id']} never came to an end (its runner was killed); its log is {row['log']}")
                book.update(row["id"], ended=ledger.now(), ending="runner-killed", label="incomplete")
        if run["id"] != resumed and not is_left:
            book.end_run(run["id"], "killed", "its runner was killed")


def refuse_waiting(port: int, rules: RuleSet) -> None:
    """Raise InputError for a server of an earlier run, of whatever ledger, that is going to take the port.

    Who calls it has the lock on the port, so no living runner watches that server; a server that has the port already
    is found by asking who holds it.
    """
    for marker, found in processes.marked().items():
        for one in found:
            words = processes.words_of(one)
            if results.flags_of(words, rules) and results.address_of(words, rules).port == port:
                raise InputError(
                    f"{processes.described(one)} was launched by an earlier run ({marker}), nobody watches it, and it "
                    f"is going to take port {port}: end it, or give another --port"
                )


def restored(text: str, rules: RuleSet) -> tuple[str, ...]:
    """Return the command that a ledger holds, with the secrets that it stands for. Raises InputError without them."""
    from logtriage.redact import Redactor
    from logtriage.report.json_v1 import redact_shell

    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        secret = os.environ.get(found[1])
        if secret is None:
            missing.append(found[1])
        return secret or found[0]

    words = launcher.from_text(text)
    words = [_VARIABLE.sub(value, word) for word in words]
    if missing or "<redacted:" in redact_shell(text, Redactor(rules.secrets)):
        names = ", ".join(sorted(set(missing))) or "a secret"
        raise InputError(f"the command to resume needs {names}: set it, or give the command again after `--`")
    return tuple(words)


def _lives(run: dict[str, Any]) -> bool:
    """Whether the process that makes a run is alive."""
    return run["pid"] is not None and birth(run["pid"]) == run["birth"]
