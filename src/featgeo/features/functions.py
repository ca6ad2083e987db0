"""Functions of a variable inside a space: what f and g are once they are learned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from featgeo.features.space import Space
from featgeo.features.spaces import TableSpace
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.threads import bounded_threads

FeatureFunction = Callable[[Any], Array]  # from rows to values at each, (n, k)


class LearnedFunction(Space):
    """Features in order, the strongest first."""

    @abstractmethod
    def first(self, k: int) -> LearnedFunction:
        """The first k of the features."""


@saved
@dataclass(eq=False, repr=False)
class SpanFunction(LearnedFunction):
    """An affine function of the features of a space."""

    in_chunks = True
    space: Space
    affine: AffineFeatures

    def __post_init__(self) -> None:
        self.centre, self.weight, self.offset = self.affine.centre, self.affine.weight, self.affine.offset
        self.to(self.space.device)

    def forward(self, rows: Any) -> Tensor:
        """Values at each row, (n, k)."""
        return self.space.mapped(rows, *map(self.tensor, ("centre", "weight", "offset")))

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k)."""
        with bounded_threads(rows.cells):
            return super().__call__(rows)

    def first(self, k: int) -> SpanFunction:
        """The first k of the features."""
        return replace(self, affine=self.affine.first(k))


@saved
@dataclass(eq=False, repr=False)
class TableFunction(LearnedFunction):
    """One value for each symbol of a finite alphabet, (m, k); 0 for symbols that the fit never saw: no change.

    Attributes:
        space: The symbols.
        values: One row each.
        of: The variables of the side that the symbols belong to; all when none is named.
    """

    space: TableSpace
    values: Array
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.or_zero = np.vstack([self.values, np.zeros(self.values.shape[1])])

    def forward(self, rows: Any) -> Tensor:
        """Values at each row, (n, k)."""
        return self.tensor("or_zero")[self.space.position(rows.of(*self.of))]

    def first(self, k: int) -> TableFunction:
        """The first k of the features."""
        return replace(self, values=self.values[:, :k])
