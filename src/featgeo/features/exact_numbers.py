"""Numbers of any size as floats that tell them apart.

A float has 53 binary digits, so that whole numbers beyond 2**53 can become one; and squares of numbers beyond about
1e154, or below 1e-154, are no floats at all. Both are mended where a column is read: it is kept as
(value - origin) / 2**exponent with a whole `origin` and `exponent`, both 0 for ordinary numbers. Neither costs a digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from featgeo.geometry.validation import Array

ALL_EXACT = 2**53  # whole numbers up to here are floats
# Sizes that are kept as they are: sums over many rows of products of four such numbers, which fourth moments are made
# of, stay within floats (2**-1074 to 2**1024).
LARGEST, SMALLEST = 2.0**200, 2.0**-200


def is_number(value: Any) -> bool:
    """Whether a single value is a real number, of Python or numpy; truth values are none."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def is_missing(value: Any) -> bool:
    """Whether a single value stands for nothing: None, NaN, NaT and the like of pandas."""
    if value is None:
        return True
    if isinstance(value, str):  # the usual case
        return False
    if isinstance(value, Real | Decimal):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def missing_in(values: np.ndarray) -> np.ndarray:
    """Which values of an array stand for nothing, (n,)."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def units_of(values: np.ndarray, what: str) -> tuple[int, int]:
    """The origin and the exponent that a column is read with.

    Args:
        values: Numbers of any numpy dtype, or objects that are numbers; none missing.
        what: What messages call the column.
    """
    origin = _origin_of(values, what)
    numbers = _shifted(values, origin)
    check_finite(numbers, what)
    size = float(np.abs(numbers).max(initial=0.0))
    if size == 0 or SMALLEST <= size <= LARGEST:
        return origin, 0
    exponent = math.frexp(size)[1]
    exponent -= int(math.copysign(math.log2(LARGEST), exponent))  # no further than needed: others may be far smaller
    if len(np.unique(in_units(values, origin, exponent))) < len(np.unique(numbers)):
        raise ValueError(
            f"{what} holds numbers of sizes too far apart, up to {size:g}, to be computed with together. Take their "
            "logarithms, or drop the rows at one end."
        )
    return origin, exponent


def check_finite(numbers: Array, what: str) -> None:
    """Refuse infinite numbers; NaN stands for a missing one."""
    if np.isinf(numbers).any():
        raise ValueError(
            f"{what} holds infinite values (inf), or numbers beyond 1e308. Replace them by NaN where they mean "
            "missing, or by the largest finite value."
        )


def in_units(values: np.ndarray, origin: int, exponent: int) -> Array:
    """Numbers as floats in the units of their column; NaN where they miss, infinite ones stay infinite."""
    numbers = _shifted(values, origin)
    if exponent == 0:
        return numbers
    largest = np.finfo(np.float64).max
    # A later value may be 1e300 times larger than all of the fit: it is beyond all of them, wherever it is put.
    with np.errstate(over="ignore"):
        return np.where(np.isinf(numbers), numbers, np.ldexp(numbers, -exponent).clip(-largest, largest))


def out_of_units(numbers: Array, origin: int, exponent: int) -> np.ndarray:
    """What `in_units` was given: floats, or whole numbers where the origin is one that no float could hold."""
    values = np.ldexp(numbers, exponent) if exponent else numbers
    if not origin:
        return values
    return np.array([origin + int(value) for value in values.tolist()])


def _origin_of(values: np.ndarray, what: str) -> int:
    """0 where floats tell the values apart; else the smallest of them, if that helps."""
    if values.dtype.kind in "bf" and values.dtype.itemsize <= 8:
        return 0
    if values.dtype.kind in "iu" and (not len(values) or max(int(values.max()), -int(values.min())) <= ALL_EXACT):
        return 0
    # Objects of one value, such as Decimal("0.10") and Decimal("0.1"), are one number.
    distinct = np.unique(values).tolist() if values.dtype.kind != "O" else list(set(values.tolist()))
    numbers = _floats(distinct)
    if _are_apart(numbers) or any(map(_is_infinite, distinct)):
        return 0
    if all(isinstance(value, Integral) for value in distinct):
        origin = min(map(int, distinct))
        if _are_apart(_floats([int(value) - origin for value in distinct])):
            return origin
    check_finite(numbers, what)
    raise ValueError(
        f"{what} holds different numbers, from {_short(min(distinct))} to {_short(max(distinct))}, that are one and "
        "the same as floats. Subtract what they have in common, or turn them into text if they are labels."
    )


def _is_infinite(value: Any) -> bool:
    return not isinstance(value, Integral) and math.isinf(value)


def _are_apart(numbers: Array) -> bool:
    return len(np.unique(numbers)) == len(numbers) and bool(np.isfinite(numbers).all())


def _shifted(values: np.ndarray, origin: int) -> Array:
    if values.dtype.kind == "O":
        return _floats(values.tolist(), origin)
    if not origin:
        return values.astype(np.float64)
    return _floats(values.tolist(), origin)


def _floats(values: Sequence[Any], origin: int = 0) -> Array:
    return np.array([_float(value, origin) for value in values], dtype=np.float64)


def _float(value: Any, origin: int) -> float:
    if is_missing(value):
        return math.nan
    try:
        if not origin or not (isinstance(value, Integral) or math.isfinite(value)):
            return float(value)
        return float((int(value) if isinstance(value, Integral) else Fraction(value)) - origin)
    except OverflowError:  # whole numbers and fractions beyond 1e308
        return math.inf if value > 0 else -math.inf


def _short(value: Any) -> str:
    bits = int(value).bit_length()
    return str(value) if bits < 100 else f"{'-' if value < 0 else ''}2**{bits}"  # Python refuses to print the longest
