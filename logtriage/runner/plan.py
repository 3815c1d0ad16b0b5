"""What a run is to do, as ``plan.yaml`` or the command line says it, validated with pydantic."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from logtriage import whole_file
from logtriage.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(rf"{_NUMBER}|(?:{_NUMBER}h)?(?:{_NUMBER}m(?:in)?)?(?:{_NUMBER}s)?", re.ASCII)
_LONGEST = 366 * 86400.0  # seconds
_MOST_ATTEMPTS = 10_000  # logs are numbered; more than that nobody waits for


def seconds(text: Any) -> Any:
    """Return a duration such as ``2h``, ``1h30m``, ``90s`` or ``90`` in seconds. Raises ValueError."""
    if not isinstance(text, str):
        return text
    found = _DURATION.fullmatch(text.strip().replace(" ", ""))
    if not text.strip() or found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration; give it as 2h, 1h30m, 90s or 90 (seconds)")
    bare, hours, minutes, rest = (float(part or 0) for part in found.groups())
    return bare + 3600 * hours + 60 * minutes + rest


def _passed_on(text: str) -> str:
    """Return a text that can be given to a program or name a file. Raises ValueError for any other."""
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{text!r} holds half of a surrogate pair, which no program can be given") from error
    if b"\0" in raw:
        raise ValueError(f"{text!r} holds a NUL character, which no program can be given")
    return text


Seconds = Annotated[float, BeforeValidator(seconds), Field(gt=0, le=_LONGEST)]
Text = Annotated[str, AfterValidator(_passed_on)]


class Plan(BaseModel):
    """All that a run can be told.

    Attributes:
        command: words of the command to start with; a single one with blanks is text for a shell.
        pin: flags that are never changed.
        max_attempts: launches at most; `budget`: seconds for all of them; `start_timeout` for each to answer.
        retry_after: seconds to wait before each repetition of a launch whose failure may pass.
        then: what becomes of the working server: it is served in the foreground, left running, or stopped.
        prompts: a file of prompts with expected patterns for the smoke test.
        echo: what the servers print is printed on standard error too.
        sm, server_version: what cannot be found out on this machine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[Text] = Field(default_factory=list)
    pin: list[Text] = Field(default_factory=list)
    max_attempts: int = Field(default=8, ge=1, le=_MOST_ATTEMPTS)
    budget: Seconds | None = None
    start_timeout: Seconds | None = None
    grace: Annotated[float, BeforeValidator(seconds), Field(ge=0, le=_LONGEST)] = 2.0
    retry_after: list[Seconds] | None = None
    explore: bool = False
    then: Literal["serve", "detach", "stop"] = "serve"
    echo: bool = False
    prompts: Text | None = None
    save: Text | None = None
    on_attempt: Text | None = None
    logs: Text | None = None
    ledger: Text | None = None
    record: Text | None = None
    sm: int | None = Field(default=None, ge=50, lt=200)
    server_version: Text | None = None


def load(path: str | None, given: Mapping[str, Any]) -> Plan:
    """Return the plan in a file with what is given on the command line in its place. Raises InputError."""
    data: Any = {}
    if path is not None:
        try:
            data = yaml.safe_load(whole_file.read(path).decode("utf-8")) or {}
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{path}: cannot be read as YAML: {error}") from error
        if not isinstance(data, dict):
            raise InputError(f"{path}: holds no mapping; a plan is `command: [python3, -m, …]` and further keys")
        if isinstance(data.get("command"), str):
            data["command"] = [data["command"]]
    try:
        return Plan.model_validate({**data, **given})
    except ValidationError as error:
        faults = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()]
        known = ", ".join(Plan.model_fields)
        raise InputError(f"{path or 'the command line'}: {'; '.join(faults)} (known keys: {known})") from error


def continued(kept: str, now: Plan) -> Plan:
    """Return the plan of a run that is resumed: as it was (JSON), with what is given now in its place."""
    try:
        before = json.loads(kept)
        return Plan.model_validate({**before, **now.model_dump(exclude_unset=True)})
    except (ValueError, TypeError):  # of another version
        return now
