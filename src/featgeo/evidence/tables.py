"""Independence of two finite alphabets, from their tables of counts: a single one, or one for each stratum.

The statistic is Pearson's, n sum_i sigma_i^2 with sigma_i the strengths of all modes of a table, summed over strata.
Where every expected count is ample it is compared with chi-square; else a two by two table is tested by Fisher's exact
test, any other by orders of the rows within strata, which keep all margins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, fisher_exact

from featgeo.evidence.null import AMPLE_COUNT
from featgeo.evidence.result import Evidence
from featgeo.evidence.scored import Symbols
from featgeo.evidence.shuffling import Shuffling, as_they_are
from featgeo.geometry.validation import Array

_MOST_CELLS = 2**20  # tables with more are counted by sorting, which takes less memory


def table_evidence(x: Symbols, y: Symbols, shuffling: Shuffling, s: Symbols | None = None) -> Evidence:
    """Test the independence of two finite variables, within the strata of s if it is given."""
    strata = s or Symbols(np.zeros(len(x.codes), dtype=np.int64), 1)
    n, size = len(x.codes), np.bincount(strata.codes)
    of_x, of_y = _Margin.of(x, strata), _Margin.of(y, strata)
    expected = of_x.counts / size[strata.codes]  # of each row's cell, but for the count of its y

    def of_orders(orders: np.ndarray) -> Array:
        cells = of_x.cells * y.size + y.codes[orders]
        seen = np.array([_counts(one) for one in cells])
        return np.sum(seen / (expected * of_y.counts[orders]), axis=1) - n

    table = "" if s else f"{x.size} x {y.size} table, "
    if (of_x.fewest * of_y.fewest >= AMPLE_COUNT * size).all():
        statistic, freedom = as_they_are(of_orders, n), int(((of_x.values - 1) * (of_y.values - 1)).sum())
        method = "chi-square within strata" if s else f"{table}chi-square with {freedom} d.f."
        return Evidence(statistic, float(chi2.sf(statistic, freedom)) if freedom else 1.0, method)
    if s is None and x.size == y.size == 2:
        counts = np.bincount(2 * x.codes + y.codes, minlength=4).reshape(2, 2)
        exact = float(fisher_exact(counts).pvalue)
        return Evidence(as_they_are(of_orders, n), exact, f"{table}Fisher's exact test")
    kind = "permutations within strata" if s else "arrangements of the rows"
    return shuffling.evidence(of_orders, strata.groups, f"{table}{{}}{kind}")


@dataclass(frozen=True, eq=False)
class _Margin:
    """How often each value comes in each stratum.

    Attributes:
        cells: The value and stratum of each row, numbered, (n,).
        counts: How many rows have the value and stratum of each row, (n,).
        fewest: The rows of the rarest value in each stratum, (strata,).
        values: How many values come in each stratum, (strata,).
    """

    cells: np.ndarray
    counts: np.ndarray
    fewest: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, x: Symbols, s: Symbols) -> _Margin:
        """Of a variable."""
        seen, cells, counts = np.unique(s.codes * x.size + x.codes, return_inverse=True, return_counts=True)
        stratum = seen // x.size  # in order
        fewest = np.minimum.reduceat(counts, np.searchsorted(stratum, np.arange(s.size)))
        return cls(cells, counts[cells], fewest, np.bincount(stratum))


def _counts(cells: np.ndarray) -> np.ndarray:
    """How many rows are in the cell of each, (n,)."""
    if cells.max() < _MOST_CELLS:
        return np.bincount(cells)[cells]
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return counts[place]
