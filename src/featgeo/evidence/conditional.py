"""Whether X and Y are independent given S.

Two methods. Given a finite S, rows are compared within its values: rows of Y are permuted there, which is exact, or,
with ample counts or many rows, a limit is used. Otherwise what S explains is taken out of
functions of X and of Y, and the products of what is left are tested (`featgeo.evidence.products`). Numbers of X and of
Y enter by rank, so strictly monotone maps of them change nothing; numbers of S enter by rank and as they are. Renaming
labels changes nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from featgeo.evidence.condition import Condition, Side
from featgeo.evidence.independence import independence_test
from featgeo.evidence.null import AMPLE_COUNT
from featgeo.evidence.products import product_test, stratified_probe_test
from featgeo.evidence.reading import read_tables
from featgeo.evidence.scored import scored_columns
from featgeo.evidence.shuffling import Evidence, Shuffling, check_permutations
from featgeo.evidence.tables import table_evidence
from featgeo.geometry.validation import check_choice, seed_of

METHODS = ("auto", "products", "strata")
FEWEST_ROWS = 4  # of fewer no order of the rows is evidence


def conditional_independence_test(
    X: Any,
    Y: Any,
    S: Any,
    *,
    method: Literal["auto", "products", "strata"] = "auto",
    n_permutations: int = 999,
    random_state: Any = None,
    sample_weight: Any = None,
) -> Evidence:
    """Test whether X and Y are independent given S.

    Args:
        X: n rows of one or more columns: numbers, labels, dates, or a mixture, as an array, a data frame or a list. A
            missing value is a value of its own, so that what is missing may be evidence too.
        Y: Rows of the other variable.
        S: Rows of the condition. Columns that never vary say nothing and do not count; where none varies, or S is None,
            this is `independence_test`.
        method: "strata" compares rows within the values of S; "products" tests products of residuals; "auto" takes
            strata where S is finite, that is a single column of labels or at most min(32, sqrt(n)) distinct rows.
        n_permutations: Random permutations within strata, or of all rows where there is no S, where these are used;
            the smallest p-value is then 1 / (n_permutations + 1).
        random_state: Seed of permutations and of the choice of kernel centres; None is 0. The same seed gives the same
            answer.
        sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice. Once when None.

    Returns:
        Statistic, p-value and the method that gave them.

    Where X or Y is part of S, or a regression on S leaves less than a thousandth of its variance, the p-value is 1:
    such data hold no evidence against independence. Products of residuals hold their level as far as the regressions
    are right: what they miss of a function of S that X and Y share looks like dependence. The guide has measured cases.
    """
    seed = check_options(method, n_permutations, random_state)
    plain = {"n_permutations": n_permutations, "random_state": seed, "sample_weight": sample_weight}
    if S is None:
        return independence_test(X, Y, **plain)
    x, y, s = (rows.table for rows in read_tables(sample_weight, X=X, Y=Y, S=S))
    condition = Condition(s, seed)
    if not condition.columns and len(s) >= FEWEST_ROWS:
        return independence_test(X, Y, **plain)
    return conditional_evidence(Side(x), Side(y), condition, method, n_permutations)


def check_options(method: str, n_permutations: int, random_state: Any) -> int:
    """Refuse options that are none; the seed."""
    check_choice(method, "method", METHODS, "Use 'auto' to let S decide.")
    check_permutations(n_permutations)
    return seed_of(random_state)


def conditional_evidence(x: Side, y: Side, s: Condition, method: str, n_permutations: int) -> Evidence:
    """The test of variables that are read: x and y must vary, and a column of s."""
    n, n_columns = len(s.table), len(s.columns)
    if n < FEWEST_ROWS:
        raise ValueError(f"A test given S needs at least {FEWEST_ROWS} rows, got {n}. Pass more.")
    if method == "strata" and s.finite is None:
        raise ValueError(
            "method='strata' needs an S that is a single column of labels or has at most min(32, sqrt(n)) distinct "
            f"rows, got more in n = {n} rows. Use method='products', or group the values of S."
        )
    if method != "products" and s.finite is not None:
        shuffling = Shuffling(n_permutations, np.random.default_rng(s.seed))
        if x.finite and y.finite:
            return table_evidence(x.finite, y.finite, shuffling, s.finite)
        of_x, of_y = ([side.finite] if side.finite else scored_columns(side.table) for side in (x, y))
        return stratified_probe_test(of_x, of_y, s.finite, s.seed, shuffling)
    if n < AMPLE_COUNT * n_columns:
        raise ValueError(
            f"A test given S needs at least {AMPLE_COUNT} rows for each column of S that varies, got {n} rows and "
            f"{n_columns} columns: regressions on S would explain anything. Pass more rows or fewer columns."
        )
    return product_test(x, y, s)
