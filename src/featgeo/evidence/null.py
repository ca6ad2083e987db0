"""Null distributions: tails of weighted sums of chi-squares, and the weights that moments of products have.

The tail of Q = sum_i w_i Z_i^2, with Z_i independent standard normals, is the integral

    P(Q > q) = 1 / (2 pi i) * integral of exp(K(s) - s q) / s ds,    K(s) = -1/2 sum_i log(1 - 2 w_i s),

along any path that crosses the real axis once, between 0 and 1 / (2 max w). A path through the saddle point that bends
to the right makes the integrand fall like a bell, so that a few hundred points give nearly all digits, however far the
tail. The path is a hyperbola whose slope stays below 1: there s^2 has a negative real part, without which many small
weights, whose sum is nearly normal, would make the integrand grow along it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from featgeo.geometry.validation import Array, as_real

AMPLE_COUNT = 5  # rows that a normal or chi-square limit needs behind each cell: Cochran's rule for expected counts
_EDGE = 0.5  # where K ends, once the largest weight is 1
_SLOPE = 0.5  # of the path, far out
_ENDS = np.linspace(0, 30, 61)  # where the path may end, as arguments of sinh


def rests_on_few_rows(x: Array, y: Array) -> bool:
    """Whether products of centred features, (n, k) and (n, l), vary on too few rows for their means to be normal."""
    return AMPLE_COUNT * kurtosis(x) * kurtosis(y) > len(x)


def kurtosis(features: Array) -> float:
    """The largest fourth moment of a feature of variance 1: 1.5 for cosines, n / m for an indicator of m rows."""
    squares = np.square(features)
    return float(np.max(np.mean(np.square(squares), axis=0) / np.mean(squares, axis=0) ** 2, initial=0))


def less_spread(spectrum: Array, same_row: float, n_rows: int) -> Array:
    """Eigenvalues drawn towards their mean, by as much as those of an empirical covariance matrix spread too far.

    Args:
        spectrum: Eigenvalues, (m,).
        same_row: Of the sum over all pairs of rows i, j of (p_i . p_j)^2, with p the products behind the covariance,
            the share with i = j. It is noise: the other pairs alone estimate the sum of squared eigenvalues.
        n_rows: Number of rows.
    """
    squares, equal = float(np.square(spectrum).sum()), float(spectrum.sum()) ** 2 / len(spectrum)
    spread = squares - equal
    if spread <= 0:
        return spectrum
    share = (squares * (1 - same_row) * n_rows / (n_rows - 1) - equal) / spread
    drawn: Array = spectrum.mean() + np.sqrt(np.clip(share, 0.0, 1.0)) * (spectrum - spectrum.mean())
    return drawn


def weighted_chi_square_tail(statistic: float, weights: Any) -> float:
    """P(sum_i w_i Z_i^2 > statistic) for independent standard normals Z_i.

    Args:
        statistic: Where the tail begins.
        weights: Weights w, (m,), at least 0. For a sum of squared cross-moments of features of two sides they are the
            products of the eigenvalues of the two covariances.

    Returns:
        The probability, to ten digits or more; 1 where the statistic or all weights are zero.
    """
    known = as_real(weights, "weights").ravel()
    largest = float(known.max(initial=0.0))
    # Eigenvalues may come out a little below zero.
    if not np.isfinite(known).all() or (known < -1e-6 * largest).any() or (largest == 0 and known.any()):
        raise ValueError(f"`weights` must be finite and at least 0, got {known}. Pass eigenvalues of covariances.")
    if math.isnan(statistic):
        raise ValueError("`statistic` must be a number, got NaN. Look for missing values in what it came from.")
    if statistic <= 0 or largest == 0:
        return 1.0
    if math.isinf(statistic):
        return 0.0
    return _contour_integral(statistic / largest, known[known > 1e-12 * largest] / largest)


def _contour_integral(q: float, weights: Array) -> float:
    """The tail beyond q; the largest weight is 1."""

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * weights * s)) - q - 1 / s)

    # K(s) - s q - log s is convex between 0 and the edge, and infinite at both ends.
    saddle = brentq(slope, _EDGE * 1e-13, _EDGE * (1 - 1e-13), xtol=1e-15)
    width = 1 / np.sqrt(2 * np.sum((weights / (1 - 2 * weights * saddle)) ** 2) + 1 / saddle**2)
    bend = _SLOPE**2 * (_EDGE - saddle + width)

    def integrand(angle: Array) -> Array:
        across = width * np.sinh(angle)
        right = np.hypot(bend, _SLOPE * across)
        path = saddle + right - bend + 1j * across
        factors = 1 - 2 * np.multiply.outer(path, weights)
        # Logarithms of moduli, eight factors at a time, and phases: the complex ones take three times as long.
        squares = np.square(factors.real) + np.square(factors.imag)
        moduli = np.multiply.reduceat(squares, np.arange(0, len(weights), 8), axis=1)
        logarithms = 0.5 * np.log(moduli).sum(axis=1) + 1j * np.arctan2(factors.imag, factors.real).sum(axis=1)
        direction = (_SLOPE**2 * across / right + 1j) * width * np.cosh(angle)
        values: Array = np.exp(-0.5 * logarithms - path * q) / path * direction
        return values

    # With many weights the path ends soon: where no digit of the integral would show what is left of it.
    sizes = np.abs(integrand(_ENDS))
    alive = int(np.flatnonzero(sizes >= 1e-20 * sizes.max())[-1])
    angle = np.linspace(0, _ENDS[min(alive + 1, len(_ENDS) - 1)], 160)
    values = integrand(angle).imag
    return float(np.clip(angle[1] * (values.sum() - values[0] / 2) / np.pi, 0.0, 1.0))
