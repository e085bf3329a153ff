"""Points in time: read from ISO 8601 texts, and turned into what a network can use."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?")
YEARS = (1, 9999)
"""The first and the last year that a date can be of: those that ISO 8601 writes with four digits, without 0."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_MICROS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_MICROS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_DAY = 86_400.0
_WEEK = 7 * _DAY
_FIRST_MONDAY = 4 * _DAY  # 1970 began on a Thursday

PARTS = ("month sin", "month cos", "weekday sin", "weekday cos")
"""What a date is turned into beside the point in time itself: circles, so that December is near January."""
TIME_PARTS = ("hour sin", "hour cos")
"""The same for the time of day, where a column has any."""


def seconds_of(text: str) -> float | None:
    """Seconds since the beginning of 1970, UTC where the text names no zone; `None` when it is no date."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return seconds_of_date(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def seconds_of_date(moment: date) -> float:
    """Seconds since the beginning of 1970 of a date, or of a time in it, UTC where it names no zone."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return seconds_from_micros((moment - _EPOCH) // _MICROSECOND)


def seconds_from_micros(micros: int) -> float:
    """The one way to seconds, so that every source gives the same bits."""
    return micros / 1e6


def text_of(seconds: float) -> str:
    """The point in time as ISO 8601 text, without a time of day where that is midnight."""
    # Far from 1970 the nearest float, and with a zone the moment itself, can lie beyond the years that a text has.
    micros = min(max(round(seconds * 1e6), _FIRST_MICROS), _LAST_MICROS)
    plain = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    return plain.date().isoformat() if seconds % _DAY == 0 else plain.isoformat(" ")


def has_time(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points in time are not midnight; a missing one is not."""
    timed: NDArray[np.bool_] = np.nan_to_num(seconds) % _DAY != 0
    return timed


def parts_of(seconds: NDArray[np.float64], with_time: bool) -> NDArray[np.float64]:
    """The parts (rows, parts) of points in time, zeros where missing."""
    found = ~np.isnan(seconds)
    circles = [_month(seconds, found), (seconds - _FIRST_MONDAY) % _WEEK // _DAY / 7]
    if with_time:
        circles.append(seconds % _DAY / _DAY)
    angles = 2 * np.pi * np.stack(circles, axis=1)
    parts = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(seconds), -1)
    return np.where(found[:, None], parts, 0.0)


def _month(seconds: NDArray[np.float64], found: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The month as a fraction of the year, January 0."""
    days = np.where(found, np.floor_divide(seconds, _DAY), 0).astype("datetime64[D]")
    return days.astype("datetime64[M]").astype(np.int64) % 12 / 12
