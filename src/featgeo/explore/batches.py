"""Tables of many pairs of columns at once, and functions on their cells.

With orthonormal functions on the cells of either column, the table of a pair is a small matrix, its core: everything
that is told of the pair comes from it, and from the same by fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featgeo.explore.cells import label_contrasts
from featgeo.explore.counting import Counts
from featgeo.explore.tails import (
    Null,
    Peaks,
    block_tail,
    hypergeometric_tails,
    leading_energies,
    rung_weights,
    rungs,
)
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array

MOST_ENTRIES = 2**21  # of the tables of a batch: memory
SMALLEST = 4  # sides of tables that are told apart by their size: a batch more takes longer than padding


@dataclass(frozen=True, eq=False)
class Batch:
    """Tables of some pairs, padded to one shape, and functions on their cells.

    Attributes:
        tables: Rows in each pair of cells that hold values, by fold, (P, F, a, b).
        f: Orthonormal functions on the cells of the first columns, from smooth to rough, (P, a, k); 0 beyond theirs.
        g: On those of the second, (P, b, l).
        labels: Which of the columns hold labels, whose functions are in no order, (P, 2).
    """

    tables: Array
    f: Array
    g: Array
    labels: np.ndarray

    @classmethod
    def of(cls, counts: Counts, pairs: Sequence[tuple[int, int]]) -> Batch:
        """The tables of some pairs of columns, whatever misses either left out."""
        columns = [[pair[side] for pair in pairs] for side in (0, 1)]
        sizes = [max(counts.columns[i].n_values for i in own) for own in columns]
        tables = np.zeros((len(pairs), counts.folds, *sizes))
        for place, (i, j) in enumerate(pairs):
            table = counts.table(i, j)[:, :-1, :-1]
            tables[place, :, : table.shape[1], : table.shape[2]] = table
        f, g = (
            _functions(counts, own, rows.sum(axis=1)) for own, rows in zip(columns, margins_of(tables), strict=True)
        )
        labels = np.array([[counts.columns[i].kind == "label" for i in pair] for pair in pairs])
        return cls(tables, f, g, labels)

    @classmethod
    def of_missing(cls, counts: Counts, pairs: Sequence[tuple[int, int]]) -> Batch:
        """The same with one function of the first columns: whether they are missing; of the second also whether."""
        several = [[counts.columns[pair[side]] for pair in pairs] for side in (0, 1)]
        sizes = [max(column.size for column in columns) for columns in several]
        tables = np.zeros((len(pairs), 1, *sizes))
        f = np.zeros((len(pairs), sizes[0], 1))
        g = np.zeros((len(pairs), sizes[1], 1 + max(column.resolutions[-1] for column in several[1])))
        for place, (i, j) in enumerate(pairs):
            table = counts.table(i, j).sum(axis=0)
            tables[place, 0, : table.shape[0], : table.shape[1]] = table
            f[place, : table.shape[0], 0] = missing_function(table.sum(axis=1))
            of_j = table.sum(axis=0)
            there = np.sqrt(of_j.sum() / max(of_j[:-1].sum(), 1))  # by which functions of unit variance there grow
            both = np.column_stack([missing_function(of_j), there * counts.functions[j]])
            # A part of a date is missing where the date is, which says so itself.
            both = both[:, 0 if both[-1, 0] and not counts.columns[j].parent else 1 :]
            g[place, : table.shape[1], : both.shape[1]] = both
        return cls(tables, f, g, np.zeros((len(pairs), 2), dtype=bool))  # being missing comes first

    def taken(self, index: np.ndarray) -> Batch:
        """Some of the pairs."""
        if len(index) == len(self.tables):
            return self
        part = Batch(self.tables[index], self.f[index], self.g[index], self.labels[index])
        part.__dict__.update(  # what was summed is not summed again
            n_rows=self.n_rows[index],
            margins=tuple(own[index] for own in self.margins),
            sums=tuple(own[index] for own in self.sums),
        )
        return part

    @property
    def turned(self) -> Batch:
        """The same pairs, with the second column of each as the first."""
        turned = Batch(self.tables.swapaxes(2, 3), self.g, self.f, self.labels[:, ::-1])
        turned.__dict__.update(n_rows=self.n_rows, margins=self.margins[::-1])
        return turned

    @cached_property
    def n_rows(self) -> Array:
        """Rows of each pair, by fold, (P, F)."""
        return self.margins[0].sum(axis=2)

    @cached_property
    def margins(self) -> tuple[Array, Array]:
        """Rows in each cell of either column, by fold, (P, F, a) and (P, F, b)."""
        return margins_of(self.tables)

    @cached_property
    def sums(self) -> tuple[Array, Array, Array]:
        """Over the rows of each fold, of f g^T, (P, F, n_f, n_g), f, (P, F, k), and g, (P, F, l)."""
        left = self.f.transpose(0, 2, 1)[:, None]
        of_f, of_g = self.margins
        return left @ self.tables @ self.g[:, None], of_f @ self.f, of_g @ self.g

    @cached_property
    def core(self) -> Array:
        """The dependence in orthonormal coordinates, (P, n_f, n_g)."""
        return self.sums[0].sum(axis=1) / self._total[:, None, None]

    @cached_property
    def _total(self) -> Array:
        return np.maximum(self.n_rows.sum(axis=1), 1.0)

    def held_and_left_out(self, index: np.ndarray | slice, n_f: int, n_g: int) -> tuple[Array, Array]:
        """The core of some pairs on the rows of each fold, and on all others, by the first functions, (Q, F, k, l)."""
        products, of_f, of_g = self.sums
        held = products[index, :, :n_f, :n_g], of_f[index, :, :n_f], of_g[index, :, :n_g]
        n = self.n_rows[index]
        rest = [own.sum(axis=1, keepdims=True) - own for own in (*held, n)]
        return _covariance(*held, n), _covariance(*rest)

    def covariance_of(self, f: Array, g: Array, products: Array) -> Array:
        """Of functions on the cells of either column, by fold, on the rows of each, (P, F, k, l).

        Args:
            f: Values on the cells of the first columns, (P, F or 1, a, k).
            g: On those of the second, (P, F or 1, b, l).
            products: Sums of f g^T over these rows, (P, F, k, l).
        """
        of_f, of_g = ((margin[..., None, :] @ h)[..., 0, :] for margin, h in zip(self.margins, (f, g), strict=True))
        return _covariance(products, of_f, of_g, self.n_rows)

    def variance_of(self, h: Array, side: int, index: np.ndarray | slice = slice(None)) -> Array:
        """Of functions on the cells of one column of some pairs, on the rows of each fold, (Q, F, k, k)."""
        margin = self.margins[side][index]
        sums = (margin[..., None, :] @ h)[..., 0, :]
        return _covariance((h * margin[..., None]).swapaxes(2, 3) @ h, sums, sums, self.n_rows[index])

    def pvalues(self) -> Array:
        """That the two columns are independent, (P,)."""
        n = self._total
        rows, columns = (margin.sum(axis=1) / n[:, None] for margin in self.margins)
        n_f, n_g = (h.any(axis=1).sum(axis=1) for h in (self.f, self.g))
        a, b = rungs(n_f, self.labels[:, 0]), rungs(n_g, self.labels[:, 1])
        null = Null.of(Peaks.of(self.f, rows, a, n), Peaks.of(self.g, columns, b, n), n)
        energy = (n - 1)[:, None, None] * leading_energies(self.core, a, b)
        result = block_tail(energy, null, (rung_weights(a, self.labels[:, 0]), rung_weights(b, self.labels[:, 1])))
        plain = (
            (n_f == 1) & (n_g == 1) & _have_two_values(self.f[..., 0], rows) & _have_two_values(self.g[..., 0], columns)
        )
        result[plain] = self._two_by_two(np.flatnonzero(plain))
        return result

    def _two_by_two(self, pairs: np.ndarray) -> Array:
        """The same of pairs whose first functions have two values each, (P,): two-sided, with half of the own count."""
        table = self.tables[pairs].sum(axis=1)
        f, g = (np.where(h[pairs, :, 0] > 0, 1.0, 0.0) for h in (self.f, self.g))
        both = np.einsum("pa,pab,pb->p", f, table, g)
        of_f, of_g = np.einsum("pa,pab->p", f, table), np.einsum("pb,pab->p", g, table)
        tails, at_count = hypergeometric_tails(both, of_f, of_g, table.sum(axis=(1, 2)))
        beyond = tails - at_count / 2
        return 2 * np.minimum(beyond, 1 - beyond)  # a count between mean and median has the shorter tail behind it


def _have_two_values(functions: Array, margin: Array) -> np.ndarray:
    """Whether functions, (P, a), have at most two values on cells that hold shares of the rows, (P, a)."""
    low, high = (
        side.reduce(functions, axis=1, keepdims=True, where=margin > 0, initial=0.0)
        for side in (np.minimum, np.maximum)
    )
    between = (functions - low) * (high - functions) * (margin > 0)
    return np.all(between <= COLLINEAR * (high - low) ** 2, axis=1)


def _functions(counts: Counts, columns: Sequence[int], rows: Array) -> Array:
    """Orthonormal functions on the cells of columns that hold values, under some of their rows, (P, a, k).

    They are those of all rows of a column, made orthonormal again; where some cells have no rows, they are made anew.

    Args:
        counts: Of the table.
        columns: By place.
        rows: In each of these cells, (P, a).
    """
    result = np.zeros((*rows.shape, max(counts.columns[i].resolutions[-1] for i in set(columns))))
    every = np.zeros(rows.shape)
    for place, i in enumerate(columns):
        size, width = counts.columns[i].n_values, counts.functions[i].shape[1]
        result[place, :size, :width] = counts.functions[i][:-1]
        every[place, :size] = counts.rows[i][:-1]
    lost = ((rows == 0) & (every > 0)).any(axis=1)
    for place in np.flatnonzero(lost).tolist():
        column = counts.columns[columns[place]]
        own = column.functions(rows[place, : column.n_values])[:-1]
        result[place] = 0.0
        result[place, : own.shape[0], : own.shape[1]] = own
    others = ~lost & (rows != every).any(axis=1)
    # Contrasts of labels follow from their shares, unless there are none of one that is not the last.
    is_label = np.array([counts.columns[i].kind == "label" and bool(counts.rows[i][:-2].all()) for i in columns])
    for some, anew in ((others & is_label, _contrasts), (others & ~is_label, _orthonormal)):
        if some.any():
            result[some] = anew(result[some], rows[some])
    return result


def _contrasts(functions: Array, rows: Array) -> Array:
    """The same as `_orthonormal` of functions of labels, each of which tells one from those after it."""
    made = label_contrasts(rows / rows.sum(axis=1, keepdims=True))
    return made[..., : functions.shape[2]] * functions.any(axis=1, keepdims=True)


def _orthonormal(functions: Array, rows: Array) -> Array:
    """Functions on cells, (P, a, k), less their means and made orthonormal under these rows, (P, a), in order."""
    root = np.sqrt(rows / rows.sum(axis=1, keepdims=True))[..., None]
    basis, triangle = np.linalg.qr(np.concatenate([root, functions * root], axis=2))
    sign = np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, 1:]
    there = np.abs(functions).sum(axis=1, keepdims=True) > 0  # a matrix is padded by functions that are 0
    return np.divide(basis[..., 1:] * sign * there, root, out=np.zeros_like(functions), where=root > 0)


def margins_of(tables: Array) -> tuple[Array, Array]:
    """Sums over either of the last two axes, (..., a) and (..., b): as products, far sooner where these are short."""
    a, b = tables.shape[-2:]
    return tables @ np.ones(b), np.ones(a) @ tables


def _covariance(products: Array, of_f: Array, of_g: Array, n: Array) -> Array:
    """From sums over n rows, (...,), of products, (..., k, l), and of either, (..., k) and (..., l)."""
    n = np.maximum(n, 1.0)[..., None]
    result = products / n[..., None]
    result -= (of_f / n)[..., :, None] * (of_g / n)[..., None, :]
    return result


def missing_function(rows: np.ndarray) -> Array:
    """Whether a row is missing, of mean 0 and variance 1 under the rows of all cells, (size,); 0 where all agree."""
    share = rows[-1] / max(rows.sum(), 1)
    result = np.zeros(len(rows))
    if 0 < share < 1:
        result[:] = -np.sqrt(share / (1 - share))
        result[-1] = np.sqrt((1 - share) / share)
    return result


def alike(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Pairs, by place, whose tables are of about the same shape (the same powers of two), as many as go together."""
    same: dict[tuple[int, int], list[int]] = {}
    for place, (i, j) in enumerate(pairs):
        a, b = (max(2 ** (counts.columns[k].n_values - 1).bit_length(), SMALLEST) for k in (i, j))
        same.setdefault((a, b), []).append(place)
    for (a, b), places in same.items():
        at_once = max(1, MOST_ENTRIES // (a * b * counts.folds))
        for start in range(0, len(places), at_once):
            yield places[start : start + at_once]
