"""Functions of a single index: a direction of many columns, and a curve along it.

Where many columns act through one sum of them, a conditional expectation is  E[t(Y)|x] = h(b.x).  Least squares finds b
up to its length for any curve h where columns are elliptical, such as Gaussian ones (Brillinger 1982), and nearly so
for many others. Along the index b.x only a function of one number is left to learn, which takes few rows.

The curve is one of a few, by the Bayesian information criterion: cubic splines of some sizes, or a step
a + b tanh((z - c) / s), which is what evidence for one of two hidden causes adds up to: the true mode of two Gaussians
of the same covariance, and of the paper's sequences (Prop. seq).

A direction that was fitted to a row explains some of its noise, and does so along a line: judged on the same rows, a
line would look better than the true curve. So the curve is fitted to indices of rows by directions that never saw them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_lsq_spline
from scipy.optimize import least_squares
from torch import Tensor

from featgeo.features.dealing import copies_of, deal
from featgeo.features.space import Fields
from featgeo.features.tensors import interpolated
from featgeo.geometry.validation import Array
from featgeo.schema import saved

PARTS = 5  # each is left out once, and sees the direction of the others
RIDGES = (1e-9, 1e-6, 1e-4, 1e-2, 1.0)  # of the direction, as a share of the mean variance of a column
POINTS = 1000  # of the curve: means of as many groups of neighbours along the index
KNOTS = (4, 7, 12)
STEP_CENTRES = np.linspace(-2, 2, 9)  # where the search for a step starts, in standard deviations of the index
STEP_WIDTHS = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
STEP_PARAMETERS = 4


@saved
@dataclass(eq=False, repr=False)
class IndexRegressor(Fields):
    """A curve along one direction of the columns.

    Attributes:
        centre: Means of the columns, (d,).
        direction: b, (d,).
        at: Points along the index, (m,), ascending; predictions are constant beyond the outermost.
        curve: The prediction at each point, (m,).
    """

    centre: Array
    direction: Array
    at: Array
    curve: Array

    @classmethod
    def fit(cls, values: Array, target: Array) -> IndexRegressor:
        """Find the direction by least squares, then the curve.

        Args:
            values: Columns of numbers, (n, d).
            target: Shape (n,).
        """
        centre = values.mean(axis=0)
        part = deal(len(values), PARTS, 0, copies_of(values, target[:, None]))
        direction, index = _direction(values - centre, target - target.mean(), part)
        return cls(centre, direction, *_curve(index, target))

    def forward(self, inputs: Tensor) -> Tensor:
        """The curve at the index of each row, (n,)."""
        index = (inputs - self.tensor("centre")) @ self.tensor("direction")
        return interpolated(index[:, None], self.tensor("at")[None], self.tensor("curve")[None])[:, 0]


def _direction(values: Array, target: Array, part: np.ndarray) -> tuple[Array, Array]:
    """The direction of least squares, (d,), and the index of each row by directions fitted without it, (n,).

    Both are centred. The ridge is the one whose lines fare best on the rows left out.
    """
    n = len(values)
    rows = [np.flatnonzero(part == i) for i in range(part.max() + 1)]
    grams = np.array([values[own].T @ values[own] for own in rows])
    products = np.array([values[own].T @ target[own] for own in rows])
    gram, product = grams.sum(axis=0), products.sum(axis=0)
    indices = np.zeros((n, len(RIDGES)))
    for own, own_gram, own_product in zip(rows, grams, products, strict=True):
        if len(rows) > 1:
            indices[own] = values[own] @ _lines(gram - own_gram, product - own_product)
    best = int(np.argmin(np.square(target[:, None] - indices).sum(axis=0)))
    return _lines(gram, product)[:, best], indices[:, best]


def _lines(gram: Array, product: Array) -> Array:
    """Least squares for each ridge, (d, number of ridges)."""
    energies, axes = np.linalg.eigh(gram)
    scale = max(float(energies.mean()), np.finfo(np.float64).tiny)
    lines: Array = axes @ ((axes.T @ product)[:, None] / (energies.clip(min=0)[:, None] + scale * np.array(RIDGES)))
    return lines


def _curve(index: Array, target: Array) -> tuple[Array, Array]:
    """Points along the index, (m,), and the best curve at them, (m,)."""
    n = len(index)
    order = np.argsort(index, kind="stable")
    starts = np.linspace(0, n, min(POINTS, n), endpoint=False).astype(int)
    weight = np.diff(np.append(starts, n)).astype(np.float64)
    at, means = (np.add.reduceat(z[order], starts) / weight for z in (index, target))
    mean = float(np.average(target))
    spread = np.sqrt(np.average(np.square(at), weights=weight))
    if at[-1] - at[0] <= 1e-9 * spread or spread == 0:  # no index to follow
        return at[:1], np.array([mean])
    within = float(np.square(target).sum() - (weight * np.square(means)).sum())  # no curve explains this
    floor = 1e-12 * float(np.square(target - mean).sum()) + np.finfo(np.float64).tiny

    def criterion(curve: Array, parameters: int) -> float:
        error = max(within + float((weight * np.square(means - curve)).sum()), floor)
        return float(n * np.log(error) + parameters * np.log(n))

    curves = [(_step(at, means, weight), STEP_PARAMETERS), *_splines(at, means, weight)]
    return at, min(curves, key=lambda pair: criterion(*pair))[0]


def _step(at: Array, means: Array, weight: Array) -> Array:
    """The best a + b tanh((z - c) / s) at the points, (m,)."""
    share = weight / weight.sum()
    centred = at - share @ at
    z = centred / np.sqrt(share @ np.square(centred))
    mean = share @ means

    def fitted(c: Array, s: Array) -> Array:
        """The best a and b for each c and s, (..., m)."""
        step = np.tanh((z - c[..., None]) / s[..., None])
        step -= (step @ share)[..., None]
        slope = step @ (share * (means - mean)) / np.maximum(np.square(step) @ share, np.finfo(np.float64).tiny)
        return mean + slope[..., None] * step

    def residuals(parameters: Array) -> Array:
        return np.sqrt(share) * (means - fitted(parameters[0], np.exp(parameters[1])))

    c, s = (grid.ravel() for grid in np.meshgrid(STEP_CENTRES, STEP_WIDTHS))
    best = np.argmin(np.square(means - fitted(c, s)) @ share)
    widths = np.log(STEP_WIDTHS[[0, -1]]) + np.array([-0.1, 0.5])  # a little beyond where the search starts
    bounds = ([STEP_CENTRES[0] - 1, widths[0]], [STEP_CENTRES[-1] + 1, widths[1]])
    found = least_squares(residuals, [c[best], np.log(s[best])], bounds=bounds, max_nfev=20)
    return fitted(found.x[0], np.exp(found.x[1]))


def _splines(at: Array, means: Array, weight: Array) -> Iterator[tuple[Array, int]]:
    """Cubic splines of each size that the points have room for, (m,), with their number of parameters."""
    for size in KNOTS:
        knots = np.unique(np.quantile(at, np.linspace(0, 1, size)))
        if len(knots) == size and len(at) > 2 * (size + 2):
            padded = np.pad(knots, 3, mode="edge")
            yield make_lsq_spline(at, means, padded, w=np.sqrt(weight))(at), size + 2
