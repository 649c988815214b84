"""Lengths of time: every parameter that is one takes seconds or a `timedelta`."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import TypeAlias

from rxdelta.core._errors import InvalidValueError

__all__ = ["Seconds", "check_pace", "check_seconds"]

Seconds: TypeAlias = float | timedelta
"""A number of seconds, or a `timedelta`."""

_MOST = 1e9  # more is more than threads can wait and servers can count
_SLOW_PACE = 10.0
_MILLISECONDS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*")

_log = logging.getLogger("rxdelta")


def check_seconds(name: str, value: object) -> float:
    """Return a length of time in seconds.

    Raises:
        InvalidValueError: It is no `timedelta` and no number, not positive, or more than a billion seconds.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST:
        wanted = "must be a positive number of seconds, at most 1e9, or a timedelta"
        raise InvalidValueError.of([(name, value, wanted, _cure(value))])
    return float(seconds)


def check_pace(name: str, value: object) -> float:
    """As `check_seconds`, for the time between two updates. So long a time was probably meant in milliseconds: log it.

    Raises:
        InvalidValueError: As by `check_seconds`.
    """
    seconds = check_seconds(name, value)
    if seconds > _SLOW_PACE and not isinstance(value, timedelta):
        _log.warning(
            "%s=%g is in seconds, a long time between two updates; for milliseconds write %s=%g",
            name,
            seconds,
            name,
            seconds / 1000,
        )
    return seconds


def _cure(value: object) -> str:
    """What to write for a text such as `"50ms"`."""
    found = _MILLISECONDS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return ""
    number = float(found[1]) / (1000 if found[2] == "ms" else 1)
    return f"write {number:g}"
