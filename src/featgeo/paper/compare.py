"""How far a learned function is from the true one, under the distribution of its argument."""

from __future__ import annotations

import numpy as np

from featgeo.geometry.validation import Array


def standardised(values: Array, mass: Array) -> Array:
    """Mean 0 and variance 1 under a distribution, along the first axis."""
    values = values - mass @ values
    return values / np.sqrt(mass @ values**2)


def aligned(values: Array, like: Array, mass: Array) -> Array:
    """Each column standardised, with the sign of its counterpart."""
    values = standardised(values, mass)
    return values * np.where(mass @ (values * like) < 0, -1.0, 1.0)


def correlation(a: Array, b: Array, mass: Array) -> Array:
    """Of matching columns, up to sign."""
    return np.abs(mass @ (standardised(a, mass) * standardised(b, mass)))


def decorrelation(a: Array, b: Array, mass: Array) -> Array:
    """1 - |correlation| of matching columns."""
    return np.maximum(1 - correlation(a, b, mass), 0)


def relative_error(values: Array, truth: Array, mass: Array) -> Array:
    """Root mean squared difference of matching columns over the root mean square of the truth."""
    return np.sqrt((mass @ (values - truth) ** 2) / (mass @ truth**2))


def uniform(points: int) -> Array:
    """Equal weights."""
    return np.full(points, 1 / points)
