"""Canonical correlations of given spans, and how many of them are more than chance.

With rho_1 >= rho_2 >= ... the canonical correlations of p and q features over n rows, the hypothesis that only the
first i modes are real is measured by Bartlett's statistic (1941; the sum of 1 / rho_j^2 is Lawley's refinement),

    -(n - 1 - i - (p + q + 1) / 2 + sum_{j <= i} 1 / rho_j^2) sum_{j > i} log(1 - rho_j^2).

To first order it is n times the sum of the squared cross-moments of the canonical variates a_{i+1}, ... with b_{i+1},
...; errors of the spans and of the first i modes enter in second order only. For many rows these moments are normal,
with the covariance of the products a_j b_l, j, l > i. So the statistic is a weighted sum of chi-squares, and the
weights are the eigenvalues of that covariance. All are 1 where what is left of X is independent of what is left of Y,
as it is where there are no modes; where it is only uncorrelated (a common scale, symbols that exclude each other) they
are not, and chi-square with (p - i)(q - i) degrees of freedom, which is Bartlett's limit, may be far off. The weighted
sum needs finite fourth moments and many rows, no more (F. Kleibergen and R. Paap (2006), J. Econometrics 133:97).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

from featgeo.evidence.blocks import cross_moments, limit_holds
from featgeo.evidence.ladders import Ladder, linear_ladder
from featgeo.evidence.null import less_spread, weighted_chi_square_tail
from featgeo.evidence.reading import read_tables
from featgeo.evidence.shuffling import Evidence, Shuffling, check_permutations
from featgeo.geometry.validation import Array, generator_of

MOST_PRODUCTS = 1024  # beyond, the weights are taken as equal, with the same sum and sum of squares
MOST_ROWS = 2000  # that sums of squares come from


def mode_pvalues(
    X: Any, Y: Any, *, n_permutations: int = 999, random_state: Any = None, sample_weight: Any = None
) -> Array:
    """How many modes do given features have? Tests inside their spans, one after the other.

    Args:
        X: Features of X, (n, p); labels count as indicators.
        Y: Features of Y, (n, q).
        n_permutations: Random arrangements of the rows that "there are no modes" is compared with, where rows are few;
            no p-value is then below 1 / (n_permutations + 1).
        random_state: Seed of the arrangements; None is always the same.
        sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice. Once when None.

    Returns:
        P-values of "there are no more than i modes" for i = 0, 1, ..., (min(p, q),). They never fall along the row, so
        as many modes are real, at level a, as p-values lie below a. What is left after the modes may depend in any way
        that is not correlation. For i = 0 they are exact where X and Y are independent; otherwise they need many rows
        and finite fourth moments.
    """
    check_permutations(n_permutations)
    shuffling = Shuffling(n_permutations, generator_of(random_state))
    x, y = (linear_ladder(rows) for rows in read_tables(sample_weight, X=X, Y=Y))
    # The larger of two: one is right where X and Y are independent, the other in the limit where they are uncorrelated.
    independent = linear_evidence(x, y, shuffling).pvalue
    pvalues = rank_pvalues(x.features, y.features)
    return np.maximum.accumulate([max(independent, pvalues[0]), *pvalues[1:]])


def linear_evidence(x: Ladder, y: Ladder, shuffling: Shuffling) -> Evidence:
    """Test independence inside the spans of two ladders: Bartlett's statistic of "there are no modes"."""
    n, p, q = len(x.features), x.features.shape[1], y.features.shape[1]
    if p == 0 or q == 0:
        raise ValueError(
            f"Features of X and of Y must vary, got {p} and {q} that do, as far as floats tell. Rescale the columns."
        )
    if p + q > n - 2:
        raise ValueError(
            f"{p} and {q} features need at least {p + q + 2} rows, got {n}: with fewer, some of their combinations "
            "agree whatever the rows. Pass fewer columns or more rows, or use method='smooth'."
        )

    def of_orders(orders: np.ndarray) -> Array:
        moments = cross_moments(x.features, y.features[orders]) / np.sqrt(n - 1)
        return bartlett_statistics(np.linalg.svd(moments, compute_uv=False), n, p, q)[:, 0]

    limit = (chi2(p * q).sf, f"chi-square with {p * q} d.f.") if limit_holds(x, y) else None
    return shuffling.evidence(of_orders, [np.arange(n)], f"Bartlett's statistic of {p} x {q} features, ", limit)


def bartlett_statistics(rho: Array, n_rows: int, p: int, q: int) -> Array:
    """The statistic of "only the first i modes are real" for i = 0, 1, ..., (..., k) to (..., k)."""
    inside = rho.clip(1e-8, 1 - 1e-15)  # no infinities
    inverse, i = 1 / inside**2, np.arange(rho.shape[-1])
    tails = np.log1p(-(inside**2))[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return -(n_rows - 1 - i - (p + q + 1) / 2 + np.cumsum(inverse, axis=-1) - inverse) * tails


def rank_pvalues(x: Array, y: Array) -> Array:
    """P-values of "only the first i modes are real" for i = 0, 1, ..., (min(p, q),), each by itself.

    Args:
        x: Orthonormal features of X, (n, p).
        y: Orthonormal features of Y, (n, q).
    """
    left, rho, right = np.linalg.svd(x.T @ y / len(x))
    a, b = x @ left, y @ right.T
    return np.array([
        weighted_chi_square_tail(statistic, product_spectrum(a[:, i:], b[:, i:]))
        for i, statistic in enumerate(bartlett_statistics(rho, len(x), x.shape[1], y.shape[1]))
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
