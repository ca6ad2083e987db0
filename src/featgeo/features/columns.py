"""Columns of a table: whether they hold numbers, labels or dates, and their values as numbers and codes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from featgeo.features.raw import is_missing
from featgeo.geometry.validation import Array

UNKNOWN = -1
_DATE_PARTS = ("month", "weekday", "hour")


@dataclass(frozen=True)
class Column:
    """What a column held in the fit.

    Attributes:
        name: Its name, or its position as text.
        kind: Numbers, labels or dates.
        categories: For labels, those seen, in order.
        missing: Whether some values were missing.
        parts: For dates, the recurring parts that vary (month, weekday, hour), each a number of its own.
    """

    name: str
    kind: Literal["number", "label", "date"]
    categories: tuple[Any, ...] = ()
    missing: bool = False
    parts: tuple[str, ...] = ()


def column_of(key: str, array: np.ndarray, name: str, categories: list[Any] | None = None) -> Column:
    """What a column holds; `categories` are those that it was declared to hold, in order."""
    if array.dtype.kind == "M":
        days = array[~np.isnat(array)]
        parts = tuple(part for part in _DATE_PARTS if len(np.unique(_date_part(days, part))) > 1)
        return Column(key, "date", missing=bool(np.isnat(array).any()), parts=parts)
    if array.dtype.kind in "biuf":
        values = array.astype(np.float64)
        _check_finite(values, key, name)
        return Column(key, "number", missing=bool(np.isnan(values).any()))
    if array.dtype.kind in "US":
        return Column(key, "label", tuple(np.unique(array).tolist()))
    if array.dtype.kind == "m":
        return Column(key, "number", missing=bool(np.isnat(array).any()))
    present = [value for value in array.tolist() if not is_missing(value)]
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present)
    if present and numeric and categories is None:
        return column_of(key, _object_numbers(array), name)
    for value in present:
        if not isinstance(value, str | bytes | int | float | bool | np.generic):
            raise TypeError(
                f"Column {key!r} of {name} holds {value!r}: each argument must be a string or a number. "
                "Convert the values first."
            )
    seen = set(present)
    order = _sorted(seen) if categories is None else [label for label in categories if label in seen]
    return Column(key, "label", tuple(order), missing=len(present) < len(array))


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # texts and numbers together
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _object_numbers(array: np.ndarray) -> Array:
    return np.array([np.nan if is_missing(value) else float(value) for value in array.tolist()])


def _check_finite(values: Array, key: str, name: str) -> None:
    if np.isinf(values).any():
        raise ValueError(
            f"Column {key!r} of {name} holds infinite values (inf). Replace them by NaN where they mean missing, or by "
            "the largest finite value."
        )


def codes_of(column: Column, array: np.ndarray, name: str) -> np.ndarray:
    """Labels as positions among the categories, (n,); -1 where unknown."""
    if array.dtype.kind in "iuf" and all(isinstance(label, str) for label in column.categories):
        raise ValueError(
            f"Column {column.name!r} of {name} held labels such as {column.categories[:1]} in the fit, got numbers. "
            "Convert them to the same labels."
        )
    if (
        array.dtype.kind in "US"
        and column.categories
        and not any(isinstance(c, str | bytes) for c in column.categories)
    ):
        raise ValueError(
            f"Column {column.name!r} of {name} held labels such as {column.categories[:1]} in the fit, got texts. "
            "Convert them to the same labels."
        )
    position = {label: i for i, label in enumerate(column.categories)}
    unknown = len(position) if column.missing else UNKNOWN  # where values missed in the fit, missing is a label
    # Values of one type can be sorted, and each then has to be looked up once only.
    values, place = (array, slice(None)) if array.dtype.kind == "O" else np.unique(array, return_inverse=True)
    found = [unknown if is_missing(value) else position.get(value, UNKNOWN) for value in values.tolist()]
    return np.array(found, dtype=np.int64)[place]


def numbers_of(column: Column, array: np.ndarray, name: str) -> list[Array]:
    """A column of numbers, or a date as days since 1970 and its recurring parts, each (n,)."""
    if column.kind == "date":
        if array.dtype.kind != "M":
            raise ValueError(f"Column {column.name!r} of {name} held dates in the fit, got {array.dtype}. Pass dates.")
        whole = (array.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return [whole, *(_date_part(array, part) for part in column.parts)]
    if array.dtype.kind == "m":
        array = array / np.timedelta64(1, "s")
    if array.dtype.kind == "O":
        try:
            array = _object_numbers(array)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {column.name!r} of {name} held numbers in the fit, got {error}. Convert it to numbers."
            ) from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"Column {column.name!r} of {name} held numbers in the fit, got dtype {array.dtype}. Convert it to numbers."
        )
    values = array.astype(np.float64)
    _check_finite(values, column.name, name)
    if np.isnan(values).any() and not column.missing:
        warnings.warn(
            f"Column {column.name!r} of {name} has missing values, and had none in the fit. They count as average.",
            stacklevel=2,
        )
    return [values]


def _date_part(array: np.ndarray, part: str) -> Array:
    missing = np.isnat(array)
    if part == "month":
        value = array.astype("datetime64[M]").astype(np.int64) % 12 + 1
    elif part == "weekday":  # 1 January 1970 was a Thursday; Monday is 0
        value = (array.astype("datetime64[D]").astype(np.int64) + 3) % 7
    else:
        value = array.astype("datetime64[h]").astype(np.int64) % 24
    return np.where(missing, np.nan, value.astype(np.float64))
