"""Functions of a variable inside a space: what f and g are once they are learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from featgeo.features.spaces import KernelSpace, Space, TableSpace
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.threads import bounded_threads

ROWS_AT_ONCE = 8192


class FeatureFunction(Protocol):
    """Learned features of a variable."""

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k)."""


class LearnedFunction(FeatureFunction, Protocol):
    """Features in order, the strongest first."""

    def first(self, k: int) -> LearnedFunction:
        """The first k of the features."""


@saved
@dataclass(frozen=True, eq=False)
class SpanFunction:
    """An affine function of the features of a space."""

    space: Space
    affine: AffineFeatures

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k); some rows at a time, since a space may have many more features than these."""
        starts = range(0, len(rows), ROWS_AT_ONCE)
        with bounded_threads(rows.cells):
            if len(starts) <= 1:
                return self._values(rows)
            return np.vstack([self._values(rows.take(slice(at, at + ROWS_AT_ONCE))) for at in starts])

    def _values(self, rows: Any) -> Array:
        if isinstance(self.space, KernelSpace):  # the same, without the products of all features in between
            affine = self.affine
            return self.space.times(rows, affine.weight) + (affine.offset - affine.centre @ affine.weight)
        return self.affine(self.space(rows))

    def first(self, k: int) -> SpanFunction:
        """The first k of the features."""
        return replace(self, affine=self.affine.first(k))


@saved
@dataclass(frozen=True, eq=False)
class TableFunction:
    """One value for each symbol of a finite alphabet, (m, k); 0 for symbols that the fit never saw: no change.

    Attributes:
        space: The symbols.
        values: One row each.
        of: The variables of the side that the symbols belong to; all when none is named.
    """

    space: TableSpace
    values: Array
    of: tuple[str, ...] = ()

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k)."""
        return np.vstack([self.values, np.zeros(self.values.shape[1])])[self.space.index(rows.of(*self.of))]

    def first(self, k: int) -> TableFunction:
        """The first k of the features."""
        return replace(self, values=self.values[:, :k])
