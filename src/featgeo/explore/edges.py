"""Edges of cells at the places where other columns jump.

Cells of numbers hold about equally many rows, and functions of a number change only from cell to cell: a jump inside a
cell is smeared over all of it. A sample of the rows shows where jumps are, far closer than to a cell, and the edge next
to each is moved there, by less than a cell. All other edges stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from featgeo.explore.cells import Cells, is_same_date
from featgeo.explore.steps import leading_directions, split
from featgeo.explore.values import Repeated, rows_of
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_VALUES = 2**24  # of functions at the rows in which jumps are looked for, over all columns: time
MOST_FUNCTIONS = 128  # of all columns together, about: time
FUNCTIONS = 4  # of a column where columns are few


def aligned(
    columns: tuple[Cells, ...], sample: Mapping[str, Any], cells: Sequence[np.ndarray], n_rows: int
) -> tuple[Cells, ...]:
    """The columns, with edges moved to where functions of the others jump.

    Args:
        columns: All of them.
        sample: Values of a sample of the rows, by name.
        cells: The cell of each of these rows, of each column.
        n_rows: Of all data.
    """
    shown = _Sample.of(columns, cells)
    fewest = in_force.get().rows_a_function * len(cells[0]) / max(n_rows, 1)
    result = list(columns)
    for i, column in enumerate(columns):
        if column.kind != "label" and not column.parent and not column.is_finite:
            for jump in shown.jumps(i):
                beside = result[i].spans[jump.cell : jump.cell + 2]
                # A cell of one value, as of ties, stays; so does one of which the other edge was moved.
                if (beside[:, 0] < beside[:, 1]).all() and beside[0, 0] == column.spans[jump.cell, 0]:
                    between = shown.between(i, jump, sample[column.name])
                    result[i] = _moved(result[i], jump.cell, between, fewest)
    return tuple(result)


@dataclass(frozen=True, eq=False)
class _Jump:
    """A place where others jump: after which cell, and what tells one side from the other."""

    cell: int
    weights: Array  # of all functions: larger sums before the jump
    middle: float  # of these sums, halfway between both sides


@dataclass(frozen=True, eq=False)
class _Sample:
    """A few functions of each column at the rows of a sample.

    Attributes:
        columns: All of them.
        cells: The cell of each row, of each column.
        functions: On the cells of each column.
        places: Where the functions of each column are among all of them.
        values: Of all functions at some of the rows, (s, K).
        rows: Which rows these are.
    """

    columns: tuple[Cells, ...]
    cells: Sequence[np.ndarray]
    functions: list[Array]
    places: list[slice]
    values: Array
    rows: slice

    @classmethod
    def of(cls, columns: tuple[Cells, ...], cells: Sequence[np.ndarray]) -> _Sample:
        """From the cells of the rows."""
        width = int(np.clip(MOST_FUNCTIONS // len(columns), 1, FUNCTIONS))
        functions = [
            column.functions(rows_of(own.astype(np.int16), column.size), width)
            for column, own in zip(columns, cells, strict=True)
        ]
        ends = np.cumsum([own.shape[1] for own in functions])
        places = [slice(end - own.shape[1], end) for end, own in zip(ends, functions, strict=True)]
        rows = slice(None, None, 1 + int(len(cells[0]) * ends[-1] * len(columns) // MOST_VALUES))
        values = np.hstack([own[cell[rows]] for own, cell in zip(functions, cells, strict=True)])
        return cls(columns, cells, functions, places, values, rows)

    def jumps(self, i: int) -> list[_Jump]:
        """Where the other columns jump along one of them, beyond chance, and by enough to find the place."""
        cells = self.cells[i][self.rows]
        order = np.argsort(cells, kind="stable")
        n_cells = self.columns[i].n_values
        rows, sums = (
            np.bincount(cells, minlength=n_cells + 1).astype(np.float64),
            np.zeros((n_cells + 1, self.values.shape[1])),
        )
        there = np.flatnonzero(rows)
        sums[there] = np.add.reduceat(self.values[order], (np.cumsum(rows) - rows)[there].astype(np.intp))
        for j, other in enumerate(self.columns):
            if j == i or is_same_date(other, self.columns[i]):
                sums[:, self.places[j]] = 0
        rows, sums = rows[:n_cells], sums[:n_cells]
        directions = leading_directions(sums, rows)
        cuts = np.flatnonzero(np.diff(split((sums @ directions)[None], rows[None])[0], axis=0).any(axis=1))
        ends = np.r_[0, cuts + 1, n_cells]
        found = []
        for before, cut, after in zip(ends, ends[1:], ends[2:], strict=False):
            sides = [(sums[part].sum(axis=0), rows[part].sum()) for part in (slice(before, cut), slice(cut, after))]
            (left, n_left), (right, n_right) = ((total / n, n) for total, n in sides)
            if self._is_clear(left - right, 1 / n_left + 1 / n_right, n_cells):
                weights = directions @ ((left - right) @ directions)
                found.append(_Jump(int(cut) - 1, weights, float((left + right) @ weights / 2)))
        return found

    def _is_clear(self, jump: Array, noise: float, n_cells: int) -> bool:
        """Whether a jump is no chance at any of the places, and so large that the rows of a cell show where it is."""
        size, freedom = float(jump @ jump), np.count_nonzero(jump)
        options = in_force.get()
        rows_a_cell = len(self.cells[0]) / n_cells
        by_chance = chdtrc(freedom, size / noise) * n_cells
        return bool(by_chance <= 1 - options.confidence and np.sqrt(rows_a_cell * size) / 2 >= options.doubt_errors)

    def between(self, i: int, jump: _Jump, values: Array | Repeated) -> tuple[Array, np.ndarray]:
        """Values in the two cells beside a jump, rising, and how much speaks for the jump to be after each."""
        near = np.flatnonzero((self.cells[i] == jump.cell) | (self.cells[i] == jump.cell + 1))
        beside = np.asarray(values[near])
        order = np.argsort(beside, kind="stable")
        near, beside = near[order], beside[order]
        total = np.full(len(near), -jump.middle)
        for own, place, cells in zip(self.functions, self.places, self.cells, strict=True):
            if jump.weights[place].any():
                total += (own @ jump.weights[place])[cells[near]]
        return beside, total.cumsum()


def _moved(column: Cells, cell: int, between: tuple[Array, Array], fewest: float) -> Cells:
    """A column with the edge after a cell moved; as it is where a cell would hold too few rows, or no finite mean."""
    values, evidence = between
    if not np.abs(values[[0, -1]]).max() < np.finfo(np.float64).max / len(values):
        return column
    apart = np.flatnonzero(np.diff(values))  # equal values stay together
    last = apart[np.argmax(evidence[apart])]
    if min(last + 1, len(values) - last - 1) < fewest:
        return column
    edges, places, spans = column.edges.copy(), column.places.copy(), column.spans.copy()
    edges[cell] = values[last]
    for place, part in ((cell, values[: last + 1]), (cell + 1, values[last + 1 :])):
        places[place], spans[place] = part.mean(), (part[0], part[-1])
    return replace(column, edges=edges, places=places, spans=spans)
