"""Null distributions: tails of weighted sums of chi-squares, and random rearrangements of rows.

The tail of Q = sum_i w_i Z_i^2, with Z_i independent standard normals, is the integral

    P(Q > q) = 1 / (2 pi i) * integral of exp(K(s) - s q) / s ds,    K(s) = -1/2 sum_i log(1 - 2 w_i s),

along any path that crosses the real axis once, between 0 and 1 / (2 max w). A path through the saddle point that bends
to the right makes the integrand fall like a bell, so that a few hundred points give nearly all digits, however far the
tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import brentq

from featgeo.evidence.result import Evidence
from featgeo.geometry.validation import Array, as_real

_POINTS = 600
_REACH = 12.0  # how far the path goes, as the argument of sinh
_EDGE = 0.5  # where K ends, once the largest weight is 1
_BATCH_ENTRIES = 2**17  # rows of all orders of a batch; a small batch stays in the cache
_TIE = 1e-9  # statistics that differ by less, relatively, are equal: sums in another order


def weighted_chi_square_tail(statistic: float, weights: Any) -> float:
    """P(sum_i w_i Z_i^2 > statistic) for independent standard normals Z_i.

    Args:
        statistic: Where the tail begins.
        weights: Weights w, (m,), at least 0. For a sum of squared cross-moments of features of two sides they are the
            products of the eigenvalues of the two covariances.

    Returns:
        The probability, to ten digits or more.
    """
    kept = as_real(weights, "weights").ravel()
    if not np.isfinite(kept).all() or (kept < 0).any() or not (kept > 0).any():
        raise ValueError(
            f"`weights` must be finite, at least 0, and not all 0, got {kept}. Drop directions without variance."
        )
    if math.isnan(statistic):
        raise ValueError("`statistic` must be a number, got NaN. Look for missing values in what it came from.")
    if statistic <= 0:
        return 1.0
    if math.isinf(statistic):
        return 0.0
    relative = kept / kept.max()
    return _contour_integral(statistic / kept.max(), relative[relative > 1e-12])


def _contour_integral(q: float, weights: Array) -> float:
    """The tail beyond q; the largest weight is 1."""

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * weights * s)) - q - 1 / s)

    # K(s) - s q - log s is convex between 0 and the edge, and infinite at both ends.
    saddle = brentq(slope, _EDGE * 1e-13, _EDGE * (1 - 1e-13), xtol=1e-15)
    width = 1 / np.sqrt(2 * np.sum((weights / (1 - 2 * weights * saddle)) ** 2) + 1 / saddle**2)
    bend = 0.5 / (_EDGE - saddle + width)
    angle = np.linspace(0, _REACH, _POINTS)
    across = width * np.sinh(angle)
    path = saddle + bend * across**2 + 1j * across
    direction = (2 * bend * across + 1j) * width * np.cosh(angle)
    exponent = -0.5 * np.log(1 - 2 * np.multiply.outer(path, weights)).sum(axis=1) - path * q
    values = (np.exp(exponent) / path * direction).imag
    return float(np.clip(angle[1] * (values.sum() - values[0] / 2) / np.pi, 0.0, 1.0))


def arrangements(n_rows: int, n_permutations: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Orders of the rows, in batches (b, n): every order there is where these are few, else random ones.

    Args:
        n_rows: n.
        n_permutations: How many random orders.
        rng: Source of randomness.
    """
    if every_order_is_tried(n_rows, n_permutations):
        yield np.array(list(permutations(range(n_rows))))
        return
    batch = max(1, min(n_permutations, _BATCH_ENTRIES // n_rows))
    for start in range(0, n_permutations, batch):
        rows = np.tile(np.arange(n_rows), (min(batch, n_permutations - start), 1))
        yield rng.permuted(rows, axis=1)


def every_order_is_tried(n_rows: int, n_permutations: int) -> bool:
    """Whether so few rows have no more orders than the random ones that were asked for."""
    return n_rows <= 12 and math.factorial(n_rows) <= n_permutations + 1


def permutation_pvalue(statistic: float, draws: Array, complete: bool) -> float:
    """The share of arrangements whose statistic is as large, which is exact at any number of rows.

    Args:
        statistic: Of the rows as they are.
        draws: Of the arrangements, (B,).
        complete: Whether the arrangements are all there are, the one observed included.
    """
    reached = int(np.sum(draws >= statistic - _TIE * abs(statistic)))
    return reached / len(draws) if complete else (1 + reached) / (1 + len(draws))


def permutation_evidence(
    of_orders: Callable[[np.ndarray], Array], n_rows: int, n_permutations: int, rng: np.random.Generator, name: str
) -> Evidence:
    """Compare a statistic with itself over arrangements of the rows of one variable.

    Args:
        of_orders: The statistic for each order of the rows, (b, n) to (b,).
        n_rows: n.
        n_permutations: How many random orders; all are tried where there are no more than that.
        rng: Source of randomness.
        name: What the statistic is.
    """
    statistic = float(of_orders(np.arange(n_rows)[None])[0])
    draws = np.concatenate([of_orders(orders) for orders in arrangements(n_rows, n_permutations, rng)])
    complete = every_order_is_tried(n_rows, n_permutations)
    method = f"{name}, {'all' if complete else len(draws)} arrangements of the rows"
    return Evidence(statistic, permutation_pvalue(statistic, draws, complete), method)
