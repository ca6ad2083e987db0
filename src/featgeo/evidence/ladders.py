"""Ladders of features: orthonormal functions of a variable, from the smoothest to the roughest.

A number enters by its rank, as cosines of one, two, ... half-waves; labels as indicators. Several columns have two
ladders: the functions of single columns, and the principal components of a kernel of all of them, which see what
columns say only together. All of them are functions of one variable alone, so shuffling the other variable's rows
leaves them as they are: whatever the ladder, tests by shuffling keep their level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.kernel_approximation import Nystroem

from featgeo.features.encoding import Encoding
from featgeo.features.variables import Rows, Table
from featgeo.geometry.validation import Array

RUNGS = (1, 2, 4, 8, 12)
ROWS_PER_FEATURE = 4
MOST_FEATURES = 32  # of single columns, all together
MOST_LABELS = 32
KERNEL_RUNGS = (1, 2, 4, 8, 16, 32)
KERNEL_CENTRES = 256
KERNEL_GAMMA = 0.3
_RANK = 1e-6  # a feature whose rest, after those before it, is smaller than this share of it adds nothing


@dataclass(frozen=True, eq=False)
class Ladder:
    """Orthonormal features of the rows of a variable.

    Attributes:
        features: Mean 0 and covariance the identity over the rows, (n, d).
        rungs: Numbers of leading features that belong together, rising, the last is d.
    """

    features: Array
    rungs: tuple[int, ...]

    @property
    def kurtosis(self) -> float:
        """The largest fourth moment of a feature: 1.5 for cosines, n / m for a label of m rows."""
        return float(np.max(np.mean(np.square(np.square(self.features)), axis=0)))  # ** 4 is slow

    @property
    def rung_kurtosis(self) -> Array:
        """E|f|^4 of the leading k features of each rung, (rungs,): k^2 where all rows weigh alike."""
        energy = np.square(self.features).cumsum(axis=1)[:, np.array(self.rungs) - 1]
        return np.mean(np.square(energy), axis=0)


def smooth_ladders(rows: Rows, seed: int) -> tuple[Ladder, ...]:
    """The ladders of a variable: of its single columns, and where there are several of all together."""
    single = _column_ladder(rows.table)
    return (single,) if _width(rows.table) == 1 else (single, _kernel_ladder(rows.table, seed))


def linear_ladder(rows: Rows) -> Ladder:
    """The columns themselves, labels as indicators, as a single rung."""
    features = orthonormal(Encoding.fit(rows)(rows))
    return Ladder(features, (features.shape[1],))


def orthonormal(features: Array, before: Array | None = None) -> Array:
    """Centre and orthonormalise features in their order, after those of `before`; those that add nothing are dropped.

    Args:
        features: Shape (n, d).
        before: Orthonormal features that come first, (n, c).

    Returns:
        All together, (n, c + r).
    """
    n = len(features)
    kept = np.empty((n, 0)) if before is None else before
    for column in features.T:
        rest = column - column.mean()
        for _ in range(2):  # twice, for the digits
            rest = rest - kept @ (kept.T @ rest) / n
        size = np.linalg.norm(rest)
        # Measured against the feature as it came: what centring leaves of a constant is rounding.
        if size > _RANK * np.linalg.norm(column):
            kept = np.column_stack([kept, rest * (np.sqrt(n) / size)])
    return kept


def _column_ladder(table: Table) -> Ladder:
    """Functions of single columns: of all the first waves and the labels, then of all the second waves, and so on."""
    n, width = len(table), _width(table)
    most = max(1, min(MOST_FEATURES, n // ROWS_PER_FEATURE))
    waves = [_waves(numbers, min(RUNGS[-1], max(1, most // width))) for numbers in table.numbers.T]
    missing = [np.isnan(numbers)[:, None] for numbers in table.numbers.T]
    first = [*(wave[:, :1] for wave in waves), *missing, *(_indicators(codes) for codes in table.codes.T)]
    features = orthonormal(_principal(np.hstack(first)))
    # Among the first waves of several columns the leading combinations are rungs; labels of one column have no order.
    rungs = [rung for rung in RUNGS if rung < features.shape[1]] * (width > 1) + [features.shape[1]]
    for order in range(1, max((wave.shape[1] for wave in waves), default=0)):
        block = np.hstack([wave[:, order : order + 1] for wave in waves])
        features = orthonormal(_principal(block), features)
        if order + 1 in RUNGS:
            rungs.append(features.shape[1])
    return _ladder(features[:, : max(most, MOST_LABELS)], tuple(rungs))


def _width(table: Table) -> int:
    return table.numbers.shape[1] + table.codes.shape[1]


def _waves(values: Array, most: int) -> Array:
    """Cosines of the ranks, of one half-wave and more; a missing value counts as average."""
    known = int((~np.isnan(values)).sum())
    count = max(1, min(most, known // ROWS_PER_FEATURE))
    return np.nan_to_num(np.cos(np.pi * np.multiply.outer(_ranks(values), np.arange(1, count + 1))))


def _ranks(values: Array) -> Array:
    """Between 0 and 1, ties at their middle, NaN where missing."""
    present = ~np.isnan(values)
    ranks = np.full(len(values), np.nan)
    ranks[present] = (rankdata(values[present]) - 0.5) / max(1, present.sum())
    return ranks


def _indicators(codes: np.ndarray) -> Array:
    """Of the most frequent labels; the others share one."""
    counts = np.bincount(codes + 1)
    frequent = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    return (codes[:, None] + 1 == frequent).astype(np.float64)


def _principal(block: Array) -> Array:
    """The same span by the principal components of the features, each of variance 1, the largest component first."""
    centred = block - block.mean(axis=0)
    scaled = centred / centred.std(axis=0).clip(min=1e-12)
    energies, directions = np.linalg.eigh(scaled.T @ scaled / len(block))
    return scaled @ directions[:, energies > _RANK][:, ::-1]


def _kernel_ladder(table: Table, seed: int) -> Ladder:
    """Principal components of a Gaussian kernel of all columns; a label differs as a number does by a spread."""
    ranks = [np.nan_to_num(np.sqrt(12) * (_ranks(numbers) - 0.5))[:, None] for numbers in table.numbers.T]
    missing = [np.isnan(numbers)[:, None] for numbers in table.numbers.T]
    scores = np.hstack([*ranks, *missing, *(_indicators(codes) / np.sqrt(2) for codes in table.codes.T)])
    gamma = KERNEL_GAMMA / max(1.0, float(scores.var(axis=0).sum()))
    centres = min(KERNEL_CENTRES, len(scores))
    features = Nystroem(gamma=gamma, n_components=centres, random_state=seed).fit_transform(scores)
    features -= features.mean(axis=0)
    energy, directions = np.linalg.eigh(features.T @ features / len(features))
    most = max(1, min(KERNEL_RUNGS[-1], len(scores) // ROWS_PER_FEATURE, int(np.sum(energy > 1e-9 * energy[-1]))))
    leading = np.arange(len(energy) - 1, len(energy) - 1 - most, -1)
    return _ladder(features @ (directions[:, leading] / np.sqrt(energy[leading])), KERNEL_RUNGS)


def _ladder(features: Array, rungs: tuple[int, ...]) -> Ladder:
    d = features.shape[1]
    return Ladder(features, (*(rung for rung in rungs if rung < d), d))
