"""Are X and Y independent? Tests whose p-values hold at any number of rows, for any columns."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np

from featgeo.evidence.bartlett import bartlett_pvalues, bartlett_statistics, canonical_correlations, check_dimensions
from featgeo.evidence.blocks import block_evidence, cross_moments, limit_holds
from featgeo.evidence.counts import table_evidence
from featgeo.evidence.ladders import Ladder, linear_ladder, smooth_ladders
from featgeo.evidence.reading import read_tables
from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import permutation_evidence
from featgeo.features.recipes import is_finite
from featgeo.features.variables import Rows, symbol_keys

Method = Literal["auto", "table", "smooth", "linear"]
METHODS = ("auto", "table", "smooth", "linear")


def independence_test(
    X: Any, Y: Any, *, method: Method = "auto", n_permutations: int = 999, random_state: Any = None
) -> Evidence:
    """Test whether two variables are independent.

    Args:
        X: Rows of X, (n,) or (n, p): numbers, labels, dates or a mixture; a missing value is a value like any other.
        Y: Rows of Y, in the same order.
        method: What dependence to look for.

            - "table": any, between finite alphabets, by Pearson's chi-square on the table of counts.
            - "smooth": any, by features of either side, from smooth to rough: cosines of the rank of a number,
              indicators of a label, components of a kernel of several columns. Monotone maps of a number change
              nothing. Choose it for numbers of few values whose order matters.
            - "linear": between the columns as they are, labels as indicators, by their canonical correlations. Pass
              features of your own and it tests inside their spans.
            - "auto": "table" where both take few values, else "smooth".
        n_permutations: Random arrangements of the rows that the statistic is compared with, where rows are few; the
            smallest p-value is then 1 / (n_permutations + 1). With many rows the limit is known, and none are needed.
        random_state: Seed of the arrangements; None is always the same.

    Returns:
        The statistic, its p-value and how it was found. The statistic is Pearson's for tables, Bartlett's for "linear";
        for "smooth" it is -log10 of the harmonic mean of the tail probabilities of 1 to about 30 blocks of features.

    References:
        The harmonic mean of tail probabilities: D. J. Wilson (2019), PNAS 116:1195.
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}, got {method!r}. Use 'auto' to let the columns decide.")
    if not isinstance(n_permutations, Integral) or n_permutations < 1:
        raise ValueError(f"`n_permutations` must be a whole number, at least 1, got {n_permutations!r}. 999 is usual.")
    x, y = read_tables(X=X, Y=Y)
    if method == "table":
        _check_repeats(x, y)
    rng = np.random.default_rng(0 if random_state is None else random_state)
    if method == "auto":
        method = "table" if is_finite(x) and is_finite(y) else "smooth"
    if method == "table":
        return table_evidence(_symbols(x), _symbols(y), int(n_permutations), rng)
    if method == "linear":
        return _linear_evidence(linear_ladder(x), linear_ladder(y), int(n_permutations), rng)
    seed = int(rng.integers(2**31))  # of the centres of kernels
    return block_evidence(smooth_ladders(x, seed), smooth_ladders(y, seed), int(n_permutations), rng)


def _check_repeats(x: Rows, y: Rows) -> None:
    for name, rows in (("X", x), ("Y", y)):
        if len(np.unique(_symbols(rows))) == len(rows):
            raise ValueError(
                f"Every row of {name} has a value of its own: a table of counts says nothing. Use method='smooth'."
            )


def _symbols(rows: Rows) -> np.ndarray:
    """The position of each row's value among the distinct ones, (n,)."""
    return np.unique(symbol_keys(rows.table), axis=0, return_inverse=True)[1].reshape(-1)


def _linear_evidence(x: Ladder, y: Ladder, n_permutations: int, rng: np.random.Generator) -> Evidence:
    check_dimensions(x, y)
    n, p, q = len(x.features), x.features.shape[1], y.features.shape[1]
    name = f"Bartlett's statistic of {p} x {q} features"
    if limit_holds(x, y):
        rho = canonical_correlations(x.features.T @ y.features / n)
        statistic = float(bartlett_statistics(rho, n, p, q)[0])
        return Evidence(statistic, float(bartlett_pvalues(rho, n, p, q)[0]), f"{name}, chi-square with {p * q} d.f.")

    def of_orders(orders: np.ndarray) -> np.ndarray:
        moments = cross_moments(x.features, y.features[orders]) / np.sqrt(n - 1)
        return bartlett_statistics(canonical_correlations(moments), n, p, q)[:, 0]

    return permutation_evidence(of_orders, n, n_permutations, rng, name)
