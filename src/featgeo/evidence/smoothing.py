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

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored
from featgeo.evidence.terms import free_terms
from featgeo.geometry.validation import Array

LANDMARKS = 300
RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue
UNDERSMOOTHING = 2  # steps of the ridge, each a factor of about 3
SINGLE_WIDTHS = (0.3, 1.0)  # of the Gaussian kernels of one column, in normal scores: rows suffice for both
ADDITIVE_WIDTH = 1.0
JOINT_WIDTH = 1.0  # times the root of the number of columns
SYMBOL_DISTANCE = 4.0  # squared, between two symbols
SMALLEST_EIGENVALUE = 1e-9
INDEX_WIDTH, INDEX_SHARE = 0.2, 0.5
NARROW_ROWS = 500  # from so many on, functions along indices may be as narrow as that
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
        left: The share that it leaves of each eigenvector in each target, (r, k).
    """

    values: Array
    left: Array

    def leading(self, k: int) -> Residuals:
        """Those of the first k targets."""
        return Residuals(self.values[:, :k], self.left[:, :k])


def kernel_basis(columns: Sequence[Scored], n: int, rng: np.random.Generator, leading: Array | None = None) -> Basis:
    """The basis of smooth functions of the columns, sums of functions of single columns foremost.

    Args:
        columns: At least one.
        n: Number of rows.
        rng: Of the landmarks.
        leading: Targets, (n, k), for whose sake simple terms go without penalty; none do when None.
    """
    chosen = np.arange(n) if n <= LANDMARKS else rng.permutation(n)[:LANDMARKS]
    free = None if leading is None else free_terms(columns, leading)
    narrow = free is not None and len(columns) > 1 and n >= NARROW_ROWS
    kernel = _kernel(columns, n, chosen, free.indices if free is not None and narrow else ())
    eigenvalues, vectors = eigh(kernel[chosen])
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    features = kernel @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    features -= features.mean(axis=0)
    largest = np.square(features).sum()
    first = np.empty((n, 0)) if free is None else free.values
    features -= first @ (first.T @ features)
    eigenvalues, vectors = eigh(features.T @ features)
    kept = eigenvalues > SMALLEST_EIGENVALUE * largest / features.shape[1]
    eigenvalues, vectors = eigenvalues[kept][::-1], vectors[:, kept][:, ::-1]
    smooth = features @ (vectors / np.sqrt(eigenvalues))
    return Basis(np.hstack([first, smooth]), np.concatenate([np.full(first.shape[1], np.inf), eigenvalues]))


def _kernel(columns: Sequence[Scored], n: int, chosen: np.ndarray, indices: Sequence[Array]) -> Array:
    """Additive and joint Gaussian kernel, and narrow ones along indices, of all rows with the chosen ones, (n, m)."""
    if len(columns) == 1:
        distances = _squared_distances(columns[0], chosen)
        return np.mean([np.exp(-distances / (2 * width**2)) for width in SINGLE_WIDTHS], axis=0)
    additive, total = np.zeros((2, n, len(chosen)))
    for column in columns:
        distances = _squared_distances(column, chosen)
        total += distances
        additive += np.exp(-distances / (2 * ADDITIVE_WIDTH**2)) / len(columns)
    for index in indices:
        scores = ndtri(index)
        additive += INDEX_SHARE * np.exp(-((scores[:, None] - scores[chosen]) ** 2) / (2 * INDEX_WIDTH**2))
    return additive + np.exp(-total / (2 * JOINT_WIDTH**2 * len(columns)))


def _squared_distances(column: Scored, chosen: np.ndarray) -> Array:
    if isinstance(column, Ranks):
        scores = np.nan_to_num(ndtri(column.values))  # a missing number counts as average
        return (scores[:, None] - scores[chosen]) ** 2
    return SYMBOL_DISTANCE * (column.codes[:, None] != column.codes[chosen])


def residuals(basis: Basis, targets: Array) -> Residuals:
    """Targets, centred, less what the basis predicts of them.

    Args:
        basis: From `kernel_basis`.
        targets: Shape (n, k).
    """
    targets = targets - targets.mean(axis=0)
    n = len(targets)
    coefficients = basis.vectors.T @ targets
    ridges = RIDGES * np.max(basis.eigenvalues, where=np.isfinite(basis.eigenvalues), initial=1e-300)
    left = ridges / (basis.eigenvalues[:, None] + ridges)  # (r, ridges)
    explained = (1 - left**2).T @ coefficients**2
    degrees = 1 + (1 - left).sum(axis=0)
    unexplained = np.square(targets).sum(axis=0) - explained
    allowed = (degrees <= MOST_DEGREES * n) | (ridges == ridges[-1])
    criterion = unexplained / (1 - np.minimum(degrees / n, MOST_DEGREES))[:, None] ** 2
    best = np.argmin(np.where(allowed[:, None], criterion, np.inf), axis=0)
    best = np.maximum(best - UNDERSMOOTHING, np.argmax(allowed))
    return Residuals(targets - basis.vectors @ ((1 - left[:, best]) * coefficients), left[:, best])


def variance_ratio(basis: Basis, x: Residuals, y: Residuals, modulating: Array | None = None) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says.

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With A and B
    the squares of the matrices that take targets to residuals, m a function of S that multiplies the products, and
    targets of constant variance given S, the ratio is sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii.

    Args:
        basis: Of both regressions.
        x: Residuals of k functions of X.
        y: Residuals of l functions of Y.
        modulating: Functions m, (n, q); a constant when None.

    Returns:
        Shape (k, l), or (k, l, q).
    """
    n = len(basis.vectors)
    constant = np.full((n, 1), 1 / np.sqrt(n))
    taken_x, taken_y = (np.vstack([np.ones((1, part.left.shape[1])), 1 - part.left**2]) for part in (x, y))
    vectors = np.hstack([constant, basis.vectors])
    diagonal_x, diagonal_y = (1 - np.square(vectors) @ taken for taken in (taken_x, taken_y))
    ratios = []
    # What hardly any of is taken hardly matters.
    seen = np.maximum(taken_x.max(axis=1), taken_y.max(axis=1)) > HARDLY
    for m in constant.T if modulating is None else modulating.T:
        square = np.square(m)
        products = vectors[:, seen].T @ (m[:, None] * vectors[:, seen])
        off = taken_x[seen].T @ np.square(products) @ taken_y[seen]  # sum_ij m_i m_j (1 - A)_ij (1 - B)_ij
        on = square @ (diagonal_x - 1)
        whole = square.sum() + on[:, None] + (square @ (diagonal_y - 1))[None, :] + off
        ratios.append(whole / ((square[:, None] * diagonal_x).T @ diagonal_y))
    return ratios[0] if modulating is None else np.stack(ratios, axis=-1)
