"""Columns by rank or by symbol, and functions of them: what tests and regressions on S read.

Independence does not change under monotone maps of a number, nor under any renaming of symbols: so a column of many
numbers enters by its *ranks*, a column of labels or of few numbers by its *symbols*. Only regressions on S read
numbers as they are, too: what follows a line in them is then seen exactly. A missing number has no rank, and a column
of symbols beside it says where it is missing.

Each column knows the space that reads it of other rows: a new number has the rank between its neighbours, a new symbol
is none of those that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri
from torch import Tensor

from featgeo.features.recipes import is_finite, most_values
from featgeo.features.space import Space, interpolated
from featgeo.features.spaces import TableSpace
from featgeo.features.variables import Rows, Table, distinct, symbol_keys
from featgeo.geometry.spans import COLLINEAR, CONSTANT_SPREAD, AffineFeatures, flag_from_gram
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

LANDMARKS = 200  # of a kernel: bounds time, and more tell little more of smooth functions


@saved
@dataclass(eq=False, repr=False)
class NumberSpace(Space):
    """A number of a table less its mean in the fit, (n, 1).

    Attributes:
        at: Its position among the numbers.
        mean: The mean.
        filled: Whether a missing one counts as average; else it is NaN.
    """

    at: int
    mean: float
    filled: bool = False

    def forward(self, rows: Rows) -> Tensor:
        """The number of each row."""
        number = rows.numbers[:, [self.at]] - self.tensor("mean")
        return number.nan_to_num() if self.filled else number


@saved
@dataclass(eq=False, repr=False)
class RankSpace(Space):
    """Where a function stands among its values in the fit.

    Attributes:
        of: The function, (n, 1).
        knots: Its values in order, (m,).
        ranks: Their mid-ranks, strictly between 0 and 1, (m,).
    """

    of: Space
    knots: Array
    ranks: Array

    @classmethod
    def fit(cls, of: Space, values: Array, ranks: Array) -> RankSpace:
        """From values of the function and their ranks, (n,) each, NaN where missing."""
        knots, first = np.unique(values, return_index=True)
        known = ~np.isnan(knots)
        return cls(of, knots[known], ranks[first[known]])

    def forward(self, rows: Rows) -> Tensor:
        """Ranks, (n, 1), NaN where missing."""
        if self not in rows.memo:  # several spaces read the same ranks
            knots, ranks = self.tensor("knots")[None], self.tensor("ranks")[None]
            rows.memo[self] = interpolated(self.of.forward(rows), knots, ranks)
        return rows.memo[self]


@dataclass(frozen=True, eq=False)
class Ranks:
    """A column of numbers.

    Attributes:
        values: Mid-ranks over n, strictly between 0 and 1, NaN where missing; shape (n,).
        numbers: The numbers less their mean, NaN where missing; shape (n,).
        at: Its position among the numbers of a table.
        mean: As in `NumberSpace`.
    """

    values: Array
    numbers: Array
    at: int
    mean: float

    @classmethod
    def read(cls, numbers: Array, at: int = 0) -> Ranks:
        """Of numbers that vary, NaN where missing, at a position among those of a table."""
        mean = float(np.nanmean(numbers))
        return cls(mid_ranks(numbers), numbers - mean, at, mean)

    @property
    def scores(self) -> Array:
        """Where a standard normal has these ranks, (n,); a missing number counts as average."""
        return np.nan_to_num(ndtri(self.values))

    @cached_property
    def space(self) -> RankSpace:
        """Its ranks in other rows."""
        return RankSpace.fit(NumberSpace(self.at, self.mean), self.numbers, self.values)


@dataclass(frozen=True, eq=False)
class Symbols:
    """A column with few values.

    Attributes:
        codes: Integers 0, ..., size - 1, each of which occurs; shape (n,).
        size: The number of symbols.
        keys: The symbols as a table has them, (size, columns); none where they are not of a table.
        at: The columns, as in `TableSpace`.
    """

    codes: np.ndarray
    size: int
    keys: np.ndarray | None = None
    at: tuple[int, ...] = ()

    @classmethod
    def of(cls, values: np.ndarray, *at: int) -> Symbols:
        """The position of each value, or row, among the distinct ones in order."""
        keys = values.reshape(len(values), -1)
        first, codes, _ = distinct(keys)
        return cls(codes, len(first), keys[first].astype(np.float64), at)

    @cached_property
    def space(self) -> TableSpace:
        """Its symbols in other rows."""
        return TableSpace(np.asarray(self.keys), np.bincount(self.codes) / len(self.codes), self.at)

    @property
    def groups(self) -> list[np.ndarray]:
        """The rows of each symbol."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.codes[order])) + 1)


Scored = Ranks | Symbols


def scored_columns(table: Table, most_symbols: int | None = None) -> list[Scored]:
    """The columns that vary.

    Args:
        table: Their rows.
        most_symbols: Numbers of so many values or fewer are symbols; two always are. None: `Options.finite_values`.
    """
    columns: list[Scored] = []
    p, q = table.numbers.shape[1], table.codes.shape[1]
    for i, numbers in enumerate(table.numbers.T):
        missing = np.isnan(numbers)
        symbols = Symbols.of(np.where(missing, np.inf, numbers), i)
        few = symbols.size <= most_values(len(table), most_symbols)
        columns.append(symbols if few else Ranks.read(numbers, i))
        if missing.any() and not few:
            columns.append(Symbols.of(missing, p + q + i))
    columns += [Symbols.of(labels, p + i) for i, labels in enumerate(table.codes.T)]
    return [column for column in columns if isinstance(column, Ranks) or column.size > 1]


def same(one: Scored, other: Scored) -> bool:
    """Whether two columns say the same: equal ranks, in either direction, or symbols that go with each other."""
    if isinstance(one, Ranks) and isinstance(other, Ranks):
        turned = (other.values, 1 - other.values)
        return any(np.allclose(one.values, values, rtol=0, atol=1e-12, equal_nan=True) for values in turned)
    if isinstance(one, Symbols) and isinstance(other, Symbols) and one.size == other.size:
        return len(np.unique(one.codes * other.size + other.codes)) == one.size
    return False


def joint_symbols(rows: Rows) -> Symbols | None:
    """All columns together as one column of symbols; None where they take many values."""
    keys = symbol_keys(rows.table)
    return Symbols.of(keys, *range(keys.shape[1])) if is_finite(rows) else None


def mid_ranks(numbers: Array) -> Array:
    """Among those that are not missing, strictly between 0 and 1."""
    known = ~np.isnan(numbers)
    _, place, counts = np.unique(numbers[known], return_inverse=True, return_counts=True)
    found = np.full(len(numbers), np.nan)
    found[known] = ((np.cumsum(counts) - counts / 2) / max(len(place), 1))[place]  # SciPy's take ten times as long
    return found


def cosines_of(ranks: Array, count: int) -> Array:
    """sqrt(2) cos(pi k r) for k = 1, ..., count, (n, count): orthonormal functions of a rank r; 0 where missing."""
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))))


def frequent(column: Symbols, most: int) -> np.ndarray:
    """The most frequent symbols, (at most `most`,)."""
    return np.argsort(-np.bincount(column.codes), kind="stable")[:most]


def indicators(column: Symbols, most: int) -> Array:
    """Of the most frequent symbols, (n, at most `most`)."""
    return (column.codes[:, None] == frequent(column, most)).astype(np.float64)


def whitening(features: Array, sizes: Sequence[int] = ()) -> tuple[AffineFeatures, tuple[int, ...]]:
    """What makes features, (n, d), functions of mean 0 and covariance identity over the rows, of growing spans.

    Args:
        features: Shape (n, d).
        sizes: How many features each span adds; one span of all of them when empty.

    Returns:
        The map, to r functions, the strongest of each span first; and the dimension of each span.
    """
    mean = features.mean(axis=0)
    centred = features - mean
    gram: Any = centred.T @ centred / len(centred)
    constant = np.sqrt(np.diag(gram)) <= CONSTANT_SPREAD * np.abs(mean)
    gram[constant] = gram[:, constant] = 0  # what centring leaves of a constant is rounding
    flag = flag_from_gram(gram, sizes or [features.shape[1]])
    return AffineFeatures(mean, flag.basis, np.zeros(flag.ends[-1])), flag.ends


def orthonormal(features: Array, sizes: Sequence[int] = ()) -> tuple[Array, tuple[int, ...]]:
    """The functions of `whitening`, (n, r), and the dimension of each span."""
    affine, ends = whitening(features, sizes)
    return (features - affine.centre) @ affine.weight, ends


def landmarks(n: int, seed: int) -> np.ndarray:
    """Some of n rows, at random."""
    return np.arange(n) if n <= LANDMARKS else np.random.default_rng(seed).permutation(n)[:LANDMARKS]


def landmark_features(kernel: Array, chosen: np.ndarray) -> AffineFeatures:
    """What makes the kernel of all rows with the chosen ones, (n, m), centred features whose products it is.

    It is, as far as the chosen ones tell: the approximation of Nystroem.
    """
    eigenvalues, vectors = np.linalg.eigh(kernel[chosen])
    kept = eigenvalues > COLLINEAR * eigenvalues[-1]
    root: Array = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    return AffineFeatures(kernel.mean(axis=0), root, np.zeros(root.shape[1]))


def kernel_components(columns: Sequence[Scored], n: int, seed: int) -> tuple[Array, Array]:
    """Principal components of a Gaussian kernel of all columns, (n, d), the strongest first, and their energies, (d,).

    A label differs as a number does by a spread. The seed is that of the landmarks.
    """
    options = in_force.get()
    scores = np.hstack([
        np.nan_to_num(np.sqrt(12) * (column.values - 0.5))[:, None] if isinstance(column, Ranks)
        else indicators(column, options.test_features) / np.sqrt(2)
        for column in columns
    ])  # fmt: skip
    gamma = options.test_gamma / max(1.0, float(scores.var(axis=0).sum()))
    chosen = landmarks(n, seed)
    kernel = np.exp(-gamma * cdist(scores, scores[chosen], "sqeuclidean"))
    features = landmark_features(kernel, chosen)(kernel)
    energies, directions = np.linalg.eigh(features.T @ features / n)
    rank = int(np.sum(energies > COLLINEAR * energies[-1]))
    most = max(1, min(options.test_features, n // options.rows_per_feature, rank))
    energies, directions = energies[: -most - 1 : -1], directions[:, : -most - 1 : -1]
    return features @ (directions / np.sqrt(energies)), energies
