"""Tables of counts of all pairs of columns, by folds of the rows, in one pass: all that is ever read of the data.

Counts of two sets of rows add up, exactly and in any order. The fold of a row follows from what it holds, so that equal
rows share a fold and it does not matter where a row stands; where most rows are equal to others, as in tables of few
labels, it follows from the row's number in its file instead, which tells nothing of what it holds.

Numbers have first and second moments beside their tables, over the rows that have both, for Pearson's correlation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch

from featgeo.explore.cells import Cells
from featgeo.explore.values import Repeated
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

GROUP_CELLS = 256  # of columns that are counted together: tables of two such groups stay in a processor's cache
ROWS_SUMMED = 2**12  # at a time: they stay in a processor's cache
FEW = 1 / 3  # of the rows: to pick more of them and count these takes as long as to count all
SHORT = 2**15  # places that 16 bits number
MOST_ROWS = 2**32 - 1  # that a count holds
_SUMS = ("tables", "values", "new_labels")  # what adds up
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be counted: the attributes of `Counts` that are settled before any row is."""

    columns: tuple[Cells, ...]
    groups: tuple[tuple[int, ...], ...]
    folds: int
    by_number: bool
    centre: Array
    scale: Array

    @classmethod
    def of(cls, columns: tuple[Cells, ...], n_rows: int, by_number: bool, centre: Array, scale: Array) -> Plan:
        """Which columns to count together.

        Args:
            columns: The cells of each column.
            n_rows: About how many rows there will be: tables that are larger than what is counted in them waste time.
            by_number: Whether the fold of a row follows from its number.
            centre: Of number columns, (q,).
            scale: The same.
        """
        folds = in_force.get().folds
        most = min(GROUP_CELLS, int(np.sqrt(n_rows / folds) / 3) + 1)  # tables have far fewer cells than there are rows
        groups: list[list[int]] = []
        sizes: list[int] = []
        for i in sorted(range(len(columns)), key=lambda i: -columns[i].size):
            fits = next((g for g, size in enumerate(sizes) if size * columns[i].size <= most), None)
            if fits is None:
                groups.append([i])
                sizes.append(columns[i].size)
            else:
                groups[fits].append(i)
                sizes[fits] *= columns[i].size
        return cls(columns, tuple(tuple(group) for group in groups), folds, by_number, centre, scale)


@saved
@dataclass(frozen=True, eq=False)
class Counts:
    """Tables of all pairs.

    Attributes:
        columns: The cells of each column.
        groups: Columns that are counted together, all their cells at once, by place: a table of two groups holds those
            of all their columns, so that small columns take one count for many.
        folds: Into how many parts the rows are dealt.
        by_number: Whether the fold of a row follows from its number and not from what it holds.
        tables: Rows in each pair of cells of two groups, for each fold, one pair of groups after the other, (.,).
        values: Of number columns i and j, over the rows that have both, sums of 1, z_i, z_i^2 and z_i z_j, with
            z = (value - centre) / scale, (4, q, q).
        centre: Of number columns, (q,).
        scale: Of number columns, (q,).
        new_labels: Rows of each column with a label that was not known, (p,).
    """

    columns: tuple[Cells, ...]
    groups: tuple[tuple[int, ...], ...]
    folds: int
    by_number: bool
    tables: np.ndarray
    values: Array
    centre: Array
    scale: Array
    new_labels: np.ndarray

    def __post_init__(self) -> None:
        """Refuse what does not fit together, as files may bring it."""
        p, q = len(self.columns), len(self.centre)
        members = sorted(i for group in self.groups for i in group)
        shapes = {"tables": (self._n_cells,), "values": (4, q, q), "scale": (q,), "new_labels": (p,)}
        wrong = [name for name, shape in shapes.items() if getattr(self, name).shape != shape]
        if members != list(range(p)) or self.tables.dtype != np.uint32 or wrong:
            raise ValueError(f"Counts of {p} columns do not fit together: {', '.join(wrong) or 'groups'}.")

    @classmethod
    def empty(cls, plan: Plan) -> Counts:
        """Of no rows yet."""
        sizes = [math.prod(plan.columns[i].size for i in group) for group in plan.groups]
        n_cells = sum(sizes) + sum(a * b for i, a in enumerate(sizes) for b in sizes[i + 1 :])
        q = len(plan.centre)
        return cls(
            tables=np.zeros(plan.folds * n_cells, dtype=np.uint32),
            values=np.zeros((4, q, q)),
            new_labels=np.zeros(len(plan.columns), dtype=np.int64),
            **vars(plan),
        )

    @property
    def plan(self) -> Plan:
        """How these were counted."""
        return Plan(**{field.name: getattr(self, field.name) for field in fields(Plan)})

    @cached_property
    def _sizes(self) -> list[int]:
        """Cells of each group."""
        return [math.prod(self.columns[i].size for i in group) for group in self.groups]

    @property
    def _n_cells(self) -> int:
        """Counts of all tables, for all folds."""
        single = sum(self._sizes)
        return self.folds * (single + (single**2 - sum(size**2 for size in self._sizes)) // 2)

    @cached_property
    def _starts(self) -> dict[tuple[int, int], int]:
        """Where the table of two groups begins, and that of a group with nothing (itself)."""
        starts, at = {}, 0
        for a, size in enumerate(self._sizes):
            for b in range(a, len(self.groups)):
                starts[a, b] = at
                at += self.folds * size * (1 if a == b else self._sizes[b])
        return starts

    @cached_property
    def _group_of(self) -> dict[int, int]:
        return {i: a for a, group in enumerate(self.groups) for i in group}

    @cached_property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.single(0).sum()) if self.columns else 0

    def _group_table(self, a: int, b: int) -> np.ndarray:
        """The table of two groups, (folds, cells of a, cells of b); of one with itself (folds, cells, 1)."""
        shape = self.folds, self._sizes[a], 1 if a == b else self._sizes[b]
        start = self._starts[a, b]
        return self.tables[start : start + math.prod(shape)].reshape(shape)

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], np.ndarray]:
        """Tables of columns, by place, in the order of their groups; of columns alone in a group they are views."""
        return {}

    def _split(self, a: int, b: int) -> None:
        """The tables of all columns of two groups, from that of the groups."""
        table = self._group_table(a, b)
        if a != b and len(self.groups[a]) == len(self.groups[b]) == 1:
            self._pairs[self.groups[a][0], self.groups[b][0]] = table
            return
        if a == b:
            sizes = [self.columns[i].size for i in self.groups[a]]
            table = table.reshape(self.folds, *sizes)
            for x, i in enumerate(self.groups[a]):
                for y, j in enumerate(self.groups[a][x:], start=x):
                    others = tuple(axis + 1 for axis in range(len(sizes)) if axis not in (x, y))
                    self._pairs[i, j] = table.sum(axis=others, dtype=table.dtype)
            return
        of_a, of_b = (self._indicators(group) for group in (a, b))
        # As products, which are exact up to far more rows than there are, and far sooner than sums over several axes.
        split = (of_a.T @ (table @ of_b)).astype(table.dtype)
        ends_a, ends_b = (np.cumsum([self.columns[i].size for i in self.groups[group]]).tolist() for group in (a, b))
        for i, end_i in zip(self.groups[a], ends_a, strict=True):
            for j, end_j in zip(self.groups[b], ends_b, strict=True):
                own = slice(end_i - self.columns[i].size, end_i), slice(end_j - self.columns[j].size, end_j)
                self._pairs[i, j] = split[:, own[0], own[1]]

    def _indicators(self, a: int) -> Array:
        """Which cell of each of its columns each cell of a group is in, one column after the other, (cells, .)."""
        if a not in self._indicated:
            sizes = [self.columns[i].size for i in self.groups[a]]
            places = np.unravel_index(np.arange(self._sizes[a]), sizes)
            every = [np.eye(size)[place] for size, place in zip(sizes, places, strict=True)]
            self._indicated[a] = np.concatenate(every, axis=1)
        return self._indicated[a]

    @cached_property
    def _indicated(self) -> dict[int, Array]:
        return {}

    def single(self, i: int) -> np.ndarray:
        """Rows in each cell of a column, by fold, (folds, size)."""
        return self._of(i, i)

    def table(self, i: int, j: int) -> np.ndarray:
        """Rows in each pair of cells of two columns, by fold, (folds, size_i, size_j)."""
        if i == j:
            single = self.single(i)
            return single[:, :, None] * np.eye(single.shape[1], dtype=single.dtype)
        return self._of(i, j)

    def _of(self, i: int, j: int) -> np.ndarray:
        for x, y in ((i, j), (j, i)):
            if (x, y) in self._pairs:
                return self._pairs[x, y] if (x, y) == (i, j) else self._pairs[x, y].transpose(0, 2, 1)
        self._split(*sorted((self._group_of[i], self._group_of[j])))
        return self._of(i, j)

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """Rows in each cell of each column, (size,)."""
        return [self.single(i).sum(axis=0) for i in range(len(self.columns))]

    @cached_property
    def functions(self) -> list[Array]:
        """Orthonormal functions on the cells of each column, under all of its rows, (size, d); 0 where missing."""
        return [column.functions(rows) for column, rows in zip(self.columns, self.rows, strict=True)]

    def grouped(self, cells: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The cell of each row, of each group, (n,) each, in as few bits as can be; from those of the columns."""
        result = []
        for group, size in zip(self.groups, self._sizes, strict=True):
            place = cells[group[0]].astype(np.min_scalar_type(size - 1), copy=False)
            for i in group[1:]:
                place = place * self.columns[i].size
                np.add(place, cells[i], out=place, casting="unsafe")
            result.append(place)
        return result

    def add(self, parts: Sequence[Sequence[np.ndarray]]) -> None:
        """Count some rows.

        Where most rows are in one cell of a group, only the others are counted in its tables: of those in that cell
        each holds what the others leave of the table of the other group alone.

        Args:
            parts: Of them: the cell of each row, of each group, as `grouped` gives it, (n,) each, and then its fold.
        """
        kind = np.int16 if max(*self._sizes, self.folds) <= SHORT else np.int32
        *groups, folds = (np.concatenate(own, dtype=kind) for own in zip(*parts, strict=True))
        n, every = len(folds), range(len(groups))
        singles = [self._counted(a, a, _place(folds, self._sizes[a], groups[a], self.folds))[..., 0] for a in every]
        usual = [int(single.sum(axis=0).argmax()) for single in singles]
        n_others = [n - int(single[:, cell].sum()) for single, cell in zip(singles, usual, strict=True)]
        others = {a: np.flatnonzero(groups[a] != usual[a]) for a in every if n_others[a] <= n * FEW}
        own_others = {a: groups[a].take(index) for a, index in others.items()}
        for a in every:
            self._add_to(a, a, singles[a][..., None])
            with_fold = _place(folds, self._sizes[a], groups[a], self.folds)
            own_with_fold = with_fold.take(others[a]) if a in others else with_fold
            for b in range(a + 1, len(groups)):
                fewest = min(a, b, key=n_others.__getitem__)
                first, second = with_fold, groups[b]
                if fewest in others:
                    first = own_with_fold if fewest == a else first.take(others[b])
                    second = own_others[b] if fewest == b else second.take(others[a])
                table = self._counted(a, b, _place(first, self._sizes[b], second, self.folds * self._sizes[a]))
                if fewest in others and fewest == a:
                    table[:, usual[a]] = singles[b] - table.sum(axis=1)
                elif fewest in others:
                    table[:, :, usual[b]] = singles[a] - table.sum(axis=2)
                self._add_to(a, b, table)

    def _add_to(self, a: int, b: int, counted: np.ndarray) -> None:
        table = self._group_table(a, b)
        np.add(table, counted, out=table, casting="unsafe")

    def _counted(self, a: int, b: int, place: np.ndarray) -> np.ndarray:
        """Rows by their place in the table of two groups: torch counts places of few bits as they are."""
        shape = self._group_table(a, b).shape
        return torch.bincount(torch.from_numpy(place), minlength=math.prod(shape)).numpy().reshape(shape)

    def add_values(self, numbers: Sequence[Array]) -> None:
        """Sum some rows of all number columns, (n,) each; NaN where missing, what is infinite does not count."""
        for start in range(0, len(numbers[0]), ROWS_SUMMED):
            z = np.stack([values[start : start + ROWS_SUMMED] for values in numbers])
            z -= self.centre[:, None]
            z /= self.scale[:, None]
            there = np.isfinite(z)
            if there.all():
                for total, own in zip(self.values, (np.ones_like(z), z, z * z), strict=False):
                    total += own.sum(axis=1, keepdims=True)
                self.values[3] += z @ z.T
                continue
            z[~there] = 0.0
            mask = there.astype(np.float64)
            for total, (a, b) in zip(self.values, ((mask, mask), (z, mask), (z * z, mask), (z, z)), strict=True):
                total += a @ b.T

    def pearson(self) -> dict[tuple[int, int], float]:
        """Pearson's correlation of number columns, by place; NaN where one does not vary."""
        there = [i for i, column in enumerate(self.columns) if column.kind != "label" and not column.parent]
        n, sums, squares, products = self.values
        n = np.maximum(n, 1.0)
        variance = squares / n - (sums / n) ** 2
        spread = np.sqrt(np.maximum(variance * variance.T, 0))
        covariance = products / n - (sums / n) * (sums / n).T
        ratio = np.divide(covariance, spread, out=np.full_like(spread, np.nan), where=spread > 0)
        return {
            (i, j): float(ratio[a, b].clip(-1, 1)) for a, i in enumerate(there) for b, j in enumerate(there) if a != b
        }

    def merged(self, other: Counts) -> Counts:
        """Of the rows of both, which must be counted in the same cells."""
        if self.n_rows + other.n_rows > MOST_ROWS:
            raise ValueError(f"Counts hold up to {MOST_ROWS:,} rows, got {self.n_rows + other.n_rows:,}.")
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, **sums)


def _place(first: np.ndarray, size: int, second: np.ndarray, n_first: int) -> np.ndarray:
    """The place of each row in a table of so many cells by `size`, (n,), in as few bits as can be."""
    place = np.multiply(first, size, dtype=np.int16 if n_first * size <= SHORT else np.int32)
    return np.add(place, second, out=place)


def content_hash(numbers: Iterable[Array | Repeated], cells: Iterable[np.ndarray]) -> np.ndarray:
    """A number of 64 bits for each row that depends on what it holds alone, (n,)."""
    total = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for values in numbers:
            different = values.values if isinstance(values, Repeated) else values
            bits = (np.where(np.isnan(different), np.nan, different) + 0.0).view(np.uint64)  # one NaN, one 0
            total = _mixed(total + (bits.take(values.codes) if isinstance(values, Repeated) else bits))
        for codes in cells:
            total = _mixed(np.add(total, codes, dtype=np.uint64, casting="unsafe"))
    return np.asarray(total)


def number_hash(first: int, n: int) -> np.ndarray:
    """The same for rows by their numbers alone, from the first on, (n,)."""
    with np.errstate(over="ignore"):
        return _mixed(np.arange(first, first + n, dtype=np.uint64) * _MIXERS[0])


def _mixed(h: np.ndarray) -> np.ndarray:
    """Every bit depends on every bit (the finaliser of splitmix64); written over what comes."""
    h = np.asarray(h)
    h += _MIXERS[0]
    for shift, mixer in zip((30, 27), _MIXERS[1:], strict=True):
        h ^= h >> np.uint64(shift)
        h *= mixer
    h ^= h >> np.uint64(31)
    return h
