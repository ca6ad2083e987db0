"""Columns as tests see them: by rank, or by symbol.

Independence does not change under monotone maps of a number, nor under any renaming of symbols: so a column of many
numbers enters by its *ranks*, a column of labels or of few numbers by its *symbols*. Only regressions on S read
numbers as they are, too: what follows a line in them is then seen exactly. A missing number has no rank, and a column
of symbols beside it says where it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from featgeo.features.recipes import FINITE_VALUES
from featgeo.features.variables import Table, symbol_keys
from featgeo.geometry.validation import Array


@dataclass(frozen=True, eq=False)
class Ranks:
    """A column of numbers.

    Attributes:
        values: Mid-ranks over n, strictly between 0 and 1, NaN where missing; shape (n,).
        numbers: The numbers, of mean 0 and variance 1, 0 where missing; shape (n,).
    """

    values: Array
    numbers: Array


@dataclass(frozen=True, eq=False)
class Symbols:
    """A column with few values.

    Attributes:
        codes: Integers 0, ..., size - 1, each of which occurs; shape (n,).
        size: The number of symbols, at least 2.
    """

    codes: np.ndarray
    size: int


Scored = Ranks | Symbols


def scored_columns(table: Table, most_symbols: int = FINITE_VALUES) -> list[Scored]:
    """The columns that vary.

    Args:
        table: Their rows.
        most_symbols: Numbers of so many values or fewer are symbols.
    """
    columns: list[Scored] = []
    for numbers in table.numbers.T:
        missing = np.isnan(numbers)
        codes = codes_of(np.where(missing, np.inf, numbers))
        if few_values(codes, most_symbols):
            columns.append(Symbols(codes, int(codes.max()) + 1))
            continue
        columns.append(Ranks(ranks(numbers), standardised(numbers)))
        if missing.any():
            columns.append(Symbols(missing.astype(np.int64), 2))
    for labels in table.codes.T:
        codes = codes_of(labels)
        columns.append(Symbols(codes, int(codes.max()) + 1))
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
    codes = codes_of(symbol_keys(table))
    single = table.codes.shape[1] == 1 and table.numbers.shape[1] == 0
    return Symbols(codes, int(codes.max()) + 1) if single or few_values(codes) else None


def codes_of(values: np.ndarray) -> np.ndarray:
    """The position of each value, or row, among the distinct ones in order."""
    return np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)


def few_values(codes: np.ndarray, most: int = FINITE_VALUES) -> bool:
    """Whether a finite alphabet, of so many symbols or fewer, is behind them."""
    return int(codes.max()) < max(2, min(most, int(np.sqrt(len(codes)))))


def standardised(numbers: Array) -> Array:
    """Mean 0 and variance 1 of those that are not missing, which are 0."""
    known = ~np.isnan(numbers)
    centred = np.where(known, numbers - numbers[known].mean(), 0.0)
    size = max(float(np.abs(centred).max()), 1e-300)  # squares of huge numbers are not numbers
    return centred / size / np.sqrt(np.square(centred / size).sum() / known.sum())


def ranks(numbers: Array) -> Array:
    """Mid-ranks among those that are not missing, strictly between 0 and 1."""
    known = int((~np.isnan(numbers)).sum())
    return (rankdata(numbers, nan_policy="omit") - 0.5) / known
