"""X, Y and S as tests given S read them, with what one of them, or a pair, gives to many tests.

X and Y are read through *probes*: a few functions on which dependence would show, each with a weight. Of a number, the
first cosines of its rank; of symbols, one function for each symbol beyond the first; of several columns together, the
leading components of their kernel. Probes have mean 0 and variance 1; the smoothest come first.

A search asks about the same columns again and again. What depends on one variable alone is a property of it (`Side`,
`Condition`), computed where it is first asked for; what a condition finds out about one side is kept by the condition.
Whoever keeps these objects saves the work, and no result depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from featgeo.evidence.ladders import kernel_components
from featgeo.evidence.regression import Residuals, curves_of, free_terms, index_of, lines_of, residuals
from featgeo.evidence.scored import (
    Ranks,
    Scored,
    Symbols,
    cosines_of,
    indicators,
    joint_symbols,
    kernel_features,
    narrow_features,
    orthonormal,
    same,
    scored_columns,
)
from featgeo.features.variables import Table
from featgeo.geometry.validation import Array

COSINES = 6  # of a number, and twice as many functions of several columns
MOST_SYMBOLS = 16  # of a column, the rarer ones count as one; and functions of S, at most
DETERMINED = 1e-3  # a probe with this share of its variance left is a function of S as far as a regression can tell
MOST_UNORDERED = 3  # values of a number of X or Y; with more, their order counts
NARROW_ROWS = 500  # from so many on, functions along indices may be narrow
MODULATING_COSINES = 2  # of each column of S: where a dependence changes, it does so smoothly
MODULATION = 1.5  # weight of all functions of S together; the constant has weight 1


@dataclass(frozen=True, eq=False)
class Probes:
    """Functions of a variable.

    Attributes:
        values: Shape (n, k), of mean 0.
        weights: Shape (k,), of their squared correlations in a statistic.
    """

    values: Array
    weights: Array

    def scaled(self, left: Array) -> tuple[Array, np.ndarray]:
        """What a regression on S leaves of the probes that S does not determine, and which these are, (k,).

        They have variance 1, times the roots of their weights, (n, at most k).
        """
        spread = left.std(axis=0)
        free = np.square(spread) > DETERMINED * self.values.var(axis=0)
        return left[:, free] / spread[free] * np.sqrt(self.weights[free]), free


def probes(columns: Sequence[Scored], n: int, seed: int) -> Probes:
    """Functions of all columns together; the seed is that of the kernel's landmarks."""
    if len(columns) == 1:
        return column_probes(columns[0], COSINES)
    components, energies = kernel_components(columns, n, seed)
    return Probes(components[:, : 2 * COSINES], np.sqrt(energies / energies[0])[: 2 * COSINES])


def column_probes(column: Scored, cosines: int) -> Probes:
    """Functions of one column."""
    if isinstance(column, Ranks):
        return Probes(cosines_of(column.values, cosines), 1.0 / np.arange(1, cosines + 1))
    values = contrasts(column)
    return Probes(values, np.ones(values.shape[1]))


def contrasts(column: Symbols) -> Array:
    """An orthonormal basis of the functions of the symbols that have mean 0, (n, symbols - 1)."""
    return orthonormal(indicators(column, min(column.size, MOST_SYMBOLS) - 1))[0]


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
    def numbers(self) -> list[Array]:
        """Ranks along each column that is a number, (n,)."""
        return [column.values for column in self.columns if isinstance(column, Ranks)]

    @cached_property
    def lines(self) -> Array:
        """An orthonormal basis of its lines and labels, (n, r)."""
        return lines_of(self.columns, len(self.table))

    @cached_property
    def curves(self) -> Array | None:
        """One of lines and curves of single columns, (n, c); None where rows are too few for it."""
        return curves_of(self.lines, self.numbers, len(self.table) // len(self.columns))

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

    def indices(self, target: Array) -> list[Array]:
        """Ranks along the combinations of columns that a target, (n,), follows: of lines, and of sums of curves."""
        if len(self.columns) == 1 and self.numbers:
            return self.numbers
        straight = index_of(self.lines, target, even=True)
        return [straight] if self.curves is None else [straight, index_of(self.curves, target, even=False)]

    def _regress(self, columns: list[Scored]) -> Residuals | None:
        n, width = len(self.table), len(self.columns)
        given = probes(columns, n, self.seed)
        leading = given.values[:, 0]  # for its sake terms go without penalty
        indices = self.indices(leading)
        features = [self.features, *map(narrow_features, indices if width > 1 and n >= NARROW_ROWS else ())]
        terms = free_terms(self.lines, self.numbers, indices, leading, width)
        left = residuals(np.hstack(features), terms, given.values)
        values, free = given.scaled(left.values)
        return Residuals(values, left.vectors, left.taken[:, free], left.of_rows[:, free]) if free.any() else None

    @cached_property
    def modulators(self) -> Array:
        """Functions of S that multiply products of residuals, times the roots of their weights, (n, q)."""
        width = len(self.columns)
        if width > MOST_SYMBOLS:
            return self.lines[:, :MOST_SYMBOLS] * np.sqrt(MODULATION / MOST_SYMBOLS)
        parts = []
        for column in self.columns:
            given = column_probes(column, MODULATING_COSINES)
            weights = given.weights[: MOST_SYMBOLS // width]
            parts.append(given.values[:, : len(weights)] * np.sqrt(MODULATION / width * weights / weights.sum()))
        return np.hstack(parts)
