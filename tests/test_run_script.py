"""The script of `run --save` starts what worked, whatever form the command had, and names the secrets that it lacks."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from logtriage.cli import script
from logtriage.redact import Redactor
from logtriage.runner.loop import shown
from logtriage.runner.results import Address, Order

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet


def saved(path: Path, rules: RuleSet, *command: str) -> str:
    """What the script of a command prints, with a key for API_KEY that has a blank in it."""
    text = shown(command, Redactor(rules.secrets))
    script.save(str(path), Order(1, command, text, "run.log", "r:1", Address("127.0.0.1", 30000)))
    done = subprocess.run(
        [path], env={**os.environ, "API_KEY": "two words"}, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (["printf", "%s|", "a b"], "a b|"),
        (["NAME=a b", "sh", "-c", 'printf %s "$NAME"'], "a b"),
        (["cd / && pwd"], "/\n"),
    ],
)
def test_it_runs(rules: RuleSet, tmp_path: Path, command: list[str], printed: str) -> None:
    """Words, words after assignments, and text for a shell."""
    assert saved(tmp_path / "launch.sh", rules, *command) == printed
    assert "export" not in (tmp_path / "launch.sh").read_text(encoding="utf-8")


def test_secrets_are_named_and_quoted(rules: RuleSet, tmp_path: Path) -> None:
    """A comment says which variable to set; its value stays one word."""
    path = tmp_path / "launch.sh"
    assert saved(path, rules, "printf", "%s|", "--api-key", "sk-not-to-be-seen-anywhere-42") == "--api-key|two words|"
    assert "export before: API_KEY\n" in path.read_text(encoding="utf-8")


def test_what_is_there_stays_until_there_is_a_command(tmp_path: Path) -> None:
    """Looking whether a script can be written neither empties a file nor leaves one."""
    (tmp_path / "old.sh").write_text("mine", encoding="utf-8")
    script.check(str(tmp_path / "old.sh"))
    script.check(str(tmp_path / "new.sh"))
    assert (tmp_path / "old.sh").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "new.sh").exists()
