"""Keeps every log of a run, its answers and its verdict in the form of the corpus, without secrets, on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from logtriage.errors import InputError
from logtriage.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.engine.ruleset import RuleSet
    from logtriage.runner.results import Result


class Recording:
    """Writes one folder for each attempt: `run.log`, `response-N.json`, `case.yaml`. Without a folder it does nothing.

    Raises InputError if the folder cannot be made.
    """

    def __init__(self, folder: str | None, run: str, rules: RuleSet) -> None:
        self._folder = Path(folder) if folder else None
        self._run = run
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
            for number, body in enumerate(result.smoke.bodies if result.smoke else (), start=1):
                text = self._redactor.text(body.decode("utf-8", "replace"))
                (case / f"response-{number}.json").write_text(text, encoding="utf-8")
            (case / "case.yaml").write_text(
                yaml.safe_dump(_case(entry), sort_keys=False, allow_unicode=True), encoding="utf-8"
            )
        except OSError:
            return


def _case(entry: Mapping[str, Any]) -> dict[str, Any]:
    report = entry["report"]
    launch, root = report["launch"], report["root_cause"]
    return {
        "provenance": "recorded by logtriage run",
        "split": "train",
        "engine": "sglang",
        "sglang_version": launch["version"],
        "sm": (launch["gpu"] or {}).get("sm"),
        "command": entry["command_text"],
        "exit_code": entry["exit_code"],
        "label": report["verdict"]["label"],
        "responsible_flag": root["flag"] if root else "",
        "root_line": root["text"] if root else "",
        "note": f"{entry['ending']}: {entry['because']}",
    }
