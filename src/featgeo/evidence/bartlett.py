"""Canonical correlations of given spans, and Bartlett's statistics of how many of them are more than chance.

With rho_1 >= rho_2 >= ... the canonical correlations of p and q features over n rows, the hypothesis that only the
first i modes are real is measured by

    -(n - 1 - i - (p + q + 1) / 2 + sum_{j <= i} 1 / rho_j^2) sum_{j > i} log(1 - rho_j^2),

about chi-square with (p - i)(q - i) degrees of freedom where what is left of either side is independent of the other
(Bartlett 1941; the sum of 1 / rho_j^2 is Lawley's refinement). `featgeo.evidence.rank` does without that condition.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from featgeo.evidence.blocks import cross_moments, limit_holds
from featgeo.evidence.ladders import Ladder
from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import permutation_evidence
from featgeo.geometry.validation import Array

_BELOW_ONE = 1 - 1e-15


def check_dimensions(x: Ladder, y: Ladder) -> None:
    """Refuse spans of nothing, and spans so wide that some combinations of them agree on any rows."""
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


def canonical_correlations(moments: Array) -> Array:
    """Correlations of the modes from cross-moments of orthonormal features, (..., p, q) to (..., min(p, q))."""
    return np.linalg.svd(moments, compute_uv=False).clip(max=_BELOW_ONE)


def bartlett_statistics(rho: Array, n_rows: int, p: int, q: int) -> Array:
    """The statistic of "only the first i modes are real" for i = 0, 1, ..., (..., k) to (..., k)."""
    i = np.arange(rho.shape[-1])
    tails = np.log1p(-(rho**2))[..., ::-1].cumsum(axis=-1)[..., ::-1]
    before = np.cumsum(1 / np.maximum(rho, 1e-8) ** 2, axis=-1) - 1 / np.maximum(rho, 1e-8) ** 2
    return -(n_rows - 1 - i - (p + q + 1) / 2 + before) * tails


def linear_evidence(x: Ladder, y: Ladder, n_permutations: int, rng: np.random.Generator) -> Evidence:
    """Test independence inside the spans of two ladders: Bartlett's statistic of "there are no modes"."""
    check_dimensions(x, y)
    n, p, q = len(x.features), x.features.shape[1], y.features.shape[1]
    name = f"Bartlett's statistic of {p} x {q} features"

    def of_orders(orders: np.ndarray) -> Array:
        moments = cross_moments(x.features, y.features[orders]) / np.sqrt(n - 1)
        return bartlett_statistics(canonical_correlations(moments), n, p, q)[:, 0]

    if not limit_holds(x, y):
        return permutation_evidence(of_orders, n, n_permutations, rng, name)
    statistic = float(of_orders(np.arange(n)[None])[0])
    return Evidence(statistic, float(chi2.sf(statistic, p * q)), f"{name}, chi-square with {p * q} d.f.")
