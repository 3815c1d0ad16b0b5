"""Tests a rule's ``when`` on the facts that are known. Three answers: holds, fails, unknown."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_CLAUSE = r"\s*(>=|<=|==|!=|<|>)\s*(\S+?)\s*(?:,|$)"
_DIGITS = 18
"""Digits of a number that are looked at: dates have 8 or 14; Python refuses to read one of thousands."""


def holds(when: dict[str, dict[str, Any]], facts: dict[str, Any]) -> bool | None:
    """Return True if all conditions hold, False if one fails, None if one cannot be told."""
    answer: bool | None = True
    for name, test in when.items():
        fact = facts.get(name)
        if fact is None:
            answer = None
        elif not _passes(fact, test):
            return False
    return answer


def describe(when: dict[str, dict[str, Any]], facts: dict[str, Any]) -> str:
    """Return the conditions that do not hold, in words."""
    parts = []
    for name, test in when.items():
        fact = facts.get(name)
        if fact is None:
            parts.append(f"{name} is not known (needs {_words(test)})")
        elif not _passes(fact, test):
            parts.append(f"{name} is {fact} (needs {_words(test)})")
    return "; ".join(parts)


def _words(test: dict[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in test.items())


def _passes(fact: Any, test: dict[str, Any]) -> bool:
    return all(_check(fact, kind, wanted) for kind, wanted in test.items())


def _check(fact: Any, kind: str, wanted: Any) -> bool:
    if kind == "is":
        return _same(fact, wanted)
    if kind == "in":
        return any(_same(fact, item) for item in wanted)
    if kind == "not_in":
        return not any(_same(fact, item) for item in wanted)
    if kind == "version":
        return in_range(str(fact), wanted)
    return bool(_number(fact) >= wanted if kind == "at_least" else _number(fact) < wanted)


def _same(fact: Any, wanted: Any) -> bool:
    return str(fact).lower() == str(wanted).lower()


def _number(fact: Any) -> float:
    try:
        return float(fact)
    except (TypeError, ValueError, OverflowError):
        return float("nan")  # compares false with everything


def in_range(version: str, wanted: str) -> bool:
    """Return whether `version` fulfils clauses such as ``>=0.5.9,<0.5.16``."""
    have = version_key(version)
    for operator, text in re.findall(_CLAUSE, wanted):
        limit = version_key(text)
        outcome = {
            ">=": have >= limit, "<=": have <= limit, "==": have == limit,
            "!=": have != limit, "<": have < limit, ">": have > limit,
        }[operator]  # fmt: skip
        if not outcome:
            return False
    return True


@lru_cache(maxsize=512)
def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version for comparing: ``0.5.12.post1`` sorts after ``0.5.12``, ``rc1`` before it."""
    release = re.match(r"v?(\d+(?:\.\d+)*)(?:\.?(post|rc|a|b|dev)(\d+)?)?", version)
    if release is None:
        return (0,)
    numbers = [int(part[:_DIGITS]) for part in release.group(1).split(".")]
    numbers += [0] * (4 - len(numbers))
    kind, count = release.group(2), int((release.group(3) or "0")[:_DIGITS])
    return (*numbers, 0 if kind is None else 1 if kind == "post" else -1, count)
