"""Kernels of columns, as features: inner products of the features of two rows are the kernel, as far as landmarks tell.

Many rows share the approximation of Nystroem on a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored
from featgeo.geometry.validation import Array

LANDMARKS = 200  # more take longer, and tell little more of smooth functions
SMALLEST_EIGENVALUE = 1e-8  # of the kernel among landmarks, over the largest: below it is rounding
SINGLE_WIDTHS = (0.3, 1.0)  # of the Gaussian kernels of one column, in normal scores: rows suffice for both
SYMBOL_DISTANCE = 4.0  # squared, between two symbols
INDEX_WIDTH, INDEX_SHARE = 0.2, 0.5
INDEX_GRID = np.arange(-9, 10) * 0.3  # of points along an index, in normal scores: the step is about the width


def kernel_features(columns: Sequence[Scored], n: int, seed: int) -> Array:
    """Features of the kernel of smooth functions of the columns, sums of functions of single columns foremost, (n, m).

    Args:
        columns: At least one.
        n: Number of rows.
        seed: Of the landmarks.
    """
    chosen = landmarks(n, seed)
    if len(columns) == 1:
        distances = _squared_distances(columns[0], chosen)
        return landmark_features(np.sum([gaussian(distances, width) for width in SINGLE_WIDTHS], axis=0), chosen)
    additive, total = np.zeros((2, n, len(chosen)))
    for column in columns:
        distances = _squared_distances(column, chosen)
        additive += gaussian(distances)
        total += distances
    return landmark_features(additive / len(columns) + gaussian(total / len(columns)), chosen)


def landmarks(n: int, seed: int) -> np.ndarray:
    """Some of n rows, at random."""
    return np.arange(n) if n <= LANDMARKS else np.random.default_rng(seed).permutation(n)[:LANDMARKS]


def landmark_features(kernel: Array, chosen: np.ndarray) -> Array:
    """Centred features of a kernel of all rows with the chosen ones, (n, m), (n, at most m)."""
    eigenvalues, vectors = np.linalg.eigh(kernel[chosen])
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    features: Array = kernel @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    return features - features.mean(axis=0)


def narrow_features(index: Array) -> Array:
    """Features of a narrow kernel along an index, (n, m)."""
    features: Array = gaussian(np.square(np.subtract.outer(ndtri(index), INDEX_GRID)), INDEX_WIDTH) @ _grid_root()
    return features - features.mean(axis=0)


@cache
def _grid_root() -> Array:
    """What makes kernels at the points of the grid into features: the inverse root of their own kernel."""
    kernel = gaussian(np.square(np.subtract.outer(INDEX_GRID, INDEX_GRID)), INDEX_WIDTH)
    return np.sqrt(INDEX_SHARE) * np.linalg.inv(np.linalg.cholesky(kernel)).T


def gaussian(squared_distances: Array, width: float = 1.0) -> Array:
    """The kernel of some width, from squared distances."""
    return np.exp(squared_distances / (-2 * width**2))


def _squared_distances(column: Scored, chosen: np.ndarray) -> Array:
    if isinstance(column, Ranks):
        return np.square(np.subtract.outer(column.scores, column.scores[chosen]))
    return SYMBOL_DISTANCE * np.not_equal.outer(column.codes, column.codes[chosen])
