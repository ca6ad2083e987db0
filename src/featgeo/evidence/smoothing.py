"""Regression on the condition S: kernel ridge regression in the eigenvectors of the kernel.

With K = U diag(lambda) U^T the centred kernel matrix of S, a target t is predicted by U diag(lambda / (lambda + ridge))
U^T t: one decomposition serves every target and every ridge. The ridge of each target is a tenth of the one that
minimises its generalised cross-validation: that one balances the error's variance, which products of residuals forgive,
with its bias, which X and Y may have in common. Many rows share the kernel's Nystroem approximation on a few hundred of
them.

What is simple and often there goes without any penalty, as eigenvectors of infinite eigenvalue: lines in the normal
score of each number, the mean of each label, and waves along the best combination of these for X and for Y. A kernel on
a few hundred rows would miss most of many labels, and a penalty would leave a share of the same function in X and Y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored, ranks
from featgeo.geometry.validation import Array

LANDMARKS = 300
RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue
UNDERSMOOTHING = 2  # steps of the ridge, each a factor of about 3
SINGLE_WIDTHS = (0.3, 1.0)  # of the Gaussian kernels of one column, in normal scores: rows suffice for both
ADDITIVE_WIDTH = 1.0
JOINT_WIDTH = 1.0  # times the root of the number of columns
SYMBOL_DISTANCE = 4.0  # squared, between two symbols
SMALLEST_EIGENVALUE = 1e-9
COLLINEAR = 1e-8
WAVES = 5  # half-waves along a fit
MOST_FREE = 0.25  # terms without penalty, over n; beyond it the rarest labels of a column count as one
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


def kernel_basis(columns: Sequence[Scored], n: int, rng: np.random.Generator, leading: Array | None = None) -> Basis:
    """The basis of smooth functions of the columns, sums of functions of single columns foremost.

    Args:
        columns: At least one.
        n: Number of rows.
        rng: Of the landmarks.
        leading: Targets, (n, k), for whose sake simple terms go without penalty; none do when None.
    """
    chosen = np.arange(n) if n <= LANDMARKS else rng.permutation(n)[:LANDMARKS]
    kernel = _kernel(columns, n, chosen)
    eigenvalues, vectors = eigh(kernel[chosen])
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    features = kernel @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    features -= features.mean(axis=0)
    largest = np.square(features).sum()
    first = np.empty((n, 0)) if leading is None else _free_terms(columns, leading)
    features -= first @ (first.T @ features)
    eigenvalues, vectors = eigh(features.T @ features)
    kept = eigenvalues > SMALLEST_EIGENVALUE * largest / features.shape[1]
    eigenvalues, vectors = eigenvalues[kept][::-1], vectors[:, kept][:, ::-1]
    smooth = features @ (vectors / np.sqrt(eigenvalues))
    return Basis(np.hstack([first, smooth]), np.concatenate([np.full(first.shape[1], np.inf), eigenvalues]))


def _free_terms(columns: Sequence[Scored], leading: Array) -> Array:
    """Orthonormal terms without penalty, orthogonal to constants, (n, r).

    Lines in numbers and indicators of labels; and waves along the best such fit of each leading target, since many
    variables follow one combination of others, in whatever way.
    """
    n = len(leading)
    most = max(1, int(MOST_FREE * n / len(columns)))
    parts = []
    for column in columns:
        if isinstance(column, Ranks):
            parts.append(np.nan_to_num(ndtri(column.values))[:, None])
            continue
        frequent = np.argsort(-np.bincount(column.codes), kind="stable")[: min(column.size - 1, most)]
        parts.append((column.codes[:, None] == frequent).astype(np.float64))
    straight = _orthonormal(np.hstack(parts))
    fits = straight @ (straight.T @ leading)
    waves = [cosines_of(ranks(fit), WAVES) for fit in fits.T]
    return _orthonormal(np.hstack([straight, *waves]))


def _orthonormal(terms: Array) -> Array:
    """A basis of the span of centred terms, (n, r)."""
    n = len(terms)
    terms = (terms - terms.mean(axis=0)) / terms.std(axis=0).clip(min=1e-12)
    energies, directions = eigh(terms.T @ terms / n)
    kept = energies > COLLINEAR
    return terms @ (directions[:, kept] / np.sqrt(energies[kept] * n))


def cosines_of(ranks: Array, count: int) -> Array:
    """sqrt(2) cos(pi k r) for k = 1, ..., count, (n, count): orthonormal functions of a rank r; 0 where missing."""
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))))


def _kernel(columns: Sequence[Scored], n: int, chosen: np.ndarray) -> Array:
    """Half additive, half joint Gaussian kernel between all rows and the chosen ones, (n, m)."""
    if len(columns) == 1:
        distances = _squared_distances(columns[0], chosen)
        return np.mean([np.exp(-distances / (2 * width**2)) for width in SINGLE_WIDTHS], axis=0)
    additive, total = np.zeros((2, n, len(chosen)))
    for column in columns:
        distances = _squared_distances(column, chosen)
        total += distances
        additive += np.exp(-distances / (2 * ADDITIVE_WIDTH**2)) / len(columns)
    return (additive + np.exp(-total / (2 * JOINT_WIDTH**2 * len(columns)))) / 2


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


def variance_ratio(basis: Basis, x: Residuals, y: Residuals) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says, (k_x, k_y).

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With M_x and
    M_y the matrices that take targets to residuals, and targets of constant variance given S, the ratio is
    tr(M_x^2 M_y^2) over sum_i (M_x^2)_ii (M_y^2)_ii.
    """
    n, r = basis.vectors.shape
    squared_x, squared_y = x.left**2, y.left**2
    diagonal_x, diagonal_y = (1 - 1 / n - basis.vectors**2 @ (1 - left) for left in (squared_x, squared_y))
    return (n - 1 - r + squared_x.T @ squared_y) / (diagonal_x.T @ diagonal_y)
