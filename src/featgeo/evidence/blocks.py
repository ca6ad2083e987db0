"""Dependence of two ladders of features: the energy of their leading blocks, from smooth to rough.

With orthonormal features f_1, ..., f_d of x and g_1, ..., g_e of y, independent variables have cross-moments
c_ij = E_n[f_i g_j] of variance 1 / (n - 1) over all arrangements of the rows, and for many rows they are independent
normals. So the energy (n - 1) sum_{i <= k, j <= l} c_ij^2 of each leading block is about chi-square with k l degrees of
freedom, and its tail probability says how surprising this block is. Smooth dependence fills a small block, a wave along
x a long and flat one. All blocks of rungs k and l are tried, of each ladder of x with each of y, and the statistic is
the harmonic mean of their tail probabilities, which is about as small as the smallest of them and less at the mercy of
a single one. Its own null distribution comes from arrangements of the rows, or from normal cross-moments where rows
are many.

How many rows are many? The moments of a block can each be normal and still not be independent: where the features of x
and of y all rest on the same few rows, what these rows weigh together moves all of them. For independent rows the
variance of the energy of a block of k x l features is

    2 k l + (E|f|^4 E|g|^4 - (k l)^2 - 2 k l) / n,    |f|^2 = f_1^2 + ... + f_k^2,  |g|^2 = g_1^2 + ... + g_l^2,

and chi-square serves where the second term is small beside the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.linalg import sqrtm
from scipy.special import chdtrc

from featgeo.evidence.ladders import Ladder
from featgeo.evidence.null import rests_on_few_rows
from featgeo.evidence.shuffling import BATCH_ENTRIES, Evidence, Shuffling
from featgeo.geometry.validation import Array

LIMIT_ROWS = 1000  # with fewer, orders of the rows take no time and need no limit
MOST_ADDED_VARIANCE = 0.2  # of the energy of a block, as a share of that of chi-square
LIMIT_DRAWS = 19_999  # drawn once: more digits than a p-value needs
SEVERAL_DRAWS = 4999  # of several ladders: these draws are of the data, and made anew
TAIL_DRAWS = 100  # the largest, which fix the tail to a tenth

Rungs = tuple[int, ...]


def block_evidence(x: Sequence[Ladder], y: Sequence[Ladder], shuffling: Shuffling) -> Evidence:
    """Test the independence of two variables by their ladders over the same rows."""
    of_x, of_y = (np.hstack([ladder.features for ladder in ladders]) for ladders in (x, y))
    x_rungs, y_rungs = (tuple(ladder.rungs for ladder in ladders) for ladders in (x, y))
    n, n_blocks = len(of_x), sum(map(len, x_rungs)) * sum(map(len, y_rungs))

    def of_orders(orders: np.ndarray) -> Array:
        return surprise(cross_moments(of_x, of_y.take(orders, axis=0)), x_rungs, y_rungs)

    def tail(statistic: float) -> float:
        if len(x) == len(y) == 1:
            return limit_pvalue(statistic, lone_draws(x_rungs, y_rungs))
        # Features of different ladders correlate: moments are normals between roots of covariances.
        left, right = (np.real(sqrtm(features.T @ features / n)) for features in (of_x, of_y))
        return limit_pvalue(statistic, limit_draws(left, right, x_rungs, y_rungs, SEVERAL_DRAWS))

    normal = all(limit_holds(one, other) for one in x for other in y)
    name = f"{n_blocks} block{'s' * (n_blocks != 1)}, "
    return shuffling.evidence(of_orders, [np.arange(n)], name, (tail, "normal limit") if normal else None)


def limit_holds(x: Ladder, y: Ladder) -> bool:
    """Whether rows are many, and no feature and no block rests on few of them, so that cross-moments are normal."""
    n = len(x.features)
    if n <= LIMIT_ROWS or rests_on_few_rows(x.features, y.features):
        return False
    return bool((added_variance(x, y) <= MOST_ADDED_VARIANCE).all())


def added_variance(x: Ladder, y: Ladder) -> Array:
    """By what share rows that weigh more than others add to the variance of the energy of each block."""
    size = np.multiply.outer(x.rungs, y.rungs).astype(np.float64)  # k l
    fourth = np.multiply.outer(x.rung_kurtosis, y.rung_kurtosis)  # E|f|^4 E|g|^4
    return (fourth - size**2 - 2 * size) / (2 * size * len(x.features))


def cross_moments(f: Array, g: Array) -> Array:
    """Cross-moments scaled to variance 1 under independence: (n, d) and (b, n, e) to (b, d, e)."""
    n = len(f)
    return np.sqrt(n - 1) / n * (f.T @ g)


def surprise(moments: Array, x_rungs: Sequence[Rungs], y_rungs: Sequence[Rungs]) -> Array:
    """-log10 of the harmonic mean of the chi-square tails of all leading blocks, (b, d, e) to (b,).

    Args:
        moments: Between the features of all ladders of x, one ladder after the other, and all of y.
        x_rungs: Of each ladder of x.
        y_rungs: Of each ladder of y.
    """
    x_ends, y_ends = (np.cumsum([rungs[-1] for rungs in every])[:-1] for every in (x_rungs, y_rungs))
    inverse = []
    for of_x, rows in zip(x_rungs, np.split(moments, x_ends, axis=1), strict=True):
        for of_y, block in zip(y_rungs, np.split(rows, y_ends, axis=2), strict=True):
            sums = np.square(block).cumsum(axis=1).cumsum(axis=2)
            energies = sums[:, np.array(of_x)[:, None] - 1, np.array(of_y) - 1]
            tails = chdtrc(np.multiply.outer(of_x, of_y), energies).clip(
                min=1e-300
            )  # the mean of their inverses is a number
            inverse.append(1 / tails.reshape(len(tails), -1))
    return np.log10(np.concatenate(inverse, axis=1).mean(axis=1))


def limit_draws(left: Array, right: Array, x_rungs: Sequence[Rungs], y_rungs: Sequence[Rungs], n_draws: int) -> Array:
    """Draws of the statistic where cross-moments are normal, in order, (n_draws,); the same in every call.

    Args:
        left: Root of the covariance of the features of x, (d, d).
        right: Of those of y, (e, e).
        x_rungs: Of each ladder of x.
        y_rungs: Of each ladder of y.
        n_draws: How many.
    """
    rng = np.random.default_rng(0)
    batch = max(1, BATCH_ENTRIES // (len(left) * len(right)))
    left, right = (root.astype(np.float32) for root in (left, right))  # type: ignore[assignment]
    draws = [
        surprise(left @ rng.standard_normal((size, len(left), len(right)), np.float32) @ right, x_rungs, y_rungs)
        for size in np.diff([*range(0, n_draws, batch), n_draws])
    ]
    return np.sort(np.concatenate(draws))


@lru_cache(maxsize=64)
def lone_draws(x_rungs: tuple[Rungs], y_rungs: tuple[Rungs]) -> Array:
    """The same for one ladder a side, whose features are orthonormal: the limit knows nothing of the data."""
    return limit_draws(np.eye(x_rungs[0][-1]), np.eye(y_rungs[0][-1]), x_rungs, y_rungs, LIMIT_DRAWS)


def limit_pvalue(statistic: float, draws: Array) -> float:
    """The share of draws, (B,) in order, as large; beyond the last ones a mean of 1 / p falls off as 1 / t."""
    edge = draws[-TAIL_DRAWS]
    if statistic <= edge:
        return (1 + len(draws) - int(np.searchsorted(draws, statistic))) / (1 + len(draws))
    return TAIL_DRAWS / len(draws) * 10 ** float(edge - statistic)
