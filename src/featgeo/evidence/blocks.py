"""Dependence of two ladders of features: the energy of their leading blocks, from smooth to rough.

With orthonormal features f_1, ..., f_d of x and g_1, ..., g_e of y, independent variables have cross-moments
c_ij = E_n[f_i g_j] of variance 1 / (n - 1) over all arrangements of the rows, and for many rows they are independent
normals. So the energy (n - 1) sum_{i <= k, j <= l} c_ij^2 of each leading block is about chi-square with k l degrees of
freedom, and its tail probability says how surprising this block is. Smooth dependence fills a small block, a wave along
x a long and flat one. All blocks of rungs k and l are tried, and the statistic is the harmonic mean of their tail
probabilities, which is about as small as the smallest of them and less at the mercy of a single one. Its own null
distribution comes from arrangements of the rows, or from normal cross-moments where rows are many.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import chdtrc

from featgeo.evidence.ladders import Ladder
from featgeo.evidence.null import rests_on_few_rows
from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import permutation_evidence
from featgeo.geometry.validation import Array

LIMIT_ROWS = 1000
LIMIT_DRAWS = 19_999
TAIL_DRAWS = 100
_SMALLEST = 1e-300


def block_evidence(x: Ladder, y: Ladder, n_permutations: int, rng: np.random.Generator) -> Evidence:
    """Test the independence of two ladders over the same rows."""
    n_blocks = len(x.rungs) * len(y.rungs)
    name = f"{n_blocks} block{'s' * (n_blocks != 1)}"

    def of_orders(orders: np.ndarray) -> Array:
        moments = cross_moments(x.features, y.features[orders])
        return surprise(block_energies(moments, x.rungs, y.rungs), x.rungs, y.rungs)

    if not limit_holds(x, y):
        return permutation_evidence(of_orders, len(x.features), n_permutations, rng, name)
    statistic = float(of_orders(np.arange(len(x.features))[None])[0])
    return Evidence(statistic, limit_pvalue(statistic, limit_draws(x.rungs, y.rungs)), f"{name}, normal limit")


def limit_holds(x: Ladder, y: Ladder) -> bool:
    """Whether rows are many, and no feature rests on few of them, so that cross-moments are normal."""
    n = len(x.features)
    return n > LIMIT_ROWS and not rests_on_few_rows(x.kurtosis, y.kurtosis, n)


def cross_moments(f: Array, g: Array) -> Array:
    """Cross-moments scaled to variance 1 under independence: (n, d) and (b, n, e) to (b, d, e)."""
    n = len(f)
    return np.sqrt(n - 1) / n * (f.T @ g)


def block_energies(moments: Array, x_rungs: tuple[int, ...], y_rungs: tuple[int, ...]) -> Array:
    """Sums of squares over the leading blocks, (b, d, e) to (b, number of rungs of x, number of rungs of y)."""
    energy = np.square(moments).cumsum(axis=1).cumsum(axis=2)
    return energy[:, np.array(x_rungs)[:, None] - 1, np.array(y_rungs) - 1]


def surprise(energies: Array, x_rungs: tuple[int, ...], y_rungs: tuple[int, ...]) -> Array:
    """-log10 of the harmonic mean of the chi-square tails of the leading blocks, (b, r, s) to (b,)."""
    tails = chdtrc(np.multiply.outer(x_rungs, y_rungs), energies).clip(min=_SMALLEST)
    return np.log10(np.mean(1 / tails, axis=(1, 2)))


@lru_cache(maxsize=64)
def limit_draws(x_rungs: tuple[int, ...], y_rungs: tuple[int, ...]) -> Array:
    """Draws of the statistic where cross-moments are independent normals, in order, (LIMIT_DRAWS,).

    They are the same in every call: the limit knows nothing of the data but the rungs. What a block adds to those
    inside it is chi-square.
    """
    freedom = np.multiply.outer(np.diff(x_rungs, prepend=0), np.diff(y_rungs, prepend=0))
    added = np.random.default_rng(0).chisquare(freedom, (LIMIT_DRAWS, *freedom.shape))
    return np.sort(surprise(added.cumsum(axis=1).cumsum(axis=2), x_rungs, y_rungs))


def limit_pvalue(statistic: float, draws: Array) -> float:
    """The share of draws, (B,) in order, as large; beyond the last ones a mean of 1 / p falls off as 1 / t."""
    edge = draws[-TAIL_DRAWS]
    if statistic <= edge:
        return (1 + len(draws) - int(np.searchsorted(draws, statistic))) / (1 + len(draws))
    return TAIL_DRAWS / len(draws) * 10 ** float(edge - statistic)
