"""Independence of two finite alphabets, from their table of counts.

The statistic is Pearson's, n sum_i sigma_i^2, with sigma_i the strengths of all modes of the table. Where every
expected count is at least five it is compared with chi-square; below that a two by two table is tested by Fisher's
exact test, any other table by arrangements of the rows, which keep both margins.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, fisher_exact

from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import permutation_evidence
from featgeo.geometry.validation import Array

AMPLE_COUNT = 5
_MOST_CELLS = 2**20  # larger tables are counted by sorting


def table_evidence(x: np.ndarray, y: np.ndarray, n_permutations: int, rng: np.random.Generator) -> Evidence:
    """Test the independence of two variables by the positions of their symbols, (n,) and (n,)."""
    n, of_x, of_y = len(x), np.bincount(x), np.bincount(y)
    shape = len(of_x), len(of_y)
    name = f"{shape[0]} x {shape[1]} table"
    statistic = pearson(x, y, of_x, of_y)
    if of_x.min() * of_y.min() >= AMPLE_COUNT * n:
        freedom = (shape[0] - 1) * (shape[1] - 1)
        return Evidence(statistic, float(chi2.sf(statistic, freedom)), f"{name}, chi-square with {freedom} d.f.")
    if shape == (2, 2):
        counts = np.bincount(2 * x + y, minlength=4).reshape(2, 2)
        return Evidence(statistic, float(fisher_exact(counts).pvalue), f"{name}, Fisher's exact test")

    def of_orders(orders: np.ndarray) -> Array:
        return np.array([pearson(x, y[order], of_x, of_y) for order in orders])

    return permutation_evidence(of_orders, n, n_permutations, rng, name)


def pearson(x: np.ndarray, y: np.ndarray, of_x: np.ndarray, of_y: np.ndarray) -> float:
    """Pearson's statistic: n (sum of count^2 / (count of x count of y) - 1) over the cells."""
    n, width = len(x), len(of_y)
    if len(of_x) * width <= _MOST_CELLS:
        counts = np.bincount(x * width + y, minlength=len(of_x) * width).reshape(len(of_x), width)
        share = np.sum(counts**2 / np.multiply.outer(of_x, of_y.astype(np.float64)))
    else:
        small = np.int32 if len(of_x) * width < 2**31 else np.int64  # sorts in half the time
        cells = np.sort((x * width + y).astype(small))
        first = np.flatnonzero(np.diff(cells, prepend=-1))
        seen, cells = np.diff(first, append=n), cells[first]
        share = np.sum(seen**2 / (of_x[cells // width] * of_y[cells % width].astype(np.float64)))
    return float(n * (share - 1))
