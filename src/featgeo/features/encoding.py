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

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor, nn

from featgeo.features.columns import UNKNOWN, Column
from featgeo.features.space import Space
from featgeo.features.tensors import last_at_most, looked_up, normal_quantile
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
@dataclass(eq=False, repr=False)
class Encoding(Space):
    """A fitted encoding of a table: the space of its columns themselves.

    With it and without ridge, the modal decomposition is canonical correlation analysis.

    Attributes:
        scores: How numbers are mapped.
        quantiles: Of each number in the fit, (p, r), evenly spread over the ranks from 0 to 1; none where numbers are
            only shifted and scaled.
        bounds: The least and the largest of each number that count, (2, p), for "bounded"; else infinite.
        centre: Means of the numbers, for "standard" and "bounded".
        scale: Standard deviations of the numbers.
        clip: Uniform scores are kept this far from 0 and 1.
        with_missing: Positions of the numbers that missed in some rows of the fit.
        shares: For each column of labels the share of each indicator in the fit.
        indicators: For each column of labels the indicator that each label has, (labels + 1,), the last for unknown
            ones: one for all rare labels, or, where each has its own, one beyond them all, the shares.
    """

    scores: Scores
    quantiles: Array | None
    bounds: Array
    centre: Array
    scale: Array
    clip: float
    with_missing: tuple[int, ...]
    shares: tuple[Array, ...]
    indicators: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        self.rows_of_indicators = tuple(np.vstack([np.eye(len(share)), share]) for share in self.shares)
        self.width, self.apart = math.sqrt(12), math.sqrt(2)  # of uniform ranks; of two rows that differ in a label
        if self.quantiles is not None:
            self.ranks = np.array([_ranks_at(knots) for knots in self.quantiles])

    @classmethod
    def fit(cls, rows: Rows, scores: Scores = "standard") -> Encoding:
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
        ranked = numbers.shape[1] > 0 and scores in ("uniform", "normal")
        columns = zip(rows.variable.labels, table.codes.T, strict=True)
        counts = [label_counts(column, codes) for column, codes in columns]
        indicators = tuple(map(_indicators, counts))
        shares = tuple(
            np.bincount(of_label[:-1], count) / n for of_label, count in zip(indicators, counts, strict=True)
        )
        clip = min(CLIPPED_ROWS / n, 0.05) if scores == "normal" else 0.5 / n
        scale = np.where(spread > 0, spread, 1.0)
        quantiles = _quantiles(rows) if ranked else None
        return cls(scores, quantiles, bounds, centre, scale, clip, _with_missing(rows), shares, indicators)

    def numbers(self, rows: Rows) -> Tensor:
        """Scores of the numbers, (n, p), and an indicator for each that may be missing."""
        missing = torch.isnan(rows.numbers)
        filled = torch.where(missing, 0.0, self._scores(rows))
        if not self.with_missing:
            return filled
        return torch.cat([filled, missing[:, list(self.with_missing)].double()], dim=1)

    def _scores(self, rows: Rows) -> Tensor:
        if self.quantiles is None:
            low, high = self.tensor("bounds")
            bounded = rows.numbers.clamp(low, high) if self.scores == "bounded" else rows.numbers
            return (bounded - self.tensor("centre")) / self.tensor("scale")
        if id(self.quantiles) not in rows.memo:  # spaces with different scores share them, and the id stays taken
            rows.memo[id(self.quantiles)] = self._ranks(rows.numbers), self.quantiles
        rank = rows.memo[id(self.quantiles)][0].clamp(self.tensor("clip"), 1 - self.tensor("clip"))
        return normal_quantile(rank) if self.scores == "normal" else self.tensor("width") * (rank - 0.5)

    def _ranks(self, numbers: Tensor) -> Tensor:
        """Where numbers stand among the quantiles, between 0 and 1, (n, p)."""
        knots, ranks = self.tensor("quantiles"), self.tensor("ranks")
        left = last_at_most(knots, numbers)
        right = (left + 1).clamp(max=knots.shape[1] - 1)
        start = looked_up(knots, left)
        share = (numbers - start) / (looked_up(knots, right) - start)
        between = (left + share) / max(knots.shape[1] - 1, 1)
        return torch.where(numbers > start, between, looked_up(ranks, left)).clamp(max=1.0)

    def labels(self, rows: Rows) -> Tensor:
        """Indicators of the labels, (n, those of all columns); the shares of the fit where unknown among few."""
        blocks = [rows.numbers[:, :0]]
        for j in range(len(self.shares)):
            of_label, codes = self.tensor("indicators", j), rows.codes[:, j]
            n_labels = len(of_label) - 1
            known = torch.where((codes >= 0) & (codes < n_labels), codes, n_labels)
            blocks.append(nn.functional.embedding(of_label[known], self.tensor("rows_of_indicators", j)))
        return torch.cat(blocks, dim=1)

    def forward(self, rows: Rows) -> Tensor:
        """Numbers and labels side by side; two rows that differ in a label are as far apart as one in a number."""
        numbers = self.numbers(rows)
        return torch.cat([numbers, self.labels(rows) / self.tensor("apart")], dim=1) if self.shares else numbers


def _quantiles(rows: Rows) -> Array:
    """Quantiles of each number, (p, r), known once for all spaces of these rows."""
    if "quantiles" not in rows.memo:
        numbers = rows.table.numbers
        known_or_zero = np.where(np.isnan(numbers).all(axis=0), 0.0, numbers)  # what is never known has no ranks
        fitted = QuantileTransformer(n_quantiles=min(QUANTILES, len(rows)), subsample=None).fit(known_or_zero)
        rows.memo["quantiles"] = np.ascontiguousarray(fitted.quantiles_.T)
    return np.asarray(rows.memo["quantiles"])


def _ranks_at(knots: Array) -> Array:
    """The rank of each quantile of a number, (r,): where several are one value the middle of theirs, or the end."""
    last = max(len(knots) - 1, 1)
    below, above = (np.searchsorted(knots, knots, side=side) for side in ("left", "right"))
    middle = (below + above - 1) / 2 / last
    return np.where(below == 0, 0.0, np.where(above == len(knots), 1.0, middle))


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
    """The indicator of each label and of unknown ones, (labels + 1,).

    Of many labels the most frequent ones, in order, have their own, the others the last.
    """
    if len(counts) <= FEW_LABELS:
        return np.arange(len(counts) + 1)
    frequent = np.argsort(-counts, kind="stable")[: FEW_LABELS - 1]
    frequent = np.sort(frequent[counts[frequent] >= ROWS_A_LABEL])
    indicators = np.full(len(counts) + 1, len(frequent))
    indicators[frequent] = np.arange(len(frequent))
    return indicators


def _with_missing(rows: Rows) -> tuple[int, ...]:
    """Positions among the numbers of columns with missing values; a date counts once, not for each of its parts."""
    positions, start = [], 0
    for column in rows.variable.numbers:
        if column.missing:
            positions.append(start)
        start += 1 + len(column.parts)
    return tuple(positions)
