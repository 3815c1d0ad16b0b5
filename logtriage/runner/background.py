"""One question at a time, asked in a thread, so that the log is followed while a server takes its time to answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


class Background(Generic[Answer]):
    """A call in a thread that does not keep the program from ending."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answer: Answer | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether the call has returned or raised."""
        return not self._thread.is_alive()

    def result(self) -> Answer:
        """Return what the call returned, once it is done. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return cast("Answer", self._answer)

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except Exception as error:
            self._error = error
