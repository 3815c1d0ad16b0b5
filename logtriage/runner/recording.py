"""Keeps every log of a run, its answers and its verdict in the form of the corpus, without secrets, on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from logtriage import pipeline
from logtriage.errors import InputError
from logtriage.redact import Redactor
from logtriage.runner.results import READY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.runner.results import Result

_RESPONSES = 3


class Recording:
    """Writes one folder for each attempt: `run.log`, `response-N.json`, `case.yaml`. Without a folder it does nothing.

    Raises InputError if the folder cannot be made.
    """

    def __init__(self, folder: str | None, run: str, rules: RuleSet) -> None:
        self._folder = Path(folder) if folder else None
        self._run = run
        self._rules = rules
        self._redactor = Redactor(rules.secrets)
        try:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from error

    def add(self, entry: Mapping[str, Any], result: Result) -> None:
        """Record an attempt; once more, if more is known of it. A full disk is no reason to fail."""
        if self._folder is None or not os.path.exists(result.order.log):
            return
        case = self._folder / f"{self._run}-{entry['number']}"
        try:
            case.mkdir(exist_ok=True)
            with (
                open(result.order.log, encoding="utf-8", errors="replace", newline="") as log,
                open(case / "run.log", "w", encoding="utf-8", newline="") as copy,
            ):
                for line in log:
                    copy.write(self._redactor.text(line))
            bodies = [self._redactor.text(body.decode("utf-8", "replace")) for body in _bodies(result)]
            for number, body in enumerate(bodies, start=1):
                (case / f"response-{number}.json").write_text(body, encoding="utf-8")
            (case / "case.yaml").write_text(
                yaml.safe_dump(self._case(entry, case / "run.log", bodies), sort_keys=False, allow_unicode=True),
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError:  # the server matters more than its record
            return

    def _case(self, entry: Mapping[str, Any], log: Path, bodies: Sequence[str]) -> dict[str, Any]:
        """What the corpus says of a log: the verdict on the log alone, and the one with the answers."""
        alone = pipeline.analyze(log, rules=self._rules)
        launch = entry["report"]["launch"]
        case = {
            "provenance": "recorded by logtriage run",
            "split": "train",
            "engine": "sglang",
            "sglang_version": launch["version"],
            "sm": (launch["gpu"] or {}).get("sm"),
            "command": entry["command_text"],
            "exit_code": entry["exit_code"],
            "ready": entry["ending"] == READY,
            "label": alone.label,
            "acceptable": [],
            "component": (alone.root.component if alone.root else None) or "",
            "responsible_flag": (alone.root.flag if alone.root else None) or "",
            "root_line": alone.lines[alone.root.line].text if alone.root else "",
            "note": f"{entry['ending']}: {entry['because']}",
        }
        if bodies:
            options = pipeline.Options(responses=[body.encode() for body in bodies])
            case["label_with_responses"] = pipeline.analyze(log, rules=self._rules, options=options).label
        return case


def _bodies(result: Result) -> Sequence[bytes]:
    return result.smoke.bodies[:_RESPONSES] if result.smoke else ()
