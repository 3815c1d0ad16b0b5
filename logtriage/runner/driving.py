"""For other launchers: advice for a failed launch, and one attempt that they drive themselves."""

from __future__ import annotations

import shlex
import uuid
from typing import TYPE_CHECKING, Any

from logtriage import following, pipeline
from logtriage.redact import Redactor
from logtriage.runner import attempt as attempts
from logtriage.runner import results
from logtriage.runner.loop import shown
from logtriage.runner.probes import system_probes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.reading import Log
    from logtriage.records import Advice, Attempt


def suggest(
    log: Log,
    command: Sequence[str] = (),
    history: Sequence[Log | Attempt] = (),
    *,
    rules: RuleSet | None = None,
    **more: Any,
) -> Advice:
    """Return the advice for a failed launch.

    `log` is a path, bytes or lines; `command` the words that were launched; `history` earlier attempts, the oldest
    first: their logs, or what `pipeline.attempt` made of them. `more` are further fields of `pipeline.Options`, such
    as `facts`, `responses` and `pinned`. Raises InputError for what cannot be read.
    """
    from logtriage.records import Attempt

    rules = rules or pipeline.load_rules()
    earlier = [item if isinstance(item, Attempt) else pipeline.attempt(item, rules) for item in history]
    options = pipeline.Options(command=command, after=earlier, **more)
    return pipeline.analyze(log, rules=rules, options=options).advice


def launch(
    command: Sequence[str] | str, log: str, *, number: int = 1, rules: RuleSet | None = None, **more: Any
) -> attempts.Attempt:
    """Return an attempt to drive: `judge` starts and follows it, `serve` keeps it, `stop` ends it.

    `command` is words, or a text that a shell would split; `log` the file for its output. `more` are arguments of
    `Attempt` (`observer`, `asked_to_stop`, `deadline`, …), and `options`, `probes` and `clock` in place of its own.
    """
    rules = rules or pipeline.load_rules()
    words = shlex.split(command) if isinstance(command, str) else list(command)
    order = results.Order(
        number, tuple(words), shown(words, Redactor(rules.secrets)), log, f"{uuid.uuid4().hex[:12]}:{number}",
        results.address_of(words, rules),
    )  # fmt: skip
    options = more.pop("options", pipeline.Options())
    probes = more.pop("probes", None) or system_probes()
    clock = more.pop("clock", None) or following.system_clock()
    return attempts.Attempt(order, rules, options, probes, clock, **more)
