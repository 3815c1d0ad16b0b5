"""The common path starts fast because of what it does not import."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import ROOT

HEAVY = (
    "pydantic", "yaml", "numpy", "sklearn", "rich", "dataclasses", "asyncio", "urllib.request", "http.client",
    "jinja2", "markupsafe", "xml.etree.ElementTree", "sqlite3", "httpx", "psutil",
)  # fmt: skip


def _imported(*words: str) -> list[str]:
    code = (
        "import json, sys\n"
        "from logtriage.cli.main import main\n"
        "try:\n"
        f"    main({list(words)!r})\n"
        "except SystemExit:\n"
        "    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return list(json.loads(done.stderr.splitlines()[-1]))


def test_analyze_imports_nothing_heavy() -> None:
    """`logtriage analyze` with the built-in rules imports none of pydantic, yaml, numpy, scikit-learn (nor rich)."""
    log = str(ROOT / "corpus/recorded/kv-fp4/run.log")
    _imported("analyze", log)  # a checkout compiles its rules once
    for form in ("json", "text"):
        imported = _imported("analyze", log, "--format", form)
        assert "logtriage.engine.matching" in imported
        assert [name for name in HEAVY if name in imported] == []


def test_version_imports_no_command() -> None:
    """`logtriage --version` imports neither a command nor the pipeline."""
    imported = _imported("--version")
    assert "logtriage.cli.main" in imported
    assert [name for name in imported if name.startswith(("logtriage.pipeline", "logtriage.cli.analyze"))] == []
