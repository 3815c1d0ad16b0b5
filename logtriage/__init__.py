"""Says why an SGLang launch died, shows the line that proves it, and recommends the next step.

from logtriage import analyze

report = analyze("run.log")
report.label                      # 'sm100-only-kernel'
report.lines[report.root.line]    # the line that shows it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage._version import __version__

if TYPE_CHECKING:
    from logtriage.pipeline import analyze
    from logtriage.records import Report

__all__ = ["Report", "__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the command line starts fast."""
    if name == "analyze":
        from logtriage.pipeline import analyze

        return analyze
    if name == "Report":
        from logtriage.records import Report

        return Report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
