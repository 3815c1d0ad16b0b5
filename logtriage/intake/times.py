"""Time stamps as other programs print them, as seconds since an origin that all stamps of a kind share."""

from __future__ import annotations

import re
from datetime import date

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?:\.(\d+))?")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?")
_EPOCH = re.compile(r"(\d{10})(\d*)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SYSLOG_YEAR = 2000  # syslog prints no year; a leap year has all days
_UNIX_DAY = date(1970, 1, 1).toordinal()


def seconds(text: str) -> float | None:
    """Return the time in `text`, or None if it is none.

    Reads ``2026-01-01 10:00:00.123`` (also with T; a zone is ignored), ``Jan 01 10:00:00``, a bare ``10:00:00`` and
    digits since 1970 in seconds or finer units.
    """
    if match := _DATE.match(text):
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        fraction = match[7]
    elif (match := _SYSLOG.match(text)) and match[1] in _MONTHS:
        year, month = _SYSLOG_YEAR, _MONTHS.index(match[1]) + 1
        day, hour, minute, second = (int(part) for part in match.groups()[1:5])
        fraction = match[6]
    elif match := _CLOCK.match(text):
        hour, minute, second = (int(part) for part in match.groups()[:3])
        return hour * 3600 + minute * 60 + second + (float(f"0.{match[4]}") if match[4] else 0.0)
    elif match := _EPOCH.match(text):
        return _UNIX_DAY * 86400 + float(f"{match[1]}.{match[2] or 0}")
    else:
        return None
    try:
        days = date(year, month, day).toordinal()
    except ValueError:
        return None
    return days * 86400 + hour * 3600 + minute * 60 + second + (float(f"0.{fraction}") if fraction else 0.0)
