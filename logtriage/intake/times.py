"""Time stamps as other programs print them, as seconds since an origin that all stamps of a kind share."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
# Compiled when they are first used, as most logs have dates.
_SYSLOG = r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?"
_EPOCH = r"(\d{10})(\d*)"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SYSLOG_YEAR = 2000  # syslog prints no year; a leap year has all days
_UNIX_DAY = date(1970, 1, 1).toordinal()


def seconds(text: str) -> float | None:
    """Return the time in `text`, or None if it is none.

    Reads ``2026-01-01 10:00:00.123`` (also with T; a zone is ignored), ``Jan 01 10:00:00``, a bare ``10:00:00`` and
    digits since 1970 in seconds or finer units.
    """
    if not text:
        return None
    if match := _DATE.match(text):
        return _since(int(match[1]), int(match[2]), match.groups()[2:6], match[7])
    if (match := re.match(_SYSLOG, text)) and match[1] in _MONTHS:
        return _since(_SYSLOG_YEAR, _MONTHS.index(match[1]) + 1, match.groups()[1:5], match[6])
    if match := re.match(_CLOCK, text):
        hour, minute, second = (int(part) for part in match.groups()[:3])
        return hour * 3600 + minute * 60 + second + _fraction(match[4])
    if match := re.match(_EPOCH, text):
        return _UNIX_DAY * 86400 + float(f"{match[1]}.{match[2] or 0}")
    return None


def seconds_in(text: str) -> float | None:
    """Return the first time with a date that stands anywhere in `text`, or None."""
    match = _DATE.search(text)
    return _since(int(match[1]), int(match[2]), match.groups()[2:6], match[7]) if match else None


def _since(year: int, month: int, clock: Sequence[str], fraction: str | None) -> float | None:
    """Return the time of day, hour, minute and second in `clock`, or None if there is no such day."""
    day, hour, minute, second = map(int, clock)
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return None
    return days * 86400 + hour * 3600 + minute * 60 + second + _fraction(fraction)


def _fraction(digits: str | None) -> float:
    return float(f"0.{digits}") if digits else 0.0
