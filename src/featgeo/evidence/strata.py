"""Conditional independence given a finite S: permutations within strata.

Where X and Y are independent given S, the rows of Y that share a value of S are exchangeable: permuting them changes
nothing, so the rank of the statistic among those of the permuted rows is an exact p-value, for any number of rows. The
statistic is the chi-square statistic summed over the strata where X and Y are finite too (its limiting distribution
serves where counts are ample), and else the weighted sum of squared moments of probes that
`featgeo.evidence.products` uses.

Random permutations are drawn one after the other until `REACHED` of them reach the statistic: with h of the first l,
h / l is an exact p-value too (J. Besag and P. Clifford (1991), Biometrika 78:301), so that permutations are spent where
the evidence is strong. The smallest p-value is 1 / (n_permutations + 1). No limit is put in its place: how far out it
holds is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from scipy.stats import chi2

from featgeo.evidence.condition import MODULATION
from featgeo.evidence.probes import Probes, contrasts, probes, scaled, undetermined
from featgeo.evidence.products import MODULATED, moment_evidence
from featgeo.evidence.result import Evidence
from featgeo.evidence.scored import Ranks, Scored, Symbols, ranks
from featgeo.evidence.shuffling import permutation_pvalue, sequential_pvalue
from featgeo.geometry.validation import Array

REACHED = 50  # permutations that reach the statistic, and no more are needed: p-values to a seventh
MOST_PERMUTED = 5000  # rows; with more the limit is as good and faster
MOST_ENUMERATED = 5000  # arrangements; up to so many, all are taken
AMPLE_COUNT = 5.0  # least expected count for the limiting distribution
MOST_CELLS = 2**22  # of all tables together


def stratified_chi_square_test(x: Symbols, y: Symbols, s: Symbols, seed: int, n_permutations: int) -> Evidence:
    """Chi-square test summed over strata.

    Args:
        x: A finite variable.
        y: Another.
        s: The strata; the tables of all of them together must have at most `MOST_CELLS` cells.
        seed: Of the permutations, where counts are too small for the limiting distribution.
        n_permutations: How many, at most.
    """
    shape = (s.size, x.size, y.size)
    counts = np.bincount(np.ravel_multi_index((s.codes, x.codes, y.codes), shape), minlength=prod(shape)).reshape(shape)
    of_x, of_y, of_s = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    expected = of_x[:, :, None] * of_y[:, None, :] / of_s[:, None, None]
    possible = expected > 0
    inverse = np.divide(1.0, expected, where=possible, out=np.zeros(shape)).ravel()
    rows = np.ravel_multi_index((s.codes, x.codes), shape[:2]) * y.size

    def statistic(order: np.ndarray) -> float:
        observed = np.bincount(rows + y.codes[order], minlength=inverse.size)
        return float(observed**2 @ inverse) - len(order)

    if expected[possible].min() >= AMPLE_COUNT:
        degrees = int((((of_x > 0).sum(axis=1) - 1) * ((of_y > 0).sum(axis=1) - 1)).sum())
        value = statistic(np.arange(len(rows)))
        return Evidence(value, float(chi2.sf(value, degrees)) if degrees else 1.0, "chi-square within strata")
    return _permuted(statistic, s.codes, seed, n_permutations)


def stratified_probe_test(
    x: Sequence[Scored], y: Sequence[Scored], s: Symbols, seed: int, n_permutations: int
) -> Evidence:
    """Test of squared moments of probes of x and y, centred in each stratum, over all and by stratum.

    By permutations, `n_permutations` at most, or, where rows are many, by the limit that `featgeo.evidence.products`
    uses.
    """
    n = len(s.codes)
    of_x, of_y = (probes([_within(column, s) for column in columns], n, seed) for columns in (x, y))
    by_stratum = contrasts(s)
    weights = np.full(by_stratum.shape[1], MODULATION / max(by_stratum.shape[1], 1))
    by_stratum = by_stratum * np.sqrt(weights)
    if n > MOST_PERMUTED:
        return _limit(of_x, of_y, by_stratum, s)
    modulating = np.hstack([np.ones((n, 1)), by_stratum])
    left = _centred(of_x.values, s) * np.sqrt(of_x.weights)
    right = _centred(of_y.values, s) * np.sqrt(of_y.weights)
    modulated = (left[:, :, None] * modulating[:, None, :]).reshape(n, -1).T

    def statistic(order: np.ndarray) -> float:
        return float(np.square(modulated @ right[order]).sum()) / n

    return _permuted(statistic, s.codes, seed, n_permutations)


def _limit(of_x: Probes, of_y: Probes, by_stratum: Array, s: Symbols) -> Evidence:
    """The same statistic against its limit: products of what centring within strata leaves of the probes."""
    name, parts = "products within strata", []
    for given in (of_x, of_y):
        left = _centred(given.values, s)
        free = undetermined(left, given)
        if not free.any():
            return Evidence(0.0, 1.0, name)
        parts.append(scaled(left, given)[:, free])
    of_rows = 1 - 1 / np.bincount(s.codes)[s.codes]  # what centring leaves of the variance of each row
    shape = parts[0].shape[1], parts[1].shape[1]
    ratio = np.full(shape, of_rows.sum() / np.square(of_rows).sum())  # as in `featgeo.evidence.smoothing`
    by_modulator = (of_rows @ np.square(by_stratum)) / (np.square(of_rows) @ np.square(by_stratum))
    modulated = np.broadcast_to(by_modulator, (*np.minimum(shape, MODULATED), len(by_modulator)))
    return moment_evidence(parts[0], parts[1], by_stratum, ratio, modulated, name)


def _within(column: Scored, s: Symbols) -> Scored:
    """Ranks among the rows of the same stratum: there each number is spread evenly, wherever S has moved it."""
    if isinstance(column, Symbols):
        return column
    values = np.empty_like(column.values)
    for rows in _groups(s.codes):
        known = ~np.isnan(column.values[rows])
        values[rows] = ranks(column.values[rows]) if known.any() else np.nan
    return Ranks(values, column.numbers)


def _centred(values: Array, s: Symbols) -> Array:
    sums = np.zeros((s.size, values.shape[1]))
    np.add.at(sums, s.codes, values)
    return values - (sums / np.bincount(s.codes)[:, None])[s.codes]


def _permuted(statistic: Callable[[np.ndarray], float], strata: np.ndarray, seed: int, n_permutations: int) -> Evidence:
    """The rank of the statistic among all arrangements, or among random ones and itself."""
    observed = statistic(np.arange(len(strata)))
    groups = _groups(strata)
    if _arrangements([len(group) for group in groups]) <= MOST_ENUMERATED:
        draws = np.array([statistic(order) for order in _all_orders(groups, len(strata))])
        return Evidence(observed, permutation_pvalue(observed, draws, True), "all permutations within strata")
    drawn = (statistic(order) for order in _random_orders(strata, seed))
    return Evidence(observed, sequential_pvalue(observed, drawn, n_permutations, REACHED), "permutations within strata")


def _groups(strata: np.ndarray) -> list[np.ndarray]:
    """The rows of each stratum."""
    order = np.argsort(strata, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)


def _arrangements(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        if size > 12 or total > MOST_ENUMERATED:
            return MOST_ENUMERATED + 1
        total *= factorial(size)
    return total


def _all_orders(groups: list[np.ndarray], n: int) -> Iterator[np.ndarray]:
    for arranged in product(*(permutations(group.tolist()) for group in groups)):
        order = np.empty(n, dtype=np.int64)
        for group, rows in zip(groups, arranged, strict=True):
            order[group] = rows
        yield order


def _random_orders(strata: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    sorted_rows = np.argsort(strata, kind="stable")
    order = np.empty_like(sorted_rows)
    while True:
        order[sorted_rows] = np.argsort(strata + rng.random(len(strata)))  # random within, sorted over the strata
        yield order
