"""Checks of arguments that are no data: one for each kind, used wherever such an argument comes in.

Every message says the rule, what came, and the way out.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from featgeo.geometry.validation import Array, shown

MOST_SEED = 2**31  # seeds are passed on to libraries that want no more, some of them plus 1


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_whole(value: Any, name: str, least: int, way_out: str, most: int | None = None) -> int:
    """Return a whole number, `least` or more."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        rule = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"`{name}` must be a whole number, {rule}, got {shown(value)}. {way_out}")
    return int(value)


def check_count(value: Any, name: str, words: Collection[str] = ("auto",), way_out: str = "") -> Any:
    """Return a number of modes: a whole number, at least 1, or one of a few words."""
    if isinstance(value, str) and value in words:
        return value
    if not is_whole(value) or value < 1:
        also = " or ".join(repr(word) for word in words)
        way_out = way_out or f"Use {next(iter(words))!r} to let held-out rows choose."
        raise ValueError(f"`{name}` must be a whole number, at least 1, or {also}, got {shown(value)}. {way_out}")
    return int(value)


def check_number(value: Any, name: str, rule: str, way_out: str, least: float = 0.0, above: bool = False) -> float:
    """Return a finite number, at least or above some other; `rule` says which in words."""
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    try:
        number = float(value) if good else math.nan
    except OverflowError:  # of a whole number
        number = math.inf
    if not math.isfinite(number) or number < least or (above and number == least):
        raise ValueError(f"`{name}` must be {rule}, got {shown(value)}. {way_out}")
    return number


def check_level(value: Any, name: str, way_out: str) -> float:
    """Return a number strictly between 0 and 1."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not 0 < value < 1:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be a number that lies between 0 and 1, got {shown(value)}. {way_out}")
    return float(value)


def check_choice(value: Any, name: str, choices: Collection[str], way_out: str = "") -> str:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in choices:
        *first, last = (repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be {', '.join(first)} or {last}, got {shown(value)}. {way_out}".rstrip())
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return a truth value; texts such as "no" are none."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be True or False, got {shown(value)}.")
    return bool(value)


def seed_of(random_state: Any) -> int:
    """One number for all that is random; None is always the same, so that a fit can be repeated.

    Whole numbers of any size are seeds; generators of numpy, new and old, are drawn from.
    """
    if random_state is None:
        return 0
    if is_whole(random_state) and random_state >= 0:
        seed = int(random_state)
        return seed if seed < MOST_SEED else int(np.random.SeedSequence(seed).generate_state(1)[0] % MOST_SEED)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MOST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MOST_SEED))
    raise ValueError(
        f"`random_state` must be None, a whole number, at least 0, or a generator of numpy, got {shown(random_state)}. "
        "Use 0 for a fit that can be repeated."
    )


def generator_of(random_state: Any) -> np.random.Generator:
    """A generator of random numbers; one that came is used, and so moves on."""
    return (
        random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(seed_of(random_state))
    )


def as_numbers(values: Any, name: str, way_out: str) -> Array:
    """Return numbers, one or a vector of them, as an array of at most one dimension; text is never parsed."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim > 1 or array.dtype.kind == "b":
        raise ValueError(f"`{name}` must be a number or a vector of numbers, got {shown(values)}. {way_out}")
    if np.isnan(array).any():
        raise ValueError(f"`{name}` holds NaN. Leave these values out.")
    return array.astype(np.float64)
