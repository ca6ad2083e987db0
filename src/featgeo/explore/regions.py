"""Where two columns meet more often, or less, than they would by chance.

Cells of numbers are joined to a few regions by their rows alone, so that the choice of regions has not seen what the
columns have to do with each other. Under independence, given both margins, the rows in a region are hypergeometric; the
tail of that law is exact for regions of any size, and is multiplied by how many regions were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from featgeo.explore.cells import OTHERS, Cells
from featgeo.explore.tails import hypergeometric_tails
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_REGIONS = 8  # of a number: more do not fit into a table that people read
SHORT = 3  # digits of their ends, more where they would be the same


@dataclass(frozen=True, eq=False)
class Regions:
    """Cells of a column, joined.

    Attributes:
        names: What to call each region.
        of_cell: The region of each cell that holds values, (n_values,).
    """

    names: tuple[str, ...]
    of_cell: np.ndarray

    @classmethod
    def of(cls, column: Cells, rows: Array) -> Regions:
        """Neighbours of numbers and dates are joined, about as many rows in each; of labels, those that are rarest.

        Args:
            column: The cells.
            rows: Of each cell that holds values, (n_values,).
        """
        if column.kind == "label":
            most = in_force.get().finite_values
            of_cell = np.minimum(np.arange(column.n_values), most)
            return cls((*column.labels, OTHERS)[:most] + (OTHERS,) * (column.n_values > most), of_cell)
        seen = np.flatnonzero(rows)
        middle = (np.cumsum(rows) - rows / 2) / max(rows.sum(), 1)
        part = np.arange(len(rows)) if len(seen) <= MOST_REGIONS else np.floor(middle.clip(0, 1 - 1e-9) * MOST_REGIONS)
        own, of_cell = np.unique(part, return_inverse=True)
        last = np.flatnonzero(np.diff(of_cell, append=len(own)))
        return cls(tuple(column.run_names(last, fewest=SHORT)), of_cell)

    def summed(self, table: Array) -> Array:
        """Sums over the cells of each region, along the first axis."""
        result = np.zeros((len(self.names), *table.shape[1:]))
        np.add.at(result, self.of_cell, table)
        return result


def expected_rows(table: Array) -> Array:
    """Rows of each region if the two were independent, from a table of counts, (A, B)."""
    return np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1.0)


def residuals(table: Array) -> Array:
    """(observed - expected) over its standard deviation under independence, (A, B); 0 where it has none."""
    spread = _spread(table)
    return np.divide(table - expected_rows(table), spread, out=np.zeros(table.shape), where=spread > 0)


def _spread(table: Array) -> Array:
    n = max(table.sum(), 1.0)
    rest = np.outer(1 - table.sum(axis=1) / n, 1 - table.sum(axis=0) / n)
    return np.sqrt(expected_rows(table) * rest * n / max(n - 1, 1.0))


def residual_bound(n_regions: int) -> float:
    """How large the largest of so many standardised residuals may be by chance, at the confidence in force."""
    return float(-ndtri((1 - in_force.get().confidence) / (2 * max(n_regions, 1))))


def adjusted_pvalues(table: Array) -> Array:
    """That a region holds so many, or so few, rows by chance, times how many regions there are, (A, B)."""
    of_a, of_b = np.broadcast_arrays(table.sum(axis=1)[:, None], table.sum(axis=0))
    varies = _spread(table) > 0
    result = np.ones(table.shape)
    tails, _ = hypergeometric_tails(table[varies], of_a[varies], of_b[varies], np.full(varies.sum(), table.sum()))
    result[varies] = np.minimum(2 * varies.sum() * tails, 1.0)
    return result
