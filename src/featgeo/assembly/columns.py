"""One column of a Y of several: the rows of the support, gathered by the value that they have there.

Its distribution is what the joint one leaves when all other columns are summed over. Where a column takes many numbers,
these are gathered into neighbourhoods, as those of a single number are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from featgeo.assembly.links import Link, Support
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows by the value of one column.

    Attributes:
        support: The values of the column, with their prior mass.
        order: Positions of the rows, those of a value beside each other, (rows,).
        starts: Where each value begins in that order, (m,).
    """

    support: Support
    order: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, rows: Support, column: int) -> Gathered:
        """Gather the rows of a support of vectors."""
        values = np.array(rows.values[:, column].tolist())
        distinct, place = np.unique(values, return_inverse=True)
        order = np.argsort(place, kind="stable")
        is_number = values.dtype.kind in "iuf"
        if is_number and len(distinct) > in_force.get().finite_values:  # such rows are a sample, all of one mass
            support = Support.of_numbers(values[order].astype(np.float64), lambda some: np.empty((len(some), 0)))
            return cls(support, order, _starts(np.rint(support.mass * len(values))))
        mass: Array = np.bincount(place, rows.mass).astype(np.float64)
        support = Support("numbers" if is_number else "labels", distinct, mass, np.empty((len(mass), 0)))
        return cls(support, order, _starts(np.bincount(place)))


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)


@dataclass(frozen=True, eq=False)
class ColumnLink(Link):
    """Probabilities of the values of a column, from those of whole rows.

    Attributes:
        of_rows: From features to probabilities of the rows, (n, rows).
        gathered: Which rows have which value.
    """

    of_rows: Callable[[Any], Array]
    gathered: Gathered

    def ratio(self, f: Any, support: Support) -> Array:
        """Over the prior of the column."""
        mass = np.add.reduceat(self.of_rows(f)[:, self.gathered.order], self.gathered.starts, axis=1)
        return mass / support.mass
