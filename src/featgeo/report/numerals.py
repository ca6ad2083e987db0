"""Numbers as readers see them: four digits that count, a true minus sign, powers of ten for what is tiny."""

from __future__ import annotations

import math

DIGITS = 4
SMALLEST, LARGEST = 1e-3, 1e6  # beyond these, powers of ten
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def numeral(value: float | None) -> str:
    """The number in four digits that count; nothing for None."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else _signed("∞", value)
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.{DIGITS - 1}e}".split("e")  # rounds first: 0.99999 is 1.000
    if SMALLEST <= float(f"{mantissa}e{exponent}") < LARGEST:
        return _signed(f"{abs(value):.{max(0, DIGITS - 1 - int(exponent))}f}", value)
    return _signed(f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}", value)


def at_most(value: float | None) -> str:
    """A bound that somebody chose: as `numeral`, without zeros at the end."""
    digits, times, power = numeral(value).partition("×")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + times + power


def _signed(digits: str, value: float) -> str:
    return f"−{digits}" if value < 0 else digits
