"""What tests share: the built-in rules, the corpus, and the real command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from logtriage import pipeline
from logtriage.workbench import evaluate

if TYPE_CHECKING:
    from logtriage.engine.ruleset import RuleSet

ROOT = Path(__file__).resolve().parent.parent


class Case(NamedTuple):
    """A log of the corpus with its verdict."""

    folder: Path
    verdict: dict[str, Any]

    @property
    def log(self) -> Path:
        return self.folder / "run.log"

    @property
    def responses(self) -> list[Path]:
        return sorted(self.folder.glob("response-*.json"))


def cases() -> list[Case]:
    """All cases of the corpus that the rules are held to, in the order of their names."""
    return [
        Case(path.parent, yaml.safe_load(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "corpus").glob("*/*/case.yaml"))
        if path.parent.parent.name not in evaluate.APART
    ]


@pytest.fixture(scope="session")
def rules() -> RuleSet:
    """The built-in rules."""
    return pipeline.load_rules()


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run the real command in an empty folder; returns the finished process (text, never a terminal)."""

    def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "logtriage", *words],
            capture_output=True, text=True, cwd=options.pop("cwd", tmp_path), timeout=120, check=False, **options,
        )  # fmt: skip

    return call
