"""Which flag the frames of a traceback blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.engine.ruleset import RuleSet

PACKAGES = "/usr/lib/python3.12/site-packages"
START = f"""Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "{PACKAGES}/sglang/launch_server.py", line 6, in <module>
    from sglang.srt.entrypoints.http_server import launch_server
"""
CHOICE = f"""[2026-01-12 10:03:44] Scheduler hit an exception: Traceback (most recent call last):
  File "{PACKAGES}/sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process
    scheduler = Scheduler(server_args)
  File "{PACKAGES}/sglang/srt/model_executor/model_runner.py", line 900, in _get_attention_backend
    from sglang.srt.layers.attention.other_backend import OtherBackend
"""
IMPORT = f"""  File "{PACKAGES}/sglang/srt/layers/attention/other_backend.py", line 12, in <module>
    import othernel
ModuleNotFoundError: No module named 'othernel'
"""


def blamed(text: str, folder: Path, rules: RuleSet) -> tuple[str | None, str | None]:
    log = folder / "run.log"
    log.write_text(text, encoding="utf-8")
    root = pipeline.analyze(str(log), rules=rules).root
    assert root is not None
    return root.component, root.flag


def test_a_module_that_a_choice_imports_blames_its_flag(tmp_path: Path, rules: RuleSet) -> None:
    assert blamed(CHOICE + IMPORT, tmp_path, rules) == ("attention", "--attention-backend")


def test_a_module_that_is_imported_at_the_start_blames_nothing(tmp_path: Path, rules: RuleSet) -> None:
    assert blamed(START + IMPORT, tmp_path, rules) == (None, None)
