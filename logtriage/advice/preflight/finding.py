"""What preflight is asked (a `Question`) and what it answers (a `Finding`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logtriage.advice.evidence import Setting
    from logtriage.advice.servers import Servers
    from logtriage.environment import Environment, Model
    from logtriage.records import Change, Launch

FAILS, GARBAGE, RISK, UNKNOWN, OK = "will-fail", "known-garbage", "risk", "unknown", "ok"

SEVERITIES = (FAILS, GARBAGE, RISK, UNKNOWN, OK)
"""The severities of findings, the worst first."""

GIB = 1 << 30


class Finding(Record):
    """One thing that was looked at.

    Attributes:
        check: what was looked at, as a word in kebab-case that stays the same.
        what: one sentence; `why` what it rests on, `source` who says so.
        flag, value: what of the command it is about; a variable of the environment counts as a flag.
        label: of the failure that it would be.
        instead: values to use in its place, the best first; one without a new value is a direction.
        confidence: from 0 to 1, where it rests on public evidence.
    """

    check: str
    severity: str
    what: str
    why: str = ""
    source: str = ""
    flag: str | None = None
    value: str | None = None
    label: str | None = None
    instead: tuple[Change, ...] = ()
    confidence: float | None = None


class Question(Record):
    """A launch, the machine, and what is known of both.

    Attributes:
        launch: with all facts that the command, the caller and the machine tell.
        settings: one for each kind of GPU in use; one with an unknown GPU where none is known.
        known: ``preflight.yaml``.
        data: all knowledge about the server.
    """

    launch: Launch
    environment: Environment
    servers: Servers
    settings: tuple[Setting, ...]
    known: Mapping[str, Any]
    data: Mapping[str, Any]

    @property
    def version(self) -> str | None:
        """The version of the server."""
        return self.settings[0].version

    @property
    def sms(self) -> tuple[int, ...]:
        """The compute capabilities of the GPUs in use, times ten; empty where they are not known."""
        return tuple(setting.sm for setting in self.settings if setting.sm is not None)

    @property
    def model(self) -> Model | None:
        """The model, if its files were read."""
        return self.environment.model

    def flag(self, name: str) -> str | None:
        """Return the value that the command gives a flag."""
        return self.launch.flags.get(name)

    def number(self, name: str, otherwise: int = 1) -> int:
        """Return a flag of the command as a whole number; `otherwise` where it is not given or is none."""
        text = self.launch.flags.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else otherwise

    def is_on(self, name: str) -> bool:
        """Return whether the command has a switch."""
        return self.launch.flags.get(name, "false").lower() not in ("false", "0", "none")


def gib(count: float) -> str:
    """Return a number of bytes in GiB."""
    return f"{count / GIB:.1f} GiB"
