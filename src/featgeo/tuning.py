"""The numbers that steer a result and that nothing derives: one object, with defaults that all figures are measured at.

    with fg.options(finite_values=64):
        model.fit(x, y)

What only bounds memory or time stays beside the code that it bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Options:
    """All numbers with their defaults: none is negative, whole ones stay whole, a tuple is a grid to choose from."""

    # Spaces of features
    finite_values: int = 32  # a variable of no more values (and no more than the root of n) is a finite alphabet; a
    # column of no more labels has an indicator of each, one of more labels as many for its frequent ones
    shared_labels: float = 0.05  # share of the rows, at least, that have a label of others too: else it names the row
    rows_a_function: int = 10  # at least, for each label or function that is learned by itself: fewer show noise
    folds: int = 5  # parts of the rows that are left out once: more cost more, fewer leave less to learn from
    outer_share: float = 0.002  # of the rows lie outside of either end that "bounded" numbers are measured by
    outer_reach: float = 4.0  # they end so many times as far from the middle: 11 deviations of a bell curve
    kernel_gammas: tuple[float, ...] = (0.1, 0.3, 1.0)  # inverse squared widths of kernels, the smoothest first
    kernel_features: int = 32  # of one number
    joint_kernel_features: int = 300  # of several columns together
    normal_knots: int = 5  # of splines of normal scores: few, so that their cubics can follow Hermite polynomials
    uniform_knots: int = 8  # of splines of uniform scores, which need no room beyond the knots
    rows_beyond_knots: int = 300  # of normal scores, on either side: no piece of a spline rests on fewer
    leaves_a_root: float = 0.4  # leaves of a boosted tree for each root of the rows: more follow the noise of few rows
    index_ridges: tuple[float, ...] = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)  # of a direction, shares of the mean variance
    index_knots: tuple[int, ...] = (4, 7, 12)  # of the curves along an index: from nearly a line to waves

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), field.default)


def _check(name: str, value: Any, default: Any) -> None:
    """Refuse what is not of its default's kind."""
    if isinstance(default, tuple):
        if not isinstance(value, tuple) or not value:
            raise ValueError(f"`{name}` must be a tuple of numbers such as {default}, got {value!r}.")
        for entry in value:
            _check(name, entry, default[0])
        return
    kind = int if isinstance(default, int) else (int, float)
    if not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(
            f"`{name}` must be a {'whole ' * (kind is int)}number, finite and not negative, got {value!r}. "
            f"The default is {default}."
        )


in_force: ContextVar[Options] = ContextVar("options", default=Options())  # noqa: B039 - it is frozen


@contextmanager
def options(**numbers: Any) -> Iterator[Options]:
    """Other numbers inside a `with` block, for its thread; blocks add up.

    Args:
        **numbers: Fields of `Options`.

    Yields:
        The options in force.
    """
    token = in_force.set(replace(in_force.get(), **numbers))
    try:
        yield in_force.get()
    finally:
        in_force.reset(token)
