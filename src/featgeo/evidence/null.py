"""Tails of weighted sums of chi-squares, the null distributions of quadratic statistics.

With Q = sum_i w_i Z_i^2, Z_i independent standard normal, and K(t) = -1/2 sum_i log(1 - 2 w_i t) its cumulant function,

    P(Q > q) = 1 / (2 pi i)  integral of exp(K(t) - t q) / t dt

over any path that crosses the real axis once, between 0 and the first branch point 1 / (2 max w), and goes to infinity
above and below. Through the saddle point and along a parabola that follows the steepest descent, the integrand is a
bell, on which the trapezoidal rule converges geometrically; and it is as small as the tail itself, so that even tails
of 1e-100 have correct digits.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from featgeo.geometry.validation import Array

NEGLIGIBLE = 1e-10  # weights below this share of the largest are dropped
STEPS_OF_WIDTH = 8  # of the trapezoidal rule
MOST_STEPS = 8_000


def weighted_chi_square_tail(statistic: float, weights: Array) -> float:
    """P(sum_i w_i Z_i^2 > statistic), Z_i independent standard normal.

    Args:
        statistic: Where the tail begins.
        weights: Non-negative, shape (m,), in any order; those that are negligible beside the largest do not count.

    Returns:
        The probability; 1 where the statistic or all weights are zero.
    """
    weights = np.asarray(weights, dtype=np.float64).ravel()
    largest = float(weights.max(initial=0.0))
    if not (np.isfinite(weights).all() and np.isfinite(statistic)):
        raise ValueError(f"The statistic and its weights must be finite, got {statistic} and {weights}.")
    if weights.min(initial=0.0) < -1e-6 * largest:
        raise ValueError(f"Weights of chi-squares must not be negative, got {weights.min()}.")
    if statistic <= 0 or largest <= 0:
        return 1.0
    kept = weights[weights > NEGLIGIBLE * largest] / largest
    return _tail(float(statistic) / largest, kept)


def _tail(q: float, weights: Array) -> float:
    """The integral, for weights of which the largest is 1."""
    nearest = min(0.25, 0.4 / np.sqrt(2 * np.sum(weights**2)))  # left of it the pole at 0 makes a peak
    start = max(_saddle_point(q, weights), nearest)
    rest = 1 - 2 * weights * start
    second = 2 * np.sum((weights / rest) ** 2)  # K''
    third = 8 * np.sum((weights / rest) ** 3)  # K'''
    width = 1 / np.sqrt(second + 1 / start**2)
    bend = third / (6 * second)
    height = -0.5 * np.sum(np.log(rest)) - start * q
    total, step, chunk = 0.0, width / STEPS_OF_WIDTH, 100
    for first in range(0, MOST_STEPS, chunk):
        y = step * (np.arange(first, first + chunk) + 0.5)
        path = start + 1j * y + bend * y**2
        exponent = -0.5 * np.log(1 - 2 * np.outer(weights, path)).sum(axis=0) - path * q - height
        # The path's lower half is the mirror image of the upper one: twice the imaginary part.
        values = np.exp(exponent) / path * (1j + 2 * bend * y)
        total += float(values.imag.sum())
        if np.abs(values[-1]) < 1e-13 * abs(total):
            break
    return float(np.clip(np.exp(height) * total * step / np.pi, 0.0, 1.0))


def _saddle_point(q: float, weights: Array) -> float:
    """Where K'(t) = q, if that is positive, else 0; K' grows without bound towards 1/2."""
    if q <= weights.sum():
        return 0.0
    # K' is at least what the largest weight gives, and at most as if all were as large: that brackets the solution.
    low, high = max(0.0, 0.5 - (len(weights) + 1) / (2 * q)), 0.5 - 1 / (4 * q)
    return float(brentq(lambda t: np.sum(weights / (1 - 2 * weights * t)) - q, low, high, xtol=1e-14))
