"""A launch that was made by hand, from its log, as a row for the ledger."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from logtriage import pipeline
from logtriage.advice import history
from logtriage.report import json_v1
from logtriage.runner import entries, ledger

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

_IDENTITY = ("driver", "toolkit", "server_version", "sgl_kernel", "flashinfer", "torch", "quantization")


def row_of(log: str, rules: RuleSet, options: pipeline.Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row of a launch, and the environment that its log tells of. Raises InputError.

    What the log does not tell of the machine stays open: such evidence counts wherever nothing speaks against it.
    """
    report = pipeline.analyze(log, rules=rules, options=options)
    data = json_v1.to_dict(report)
    facts = report.launch.facts
    identity: dict[str, Any] = {name: str(facts[name]) if name in facts else None for name in _IDENTITY}
    identity["gpu"] = f"SM{facts['sm']}" if "sm" in facts else None
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
    name, root = f"log-{digest}", data["root_cause"]
    written = datetime.fromtimestamp(os.path.getmtime(log), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    evidence = entries.evidence(history.attempt(report, log), report)
    entry = {
        "schema": entries.SCHEMA, "run": name, "number": 1, "changed": None, "why": "by hand", "started": written,
        "command_text": " ".join(data["launch"]["command"] or ()), "seconds": 0, "stages": [], "ending": "by-hand",
        "because": data["verdict"]["label"], "exit_code": None, "log": log, "stopped": None, "smoke": None,
        "speed": None, "report": data, "evidence": evidence,
    }  # fmt: skip
    row = {
        "id": f"{name}:1", "run": name, "number": 1, "environment": ledger.key_of(identity),
        "command": entry["command_text"], "started": written, "ended": written, "log": log, "ending": "by-hand",
        "stage": data["verdict"]["stage"], "label": data["verdict"]["label"], "outcome": data["verdict"]["outcome"],
        "root_line": root["text"] if root else None, "entry": json.dumps(entry),
    }  # fmt: skip
    return row, identity
