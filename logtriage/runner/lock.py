"""Keeps two runners of a machine from launching servers on the same port at the same time.

The lock is the kernel's and goes with the process: a runner that was killed leaves none behind.
"""

from __future__ import annotations

import fcntl
import os
import tempfile

from logtriage.errors import InputError


class PortLock:
    """A lock on a port. Raises InputError, which names the other runner, if that holds it."""

    def __init__(self, port: int) -> None:
        folder = os.path.join(tempfile.gettempdir(), f"logtriage-{os.getuid()}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._number = os.open(os.path.join(folder, f"port-{port}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(f"{folder}: locks cannot be kept there: {error.strerror or error}") from error
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(self._number, 20, 0).decode(errors="replace").strip()
            os.close(self._number)
            raise InputError(
                f"another `logtriage run` (pid {pid or 'unknown'}) has port {port}: wait for it, end it, or "
                f"give this one another --port and other GPUs (CUDA_VISIBLE_DEVICES)"
            ) from None
        os.ftruncate(self._number, 0)
        os.pwrite(self._number, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let go of the port."""
        os.close(self._number)
