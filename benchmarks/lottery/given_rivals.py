"""Plain tests of independence given S, to stand beside ours: each takes frames or arrays, and gives a p-value.

Numbers come to all of them as normal scores, labels as indicators.

- `rcit`: products of what 100 random Fourier features of S leave of five of (X, S) and of five of Y (E. V. Strobl et
  al. 2019, J. Causal Inference 7).
- `partial_copula`: X and Y as ranks among what quantile forests expect of them given S, then correlations of their
  first cosines (L. Petersen and N. R. Hansen 2021, JMLR 22).
- `gcm`: the generalised covariance measure with boosted trees, the largest of its correlations (R. D. Shah and
  J. Peters 2020, Ann. Statist. 48).
- `kci`: causal-learn's (K. Zhang et al. 2011), with its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import chi2, rankdata
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from featgeo.evidence.shuffling import weighted_chi_square_tail

Array = np.ndarray
Test = Callable[[Any, Any, Any, np.random.Generator], float]
FOLDS = 3


def numbers_of(rows: Any) -> Array:
    """Normal scores of numbers and indicators of labels, (n, d), each scaled to variance 1."""
    frame, parts = pd.DataFrame(rows), []
    for name in frame:
        column = frame[name]
        if column.dtype.kind in "fiub":
            parts.append(ndtri((rankdata(column) - 0.5) / len(column))[:, None])
        else:
            parts.append(pd.get_dummies(column).to_numpy(float)[:, 1:])
    values = np.hstack(parts)
    values = values[:, values.std(axis=0) > 1e-9]
    return (values - values.mean(axis=0)) / values.std(axis=0)


def waves_of(values: Array, count: int, rng: np.random.Generator) -> Array:
    """Random Fourier features of a Gaussian kernel whose width is the median distance, standardised, (n, count)."""
    some = values[:500]
    apart = np.sqrt(np.square(some[:, None] - some).sum(axis=2))
    width = np.median(apart[apart > 0])
    phase = rng.uniform(0, 2 * np.pi, count)
    features = np.cos(values @ rng.standard_normal((values.shape[1], count)) / width + phase)
    return (features - features.mean(axis=0)) / features.std(axis=0)


def rcit(x: Any, y: Any, s: Any, rng: np.random.Generator) -> float:
    x, y, s = (numbers_of(rows) for rows in (x, y, s))
    of_s = waves_of(s, 100, rng)
    left = []
    for features in (waves_of(np.hstack([x, s]), 5, rng), waves_of(y, 5, rng)):
        gram = of_s.T @ of_s + 1e-10 * len(s) * np.eye(of_s.shape[1])
        left.append(features - of_s @ np.linalg.solve(gram, of_s.T @ features))
    products = (left[0][:, :, None] * left[1][:, None, :]).reshape(len(s), -1)
    weights = np.linalg.eigvalsh(np.cov(products.T)).clip(min=0)
    return weighted_chi_square_tail(len(s) * float(np.square(products.mean(axis=0)).sum()), weights)


def _folds(n: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    fold = rng.permutation(n) % FOLDS
    for one in range(FOLDS):
        yield np.flatnonzero(fold != one), np.flatnonzero(fold == one)


def _place(values: Array, s: Array, rng: np.random.Generator) -> Array:
    """Where each value lies in what a forest of other rows expects of it, in (0, 1); ties at random."""
    place = np.empty(len(values))
    for others, own in _folds(len(values), rng):
        forest = RandomForestRegressor(100, min_samples_leaf=10, max_features=0.5, random_state=0)
        forest.fit(s[others], values[others])
        leaves, own_leaves = forest.apply(s[others]), forest.apply(s[own])
        weight = np.zeros((len(own), len(others)))
        for tree in range(leaves.shape[1]):
            together = own_leaves[:, [tree]] == leaves[:, tree]
            weight += together / together.sum(axis=1, keepdims=True)
        weight /= leaves.shape[1]
        below = (weight * (values[others] < values[own][:, None])).sum(axis=1)
        equal = (weight * (values[others] == values[own][:, None])).sum(axis=1)
        place[own] = below + rng.random(len(own)) * equal
    return (rankdata(place + 1e-9 * rng.random(len(place))) - 0.5) / len(place)


def partial_copula(x: Any, y: Any, s: Any, rng: np.random.Generator, waves: int = 4) -> float:
    """Labels of more than two kinds enter by their codes."""
    s = numbers_of(s)
    codes = [pd.Series(z).rank(method="dense").to_numpy() for z in (x, y)]
    of_x, of_y = (np.sqrt(2) * np.cos(np.pi * np.outer(_place(c, s, rng), np.arange(1, waves + 1))) for c in codes)
    return float(chi2.sf(len(s) * np.square(of_x.T @ of_y / len(s)).sum(), waves**2))


def gcm(x: Any, y: Any, s: Any, rng: np.random.Generator, draws: int = 2000) -> float:
    x, y, s = (numbers_of(rows) for rows in (x, y, s))
    left = [_left_by_boosting(values, s, rng) for values in (x, y)]
    products = (left[0][:, :, None] * left[1][:, None, :]).reshape(len(s), -1)
    products = products / products.std(axis=0)
    statistic = np.abs(products.sum(axis=0)).max()
    chance = np.abs(rng.standard_normal((draws, len(s))) @ (products - products.mean(axis=0))).max(axis=1)
    return float((1 + np.sum(chance >= statistic)) / (1 + draws))


def _left_by_boosting(values: Array, s: Array, rng: np.random.Generator) -> Array:
    left = np.empty_like(values)
    for others, own in _folds(len(s), rng):
        for j, target in enumerate(values.T):
            model = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8, learning_rate=0.1, min_samples_leaf=10)
            left[own, j] = target[own] - model.fit(s[others], target[others]).predict(s[own])
    return left


def kci(x: Any, y: Any, s: Any, rng: np.random.Generator) -> float:
    from causallearn.utils.KCI.KCI import KCI_CInd

    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002 (causal-learn draws from the global generator)
    return float(KCI_CInd().compute_pvalue(*(numbers_of(rows) for rows in (x, y, s)))[0])


RIVALS: dict[str, Test] = {"RCIT": rcit, "copula": partial_copula, "GCM": gcm, "KCI": kci}
