"""Probes: a few functions of a variable, each with a weight, on which dependence would show.

Of a number, the first cosines of its rank; of symbols, one function for each symbol beyond the first; of several
columns together, the leading components of their kernel. Probes have mean 0 and variance 1; the smoothest come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.evidence.ladders import kernel_components
from featgeo.evidence.scored import Ranks, Scored, Symbols, cosines_of, indicators, orthonormal
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

    def undetermined(self, left: Array) -> np.ndarray:
        """Which probes S does not determine, as far as a regression can tell from what it leaves of them, (k,)."""
        free: np.ndarray = left.var(axis=0) > DETERMINED * self.values.var(axis=0)
        return free

    def scaled(self, left: Array) -> Array:
        """What is left of the probes, with variance 1, times the roots of their weights, (n, k)."""
        return left / left.std(axis=0).clip(min=np.finfo(float).tiny) * np.sqrt(self.weights)


def probes(columns: Sequence[Scored], n: int, seed: int) -> Probes:
    """Functions of all columns together; the seed is that of the kernel's landmarks."""
    if len(columns) == 1:
        return column_probes(columns[0], COSINES)
    components, energies = kernel_components(columns, n, seed)
    return Probes(components[:, :MOST_PROBES], np.sqrt(energies / energies[0])[:MOST_PROBES])


def column_probes(column: Scored, cosines: int) -> Probes:
    """Functions of one column."""
    if isinstance(column, Ranks):
        return Probes(cosines_of(column.values, cosines), 1.0 / np.arange(1, cosines + 1))
    values = contrasts(column)
    return Probes(values, np.ones(values.shape[1]))


def contrasts(column: Symbols) -> Array:
    """An orthonormal basis of the functions of the symbols that have mean 0, (n, symbols - 1)."""
    return orthonormal(indicators(column, min(column.size, MOST_SYMBOLS) - 1))[0]
