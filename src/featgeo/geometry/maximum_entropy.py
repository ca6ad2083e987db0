"""The distribution of largest entropy with given marginals, by iterative proportional fitting.

Each round rescales the table to each marginal in turn; the limit is the unique distribution of the form
prod_c u_c(z_c), one factor for each marginal, with those marginals (Csiszar 1975).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.geometry.validation import Array


def iterative_proportional_fitting(
    target: Array, margins: Sequence[tuple[int, ...]], tolerance: float = 1e-13, max_rounds: int = 100_000
) -> Array:
    """Fit the maximum-entropy table to marginals of a target table.

    Args:
        target: A probability table.
        margins: Axes of each marginal to keep.
        tolerance: Largest difference between a fitted and a wanted marginal probability.
        max_rounds: Rounds after which to give up.

    Raises:
        ValueError: If the rounds do not suffice; tables with zeros may converge slowly.
    """
    others = [tuple(axis for axis in range(target.ndim) if axis not in kept) for kept in margins]
    wanted = [target.sum(axis=other, keepdims=True) for other in others]
    fitted = np.full(target.shape, 1 / target.size)
    for _ in range(max_rounds):
        worst = 0.0
        for other, marginal in zip(others, wanted, strict=True):
            current = fitted.sum(axis=other, keepdims=True)
            worst = max(worst, float(np.abs(current - marginal).max()))
            fitted = fitted * np.divide(marginal, current, out=np.zeros_like(current), where=current > 0)
        if worst <= tolerance:
            return fitted
    raise ValueError(
        f"Proportional fitting is off by {worst:.1e} after {max_rounds} rounds, above {tolerance:.1e}. "
        "Add a small count to empty cells: a table with zeros may reach its limit only slowly."
    )
