"""Columns as numbers of comparable size: what kernels, splines and default networks read.

Dependence does not change under monotone maps of a number, so numbers enter by their *scores*: where a value stands
among those of the fit. Uniform scores spread evenly; normal scores follow a bell curve, clipped at the outermost ranks,
so that no extreme row can make a mode of its own. Both have mean 0 and variance about 1. "Standard" numbers are only
shifted and scaled; "bounded" ones too, but they end where no more than a few rows lie, far away from all others. A
missing number counts as average, with an indicator of its own where the fit had missing ones. Labels become indicators;
an unknown label counts as average.

A column of many labels has indicators of its frequent ones only, and one for all others together, unknown ones too: so
features are never more than a few dozen a column, whatever the number of labels. What the rare ones say by themselves
is for means of the other variable to tell (`featgeo.features.label_means`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer

from featgeo.features.columns import UNKNOWN, Column
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.schema import saved

Scores = Literal["uniform", "normal", "standard", "bounded"]

# Normal scores stop this many rows from either end.
CLIPPED_ROWS = 1
QUANTILES = 10_000
# Bounded numbers end this many times as far from the middle as the outer rows lie: 11 deviations of a bell curve.
OUTER_SHARE, OUTER_REACH = 0.002, 4.0
FEW_LABELS = 32  # a column of no more has an indicator of each; others have no more indicators than that
ROWS_A_LABEL = 10  # among many labels: with fewer rows an indicator follows the noise


@saved
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
        shares: For each column of labels the share of each indicator in the fit.
        indicators: For each column of labels the indicator that each label has, (labels,), the last for all rare ones;
            empty where each label has its own.
    """

    scores: Scores
    ranks: QuantileTransformer | None
    bounds: Array
    centre: Array
    scale: Array
    clip: float
    with_missing: tuple[int, ...]
    shares: tuple[Array, ...]
    indicators: tuple[np.ndarray, ...] = ()

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
        counts = [label_counts(column, codes) for column, codes in columns]
        indicators = tuple(map(_indicators, counts))
        shares = tuple(
            np.bincount(indicator, count) / n if len(indicator) else count / n
            for indicator, count in zip(indicators, counts, strict=True)
        )
        clip = min(CLIPPED_ROWS / n, 0.05) if scores == "normal" else 0.5 / n
        with_missing = _with_missing(rows)
        scale = np.where(spread > 0, spread, 1.0)
        return cls(scores, ranks, bounds, centre, scale, clip, with_missing, shares, indicators)

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
        """Indicators of the labels, (n, those of all columns); the shares of the fit where unknown among few."""
        blocks = [np.empty((len(rows), 0))]
        for j, (share, codes) in enumerate(zip(self.shares, rows.table.codes.T, strict=True)):
            indicator = self.indicator_of_label(j)
            blocks.append(np.vstack([np.eye(len(share)), share])[codes if indicator is None else indicator[codes]])
        return np.hstack(blocks)

    def indicator_of_label(self, j: int) -> np.ndarray | None:
        """For a column of labels the indicator of each, the last for an unknown one; None where each has its own."""
        if not self.indicators or not len(self.indicators[j]):
            return None
        return np.append(self.indicators[j], len(self.shares[j]) - 1)

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


def has_many(column: Column) -> bool:
    """Whether a column has more labels than can each have an indicator."""
    return column.kind == "label" and len(column.categories) + column.missing > FEW_LABELS


def label_counts(column: Column, codes: np.ndarray) -> np.ndarray:
    """How many rows have each label, (labels,), missing ones last where that is a label."""
    return np.bincount(codes[codes != UNKNOWN], minlength=len(column.categories) + column.missing)


def _indicators(counts: np.ndarray) -> np.ndarray:
    """The indicator of each of many labels: the most frequent ones, in order, have their own, the others the last."""
    if len(counts) <= FEW_LABELS:
        return np.empty(0, dtype=np.int64)
    frequent = np.argsort(-counts, kind="stable")[: FEW_LABELS - 1]
    frequent = np.sort(frequent[counts[frequent] >= ROWS_A_LABEL])
    indicators = np.full(len(counts), len(frequent))
    indicators[frequent] = np.arange(len(frequent))
    return indicators


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
