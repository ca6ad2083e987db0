"""Columns as tests see them, by rank or by symbol, and the functions of a column that all tests use.

Independence does not change under monotone maps of a number, nor under any renaming of symbols: so a column of many
numbers enters by its *ranks*, a column of labels or of few numbers by its *symbols*. Only regressions on S read
numbers as they are, too: what follows a line in them is then seen exactly. A missing number has no rank, and a column
of symbols beside it says where it is missing.

Kernels come as features: inner products of the features of two rows are the kernel, as far as landmarks tell, which are
a few hundred of the rows (the approximation of Nystroem).

Variables as users hand them in, read as rows and checked.

Weights of a test count rows: a weight of 2 is the row twice, in the statistic, in its null distribution and in how many
rows there are. So rows are taken as often as they count before anything is computed of them, and every test, also by
arrangements of the rows, means the same by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from featgeo.features.columns import counted
from featgeo.features.variables import Rows, Table, Variable, symbol_keys
from featgeo.geometry.spans import COLLINEAR, CONSTANT_SPREAD, flag_from_gram
from featgeo.geometry.validation import Array, check_same_rows
from featgeo.tuning import in_force


def read_rows(sample_weight: Any = None, **variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable, as many of all, each as often as it counts; once when `sample_weight` is None."""
    variables = dict(zip(variables, counted(sample_weight, **variables), strict=True))
    every = {name: Variable.seen(values, name).rows(values) for name, values in variables.items()}
    check_same_rows(**every)
    return tuple(every.values())


def read_tables(sample_weight: Any = None, **variables: Any) -> tuple[Rows, ...]:
    """The same of variables that must be tables, and of which X and Y must vary."""
    every = read_rows(sample_weight, **variables)
    check_rows(*every)
    return every


def check_rows(*variables: Rows, tensors: bool = False) -> None:
    """Refuse an X or Y that never varies, and images and sequences, unless tensors will do."""
    for rows in variables:
        name = rows.variable.name
        if rows.variable.is_tensor and not tensors:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network; `independence_test` learns some with "
                "method='learned'."
            )
        if name != "S" and not varies(rows):
            raise ValueError(f"{name} never varies: nothing can depend on it. Pass rows of at least two values.")


def varies(rows: Rows) -> bool:
    """Whether two rows differ."""
    values = rows.tensor.flatten(1).numpy() if rows.variable.is_tensor else symbol_keys(rows.table)
    return bool((values != values[0]).any())


LANDMARKS = 200  # more take longer, and tell little more of smooth functions
SINGLE_WIDTHS = (0.3, 1.0)  # of the Gaussian kernels of one column, in normal scores: rows suffice for both
SYMBOL_DISTANCE = 4.0  # squared, between two symbols: two deviations of a number
INDEX_WIDTH, INDEX_SHARE = 0.2, 0.5  # of the narrow kernel along an index, beside the wide ones
INDEX_GRID = np.arange(-9, 10) * 0.3  # of points along an index, in normal scores: the step is about the width


@dataclass(frozen=True, eq=False)
class Ranks:
    """A column of numbers.

    Attributes:
        values: Mid-ranks over n, strictly between 0 and 1, NaN where missing; shape (n,).
        numbers: The numbers, of mean 0 and variance 1, 0 where missing; shape (n,).
    """

    values: Array
    numbers: Array

    @classmethod
    def of(cls, numbers: Array) -> Ranks:
        """Of numbers that vary, NaN where missing."""
        known = numbers[~np.isnan(numbers)]
        centred = np.nan_to_num(numbers - known.mean())
        centred = centred / np.abs(centred).max()  # squares of huge numbers are not numbers
        return cls(ranks(numbers), centred / np.sqrt(np.square(centred).sum() / len(known)))

    @property
    def scores(self) -> Array:
        """Where a standard normal has these ranks, (n,); a missing number counts as average."""
        return np.nan_to_num(ndtri(self.values))


@dataclass(frozen=True, eq=False)
class Symbols:
    """A column with few values.

    Attributes:
        codes: Integers 0, ..., size - 1, each of which occurs; shape (n,).
        size: The number of symbols.
    """

    codes: np.ndarray
    size: int

    @classmethod
    def of(cls, values: np.ndarray) -> Symbols:
        """The position of each value, or row, among the distinct ones in order."""
        codes = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
        return cls(codes, int(codes.max()) + 1)

    def are_few(self, most: int | None = None) -> bool:
        """Whether a finite alphabet, of so many symbols or fewer, is behind them."""
        return self.size <= max(2, min(most or in_force.get().finite_values, int(np.sqrt(len(self.codes)))))

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
    for numbers in table.numbers.T:
        missing = np.isnan(numbers)
        symbols = Symbols.of(np.where(missing, np.inf, numbers))
        few = symbols.are_few(most_symbols)
        columns.append(symbols if few else Ranks.of(numbers))
        if missing.any() and not few:
            columns.append(Symbols(missing.astype(np.int64), 2))
    columns += [Symbols.of(labels) for labels in table.codes.T]
    return [column for column in columns if isinstance(column, Ranks) or column.size > 1]


def same(one: Scored, other: Scored) -> bool:
    """Whether two columns say the same: equal ranks, in either direction, or symbols that go with each other."""
    if isinstance(one, Ranks) and isinstance(other, Ranks):
        turned = (other.values, 1 - other.values)
        return any(np.allclose(one.values, values, rtol=0, atol=1e-12, equal_nan=True) for values in turned)
    if isinstance(one, Symbols) and isinstance(other, Symbols) and one.size == other.size:
        return len(np.unique(one.codes * other.size + other.codes)) == one.size
    return False


def joint_symbols(table: Table) -> Symbols | None:
    """All columns together as one column of symbols; None where they take many values.

    A single column of labels is one, however many there are: they have no order that could serve instead.
    """
    symbols = Symbols.of(symbol_keys(table))
    single = table.codes.shape[1] == 1 and table.numbers.shape[1] == 0
    return symbols if single or symbols.are_few() else None


def ranks(numbers: Array) -> Array:
    """Mid-ranks among those that are not missing, strictly between 0 and 1."""
    return (rankdata(numbers, nan_policy="omit") - 0.5) / np.sum(~np.isnan(numbers)).clip(min=1)


def cosines_of(ranks: Array, count: int) -> Array:
    """sqrt(2) cos(pi k r) for k = 1, ..., count, (n, count): orthonormal functions of a rank r; 0 where missing."""
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))))


def indicators(column: Symbols, most: int) -> Array:
    """Of the most frequent symbols, (n, at most `most`)."""
    frequent = np.argsort(-np.bincount(column.codes), kind="stable")[:most]
    return (column.codes[:, None] == frequent).astype(np.float64)


def orthonormal(features: Array, sizes: Sequence[int] = ()) -> tuple[Array, tuple[int, ...]]:
    """An orthonormal basis of growing spans of features, and the dimension of each span.

    Args:
        features: Shape (n, d).
        sizes: How many features each span adds; one span of all of them when empty.

    Returns:
        Functions of mean 0 and covariance identity over the rows, (n, r), the strongest of each span first.
    """
    mean = features.mean(axis=0)
    centred = features - mean
    gram: Any = centred.T @ centred / len(centred)
    constant = np.sqrt(np.diag(gram)) <= CONSTANT_SPREAD * np.abs(mean)
    gram[constant] = gram[:, constant] = 0  # what centring leaves of a constant is rounding
    flag = flag_from_gram(gram, sizes or [features.shape[1]])
    return np.asarray(centred @ flag.basis), flag.ends


def kernel_features(columns: Sequence[Scored], n: int, seed: int) -> Array:
    """Features of the kernel of smooth functions of the columns, sums of functions of single columns foremost, (n, m).

    Args:
        columns: At least one.
        n: Number of rows.
        seed: Of the landmarks.
    """
    chosen = landmarks(n, seed)
    if len(columns) == 1:
        distances = _squared_distances(columns[0], chosen)
        return landmark_features(np.sum([gaussian(distances, width) for width in SINGLE_WIDTHS], axis=0), chosen)
    additive, total = np.zeros((2, n, len(chosen)))
    for column in columns:
        distances = _squared_distances(column, chosen)
        additive += gaussian(distances)
        total += distances
    return landmark_features(additive / len(columns) + gaussian(total / len(columns)), chosen)


def landmarks(n: int, seed: int) -> np.ndarray:
    """Some of n rows, at random."""
    return np.arange(n) if n <= LANDMARKS else np.random.default_rng(seed).permutation(n)[:LANDMARKS]


def landmark_features(kernel: Array, chosen: np.ndarray) -> Array:
    """Centred features of a kernel of all rows with the chosen ones, (n, m), (n, at most m)."""
    eigenvalues, vectors = np.linalg.eigh(kernel[chosen])
    kept = eigenvalues > COLLINEAR * eigenvalues[-1]
    features: Array = kernel @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    return features - features.mean(axis=0)


def narrow_features(index: Array) -> Array:
    """Features of a narrow kernel along an index, (n, m)."""
    features: Array = gaussian(np.square(np.subtract.outer(ndtri(index), INDEX_GRID)), INDEX_WIDTH) @ _grid_root()
    return features - features.mean(axis=0)


@cache
def _grid_root() -> Array:
    """What makes kernels at the points of the grid into features: the inverse root of their own kernel."""
    kernel = gaussian(np.square(np.subtract.outer(INDEX_GRID, INDEX_GRID)), INDEX_WIDTH)
    return np.sqrt(INDEX_SHARE) * np.linalg.inv(np.linalg.cholesky(kernel)).T


def gaussian(squared_distances: Array, width: float = 1.0) -> Array:
    """The kernel of some width, from squared distances."""
    return np.exp(squared_distances / (-2 * width**2))


def _squared_distances(column: Scored, chosen: np.ndarray) -> Array:
    if isinstance(column, Ranks):
        return np.square(np.subtract.outer(column.scores, column.scores[chosen]))
    return SYMBOL_DISTANCE * np.not_equal.outer(column.codes, column.codes[chosen])
