"""Prompt files in, prompts out: those that come with the tool and a user's own.

A user's file is read before anything is launched, so that a slip in it does not cost a launch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from logtriage import resources
from logtriage.engine.schema_smoke import Limits, PromptFile
from logtriage.engine.yaml_source import Document
from logtriage.errors import InputError

if TYPE_CHECKING:
    import os

    from logtriage.engine.schema_smoke import Prompt

_EXAMPLE = "a file of prompts looks like this: prompts: [{ask: What is the capital of France?, expect: Paris}]"


class Asked(NamedTuple):
    """A prompt under the name that reports give it; a miss of one that is `required` fails the smoke test."""

    name: str
    prompt: Prompt
    required: bool


class Prompts(NamedTuple):
    """What a smoke test asks, the user's prompts first, and its bounds."""

    asked: tuple[Asked, ...]
    limits: Limits


def load(path: str | os.PathLike[str] | None = None) -> Prompts:
    """Return the prompts of a user's file, followed by the built-in ones unless the file says `builtin: false`.

    Raises InputError with every fault of the file as ``file:line``.
    """
    builtin = _read(resources.rules_folder() / "servers" / "sglang" / "smoke.yaml")
    known = tuple(Asked(prompt.id or str(number), prompt, False) for number, prompt in _numbered(builtin))
    limits = builtin.limits or Limits()
    if path is None:
        return Prompts(known, limits)
    own = _read(Path(path))
    mine = (Asked(prompt.id or f"prompt-{number}", prompt, bool(prompt.expect)) for number, prompt in _numbered(own))
    return Prompts((*mine, *(known if own.builtin else ())), own.limits or limits)


def _numbered(file: PromptFile) -> list[tuple[int, Prompt]]:
    return list(enumerate(file.prompts, start=1))


def _read(path: Path) -> PromptFile:
    document = Document(path)
    faults = list(document.faults)
    try:
        if document.data is not None or not faults:
            file = PromptFile.model_validate(document.data)
    except ValidationError as error:
        for item in error.errors():
            where = ".".join(str(part) for part in item["loc"])
            faults.append(document.fault(item["loc"], f"{where}: {item['msg']}" if where else item["msg"]))
    if faults:
        raise InputError("; ".join([*faults, _EXAMPLE]))
    return file
