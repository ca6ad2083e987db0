"""P-values of all pairs of columns, by featgeo, phik and distance correlation; for `benchmarks/explore.py`.

phik: `significance_matrix`, its z turned back into p. Its default method, "hybrid", simulates 1,000 tables for each
pair to find the degrees of freedom; here it is 200, at a fifth of the cost, which tell them with an error of 1/14 of
the statistic's standard deviation. Holes are a value of their own for it (`dropna=False`), or it could not see them.

Distance correlation: the statistic of dcor, from matrices that all pairs share. Each column becomes points: numbers by
their ranks (heavy tails would hide everything else), labels by indicators, and a coordinate for being missing, with
holes in the middle. dcor tests by permutations, whose p-values cannot pass a Benjamini-Hochberg correction over
hundreds of pairs unless there are many thousands for each; under independence n times the squared covariance is a sum
of chi-squares weighted by products of eigenvalues, whose tail is taken from its first three cumulants. Beside
permutations it is level to about 1e-3, two or three times too small beyond, and more so for two rare labels: it errs in
favour of the peer's power. (dcor's t-test is a limit for many dimensions; on 30 independent columns of 500 rows it
reported six pairs.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

Pair = frozenset[str]
PValues = dict[Pair, float]
SIMULATIONS = 200


def false_discovery(pvalues: PValues) -> PValues:
    """Benjamini-Hochberg q-values."""
    values = stats.false_discovery_control(np.array(list(pvalues.values())))
    return dict(zip(pvalues, map(float, values), strict=True))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Dates as numbers of days, truth values as labels: peers read nothing else."""
    columns = {}
    for name, column in frame.items():
        if column.dtype.kind == "M":
            days = (column - column.min()).dt.total_seconds() / 86400
            columns[name] = days
        elif column.dtype.kind in "fiu":
            columns[name] = column.astype("float64")
        else:
            columns[name] = column.astype("str").mask(column.isna())
    return pd.DataFrame(columns)


def featgeo_qvalues(column: str) -> Callable[[pd.DataFrame], PValues]:
    """The q-values that featgeo reports in a column, the least of a date and its parts."""

    def qvalues(frame: pd.DataFrame) -> PValues:
        import featgeo

        pairs = featgeo.explore(frame, verbose=0).pairs.to_frame()
        found: PValues = {}
        for a, b, q in zip(pairs["a"], pairs["b"], pairs[column], strict=True):
            pair = frozenset(name.partition(" (")[0] for name in (a, b))  # "c1 (weekday)" is a part of c1
            found[pair] = min(float(q), found.get(pair, 1.0))
        return found

    return qvalues


def phik_qvalues(method: str) -> Callable[[pd.DataFrame], PValues]:
    def qvalues(frame: pd.DataFrame) -> PValues:
        import phik

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z = phik.significance_matrix(
                _plain(frame), significance_method=method, nsim=SIMULATIONS, dropna=False, verbose=False, njobs=1
            )
        pvalues = {}
        for a, b in combinations(frame.columns, 2):
            told = a in z.index and b in z.index and np.isfinite(z.loc[a, b])
            pvalues[frozenset((a, b))] = float(stats.norm.sf(z.loc[a, b])) if told else 1.0
        return false_discovery(pvalues)

    return qvalues


def _points(column: pd.Series) -> np.ndarray:
    """A column as points (n, d), of unit variance or as indicators, with a coordinate for holes where there are any."""
    missing = column.isna().to_numpy()
    if column.dtype.kind == "f":
        ranks = column.rank().to_numpy(copy=True)
        ranks[missing] = np.nanmean(ranks) if not missing.all() else 0.0
        points = (ranks / max(ranks.std(), 1e-12))[:, None]
    else:
        points = pd.get_dummies(column).to_numpy(float)
    return np.column_stack([points, missing]) if missing.any() else points


def _centred_distances(points: np.ndarray) -> np.ndarray:
    """Distances (n, n), less their means over rows and columns: dcor's, in float64."""
    from scipy.spatial.distance import cdist

    distances = cdist(points, points)
    means = distances.mean(axis=0)
    return distances - means - means[:, None] + means.mean()


def _weighted_chi_square_tail(statistic: float, cumulants: np.ndarray) -> float:
    """P(sum of w chi-square(1) > statistic) by a shifted gamma law; `cumulants` are sums of w, w squared, w cubed."""
    first, second, third = cumulants
    shape = second**3 / third**2 / 2  # a shifted gamma law with mean c1, variance 2 c2 and third cumulant 8 c3
    scale = 2 * third / second
    return float(stats.gamma.sf(statistic - (first - shape * scale), shape, scale=scale))


def distance_qvalues(frame: pd.DataFrame) -> PValues:
    """Distance correlation of all pairs; p by the weighted chi-square law."""
    frame, n = _plain(frame), len(frame)
    centred = {name: _centred_distances(_points(column)) for name, column in frame.items()}
    powers = {}
    for name, matrix in centred.items():
        weights = np.maximum(np.linalg.eigvalsh(-matrix), 0) / n
        powers[name] = np.array([(weights**power).sum() for power in (1, 2, 3)])
    pvalues = {}
    for a, b in combinations(frame.columns, 2):
        told = powers[a][0] > 0 and powers[b][0] > 0
        statistic = np.vdot(centred[a], centred[b]) / n
        pvalues[frozenset((a, b))] = _weighted_chi_square_tail(statistic, powers[a] * powers[b]) if told else 1.0
    return false_discovery(pvalues)


QVALUES: dict[str, Callable[[pd.DataFrame], PValues]] = {
    "featgeo": featgeo_qvalues("qvalue"),
    "featgeo, any dependence of tests": featgeo_qvalues("qvalue_any"),
    "phik, hybrid": phik_qvalues("hybrid"),
    "phik, asymptotic": phik_qvalues("asymptotic"),
    "distance correlation": distance_qvalues,
}
