"""The entry of the command ``logtriage``: what it needs is imported where an interruption is quiet already."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

_COLLECT_AFTER = 100_000
"""Objects made until garbage is looked for: what a run makes it keeps, so that looking for it early is lost time."""


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        from logtriage.cli.commands import run

        code = run(sys.argv[1:] if args is None else args)
    except KeyboardInterrupt:
        code = 130
    gc.freeze()  # Python looks for garbage twice at its end, through all that the system takes back a moment later
    sys.exit(code)
