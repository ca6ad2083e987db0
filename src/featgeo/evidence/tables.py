"""Independence of two finite alphabets, from their tables of counts: a single one, or one for each stratum.

The statistic is Pearson's, n sum_i sigma_i^2 with sigma_i the strengths of all modes of a table, summed over strata.
Where every expected count is ample it is compared with chi-square; else a two by two table is tested by Fisher's exact
test, any other by orders of the rows within strata, which keep all margins.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, fisher_exact

from featgeo.evidence.null import AMPLE_COUNT
from featgeo.evidence.scored import Symbols
from featgeo.evidence.shuffling import Evidence, Limit, Shuffling
from featgeo.geometry.validation import Array

_MOST_CELLS = 2**20  # tables with more are counted by sorting, which takes less memory


def table_evidence(x: Symbols, y: Symbols, shuffling: Shuffling, s: Symbols | None = None) -> Evidence:
    """Test the independence of two finite variables, within the strata of s if it is given."""
    strata = s or Symbols(np.zeros(len(x.codes), dtype=np.int64), 1)
    of_s, inside = np.bincount(strata.codes), strata.codes * x.size + x.codes
    of_x, of_y = _counts(inside), _counts(strata.codes * y.size + y.codes)

    def of_orders(orders: np.ndarray) -> Array:
        seen = np.array([_counts(cells) for cells in inside * y.size + y.codes[orders]])
        return np.sum(seen * (of_s[strata.codes] / of_x) / of_y[orders], axis=1) - len(inside)

    fewest, values = np.ones((2, len(of_s)))
    for counts in (of_x, of_y):  # of each row
        rarest = np.full(len(of_s), np.inf)
        np.minimum.at(rarest, strata.codes, counts)
        fewest *= rarest
        values *= np.bincount(strata.codes, 1 / counts) - 1  # every value adds up to one
    limit: Limit | None = None
    if (fewest >= AMPLE_COUNT * of_s).all():
        freedom = round(values.sum())
        named = "chi-square within strata" if s else f"chi-square with {freedom} d.f."
        limit = (chi2(freedom).sf if freedom else lambda statistic: 1.0, named)
    elif s is None and x.size == y.size == 2:
        exact = fisher_exact(np.bincount(2 * x.codes + y.codes, minlength=4).reshape(2, 2)).pvalue
        limit = (lambda statistic: exact, "Fisher's exact test")
    return shuffling.evidence(of_orders, strata.groups, "" if s else f"{x.size} x {y.size} table, ", limit)


def _counts(cells: np.ndarray) -> np.ndarray:
    """How many rows are in the cell of each, (n,)."""
    if cells.max() < _MOST_CELLS:
        return np.bincount(cells)[cells]
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return counts[place]
