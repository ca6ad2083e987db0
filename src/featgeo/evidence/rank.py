"""How many modes given features have: tests of rank that do not take the rest for independent.

Let a and b be the canonical variates of p and q features, rho_1 >= rho_2 >= ... their correlations, and only the
first i modes real. Bartlett's statistic of the others is, to first order, n times the sum of the squared cross-moments
of a_{i+1}, ... with b_{i+1}, ...; errors of the spans and of the first i modes enter in second order only. For many
rows these moments are normal, with the covariance of the products a_j b_l, j, l > i. So the statistic is a weighted
sum of chi-squares, and the weights are the eigenvalues of that covariance. All are 1 where what is left of X is
independent of what is left of Y; where it is only uncorrelated (a common scale, symbols that exclude each other) they
are not, and chi-square with (p - i)(q - i) degrees of freedom, which is Bartlett's limit, may be far off. This one
needs finite fourth moments and many rows, no more (F. Kleibergen and R. Paap (2006), J. Econometrics 133:97).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featgeo.evidence.bartlett import bartlett_statistics, check_dimensions, linear_evidence
from featgeo.evidence.ladders import linear_ladder
from featgeo.evidence.null import less_spread, weighted_chi_square_tail
from featgeo.evidence.reading import read_tables
from featgeo.evidence.shuffling import check_permutations
from featgeo.geometry.arguments import generator_of
from featgeo.geometry.validation import Array

MOST_PRODUCTS = 1024  # beyond, the weights are taken as equal, with the same sum and sum of squares
MOST_ROWS = 2000  # that sums of squares come from


def mode_pvalues(X: Any, Y: Any, *, n_permutations: int = 999, random_state: Any = None) -> Array:
    """How many modes do given features have? Tests inside their spans, one after the other.

    Args:
        X: Features of X, (n, p); labels count as indicators.
        Y: Features of Y, (n, q).
        n_permutations: Random arrangements of the rows that "there are no modes" is compared with, where rows are few;
            no p-value is then below 1 / (n_permutations + 1).
        random_state: Seed of the arrangements; None is always the same.

    Returns:
        P-values of "there are no more than i modes" for i = 0, 1, ..., (min(p, q),). They never fall along the row, so
        as many modes are real, at level a, as p-values lie below a. What is left after the modes may depend in any way
        that is not correlation. For i = 0 they are exact where X and Y are independent; otherwise they need many rows
        and finite fourth moments.
    """
    check_permutations(n_permutations)
    rng = generator_of(random_state)
    x, y = (linear_ladder(rows) for rows in read_tables(X=X, Y=Y))
    check_dimensions(x, y)
    pvalues = rank_pvalues(x.features, y.features)
    # The larger of two: one is right where X and Y are independent, the other in the limit where they are uncorrelated.
    pvalues[0] = max(pvalues[0], linear_evidence(x, y, n_permutations, rng).pvalue)
    return np.maximum.accumulate(pvalues)


def rank_pvalues(x: Array, y: Array) -> Array:
    """P-values of "only the first i modes are real" for i = 0, 1, ..., (min(p, q),), each by itself.

    Args:
        x: Orthonormal features of X, (n, p).
        y: Orthonormal features of Y, (n, q).
    """
    n, p, q = len(x), x.shape[1], y.shape[1]
    left, rho, right = np.linalg.svd(x.T @ y / n)
    a, b = x @ left, y @ right.T
    statistics = bartlett_statistics(rho.clip(max=1 - 1e-15), n, p, q)
    return np.array([
        weighted_chi_square_tail(statistic, product_spectrum(a[:, i:], b[:, i:]))
        for i, statistic in enumerate(statistics)
    ])  # fmt: skip


def product_spectrum(a: Array, b: Array) -> Array:
    """Eigenvalues of the covariance of all products a_j b_l, or fewer of the same spread, (n, k) and (n, l) to (m,)."""
    n, size = len(a), a.shape[1] * b.shape[1]
    trace = float(np.mean(np.square(a).sum(axis=1) * np.square(b).sum(axis=1)))
    if size > MOST_PRODUCTS:
        count = np.clip(round(trace**2 / max(_sum_of_squares(a, b), trace**2 / size)), 1, size)
        return np.full(count, trace / count)
    products = (a[:, :, None] * b[:, None, :]).reshape(n, size)
    spectrum = np.linalg.eigvalsh(products.T @ products / n).clip(min=0.0)
    fourth = float(np.square(np.square(products).sum(axis=1)).sum())
    return less_spread(spectrum, fourth / max(n * n * float(np.square(spectrum).sum()), 1e-300), n)


def _sum_of_squares(a: Array, b: Array) -> float:
    """The sum of the squared eigenvalues, from pairs of different rows."""
    a, b = a[:MOST_ROWS], b[:MOST_ROWS]
    gram = np.square((a @ a.T) * (b @ b.T))
    return float((gram.sum() - np.trace(gram)) / (len(a) * (len(a) - 1)))
