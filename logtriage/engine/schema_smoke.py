"""What ``rules/servers/<server>/smoke.yaml``, and a user's own file of prompts, may say."""

from __future__ import annotations

import regex
from pydantic import Field, field_validator

from logtriage.engine.schema import KebabCase, Strict, Text


class Prompt(Strict):
    """A question to the server, and what a sane model answers.

    Attributes:
        id: names it in reports; without one it is called by its number.
        ask: the question, as a user's message.
        complete: the same as the beginning of a text, for models without a chat template.
        expect: regular expression that the answer (its reasoning left out) must match somewhere; upper and lower
            case are the same.
        max_tokens: where the answer is cut.
        long: it is asked for its length: loops begin late.
    """

    id: KebabCase | None = None
    language: Text = "English"
    ask: Text
    complete: Text | None = None
    expect: Text | None = None
    max_tokens: int = Field(default=256, ge=1, le=100_000)
    long: bool = False

    @field_validator("expect")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            regex.compile(pattern or "")
        except regex.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        return pattern


class Limits(Strict):
    """Bounds of one smoke test: seconds for one answer and for all, and how many are asked at once."""

    answer_s: float = Field(default=180.0, gt=0)
    total_s: float = Field(default=900.0, gt=0)
    parallel: int = Field(default=8, ge=1, le=256)


class PromptFile(Strict):
    """A file of prompts. `builtin: false` in a user's file leaves out the prompts that come with the tool."""

    server: KebabCase | None = None
    builtin: bool = True
    limits: Limits | None = None
    prompts: list[Prompt] = Field(min_length=1)
