"""How far a learned function is from the true one, under the distribution of its argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.geometry import Modes
from featgeo.geometry.validation import Array
from featgeo.paper.record import Number, subscript


def standardised(values: Array, mass: Array) -> Array:
    """Mean 0 and variance 1 under a distribution, along the first axis."""
    values = values - mass @ values
    return values / np.sqrt(mass @ values**2)


def aligned(values: Array, like: Array, mass: Array) -> Array:
    """Each column standardised, with the sign of its counterpart."""
    values = standardised(values, mass)
    return values * signs(values, like, mass)


def signs(values: Array, like: Array, mass: Array) -> Array:
    """By which each column points the way of its counterpart; a mode has one sign for its f and its g."""
    return np.where(mass @ (standardised(values, mass) * like) < 0, -1.0, 1.0)


def turned(modes: Modes, truth: Modes, x_mass: Array, y_mass: Array) -> Modes:
    """Both sides standardised, with the sign by which f points the way of the true f."""
    turn = signs(modes.f, truth.f, x_mass)
    return Modes(modes.sigma, turn * standardised(modes.f, x_mass), turn * standardised(modes.g, y_mass))


def decorrelation(a: Array, b: Array, mass: Array, turn: Array | None = None) -> Array:
    """1 - correlation of matching columns, a being turned by signs; up to sign where none is given."""
    correlation = mass @ (standardised(a, mass) * standardised(b, mass))
    return np.maximum(1 - (np.abs(correlation) if turn is None else turn * correlation), 0)


def kernel_error(modes: Modes, truth: Array, x_mass: Array, y_mass: Array) -> float:
    """Relative error of sum_i sigma_i f_i(x) g_i(y) for independent x and y: strengths, functions and signs at once."""
    difference = modes.kernel().reshape(len(x_mass), -1) - truth
    return float(np.sqrt((x_mass @ difference**2 @ y_mass) / (x_mass @ truth**2 @ y_mass)))


def relative_error(values: Array, truth: Array, mass: Array) -> Array:
    """Root mean squared difference of matching columns over the root mean square of the truth."""
    return root_mean_square(values - truth, mass) / root_mean_square(truth, mass)


def root_mean_square(values: Array, mass: Array) -> Array:
    """Of each column, under a distribution."""
    return np.sqrt(mass @ values**2)


def uniform(points: int) -> Array:
    """Equal weights."""
    return np.full(points, 1 / points)


def strengths(theory: Array, learned: Array, bounds: Sequence[float]) -> list[Number]:
    """Singular values beside the true ones."""
    values = zip(theory, learned, bounds, strict=True)
    return [
        Number.value(f"σ{subscript(i + 1)}", true, found, bound=bound) for i, (true, found, bound) in enumerate(values)
    ]
