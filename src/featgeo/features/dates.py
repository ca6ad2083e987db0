"""Dates and time spans: in which units they are computed with, and the parts of a date that come again."""

from __future__ import annotations

from datetime import UTC, date, timedelta
from typing import Any

import numpy as np

from featgeo.geometry.validation import Array

DATE_PARTS = ("month", "weekday", "hour")
TIMES = (date | np.datetime64, timedelta | np.timedelta64)


def as_times(values: list[Any], what: str) -> tuple[np.ndarray, bool]:
    """Dates, or time spans, as those of numpy, in universal time; and whether they had a time zone."""
    if isinstance(values[0], TIMES[1]):
        return np.array(values, "timedelta64[us]"), False
    zoned = [getattr(value, "tzinfo", None) is not None for value in values]
    if len(set(zoned)) > 1:
        raise ValueError(f"{what} holds dates with and without a time zone. Give all of them one, or none.")
    plain = [value.astimezone(UTC).replace(tzinfo=None) for value in values] if zoned[0] else values
    return np.array(plain, "datetime64[us]"), zoned[0]


def in_microseconds(array: np.ndarray, what: str) -> np.ndarray:
    """Dates in the unit that they are computed with, which must hold them and tell them apart."""
    dates, known = array.astype("datetime64[us]"), ~np.isnat(array)
    if (dates[known].astype(array.dtype) != array[known]).any() and (
        np.datetime_data(array.dtype)[0] not in ("ns", "ps", "fs", "as")
        or len(np.unique(dates[known])) < len(np.unique(array[known]))
    ):
        raise ValueError(
            f"{what} holds dates that microseconds cannot tell apart, or beyond the year 290,000. Pass the time since "
            "the first of them, as a time span or a number."
        )
    return dates


def seconds(array: np.ndarray, what: str) -> Array:
    """Time spans as numbers."""
    try:
        return array / np.timedelta64(1, "s")
    except TypeError as error:  # months and years have no length
        raise ValueError(f"{what} holds time spans of {array.dtype}, which have no fixed length. Use days.") from error


def date_part(array: np.ndarray, part: str) -> Array:
    """The month (from 1 on), the weekday (Monday is 0) or the hour of each date, (n,); NaT stays missing."""
    unit, shift, cycle, first = {"month": ("M", 0, 12, 1), "weekday": ("D", 3, 7, 0), "hour": ("h", 0, 24, 0)}[part]
    since = array.astype(f"datetime64[{unit}]").astype(np.int64)  # 1 January 1970 was a Thursday
    return np.where(np.isnat(array), np.nan, (since + shift) % cycle + first)
