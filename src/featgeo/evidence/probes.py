"""Probes: a few functions of a variable, each with a weight, on which dependence would show.

Of a number, the first cosines of its rank; of symbols, one function for each symbol beyond the first; of several
columns together, the leading eigenvectors of their kernel. Probes have mean 0 and variance 1; the smoothest come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.evidence.scored import Ranks, Scored, Symbols
from featgeo.evidence.smoothing import kernel_features, kernel_regression
from featgeo.evidence.terms import cosines_of
from featgeo.geometry.validation import Array

COSINES = 6
MOST_SYMBOLS = 16  # the rarer ones count as one
MOST_PROBES = 12  # of several columns
DETERMINED = 1e-3  # a probe with this share of its variance left is a function of S as far as a regression can tell


@dataclass(frozen=True, eq=False)
class Probes:
    """Functions of a variable.

    Attributes:
        values: Shape (n, k), of mean 0.
        weights: Shape (k,), of their squared correlations in a statistic.
    """

    values: Array
    weights: Array


def probes(columns: Sequence[Scored], n: int, seed: int) -> Probes:
    """Functions of all columns together; the seed is that of the kernel's landmarks."""
    if len(columns) == 1:
        return column_probes(columns[0])
    regression = kernel_regression(kernel_features(columns, n, seed))
    basis = regression.basis(np.arange(min(MOST_PROBES, len(regression.eigenvalues))))
    return Probes(basis.vectors * np.sqrt(n), np.sqrt(basis.eigenvalues / basis.eigenvalues[0]))


def column_probes(column: Scored, cosines: int = COSINES) -> Probes:
    """Functions of one column."""
    if isinstance(column, Ranks):
        order = np.arange(1, cosines + 1)
        return Probes(cosines_of(column.values, cosines), 1.0 / order)
    values = contrasts(column)
    return Probes(values, np.ones(values.shape[1]))


def contrasts(column: Symbols) -> Array:
    """An orthonormal basis of the functions of the symbols that have mean 0, (n, symbols - 1)."""
    counts = np.bincount(column.codes, minlength=column.size)
    order = np.argsort(-counts, kind="stable")
    position = np.empty_like(order)
    position[order] = np.minimum(np.arange(column.size), MOST_SYMBOLS - 1)
    codes = position[column.codes]
    shares = np.bincount(codes) / len(codes)
    # Functions orthogonal to the constant, whose coordinates are the roots of the shares: the rest of a reflection.
    root = np.sqrt(shares)
    reflection = np.eye(len(root)) - np.outer(root + np.eye(len(root))[0], root + np.eye(len(root))[0]) / (1 + root[0])
    return (reflection[:, 1:] / root[:, None])[codes]


def undetermined(left: Array, given: Probes) -> np.ndarray:
    """Which probes S does not determine, as far as a regression can tell from what it leaves of them, (k,)."""
    free: np.ndarray = left.var(axis=0) > DETERMINED * given.values.var(axis=0)
    return free


def scaled(left: Array, given: Probes) -> Array:
    """What is left of probes, with variance 1, times the roots of their weights, (n, k)."""
    return left / left.std(axis=0).clip(min=np.finfo(float).tiny) * np.sqrt(given.weights)
