"""Launches servers and looks at their machine: the one part that starts processes, opens sockets and waits.

Other launchers use `suggest` (a failed launch in, advice out) and `launch` (an attempt to drive).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logtriage.runner.driving import launch, suggest

__all__ = ["launch", "suggest"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: the command line starts without them."""
    if name in __all__:
        from logtriage.runner import driving

        return getattr(driving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
