"""Writes the reports of a real launch into the README's section "In CI": ``python tools/readme_reports.py``.

They stand between comments that name the form; a test says when they are out of date.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from logtriage import pipeline
from logtriage.report import github, json_v1, junit, markdown

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
LOG = ROOT / "corpus/recorded/attn-trtllm-mha/run.log"
SM, VERSION = 90, "0.5.16"


def report() -> dict[str, Any]:
    """Analyze the log as run.log; detailed report data."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copy(LOG, "run.log")
        found = pipeline.analyze("run.log", options=pipeline.Options(facts={"sm": SM, "server_version": VERSION}))
    return json_v1.to_dict(found, detailed=True)


def filled(text: str) -> str:
    """Return the README with the reports as they are now."""
    data = report()
    shown = {
        "github": f"```text\n{github.annotation(data)}```",
        "junit": f"```xml\n{junit.render([data])}```",
        "markdown": markdown.render([data]).replace("### ", "#### "),
    }
    for form, block in shown.items():
        pattern = rf"(<!-- {form} -->\n).*?(\n<!-- /{form} -->)"
        text, count = re.subn(pattern, lambda found, block=block: found[1] + block + found[2], text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"README.md: no place for {form}: <!-- {form} --> … <!-- /{form} -->")
    return text


def main() -> None:
    """Fill the README."""
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
