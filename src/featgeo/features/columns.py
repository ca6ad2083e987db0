"""Columns of a table: whether they hold numbers, labels or dates, and their values as numbers and codes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral
from typing import Any, Literal

import numpy as np

from featgeo.features.exact_numbers import (
    check_finite,
    in_units,
    is_missing,
    is_number,
    missing_in,
    out_of_units,
    units_of,
)
from featgeo.features.raw import RawColumn
from featgeo.geometry.validation import Array
from featgeo.schema import saved

Label = None | bool | int | float | str | bytes | datetime

UNKNOWN = -1
_DATE_PARTS = ("month", "weekday", "hour")


@saved
@dataclass(frozen=True)
class Column:
    """What a column held in the fit.

    Attributes:
        name: Its name, or its position as text.
        kind: Numbers, labels or dates.
        categories: For labels, those seen, in order.
        missing: Whether some values were missing.
        parts: For dates, the recurring parts that vary (month, weekday, hour), each a number of its own.
        form: For numbers "span" where they are time spans, in seconds; for dates "zoned" where they had a time zone.
        origin: What is subtracted from numbers when they are read, see `featgeo.features.exact_numbers`.
        exponent: The power of two that they are divided by then.
    """

    name: str
    kind: Literal["number", "label", "date"]
    categories: tuple[Label, ...] = ()
    missing: bool = False
    parts: tuple[str, ...] = ()
    form: Literal["", "span", "zoned"] = ""
    origin: int = 0
    exponent: int = 0

    def as_came(self, numbers: Array) -> np.ndarray:
        """Numbers, once read, as they were before: floats, or whole numbers that floats would not tell apart."""
        return out_of_units(numbers, self.origin, self.exponent)


def column_of(key: str, raw: RawColumn, name: str) -> Column:
    """What a column holds."""
    array, what = raw.values, f"Column {key!r} of {name}"
    if array.dtype.kind == "M":
        days = array[~np.isnat(array)]
        parts = tuple(part for part in _DATE_PARTS if len(np.unique(_date_part(days, part))) > 1)
        return Column(key, "date", (), bool(np.isnat(array).any()), parts, "zoned" if raw.zoned else "")
    if array.dtype.kind in "US" and raw.categories is None:
        return Column(key, "label", tuple(np.unique(array).tolist()))
    if array.dtype.kind == "m":
        return _number_column(key, _seconds(array, what), what, "span")
    if array.dtype.kind in "biuf" and raw.categories is None:
        return _number_column(key, array, what)
    present = [value for value in array.tolist() if not is_missing(value)]
    if present and raw.categories is None and all(map(is_number, present)):
        return _number_column(key, array, what)
    _check_labels(present, what)
    seen = set(present)
    order = _sorted(seen) if raw.categories is None else [label for label in raw.categories if label in seen]
    return Column(key, "label", tuple(order), missing=len(present) < len(array))


def _number_column(key: str, array: np.ndarray, what: str, form: Literal["", "span"] = "") -> Column:
    known = array[~missing_in(array)]
    return Column(key, "number", (), len(known) < len(array), (), form, *units_of(known, what))


def _seconds(array: np.ndarray, what: str) -> Array:
    try:
        return array / np.timedelta64(1, "s")
    except TypeError as error:  # months and years have no length
        raise ValueError(f"{what} holds time spans of {array.dtype}, which have no fixed length. Use days.") from error


def _check_labels(labels: list[Any], what: str) -> None:
    """Refuse what is no label, and labels of different kinds that Python holds for one, such as True and 1."""
    typed = set(zip(map(type, labels), labels, strict=True)) if _hashable(labels) else set()
    for value in labels if not typed else (value for _, value in typed):
        if family_of(value) is None:
            raise TypeError(
                f"{what} holds {str(value)[:80]} of {type(value).__name__}: each argument must be a string or a "
                "number. Convert the values first."
            )
    first: dict[Any, Any] = {}
    for _, value in typed:
        other = first.setdefault(value, value)
        if (family_of(value), isinstance(value, Integral)) != (family_of(other), isinstance(other, Integral)):
            raise ValueError(
                f"{what} holds labels that are equal but of different types, such as {value!r} and {other!r}. Convert "
                "them to one type, or to text."
            )


def _hashable(labels: list[Any]) -> bool:
    try:
        set(labels)
    except TypeError:
        return False
    return True


def family_of(label: Any) -> str | None:
    """What kind of label it is; None for what is none."""
    if isinstance(label, str):
        return "text"
    if isinstance(label, bytes):
        return "bytes"
    if isinstance(label, bool | np.bool_):
        return "truth value"
    return "number" if is_number(label) else None


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # texts and numbers together
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def codes_of(column: Column, raw: RawColumn, name: str) -> np.ndarray:
    """Labels as positions among the categories, (n,); -1 where unknown."""
    array = raw.values
    # Values of one type can be sorted, and each then has to be looked up once only.
    values, place = (array, slice(None)) if array.dtype.kind == "O" else np.unique(array, return_inverse=True)
    present = [None if is_missing(value) else value for value in values.tolist()]
    families = [family_of(value) for value in present]
    known, came = {family_of(label) for label in column.categories}, set(families) - {None}
    strange = next((v for v, family in zip(present, families, strict=True) if v is not None and family is None), None)
    if strange is not None or (known and came and not known & came):
        got = f"{type(strange).__name__}s" if strange is not None else " and ".join(f"{family}s" for family in came)
        raise ValueError(
            f"Column {column.name!r} of {name} held labels such as {column.categories[:1]} in the fit, got {got}. "
            "Convert them to the same labels."
        )
    position = {(family_of(label), label): i for i, label in enumerate(column.categories)}
    missing = len(position) if column.missing else UNKNOWN  # where values missed in the fit, missing is a label
    pairs = zip(families, present, strict=True)
    found = [missing if value is None else position.get((family, value), UNKNOWN) for family, value in pairs]
    return np.array(found, dtype=np.int64)[place]


def numbers_of(column: Column, raw: RawColumn, name: str) -> list[Array]:
    """A column of numbers, or a date as days since 1970 and its recurring parts, each (n,)."""
    array, what = raw.values, f"Column {column.name!r} of {name}"
    if column.kind == "date":
        if array.dtype.kind != "M":
            raise ValueError(f"{what} held dates in the fit, got {array.dtype}. Pass dates.")
        if raw.zoned != (column.form == "zoned"):
            had, has = ("with" if zoned else "without" for zoned in (column.form == "zoned", raw.zoned))
            raise ValueError(f"{what} held dates {had} a time zone in the fit, got dates {has} one. Convert them.")
        whole = (array - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return [whole, *(_date_part(array, part) for part in column.parts)]
    if (array.dtype.kind == "m") != (column.form == "span") and not _is_all_missing(array):
        had, has = ("time spans", "others") if column.form == "span" else ("numbers", "time spans")
        raise ValueError(f"{what} held {had} in the fit, got {has} ({array.dtype}). Convert them to {had}.")
    if array.dtype.kind == "m":
        array = _seconds(array, what)
    _check_numbers(array, what)
    numbers = in_units(array, column.origin, column.exponent)
    check_finite(numbers, what)
    if np.isnan(numbers).any() and not column.missing:
        warnings.warn(f"{what} has missing values, and had none in the fit. They count as average.", stacklevel=2)
    return [numbers]


def _is_all_missing(array: np.ndarray) -> bool:
    return array.dtype.kind in "fO" and bool(missing_in(array).all())


def _check_numbers(array: np.ndarray, what: str) -> None:
    """Texts are never taken for numbers, even where they could be parsed."""
    strange = next((v for v in array.tolist() if not (_is_number_or_flag(v) or is_missing(v))), None) if (
        array.dtype.kind == "O"
    ) else None  # fmt: skip
    if strange is not None or array.dtype.kind not in "biufO":
        got = f"dtype {array.dtype}" if strange is None else f"{str(strange)[:80]!r} of {type(strange).__name__}"
        raise ValueError(f"{what} held numbers in the fit, got {got}. Convert it to numbers.")


def _is_number_or_flag(value: Any) -> bool:
    return is_number(value) or isinstance(value, bool | np.bool_)


def _date_part(array: np.ndarray, part: str) -> Array:
    missing = np.isnat(array)
    if part == "month":
        value = array.astype("datetime64[M]").astype(np.int64) % 12 + 1
    elif part == "weekday":  # 1 January 1970 was a Thursday; Monday is 0
        value = (array.astype("datetime64[D]").astype(np.int64) + 3) % 7
    else:
        value = array.astype("datetime64[h]").astype(np.int64) % 24
    return np.where(missing, np.nan, value.astype(np.float64))
