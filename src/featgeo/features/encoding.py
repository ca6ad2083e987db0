"""Columns as numbers of comparable size: what kernels, splines and default networks read.

Dependence does not change under monotone maps of a number, so numbers enter by their *scores*: where a value stands
among those of the fit. Uniform scores spread evenly; normal scores follow a bell curve, clipped at the outermost ranks,
so that no extreme row can make a mode of its own. Both have mean 0 and variance about 1. "Standard" numbers are only
shifted and scaled; "bounded" ones too, but they end where no more than a few rows lie, far away from all others. A
missing number counts as average, with an indicator of its own where the fit had missing ones. Labels become indicators;
an unknown label counts as average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer

from featgeo.features.columns import UNKNOWN
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array

Scores = Literal["uniform", "normal", "standard", "bounded"]

# Normal scores stop this many rows from either end.
CLIPPED_ROWS = 1
QUANTILES = 10_000
# Bounded numbers end this many times as far from the middle as the outer rows lie: 11 deviations of a bell curve.
OUTER_SHARE, OUTER_REACH = 0.002, 4.0


@dataclass(frozen=True, eq=False)
class Encoding:
    """A fitted encoding of a table.

    Attributes:
        scores: How numbers are mapped.
        ranks: Where a number stands among those of the fit, between 0 and 1; None without numbers, and where they are
            only shifted and scaled.
        bounds: The least and the largest of each number that count, (2, p), for "bounded"; else infinite.
        centre: Means of the numbers, for "standard" and "bounded".
        scale: Standard deviations of the numbers.
        clip: Uniform scores are kept this far from 0 and 1.
        with_missing: Positions of the numbers that missed in some rows of the fit.
        shares: For each column of labels the share of each label in the fit.
    """

    scores: Scores
    ranks: QuantileTransformer | None
    bounds: Array
    centre: Array
    scale: Array
    clip: float
    with_missing: tuple[int, ...]
    shares: tuple[Array, ...]

    @classmethod
    def fit(cls, rows: Rows, scores: Scores) -> Encoding:
        """Learn the scores of each number and the shares of each label."""
        table = rows.table
        numbers, n = table.numbers, len(table)
        missing = np.isnan(numbers)
        bounds = np.array([[-np.inf], [np.inf]]) * np.ones(numbers.shape[1])
        if scores == "bounded":
            bounds = np.array([_bounds(column[~np.isnan(column)]) for column in numbers.T]).reshape(-1, 2).T
            numbers = numbers.clip(*bounds)
        known = (~missing).sum(axis=0).clip(min=1)
        centre = np.where(missing, 0, numbers).sum(axis=0) / known
        away = np.abs(np.where(missing, 0, numbers - centre))
        size = np.maximum(away.max(axis=0, initial=0), 1e-300)  # squares of huge or tiny numbers are not numbers
        spread = size * np.sqrt(np.square(away / size).sum(axis=0) / known)
        ranks = None
        if numbers.shape[1] and scores in ("uniform", "normal"):
            if "ranks" not in rows.memo:
                known_or_zero = np.where(missing.all(axis=0), 0.0, numbers)  # a column that is never known has no ranks
                quantiles = QuantileTransformer(n_quantiles=min(QUANTILES, n), subsample=None)
                rows.memo["ranks"] = quantiles.fit(known_or_zero)
            ranks = rows.memo["ranks"]
        columns = zip(rows.variable.labels, table.codes.T, strict=True)
        shares = tuple(
            np.bincount(codes[codes != UNKNOWN], minlength=len(column.categories) + column.missing) / n
            for column, codes in columns
        )
        clip = min(CLIPPED_ROWS / n, 0.05) if scores == "normal" else 0.5 / n
        with_missing = _with_missing(rows)
        return cls(scores, ranks, bounds, centre, np.where(spread > 0, spread, 1.0), clip, with_missing, shares)

    def numbers(self, rows: Rows) -> Array:
        """Scores of the numbers, (n, p), and an indicator for each that may be missing."""
        numbers = rows.table.numbers
        if numbers.shape[1] == 0:
            return numbers
        if self.ranks is None:
            scores = (numbers.clip(*self.bounds) - self.centre) / self.scale
        else:
            rank = _ranks(self.ranks, rows).clip(self.clip, 1 - self.clip)
            scores = ndtri(rank) if self.scores == "normal" else np.sqrt(12) * (rank - 0.5)
        missing = np.isnan(numbers)
        filled = np.where(missing, 0.0, scores)
        return np.hstack([filled, missing[:, self.with_missing].astype(np.float64)]) if self.with_missing else filled

    def labels(self, rows: Rows) -> Array:
        """Indicators of the labels, (n, number of labels of all columns); the shares of the fit where unknown."""
        columns = zip(self.shares, rows.table.codes.T, strict=True)
        blocks = [np.vstack([np.eye(len(share)), share])[codes] for share, codes in columns]
        return np.hstack([np.empty((len(rows), 0)), *blocks])

    def __call__(self, rows: Rows) -> Array:
        """Numbers and labels side by side; two rows that differ in a label are as far apart as one in a number."""
        if not self.shares:
            return self.numbers(rows)
        return np.hstack([self.numbers(rows), self.labels(rows) / np.sqrt(2)])


def _bounds(values: Array) -> tuple[float, float]:
    """Where a number is cut off: not at all where its outer rows lie in the middle, as in sparse columns."""
    n_outer = max(1, int(OUTER_SHARE * len(values)))
    if len(values) <= 2 * n_outer:
        return -np.inf, np.inf
    places = (n_outer, len(values) // 2, len(values) - 1 - n_outer)
    low, middle, high = np.partition(values, places)[list(places)].tolist()
    return (
        middle - OUTER_REACH * (middle - low) if low < middle else -np.inf,
        middle + OUTER_REACH * (high - middle) if high > middle else np.inf,
    )


def _ranks(ranks: QuantileTransformer, rows: Rows) -> Array:
    """Ranks of the numbers; spaces with different scores share them."""
    key = ("ranks of", id(ranks))
    if key not in rows.memo:
        rows.memo[key] = ranks, ranks.transform(rows.table.numbers)  # kept together, so that the id stays taken
    return rows.memo[key][1]


def _with_missing(rows: Rows) -> tuple[int, ...]:
    """Positions among the numbers of columns with missing values; a date counts once, not for each of its parts."""
    positions, start = [], 0
    for column in rows.variable.numbers:
        if column.missing:
            positions.append(start)
        start += 1 + len(column.parts)
    return tuple(positions)
