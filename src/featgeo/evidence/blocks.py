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
from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import permutation_evidence
from featgeo.geometry.validation import Array

LIMIT_ROWS = 1000
LIMIT_DRAWS = 19_999
MOST_ADDED_VARIANCE = 0.2  # of the energy of a block, as a share of that of chi-square
SEVERAL_DRAWS = 4999  # of several ladders: these draws are of the data, and made anew
TAIL_DRAWS = 100
_SMALLEST = 1e-300
_BATCH_ENTRIES = 2**20

Rungs = tuple[int, ...]


def block_evidence(x: Sequence[Ladder], y: Sequence[Ladder], n_permutations: int, rng: np.random.Generator) -> Evidence:
    """Test the independence of two variables by their ladders over the same rows."""
    of_x, of_y = (np.hstack([ladder.features for ladder in ladders]) for ladders in (x, y))
    x_rungs, y_rungs = ([ladder.rungs for ladder in ladders] for ladders in (x, y))
    n_blocks = sum(map(len, x_rungs)) * sum(map(len, y_rungs))
    name = f"{n_blocks} block{'s' * (n_blocks != 1)}"

    def of_orders(orders: np.ndarray) -> Array:
        return surprise(cross_moments(of_x, of_y.take(orders, axis=0)), x_rungs, y_rungs)

    if not all(limit_holds(one, other) for one in x for other in y):
        return permutation_evidence(of_orders, len(of_x), n_permutations, rng, name)
    statistic = float(of_orders(np.arange(len(of_x))[None])[0])
    lone = len(x) == len(y) == 1
    draws = limit_draws(x[0].rungs, y[0].rungs) if lone else limit_draws_of_several(of_x, of_y, x_rungs, y_rungs)
    return Evidence(statistic, limit_pvalue(statistic, draws), f"{name}, normal limit")


def limit_holds(x: Ladder, y: Ladder) -> bool:
    """Whether rows are many, and no feature and no block rests on few of them, so that cross-moments are normal."""
    n = len(x.features)
    if n <= LIMIT_ROWS or rests_on_few_rows(x.kurtosis, y.kurtosis, n):
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
    inverse = [
        _inverse_tails(np.square(block).cumsum(axis=1).cumsum(axis=2), of_x, of_y)
        for of_x, rows in zip(x_rungs, np.split(moments, x_ends, axis=1), strict=True)
        for of_y, block in zip(y_rungs, np.split(rows, y_ends, axis=2), strict=True)
    ]
    return np.log10(np.concatenate(inverse, axis=1).mean(axis=1))


def _inverse_tails(sums: Array, x_rungs: Rungs, y_rungs: Rungs) -> Array:
    """One over the chi-square tails of leading blocks, from running sums of squares, (b, d, e) to (b, blocks)."""
    energies = sums[:, np.array(x_rungs)[:, None] - 1, np.array(y_rungs) - 1]
    tails = chdtrc(np.multiply.outer(x_rungs, y_rungs), energies).clip(min=_SMALLEST)
    return 1 / tails.reshape(len(tails), -1)


@lru_cache(maxsize=64)
def limit_draws(x_rungs: Rungs, y_rungs: Rungs) -> Array:
    """Draws of the statistic where cross-moments are independent normals, in order, (LIMIT_DRAWS,).

    They are the same in every call: the limit knows nothing of the data but the rungs. What a block adds to those
    inside it is chi-square.
    """
    freedom = np.multiply.outer(np.diff(x_rungs, prepend=0), np.diff(y_rungs, prepend=0))
    added = np.random.default_rng(0).chisquare(freedom, (LIMIT_DRAWS, *freedom.shape))
    tails = chdtrc(np.multiply.outer(x_rungs, y_rungs), added.cumsum(axis=1).cumsum(axis=2)).clip(min=_SMALLEST)
    return np.sort(np.log10(np.mean(1 / tails, axis=(1, 2))))


def limit_draws_of_several(f: Array, g: Array, x_rungs: Sequence[Rungs], y_rungs: Sequence[Rungs]) -> Array:
    """The same for several ladders, whose features correlate: moments are normals between roots of covariances."""
    left, right = (np.real(sqrtm(features.T @ features / len(features))).astype(np.float32) for features in (f, g))
    rng = np.random.default_rng(0)
    batch = max(1, _BATCH_ENTRIES // (len(left) * len(right)))
    draws = [
        surprise(left @ rng.standard_normal((size, len(left), len(right)), np.float32) @ right, x_rungs, y_rungs)
        for size in np.diff([*range(0, SEVERAL_DRAWS, batch), SEVERAL_DRAWS])
    ]
    return np.sort(np.concatenate(draws))


def limit_pvalue(statistic: float, draws: Array) -> float:
    """The share of draws, (B,) in order, as large; beyond the last ones a mean of 1 / p falls off as 1 / t."""
    edge = draws[-TAIL_DRAWS]
    if statistic <= edge:
        return (1 + len(draws) - int(np.searchsorted(draws, statistic))) / (1 + len(draws))
    return TAIL_DRAWS / len(draws) * 10 ** float(edge - statistic)
