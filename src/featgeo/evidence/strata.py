"""Conditional independence of numbers given a finite S: permutations within strata.

Where X and Y are independent given S, the rows of Y that share a value of S are exchangeable: permuting them changes
nothing, so the rank of the statistic among those of the permuted rows is an exact p-value, for any number of rows. The
statistic is the weighted sum of squared moments of probes that `featgeo.evidence.products` uses; with many rows, so is
its limit. Where X and Y are finite too, tables within strata serve (`featgeo.evidence.tables`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.evidence.condition import MODULATION
from featgeo.evidence.probes import Probes, contrasts, probes
from featgeo.evidence.products import moment_evidence
from featgeo.evidence.result import Evidence
from featgeo.evidence.scored import Ranks, Scored, Symbols, ranks
from featgeo.evidence.shuffling import Shuffling
from featgeo.geometry.validation import Array

MOST_PERMUTED = 5000  # rows; with more the limit is as good and faster


def stratified_probe_test(
    x: Sequence[Scored], y: Sequence[Scored], s: Symbols, seed: int, shuffling: Shuffling
) -> Evidence:
    """Test of squared moments of probes of x and y, centred in each stratum, over all and by stratum."""
    n = len(s.codes)
    of_x, of_y = (probes([_within(column, s) for column in columns], n, seed) for columns in (x, y))
    by_stratum = contrasts(s)
    by_stratum = by_stratum * np.sqrt(MODULATION / max(by_stratum.shape[1], 1))
    if n > MOST_PERMUTED:
        return _limit(of_x, of_y, by_stratum, s)
    modulating = np.hstack([np.ones((n, 1)), by_stratum])
    left, right = (_centred(given.values, s) * np.sqrt(given.weights) for given in (of_x, of_y))
    modulated = (left[:, :, None] * modulating[:, None, :]).reshape(n, -1).T

    def of_orders(orders: np.ndarray) -> Array:
        return np.square(modulated @ right[orders]).sum(axis=(1, 2)) / n

    return shuffling.evidence(of_orders, s.groups, "{}permutations within strata")


def _limit(of_x: Probes, of_y: Probes, by_stratum: Array, s: Symbols) -> Evidence:
    """The same statistic against its limit: products of what centring within strata leaves of the probes."""
    name, parts = "products within strata", []
    for given in (of_x, of_y):
        left = _centred(given.values, s)
        parts.append(given.scaled(left)[:, given.undetermined(left)])
    if 0 in (parts[0].shape[1], parts[1].shape[1]):
        return Evidence(0.0, 1.0, name)
    of_rows = 1 - 1 / np.bincount(s.codes)[s.codes]  # what centring leaves of the variance of each row
    squares = np.column_stack([np.ones(len(of_rows)), np.square(by_stratum)])
    ratio = (of_rows @ squares) / (np.square(of_rows) @ squares)  # as in `featgeo.evidence.smoothing`
    ratios = np.broadcast_to(ratio, (parts[0].shape[1], parts[1].shape[1], len(ratio)))
    return moment_evidence(parts[0], parts[1], by_stratum, ratios, name)


def _within(column: Scored, s: Symbols) -> Scored:
    """Ranks among the rows of the same stratum: there each number is spread evenly, wherever S has moved it."""
    if isinstance(column, Symbols):
        return column
    values = np.empty_like(column.values)
    for rows in s.groups:
        values[rows] = ranks(column.values[rows])
    return Ranks(values, column.numbers)


def _centred(values: Array, s: Symbols) -> Array:
    means = np.stack([np.bincount(s.codes, column) for column in values.T], axis=1) / np.bincount(s.codes)[:, None]
    return values - means[s.codes]
