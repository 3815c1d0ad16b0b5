"""What is asked (a `Setting`) and what is answered (a `Status`, a `Candidate`) about a server's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.engine.conditions import holds
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONFIDENCE = {"high": 0.9, "medium": 0.7, "low": 0.45, "none": 0.3}
"""Confidence words of the knowledge as numbers."""

DEPENDS = "with some of the kernels that it may run here"
"""The note of a status that holds for some of what may be the case."""

_DISPUTED = 0.85


class Setting(Record):
    """What a launch runs on; None is "not known".

    Attributes:
        version: of the server.
        sm: compute capability times ten.
        format: of the weights, as ``kernels.yaml`` names it (``nvfp4``, ``fp8``, …).
        flashinfer: its version.
        platform: ``cuda``, ``rocm``, …
        not_sm: compute capabilities that this GPU cannot have, where `sm` is not known.
    """

    version: str | None = None
    sm: int | None = None
    format: str | None = None
    flashinfer: str | None = None
    platform: str | None = None
    not_sm: frozenset[int] = frozenset()

    @property
    def is_known(self) -> bool:
        """Whether the GPU, the version of the server and the format of the weights are known."""
        return None not in (self.version, self.sm, self.format)

    @property
    def is_nvidia(self) -> bool:
        """Whether the GPU may be of NVIDIA: the matrix of kernels is about no other."""
        return self.platform in (None, "cuda")

    def facts(self, sm: int | None = None) -> dict[str, Any]:
        """Return what conditions can test, with `sm` for an unknown compute capability."""
        known = {"server_version": self.version, "sm": self.sm if sm is None else sm}
        return {**known, "format": self.format, "flashinfer": self.flashinfer}


class Status(Record):
    """Whether a kernel works in a setting: ``works``, ``refused``, ``garbage`` or ``unknown``; why and how sure."""

    status: str
    confidence: float = CONFIDENCE["none"]
    source: str = ""
    note: str = ""
    disputed: str = ""

    @property
    def is_dead(self) -> bool:
        """Whether a launch with it would be wasted."""
        return self.status in ("refused", "garbage")


class Candidate(Record):
    """A value of a flag that may work, its kernel library and what is known of it."""

    value: str
    kernels: str
    status: Status


def at(row: Mapping[str, Any], sm: int, setting: Setting) -> Status:
    """What a row says of one GPU; a cell whose condition cannot be told makes the answer less sure."""
    unclear = False
    for cell in row["cells"]:
        answer = holds(cell.get("when", {}), setting.facts(sm)) if sm in cell["sm"] else False
        if answer:
            sure = CONFIDENCE[cell["confidence"]] * (_DISPUTED if unclear or "disputed" in cell else 1)
            source = "; ".join(cell["source"])
            return Status(cell["status"], round(sure, 2), source, cell.get("note", ""), cell.get("disputed", ""))
        unclear = unclear or answer is None
    return Status("unknown")


def together(found: Sequence[Status]) -> Status:
    """One answer for all that may be the case."""
    kinds = {status.status for status in found}
    if len(kinds) == 1:
        return min(found, key=lambda status: status.confidence)
    if found and kinds <= {"refused", "garbage"}:
        return next(status for status in found if status.status == "garbage")
    working = [status for status in found if status.status == "works"]
    if not working:
        return Status("unknown")
    best = max(working, key=lambda status: status.confidence)
    return best.replace(confidence=CONFIDENCE["low"], note=DEPENDS)


def by_flag(entries: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group entries of the knowledge by the flag that they are about."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault(entry["flag"], []).append(entry)
    return found
