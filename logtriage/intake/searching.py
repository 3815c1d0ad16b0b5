"""What the intake asks of a search for anchors. Only annotations name it: a protocol costs a start of every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Held(Protocol):
    """Which anchors lines hold."""

    @property
    def kinds(self) -> list[int]:
        """For each line an index into `anchors`."""

    @property
    def present(self) -> set[int]:
        """The indexes of all lines."""

    @property
    def anchors(self) -> Sequence[tuple[bytes, ...]]:
        """What the lines of each kind hold; those of the first kind hold none."""


class AnchorSearch(Protocol):
    """Tells which anchors lines hold."""

    def held(self, data: bytes) -> Held:
        """Return which anchors the lines of `data` (split at line feeds) hold, sorted."""
