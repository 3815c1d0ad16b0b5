"""The entry of the command ``logtriage``: what it needs is imported where an interruption is quiet already."""

from __future__ import annotations

import sys
from typing import NoReturn


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        from logtriage.cli.commands import run

        code = run(sys.argv[1:] if args is None else args)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
