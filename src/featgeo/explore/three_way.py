"""Sums over all rows for a short list of pairs of columns, from which their interactions about a target are told.

What is left of the target (`additive`) is summed, with its squares, over pairs of coarse cells, and over the finer
cells of either column, by folds. Such sums add up as counts do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from featgeo.explore.additive import GRAIN, Additive, additive_of
from featgeo.explore.cells import Cells, coarser, places_in
from featgeo.explore.screening import Screen, screened
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

SAMPLE_ROWS = 2**15  # that sums are learned from and pairs are looked at
ROWS_AT_ONCE = 2**15  # that are summed together: they stay in a processor's cache
_SUMS = ("together", "apart")  # what adds up


@saved
@dataclass(frozen=True, eq=False)
class Interactions:
    """Sums over all rows, for the short list of pairs.

    Attributes:
        columns: The cells of each column.
        additive: What sums of functions of single columns tell of the target.
        pairs: Places of the columns of each pair, (s, 2).
        shared: What sums of all columns tell of products of each pair's functions, (s,).
        n_screened: How many pairs there were to choose from.
        coarse: Of each column, the cells for what two tell together.
        own: Of each column, those for what it tells by itself.
        together: By pair and fold, over the rows in each pair of coarse cells, of each scale: sums of the residuals r,
            of the upper half of r r^T and of |r|^4, (s, F, cells, scales, m + m (m + 1) / 2 + 1).
        apart: By side, pair and fold, over the rows in each of its own cells, sums of r, (2, s, F, cells, scales, m).
    """

    columns: tuple[Cells, ...]
    additive: Additive
    pairs: np.ndarray
    shared: Array
    n_screened: int
    coarse: tuple[Cells, ...]
    own: tuple[Cells, ...]
    together: Array
    apart: Array

    @classmethod
    def planned(cls, columns: tuple[Cells, ...], cells: Sequence[np.ndarray], target: int, n_rows: int) -> Interactions:
        """The short list, of no rows yet.

        Args:
            columns: The cells of each column.
            cells: The cell of each row of a sample, of each column, (n,) each.
            target: The place of the target.
            n_rows: Of the table.
        """
        there = np.flatnonzero(cells[target] < columns[target].n_values)
        there = there[:: -(-len(there) // SAMPLE_ROWS) or 1]
        cells = [own[there] for own in cells]
        if len(np.unique(cells[target])) > 1:
            additive, sums = additive_of(columns, cells, target)
            screen = screened(columns, cells, additive, sums)
        else:
            additive = Additive.of_nothing(columns, target)
            screen = Screen(np.empty((0, 2), dtype=np.int64), np.empty(0), 0)
        options = in_force.get()
        most = int(np.clip(np.sqrt(n_rows / options.interaction_rows), 2, options.interaction_cells))
        own, coarse = [], []
        for column, places in zip(columns, cells, strict=True):
            counts = np.bincount(places, minlength=column.size)
            own.append(coarser(column, counts, options.own_cells))
            inside = places_in(column, own[-1])  # each own cell lies in one coarse cell
            coarse.append(coarser(own[-1], np.bincount(inside, counts, minlength=own[-1].size), most))
        sizes = [max((column.n_values for column in merged), default=1) for merged in (coarse, own)]
        scales, m, s, folds = additive.n_scales, additive.n_functions, len(screen.pairs), options.folds
        together = np.zeros((s, folds, sizes[0] ** 2, scales, m + m * (m + 1) // 2 + 1))
        apart = np.zeros((2, s, folds, sizes[1], scales, m))
        return cls(
            columns, additive, screen.pairs, screen.shared, screen.n_pairs, tuple(coarse), tuple(own), together, apart
        )

    @property
    def width(self) -> int:
        """Coarse cells of a column, at most."""
        return int(np.sqrt(self.together.shape[2]))

    @cached_property
    def _inside(self) -> dict[str, list[np.ndarray]]:
        """The coarse cell, and the own one, of each cell of each column."""
        return {
            name: [places_in(column, merged) for column, merged in zip(self.columns, getattr(self, name), strict=True)]
            for name in ("coarse", "own")
        }

    def add(self, cells: Sequence[np.ndarray], folds: np.ndarray) -> None:
        """Sum some rows: the cell of each, of each column, (n,) each, and its fold, (n,)."""
        for start in range(0, len(folds), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            self._add([own[some] for own in cells], folds[some])

    def _add(self, cells: Sequence[np.ndarray], folds: np.ndarray) -> None:
        if not len(self.pairs):
            return
        left = self.additive.residuals(cells)
        upper = np.triu_indices(left.shape[2])
        fourth = np.square(np.square(left).sum(axis=2, keepdims=True))
        every = np.concatenate([left, left[..., upper[0]] * left[..., upper[1]], fourth], axis=2)
        every = np.round(every.reshape(len(left), -1) * GRAIN) / GRAIN
        n_folds, sides = self.together.shape[1], self.pairs.T
        coarse, own = (self._cells_of(name, cells) for name in ("coarse", "own"))
        missing = {k: own == self.coarse[k].n_values for k, own in coarse.items()}
        lacks = np.stack([missing[i] | missing[j] for i, j in self.pairs])
        first = np.arange(len(self.pairs))[:, None] * n_folds + folds
        both = (first * self.width + np.stack([coarse[i] for i in sides[0]])) * self.width
        _add_at(self.together, both + np.stack([coarse[j] for j in sides[1]]), lacks, every)
        for side, columns in enumerate(sides):
            places = first * self.apart.shape[3] + np.stack([own[k] for k in columns])
            _add_at(self.apart[side], places, lacks, left.reshape(len(left), -1))

    def _cells_of(self, name: str, cells: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        """The coarse or the own cells of each row, of the columns of the short list."""
        return {int(k): self._inside[name][k][cells[k]] for k in np.unique(self.pairs)}

    def emptied(self) -> Interactions:
        """The same pairs, of no rows."""
        return replace(self, **{name: np.zeros_like(getattr(self, name)) for name in _SUMS})

    def merged(self, other: Interactions) -> Interactions:
        """Of the rows of both, which must be summed for the same pairs, less the same sums."""
        mine, theirs = ((one.pairs, one.additive.functions, one.additive.tables) for one in (self, other))
        if not all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)):
            raise ValueError(
                "Explorations with a target merge where the same interactions were looked at, and these list other "
                "ones. Explore the second table by fg.explore(table, like=first)."
            )
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in _SUMS})


def _add_at(total: Array, places: np.ndarray, lacks: np.ndarray, values: Array) -> None:
    """Add rows, (n, q), to the places of a table where they belong, for each of s pairs.

    Args:
        total: The table, (s, F, cells, ...).
        places: Of each row, counted through all pairs, folds and cells, (s, n).
        lacks: Whether it belongs nowhere, (s, n).
        values: What is added, (n, q).
    """
    (s, n), size = places.shape, math.prod(total.shape[:3])
    at = np.where(lacks, size, places).T.astype(np.int32).ravel()
    rows = np.arange(0, s * n + 1, s, dtype=np.int32)
    sums = csr_array((np.ones(s * n), at, rows), shape=(n, size + 1)).T @ values
    total += sums[:-1].reshape(total.shape)
