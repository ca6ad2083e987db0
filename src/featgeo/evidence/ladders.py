"""Ladders of features: orthonormal functions of a variable, from the smoothest to the roughest.

A number enters by its rank, as cosines of one, two, ... half-waves; labels as indicators. Several columns have two
ladders: the functions of single columns, and the principal components of a kernel of all of them, which see what
columns say only together. All of them are functions of one variable alone, so shuffling the other variable's rows
leaves them as they are: whatever the ladder, tests by shuffling keep their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from featgeo.evidence.scored import (
    Ranks,
    Scored,
    Symbols,
    cosines_of,
    indicators,
    landmark_features,
    landmarks,
    orthonormal,
    scored_columns,
)
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Rows
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array

MOST_WAVES = 12  # half-waves of a number: rougher functions take more rows than tests get
MOST_FEATURES = 32  # of single columns, all together, of a column of labels, and of a kernel
ROWS_PER_FEATURE = 4  # at least: the roughest features of few rows are noise
KERNEL_GAMMA = 0.3  # inverse squared width of the kernel of several columns, over their total variance


@dataclass(frozen=True, eq=False)
class Ladder:
    """Orthonormal features of the rows of a variable.

    Attributes:
        features: Mean 0 and covariance the identity over the rows, (n, d).
        rungs: Numbers of leading features that belong together, rising, the last is d.
    """

    features: Array
    rungs: tuple[int, ...]

    @cached_property
    def rung_kurtosis(self) -> Array:
        """E|f|^4 of the leading k features of each rung, (rungs,): k^2 where all rows weigh alike."""
        energy = np.square(self.features).cumsum(axis=1)[:, np.array(self.rungs) - 1]
        return np.mean(np.square(energy), axis=0)


def smooth_ladders(rows: Rows, seed: int) -> tuple[Ladder, ...]:
    """The ladders of a variable: of its single columns, and where there are several of all together."""
    table = rows.table
    columns, width = scored_columns(table, 2), table.numbers.shape[1] + table.codes.shape[1]
    single = _column_ladder(columns, len(table), width)
    if width == 1:
        return (single,)
    together, _ = kernel_components(columns, len(table), seed)
    return single, Ladder(together, doubling(together.shape[1]))


def linear_ladder(rows: Rows) -> Ladder:
    """The columns themselves, labels as indicators, as a single rung."""
    features, rungs = orthonormal(Encoding.fit(rows)(rows))
    return Ladder(features, rungs)


def _column_ladder(columns: Sequence[Scored], n: int, width: int) -> Ladder:
    """Functions of single columns: of all the first waves and the labels, then of all the second waves, and so on."""
    most = max(1, min(MOST_FEATURES, n // ROWS_PER_FEATURE))
    most_waves = min(MOST_WAVES, max(1, most // width))
    waves = [_waves(column, most_waves) for column in columns if isinstance(column, Ranks)]
    labels = [indicators(column, MOST_FEATURES) for column in columns if isinstance(column, Symbols)]
    spans = [[*labels, *(wave[:, :1] for wave in waves)]]
    spans += [[wave[:, i : i + 1] for wave in waves] for i in range(1, max((w.shape[1] for w in waves), default=0))]
    blocks = [np.hstack(span) for span in spans]
    features, ends = orthonormal(np.hstack(blocks), [block.shape[1] for block in blocks])
    # Among the first waves of several columns the leading combinations are rungs; labels of one column have no order.
    leading = doubling(ends[0]) if width > 1 else ()
    features = features[:, : max(most, MOST_FEATURES)]
    rungs = {min(rung, features.shape[1]) for rung in (*leading, *(ends[i - 1] for i in doubling(len(ends))))}
    return Ladder(features, tuple(sorted(rungs)))


def _waves(column: Ranks, most: int) -> Array:
    known = int(np.sum(~np.isnan(column.values)))
    return cosines_of(column.values, max(1, min(most, known // ROWS_PER_FEATURE)))


def kernel_components(columns: Sequence[Scored], n: int, seed: int) -> tuple[Array, Array]:
    """Principal components of a Gaussian kernel of all columns, (n, d), the strongest first, and their energies, (d,).

    A label differs as a number does by a spread. The seed is that of the landmarks.
    """
    scores = np.hstack([
        np.nan_to_num(np.sqrt(12) * (column.values - 0.5))[:, None] if isinstance(column, Ranks)
        else indicators(column, MOST_FEATURES) / np.sqrt(2)
        for column in columns
    ])  # fmt: skip
    gamma = KERNEL_GAMMA / max(1.0, float(scores.var(axis=0).sum()))
    chosen = landmarks(n, seed)
    features = landmark_features(np.exp(-gamma * cdist(scores, scores[chosen], "sqeuclidean")), chosen)
    energies, directions = np.linalg.eigh(features.T @ features / n)
    most = max(1, min(MOST_FEATURES, n // ROWS_PER_FEATURE, int(np.sum(energies > COLLINEAR * energies[-1]))))
    energies, directions = energies[: -most - 1 : -1], directions[:, : -most - 1 : -1]
    return features @ (directions / np.sqrt(energies)), energies


def doubling(most: int) -> tuple[int, ...]:
    """1, 2, 4, ..., and the last."""
    return (*(2**i for i in range((most - 1).bit_length())), most)
