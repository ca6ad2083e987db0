"""X, Y and S as tests given S read them, with what one of them, or a pair, gives to many tests.

A search asks about the same columns again and again. What depends on one variable alone is a property of it (`Side`,
`Condition`), computed where it is first asked for; what a condition finds out about one side is kept by the condition.
Whoever keeps these objects saves the work, and no result depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from featgeo.evidence.probes import column_probes, probes, scaled, undetermined
from featgeo.evidence.scored import Scored, Symbols, joint_symbols, same, scored_columns
from featgeo.evidence.smoothing import Residuals, kernel_features, kernel_regression, narrow_features, residuals
from featgeo.evidence.terms import SimpleFunctions, free_terms
from featgeo.features.variables import Table
from featgeo.geometry.validation import Array

MOST_UNORDERED = 3  # values of a number of X or Y; with more, their order counts
FITTED = 1  # leading probes for whose sake terms go without penalty
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
class Condition:
    """S.

    Attributes:
        table: Its rows.
        seed: Of the kernel's landmarks.
    """

    table: Table
    seed: int
    _left: dict[Side, Residuals | None] = field(default_factory=dict, init=False)

    @cached_property
    def columns(self) -> list[Scored]:
        """Those that vary."""
        return scored_columns(self.table)

    @cached_property
    def strata(self) -> Symbols | None:
        """Its values, where they are few or labels."""
        return joint_symbols(self.table)

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
        leading = given.values[:, :FITTED]
        indices = [index for target in leading.T for index in self.simple.indices(target)]
        narrow = indices if len(self.columns) > 1 and len(self.table) >= NARROW_ROWS else []
        features = np.hstack([self.features, *(narrow_features(index.ranks) for index in narrow)])
        left = residuals(kernel_regression(features, free_terms(self.simple, leading, indices)), given.values)
        free = undetermined(left.values, given)
        return replace(left.of(free), values=scaled(left.values, given)[:, free]) if free.any() else None

    @cached_property
    def modulators(self) -> Array:
        """Functions of S that multiply products of residuals, times the roots of their weights, (n, q)."""
        width = len(self.columns)
        if width > MOST_MODULATORS:
            smooth = kernel_regression(self.features, self.simple.lines)
            position = np.flatnonzero(np.isfinite(smooth.eigenvalues))[:MOST_MODULATORS]
            leading = smooth.basis(position)
            share = leading.eigenvalues / leading.eigenvalues.sum()
            return leading.vectors * np.sqrt(len(self.table) * MODULATION * share)
        parts = [np.empty((len(self.table), 0))]
        for column in self.columns:
            given = column_probes(column, MODULATING_COSINES)
            weights = given.weights[: MOST_MODULATORS // width]
            parts.append(given.values[:, : len(weights)] * np.sqrt(MODULATION / width * weights / weights.sum()))
        return np.hstack(parts)
