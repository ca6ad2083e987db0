"""Regression on the condition S: kernel ridge regression in the eigenvectors of the kernel.

With K = U diag(lambda) U^T the centred kernel matrix of S, a target t is predicted by U diag(lambda / (lambda + ridge))
U^T t: one decomposition serves every target and every ridge. The ridge of each target is a tenth of the one that
minimises its generalised cross-validation: that one balances the error's variance, which products of residuals forgive,
with its bias, which X and Y may have in common. Many rows share the kernel's Nystroem approximation on a few hundred of
them.

What is simple and often there goes without any penalty (`featgeo.evidence.terms`), as eigenvectors of infinite
eigenvalue: a kernel on a few hundred rows would miss most of many labels, and a penalty would leave a share of the same
function in X and Y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored
from featgeo.geometry.validation import Array

LANDMARKS = 200
RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue
UNDERSMOOTHING = 2  # steps of the ridge, each a factor of about 3
SINGLE_WIDTHS = (0.3, 1.0)  # of the Gaussian kernels of one column, in normal scores: rows suffice for both
ADDITIVE_WIDTH = 1.0
JOINT_WIDTH = 1.0  # times the root of the number of columns
SYMBOL_DISTANCE = 4.0  # squared, between two symbols
SMALLEST_EIGENVALUE = 1e-8
INDEX_WIDTH, INDEX_SHARE = 0.2, 0.5
INDEX_REACH, INDEX_STEP = 2.7, 0.3  # of the grid along an index, in normal scores: the step is about the width
HARDLY = 0.05  # share of an eigenvector that a regression takes out
MOST_DEGREES = 0.5  # of freedom, over n: beyond it cross-validation mistakes interpolation for a good fit


@dataclass(frozen=True, eq=False)
class Basis:
    """Eigenvectors of a kernel over the rows.

    Attributes:
        vectors: Orthonormal and orthogonal to constants, (n, r), the largest eigenvalue first.
        eigenvalues: Shape (r,); infinite for terms without penalty.
    """

    vectors: Array
    eigenvalues: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a regression leaves of its targets.

    Attributes:
        values: Shape (n, k).
        vectors: The constant and the eigenvectors of which it takes out more than hardly any, orthonormal, (n, r).
        taken: The share that it takes out of the variance of each of them in each target, (r, k).
        of_rows: The share that it takes out of the variance of each row in each target, (n, k).
    """

    values: Array
    vectors: Array
    taken: Array
    of_rows: Array

    def of(self, which: np.ndarray | slice) -> Residuals:
        """Those of some of the targets."""
        return Residuals(self.values[:, which], self.vectors, self.taken[:, which], self.of_rows[:, which])


@dataclass(frozen=True, eq=False)
class Regression:
    """Regression on the span of some features, those of the kernel, beside terms that go without penalty.

    What the terms leave of the features has the eigenvectors `functions(identity)`, which are never written out for
    all: few of them matter to any target.

    Attributes:
        free: Terms without penalty, orthonormal and orthogonal to constants, (n, q).
        features: Centred, (n, m); inner products of their rows are the kernel.
        within: Coordinates of the features along the terms, (q, m).
        rotation: From coordinates along eigenvectors to the features, (m, r).
        eigenvalues: Shape (q + r,), infinite for the terms, then the largest first.
    """

    free: Array
    features: Array
    within: Array
    rotation: Array
    eigenvalues: Array

    def coordinates(self, targets: Array) -> Array:
        """Along the terms and the eigenvectors, (n, k) to (q + r, k)."""
        first = self.free.T @ targets
        return np.vstack([first, self.rotation.T @ (self.features.T @ targets - self.within.T @ first)])

    def functions(self, coordinates: Array) -> Array:
        """The functions of these coordinates, (q + r, k) to (n, k)."""
        q = len(self.within)
        rest = self.rotation @ coordinates[q:]
        values: Array = self.free @ (coordinates[:q] - self.within @ rest) + self.features @ rest
        return values

    def basis(self, which: np.ndarray) -> Basis:
        """Some of the eigenvectors, by position or by mask."""
        return Basis(
            self.functions(np.eye(len(self.eigenvalues), dtype=self.rotation.dtype)[:, which]), self.eigenvalues[which]
        )

    @property
    def rounded(self) -> Regression:
        """The same in single precision, which takes half the time where six digits are enough."""
        parts: list[Any] = [part.astype(np.float32) for part in (self.free, self.features, self.within, self.rotation)]
        free, features, within, rotation = parts
        return Regression(free, features, within, rotation, self.eigenvalues)


def kernel_features(columns: Sequence[Scored], n: int, seed: int) -> Array:
    """Features of the kernel of smooth functions of the columns, sums of functions of single columns foremost, (n, m).

    Args:
        columns: At least one.
        n: Number of rows.
        seed: Of the landmarks.
    """
    chosen = np.arange(n) if n <= LANDMARKS else np.random.default_rng(seed).permutation(n)[:LANDMARKS]
    kernel = _kernel(columns, n, chosen)
    eigenvalues, vectors = np.linalg.eigh(kernel[chosen])
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    features: Array = kernel @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    return features - features.mean(axis=0)


def narrow_features(index: Array) -> Array:
    """Features of a narrow kernel along an index, (n, m)."""
    grid, root = _grid()
    distances = np.subtract.outer(ndtri(index), grid)
    features: Array = np.exp(-np.square(distances) / (2 * INDEX_WIDTH**2)) @ root
    return features - features.mean(axis=0)


@cache
def _grid() -> tuple[Array, Array]:
    """Points along normal scores, and what makes kernels at these into features: the inverse root of their kernel."""
    grid = np.arange(-INDEX_REACH, INDEX_REACH + INDEX_STEP / 2, INDEX_STEP)
    kernel = np.exp(-np.square(np.subtract.outer(grid, grid)) / (2 * INDEX_WIDTH**2))
    return grid, np.sqrt(INDEX_SHARE) * np.linalg.inv(np.linalg.cholesky(kernel)).T


def kernel_regression(features: Array, free: Array | None = None) -> Regression:
    """The regression on centred features, (n, m), beside terms without penalty, (n, q), if any."""
    free = np.empty((len(features), 0)) if free is None else free
    within = free.T @ features
    gram = features.T @ features
    eigenvalues, vectors = np.linalg.eigh(gram - within.T @ within)
    # Of the others no ridge takes out more than hardly any; and what is close to rounding is nothing.
    rounding = np.finfo(float).eps * np.trace(gram)
    kept = eigenvalues > max(HARDLY * RIDGES[0] * eigenvalues[-1], 1e3 * rounding)
    eigenvalues, vectors = eigenvalues[kept][::-1], vectors[:, kept][:, ::-1]
    every = np.concatenate([np.full(free.shape[1], np.inf), eigenvalues])
    return Regression(free, features, within, vectors / np.sqrt(eigenvalues), every)


def _kernel(columns: Sequence[Scored], n: int, chosen: np.ndarray) -> Array:
    """Additive and joint Gaussian kernel of all rows with the chosen ones, (n, m)."""
    if len(columns) == 1:
        distances = _squared_distances(columns[0], chosen)
        return np.mean([np.exp(-distances / (2 * width**2)) for width in SINGLE_WIDTHS], axis=0)
    additive, total = np.zeros((2, n, len(chosen)))
    for column in columns:
        distances = _squared_distances(column, chosen)
        total += distances
        additive += np.exp(-distances / (2 * ADDITIVE_WIDTH**2)) / len(columns)
    return additive + np.exp(-total / (2 * JOINT_WIDTH**2 * len(columns)))


def _squared_distances(column: Scored, chosen: np.ndarray) -> Array:
    if isinstance(column, Ranks):
        scores = np.nan_to_num(ndtri(column.values))  # a missing number counts as average
        return (scores[:, None] - scores[chosen]) ** 2
    return SYMBOL_DISTANCE * (column.codes[:, None] != column.codes[chosen])


def residuals(regression: Regression, targets: Array) -> Residuals:
    """Targets, centred, less what the regression predicts of them.

    Args:
        regression: On S.
        targets: Shape (n, k).
    """
    targets = targets - targets.mean(axis=0)
    n, eigenvalues = len(targets), regression.eigenvalues
    coefficients = regression.coordinates(targets)
    ridges = RIDGES * np.max(eigenvalues, where=np.isfinite(eigenvalues), initial=1e-300)
    left = ridges / (eigenvalues[:, None] + ridges)  # (r, ridges)
    explained = (1 - left**2).T @ coefficients**2
    degrees = 1 + (1 - left).sum(axis=0)
    unexplained = np.square(targets).sum(axis=0) - explained
    allowed = (degrees <= MOST_DEGREES * n) | (ridges == ridges[-1])
    criterion = unexplained / (1 - np.minimum(degrees / n, MOST_DEGREES))[:, None] ** 2
    best = np.argmin(np.where(allowed[:, None], criterion, np.inf), axis=0)
    best = np.maximum(best - UNDERSMOOTHING, np.argmax(allowed))
    values = targets - regression.functions((1 - left[:, best]) * coefficients)
    taken = 1 - left[:, best] ** 2
    seen = taken.max(axis=1) > HARDLY
    # Single precision takes half the time, and six digits are enough for variances.
    vectors = np.hstack([np.full((n, 1), 1 / np.sqrt(n), np.float32), regression.rounded.basis(seen).vectors])
    taken = np.vstack([np.ones((1, len(best))), taken[seen]])
    of_rows = (np.square(vectors) @ taken.astype(np.float32)).astype(np.float64)
    return Residuals(values, vectors, taken, of_rows)


def variance_ratio(x: Residuals, y: Residuals, modulating: Array | None = None) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says.

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With A and B
    the squares of the matrices that take targets to residuals, m a function of S that multiplies the products, and
    targets of constant variance given S, the ratio is sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii.

    Args:
        x: Residuals of k functions of X.
        y: Residuals of l functions of Y.
        modulating: Functions m, (n, q); a constant when None.

    Returns:
        Shape (k, l), or (k, l, q).
    """
    if modulating is None:
        ratios: Array = variance_ratio(x, y, np.ones((len(x.values), 1)))[:, :, 0]
        return ratios
    squares = np.square(modulating)
    # A is the identity less the vectors, each by the share of it that is taken.
    once = squares.sum(axis=0) - (x.of_rows.T @ squares)[:, None] - y.of_rows.T @ squares
    pairs = (x.of_rows[:, :, None] * y.of_rows[:, None, :]).reshape(len(squares), -1)
    both = (pairs.T @ squares).reshape(*once.shape[:2], -1)
    off = np.empty_like(both)
    for q, m in enumerate(modulating.T.astype(x.vectors.dtype)):
        products = (x.vectors * m[:, None]).T @ y.vectors
        off[:, :, q] = x.taken.T @ np.square(products) @ y.taken  # sum_ij m_i m_j (1 - A)_ij (1 - B)_ij
    shares: Array = (once + off) / (once + both)
    return shares
