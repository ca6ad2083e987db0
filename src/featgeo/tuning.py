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

    # Rows that miss blocks
    more_pairs: float = 2.0  # blocks stand by their complete rows, unless each pair is seen so many times more often

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

    # Distributions
    calibrating_rows: int = 50  # held-out rows to calibrate by; frequencies of fewer are off by more than 0.07
    tail_rows: int = 10  # held-out rows beyond a quantile that recalibration maps on its own
    atom_rows: float = 3.0  # a number with so many times the rows of others keeps its mass to itself
    unseen_ratio: float = 1e-6  # density ratio of a label that no held-out row shows: rare, not impossible
    least_probability: float = 1e-9  # of what was never seen: no single row outweighs all others in a log loss
    rows_a_history: float = 1.25  # of a sequence, for a table of them; with fewer next to no history comes back

    # Reports
    doubt_errors: float = 2.0  # standard errors by which held-out rows must differ before that counts
    confidence: float = 0.95  # of limits and intervals that no argument sets
    halved_rows: int = 1000  # that leaks are learned on halves of; thirds of fewer rows are held out
    erased_share: float = 1e-6  # of the variance: a copy of Z that erasers leave in smaller combinations is rounding

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
