"""Ladders of features: orthonormal functions of a variable, from the smoothest to the roughest.

A number enters by its rank, as cosines of one, two, ... half-waves; labels as indicators; several columns together as
the principal components of a kernel of their scores. All of them are functions of one variable alone, so shuffling the
other variable's rows leaves them as they are: whatever the ladder, tests by shuffling keep their level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.kernel_approximation import Nystroem

from featgeo.features.encoding import Encoding
from featgeo.features.spaces import LinearSpace
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array

RUNGS = (1, 2, 4, 8, 12)
ROWS_PER_COSINE = 4
MOST_LABELS = 32
KERNEL_RUNGS = (1, 2, 4, 8, 16, 32)
KERNEL_CENTRES = 256
ROWS_PER_COMPONENT = 4
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


def smooth_ladder(rows: Rows, seed: int) -> Ladder:
    """The ladder that suits the columns of a variable."""
    table = rows.table
    if table.numbers.shape[1] + table.codes.shape[1] > 1:
        return _kernel_ladder(rows, seed)
    if table.codes.shape[1]:
        return _label_ladder(table.codes[:, 0])
    return _number_ladder(table.numbers[:, 0])


def linear_ladder(rows: Rows) -> Ladder:
    """The columns themselves, labels as indicators, as a single rung."""
    features = orthonormal(LinearSpace.fit(rows)(rows))
    return Ladder(features, (features.shape[1],))


def orthonormal(features: Array) -> Array:
    """Centre and orthonormalise features in their order, (n, d) to (n, r); those that add nothing are dropped."""
    n = len(features)
    kept = np.empty((n, 0))
    for column in features.T:
        rest = column - column.mean()
        for _ in range(2):  # twice, for the digits
            rest = rest - kept @ (kept.T @ rest) / n
        size = np.linalg.norm(rest)
        # Measured against the feature as it came: what centring leaves of a constant is rounding.
        if size > _RANK * np.linalg.norm(column):
            kept = np.column_stack([kept, rest * (np.sqrt(n) / size)])
    return kept


def _number_ladder(values: Array) -> Ladder:
    """Cosines of the ranks, ties at their middle; a missing value counts as average and has an indicator."""
    present = ~np.isnan(values)
    highest = max(1, min(RUNGS[-1], int(present.sum()) // ROWS_PER_COSINE))
    level = (rankdata(values[present]) - 0.5) / max(1, present.sum())
    cosines = np.zeros((len(values), highest))
    cosines[present] = np.cos(np.pi * np.multiply.outer(level, np.arange(1, highest + 1)))
    if not present.all():
        cosines = np.insert(cosines, 1, present, axis=1)
    return _ladder(orthonormal(cosines), RUNGS)


def _label_ladder(codes: np.ndarray) -> Ladder:
    """Indicators of the most frequent labels; the others share one. Labels have no order: a single rung."""
    counts = np.bincount(codes + 1)
    frequent = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    features = orthonormal((codes[:, None] + 1 == frequent).astype(np.float64))
    return Ladder(features, (features.shape[1],))


def _kernel_ladder(rows: Rows, seed: int) -> Ladder:
    """Principal components of a Gaussian kernel of the scored columns."""
    encoded = Encoding.fit(rows, "uniform")(rows)
    gamma = KERNEL_GAMMA / max(1.0, float(encoded.var(axis=0).sum()))
    centres = min(KERNEL_CENTRES, len(encoded))
    features = Nystroem(gamma=gamma, n_components=centres, random_state=seed).fit_transform(encoded)
    features -= features.mean(axis=0)
    energy, directions = np.linalg.eigh(features.T @ features / len(features))
    most = max(1, min(KERNEL_RUNGS[-1], len(encoded) // ROWS_PER_COMPONENT, int(np.sum(energy > 1e-9 * energy[-1]))))
    leading = np.arange(len(energy) - 1, len(energy) - 1 - most, -1)
    return _ladder(features @ (directions[:, leading] / np.sqrt(energy[leading])), KERNEL_RUNGS)


def _ladder(features: Array, rungs: tuple[int, ...]) -> Ladder:
    d = features.shape[1]
    return Ladder(features, (*(rung for rung in rungs if rung < d), d))
