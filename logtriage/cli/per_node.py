"""Options that tell of the launch as a whole, or with ``LOG=`` before the value of the node that a LOG is of."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from logtriage import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = r"(?a)-?\d{1,9}"


class ExitCode(click.ParamType):  # type: ignore[type-arg]
    """An exit code, such as 137, or that of one node: node3.log=137. The value is the LOG (or None) and the code."""

    name = "[LOG=]N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | None, int]:
        """Return the two parts; what is no number is a usage error."""
        if isinstance(value, tuple):  # converted before
            return value
        log, equals, number = str(value).rpartition("=")
        if not re.fullmatch(_NUMBER, number) or (equals and not log):
            raise click.BadParameter(f"{value!r} is no exit code; give 137, or node3.log=137 for one node", ctx, param)
        return log or None, int(number)


class KernelLog(click.ParamType):  # type: ignore[type-arg]
    """A kernel's log, such as dmesg.txt, or that of one node: node3.log=dmesg3.txt."""

    name = "[LOG=]FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | None, str]:
        """Return the LOG (or None) and the file; a name with = in it that is a file is one."""
        if isinstance(value, tuple):
            return value
        log, equals, path = str(value).partition("=")
        if not equals or os.path.exists(value):
            return None, _checked(str(value))
        if not log or not path:
            raise click.BadParameter(f"{value!r}: give FILE, or LOG=FILE for the kernel's log of one node", ctx, param)
        return log, _checked(path)


def _checked(path: str) -> str:
    """The name of a file, or of what stands for several logs. Raises InputError for a pipe that may never end."""
    if os.path.exists(path) and not os.path.isdir(path):
        whole_file.check(path)
    return path


EXIT_CODE = ExitCode()
KERNEL_LOG = KernelLog()


def options(
    codes: Sequence[tuple[str | None, int]], kernel_logs: Sequence[tuple[str | None, str]], *, is_separate: bool
) -> dict[str, Any]:
    """Return the fields of `pipeline.Options` that these values give; what contradicts itself is a usage error."""
    named = [log for log, _ in (*codes, *kernel_logs) if log is not None]
    if is_separate and named:
        raise click.UsageError(f"{named[0]}=…: nodes have values of their own where the LOGs are of one launch; "
                               "--separate says that they are not")  # fmt: skip
    whole = [code for log, code in codes if log is None]
    if len(whole) > 1:
        raise click.UsageError("--exit-code is given twice for the launch; give LOG=N for each node")
    of: dict[str, list[str]] = {}
    for log, path in kernel_logs:
        if log is not None:
            of.setdefault(log, []).append(path)
    return {
        "exit_code": whole[0] if whole else None,
        "exit_codes": {log: code for log, code in codes if log is not None},
        "kernel_logs": [path for log, path in kernel_logs if log is None],
        "kernel_logs_of": of,
    }
