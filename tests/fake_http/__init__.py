"""A server process for tests of what asks a server, in one of many ways to behave."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serving(behaviour: str, key: str = "") -> Iterator[str]:
    """The base URL of a server that behaves so (see server.py); it is gone afterwards."""
    words = [sys.executable, str(Path(__file__).parent / "server.py"), behaviour, key]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()
