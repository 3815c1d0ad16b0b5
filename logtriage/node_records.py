"""The record of one node of a launch whose nodes have a log each."""

from __future__ import annotations

from logtriage.records import Record


class Node(Record):
    """A node and what its log alone tells.

    Attributes:
        file: the name of its log, None if none was given.
        number: its ``--node-rank``, None if nothing tells it.
        first_time, last_time: when its log begins and ends, by its own clock, in seconds since an arbitrary origin.
        skew: seconds that its clock is ahead of the others', None if that is not known.
        stage: the last stage that it reached; `label` and `outcome`: the verdict on its log alone.
        silent: why it counts as silent, empty if it does not.
    """

    file: str | None
    number: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    skew: float | None = None
    stage: str | None = None
    label: str | None = None
    outcome: str | None = None
    silent: str = ""

    @property
    def name(self) -> str:
        """What a reader calls it."""
        return f"node {self.number}" if self.number is not None else str(self.file)
