"""Second moments of functions of all columns together, from the tables of their pairs.

Being missing is a function of its own, on which the others are 0: so every row counts for every column, and "given
these columns" is a projection like any other. To *sweep* columns is to take off all others what their functions tell of
them, as a regression learned on some rows; the same regression is then applied to rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from featgeo.explore.batches import missing_function
from featgeo.explore.counting import Counts
from featgeo.explore.steps import contrasts
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MANY_FUNCTIONS = 400  # of all columns together, up to which each has as many as its finest resolution: time
MOST_FUNCTIONS = 1000  # of all columns together: memory and time of matrices of that size


@dataclass(frozen=True, eq=False)
class Moments:
    """Covariances of functions on some rows, and on others that were held out.

    Attributes:
        seen: Of the rows to learn from: all, and all but each fold, (1 + F, D, D).
        held: Of the rows of each fold, (F, D, D).
        n: How many rows there are to learn from, (1 + F,).
        shares: Of all rows that are in each fold, (F,).
        places: The functions of each column, by place, that of being missing last.
        values: The same without that of being missing.
        roughness: Of each function, (D,): 1 for the smoothest and for contrasts of labels, the square of its number for
            waves.
    """

    seen: Array
    held: Array
    n: Array
    shares: Array
    places: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    roughness: Array

    @classmethod
    def of(cls, counts: Counts, strata: int | None = None) -> Moments:
        """Of all columns.

        Args:
            counts: Tables of all pairs.
            strata: A column that has all functions on its cells: to sweep it is to compare rows of one cell only.
        """
        bases = bases_of(counts, strata)
        ends = np.cumsum([basis.shape[1] for basis in bases])
        places = tuple(np.arange(end - basis.shape[1], end) for end, basis in zip(ends, bases, strict=True))
        products = np.zeros((counts.folds, ends[-1], ends[-1]))
        sums = np.zeros((counts.folds, ends[-1]))
        for i, left in enumerate(bases):
            sums[:, places[i]] = counts.single(i) @ left
            for j, right in enumerate(bases[i:], start=i):
                block = left.T @ counts.table(i, j).astype(np.float64) @ right
                products[:, places[i][:, None], places[j]] = block
                products[:, places[j][:, None], places[i]] = block.transpose(0, 2, 1)
        rows = counts.single(0).sum(axis=1).astype(np.float64)
        every = np.concatenate([rows.sum(keepdims=True), rows.sum() - rows])
        seen = _covariance(
            np.concatenate([products.sum(axis=0, keepdims=True), products.sum(axis=0) - products]),
            np.concatenate([sums.sum(axis=0, keepdims=True), sums.sum(axis=0) - sums]),
            every,
        )
        roughness = [
            np.where(column.kind == "label", 1.0, np.square(np.arange(1.0, len(own) + 1)))
            for column, own in zip(counts.columns, places, strict=True)
        ]
        held = _covariance(products, sums, rows)
        values = tuple(own[: (basis[-1] == 0).sum()] for own, basis in zip(places, bases, strict=True))
        return cls(seen, held, every, rows / rows.sum(), places, values, np.concatenate(roughness))

    def swept(self, columns: Sequence[int], ridge: float) -> Moments:
        """What is left of all functions once what some columns tell of them is taken off."""
        if not len(columns):
            return self
        own = np.concatenate([self.places[i] for i in columns])
        inner = self.seen[:, own[:, None], own] + ridge * np.eye(len(own))
        weights = np.asarray(np.linalg.solve(inner, self.seen[:, own]), dtype=np.float64)  # (1 + F, d, D)
        return replace(self, seen=_taken_off(self.seen, weights, own), held=_taken_off(self.held, weights[1:], own))

    def functions(self, columns: Sequence[int]) -> np.ndarray:
        """The places of the functions of some columns, one after the other."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(self.places[i] for i in columns)])


def bases_of(counts: Counts, strata: int | None = None) -> list[Array]:
    """Functions of each column that are 0 where it is missing, and that of being missing, (size, d)."""
    total = [sum(column.resolutions[level] for column in counts.columns) for level in (0, 1, 2)]
    room = counts.n_rows / in_force.get().rows_per_feature  # for regressions on all of them
    level = 2 if total[2] <= min(MANY_FUNCTIONS, room) else 1 if total[1] <= min(MOST_FUNCTIONS, room) else 0
    fewest = in_force.get().rows_a_function
    bases = []
    for i, column in enumerate(counts.columns):
        rows = counts.single(i).sum(axis=0)
        if i == strata:
            bases.append(contrasts(rows / rows.sum()))
            continue
        basis = column.functions(rows)[:, : column.resolutions[level]]
        if min(rows[-1], rows[:-1].sum()) >= fewest:
            basis = np.column_stack([basis, missing_function(rows)])
        bases.append(basis)
    return bases


def _covariance(products: Array, sums: Array, rows: Array) -> Array:
    rows = np.maximum(rows, 1.0)
    means = sums / rows[:, None]
    return products / rows[:, None, None] - means[:, :, None] * means[:, None, :]


def _taken_off(covariance: Array, weights: Array, own: np.ndarray) -> Array:
    """The covariance of x - W^T x_own, from that of x."""
    told = covariance[:, :, own] @ weights
    both = weights.transpose(0, 2, 1) @ covariance[:, own[:, None], own] @ weights
    return covariance - told - told.transpose(0, 2, 1) + both
