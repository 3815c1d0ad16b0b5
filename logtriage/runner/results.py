"""What travels inside the runner: what to launch, what came of it, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logtriage.engine.launch import from_command
from logtriage.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from logtriage.engine.ruleset import RuleSet
    from logtriage.records import Report
    from logtriage.runner.cleanup import Stopped

READY = "ready"
FAILED = "failed"
EXITED = "exited"
STALLED = "stalled"
INTERRUPTED = "interrupted"
LATE = "late"
PORT_TAKEN = "port-taken"
DISK_FULL = "disk-full"
"""How an attempt may end: it answers; it is stopped since its log shows a failure; by itself; it is stopped since it is
stuck, since whoever runs it asked for that, since its time is over, since another program holds its port, or since the
disk is full."""


class Address(Record):
    """Where a server listens, and what it needs to answer."""

    host: str
    port: int
    api_key: str | None = None

    @property
    def url(self) -> str:
        """The base of its URLs, for a client on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - nothing is bound here
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class Order(Record):
    """One launch to make.

    Attributes:
        command: words to start, as `launcher.start` takes them; `text` the same as one line without secrets.
        why: what is new in it, in a sentence; `changed` the flag and value, if one is new.
    """

    number: int
    command: tuple[str, ...]
    text: str
    log: str
    marker: str
    address: Address
    why: str = ""
    changed: tuple[str, str] | None = None


class Result(Record):
    """What an attempt came to.

    Attributes:
        ending: one of the words above; `because` a sentence.
        report: the verdict on its log, with what was seen from outside and the answers taken into account.
        stages: stages reached, each with the seconds since the launch.
        smoke: the smoke test's result, if there was one; `speed` what was measured, if it was.
        stopped: how it was ended, if it was.
    """

    order: Order
    ending: str
    because: str
    report: Report
    seconds: float
    exit_code: int | None = None
    stages: tuple[tuple[str, float], ...] = ()
    smoke: Any = None
    speed: Any = None
    stopped: Stopped | None = None

    @property
    def is_working(self) -> bool:
        """Whether the server was ready and answered sensibly."""
        return self.ending == READY and self.report.label == "healthy"


class Answered(Record):
    """What a question that was asked beside the log brought."""

    value: Any


class Observer:
    """Is told what happens; each method may be replaced."""

    def launching(self, order: Order) -> None:
        """An attempt is about to be launched."""

    def launched(self, order: Order, pid: int) -> None:
        """Its first process runs."""

    def stage(self, order: Order, stage: str, seconds: float) -> None:
        """It has reached a stage, so many seconds after the launch."""

    def output(self, piece: bytes) -> None:
        """The server has printed something."""

    def judged(self, result: Result) -> None:
        """An attempt is over, or answers."""

    def note(self, text: str) -> None:
        """Something that whoever runs it should know."""


def ended_well(report: Report, exit_code: int | None) -> bool:
    """Return whether a server has ended because it was asked to.

    SGLang ends such a stop with SIGKILL on itself, so its log tells, not its exit code alone.
    """
    asked = any(match.rule["id"] == "ordered-stop" for match in report.incident.outcomes)
    return asked or exit_code in (0, -2, -15, 130, 143)


def where_to_look(report: Report, order: Order, exit_code: int | None) -> Report:
    """Return the report of a launch that has ended; where it shows no line to read, its advice says where to look."""
    if report.label != "unknown" or report.root is not None or report.advice.changes:
        return report
    head = 1 + order.text.count("\n")
    if any(line.text.strip() for line in report.lines[head:]):
        summary = f"It ended with exit code {exit_code}, and no line of its log is known to tell why: read {order.log}."
    else:
        summary = (
            f"It printed nothing and ended with exit code {exit_code}; its log, {order.log}, holds only the command. "
            "Start the command by hand to see what ends it."
        )
    return report.replace(advice=report.advice.replace(summary=summary))


def address_of(command: Sequence[str], rules: RuleSet) -> Address:
    """Return where the server of a command listens; what the command does not say is what the server would take."""
    flags = flags_of(command, rules)
    default = rules.server["runner"]["listens"]
    port = flags.get("--port", "")
    known = port.isdecimal() and port.isascii()
    return Address(
        flags.get("--host") or default["host"],
        int(port) if known else default["port"],
        flags.get("--api-key"),
    )


def flags_of(command: Sequence[str], rules: RuleSet) -> Mapping[str, str]:
    """Return the flags of the server in a command; none if it holds no server's command."""
    return from_command(command, rules).flags
