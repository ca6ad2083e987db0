"""X, Y and S as tests given S read them, with what one of them, or a pair, gives to many tests.

A search asks about the same columns again and again. What depends on one variable alone is a property of it (`Side`,
`Condition`), computed where it is first asked for; what a condition finds out about one side is kept by the condition.
Whoever keeps these objects saves the work, and no result depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from featgeo.evidence.kernels import kernel_features, narrow_features
from featgeo.evidence.probes import column_probes, probes
from featgeo.evidence.scored import Scored, Symbols, joint_symbols, same, scored_columns
from featgeo.evidence.smoothing import Residuals, residuals
from featgeo.evidence.terms import SimpleFunctions
from featgeo.features.variables import Table
from featgeo.geometry.validation import Array

MOST_UNORDERED = 3  # values of a number of X or Y; with more, their order counts
NARROW_ROWS = 500  # from so many on, functions along indices may be narrow
MODULATING_COSINES = 2
MODULATION = 1.5  # weight of all functions of S together; the constant has weight 1
MOST_MODULATORS = 16


@dataclass(frozen=True, eq=False)
class Side:
    """X or Y."""

    table: Table

    @cached_property
    def columns(self) -> list[Scored]:
        """Those that vary, for products of residuals."""
        return scored_columns(self.table, MOST_UNORDERED)

    @cached_property
    def finite(self) -> Symbols | None:
        """All columns as one of symbols; None where they take many values."""
        return joint_symbols(self.table)


@dataclass(frozen=True, eq=False)
class Condition(Side):
    """S.

    Attributes:
        seed: Of the kernel's landmarks.
    """

    seed: int
    _left: dict[Side, Residuals | None] = field(default_factory=dict, init=False)

    @cached_property
    def columns(self) -> list[Scored]:
        """Those that vary."""
        return scored_columns(self.table)

    @cached_property
    def simple(self) -> SimpleFunctions:
        """What is simple in it."""
        return SimpleFunctions.of(self.columns, len(self.table))

    @cached_property
    def features(self) -> Array:
        """Of the kernel of its smooth functions, (n, m)."""
        return kernel_features(self.columns, len(self.table), self.seed)

    def left_of(self, side: Side) -> Residuals | None:
        """What S leaves of functions of a side, scaled; None where it determines them all."""
        if side not in self._left:
            columns = [column for column in side.columns if not any(same(column, other) for other in self.columns)]
            self._left[side] = self._regress(columns) if columns else None
        return self._left[side]

    def _regress(self, columns: list[Scored]) -> Residuals | None:
        given = probes(columns, len(self.table), self.seed)
        leading = given.values[:, 0]  # for its sake terms go without penalty
        indices = self.simple.indices(leading)
        narrow = indices if len(self.columns) > 1 and len(self.table) >= NARROW_ROWS else ()
        features = np.hstack([self.features, *map(narrow_features, narrow)])
        left = residuals(features, self.simple.terms(leading, indices), given.values)
        free = given.undetermined(left.values)
        values = given.scaled(left.values)[:, free]
        return Residuals(values, left.vectors, left.taken[:, free], left.of_rows[:, free]) if free.any() else None

    @cached_property
    def modulators(self) -> Array:
        """Functions of S that multiply products of residuals, times the roots of their weights, (n, q)."""
        width = len(self.columns)
        if width > MOST_MODULATORS:
            return self.simple.lines[:, :MOST_MODULATORS] * np.sqrt(MODULATION / MOST_MODULATORS)
        parts = []
        for column in self.columns:
            given = column_probes(column, MODULATING_COSINES)
            weights = given.weights[: MOST_MODULATORS // width]
            parts.append(given.values[:, : len(weights)] * np.sqrt(MODULATION / width * weights / weights.sum()))
        return np.hstack(parts)
