"""Conditional independence from products of residuals.

X and Y are independent given S exactly if, for all functions phi of X, psi of Y and m of S,

    E[ m(S) (phi(X) - E[phi(X) | S]) (psi(Y) - E[psi(Y) | S]) ] = 0.

A few probes stand in for phi and psi, and kernel ridge regression for the conditional means. An error in one of the
two regressions is multiplied by a residual of the other, whose mean is 0: only the product of both errors can disturb
the level. The functions m find dependence whose sign changes with S, which cancels without them.

Given a finite S, conditional means are those of its strata. There the rows of Y that share a value of S are
exchangeable: permuting them changes nothing, so the rank of the statistic among those of the permuted rows is an exact
p-value, for any number of rows.

The statistic is the weighted sum of the squared means, times n. Under the null hypothesis it is, for large n, a
weighted sum of chi-squares whose weights are the eigenvalues of the covariance matrix of the products, however the
variances of the residuals change with S.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.evidence.condition import MODULATION, Condition, Probes, Side, contrasts, probes
from featgeo.evidence.null import less_spread, rests_on_few_rows, weighted_chi_square_tail
from featgeo.evidence.regression import variance_ratio
from featgeo.evidence.scored import Ranks, Scored, Symbols, ranks
from featgeo.evidence.shuffling import Evidence, Shuffling
from featgeo.geometry.validation import Array

MODULATED = 4  # leading probes of X and of Y: all of them times all functions of S would drown the rest
CHUNK = 8192  # rows at once; it bounds the memory
NAME = "products of residuals"
MOST_PERMUTED = 5000  # rows; with more the limit is as good and faster


def product_test(x: Side, y: Side, s: Condition) -> Evidence:
    """Test the independence of x and y given s, of which a column varies."""
    of_x, of_y = s.left_of(x), s.left_of(y)
    if of_x is None or of_y is None:
        return Evidence(0.0, 1.0, NAME)
    ratios = variance_ratio(of_x, of_y, np.column_stack([np.ones(len(s.modulators)), s.modulators]))
    return moment_evidence(of_x.values, of_y.values, s.modulators, ratios, NAME)


def stratified_probe_test(
    x: Sequence[Scored], y: Sequence[Scored], s: Symbols, seed: int, shuffling: Shuffling
) -> Evidence:
    """Test of squared moments of probes of x and y, centred in each stratum, over all and by stratum."""
    n = len(s.codes)
    of_x, of_y = (probes([_within(column, s) for column in columns], n, seed) for columns in (x, y))
    by_stratum = contrasts(s)
    by_stratum = by_stratum * np.sqrt(MODULATION / max(by_stratum.shape[1], 1))
    if n > MOST_PERMUTED:
        return _limit_within(of_x, of_y, by_stratum, s)
    modulating = np.hstack([np.ones((n, 1)), by_stratum])
    left, right = (_centred(given.values, s) * np.sqrt(given.weights) for given in (of_x, of_y))
    modulated = (left[:, :, None] * modulating[:, None, :]).reshape(n, -1).T

    def of_orders(orders: np.ndarray) -> Array:
        return np.square(modulated @ right[orders]).sum(axis=(1, 2)) / n

    return shuffling.evidence(of_orders, s.groups, "")


def _limit_within(of_x: Probes, of_y: Probes, by_stratum: Array, s: Symbols) -> Evidence:
    """The same statistic against its limit: products of what centring within strata leaves of the probes."""
    name = "products within strata"
    x, y = (given.scaled(_centred(given.values, s))[0] for given in (of_x, of_y))
    if x.shape[1] * y.shape[1] == 0:
        return Evidence(0.0, 1.0, name)
    of_rows = 1 - 1 / np.bincount(s.codes)[s.codes]  # what centring leaves of the variance of each row
    squares = np.column_stack([np.ones(len(of_rows)), np.square(by_stratum)])
    ratio = (of_rows @ squares) / (np.square(of_rows) @ squares)  # as in `variance_ratio`
    ratios = np.broadcast_to(ratio, (x.shape[1], y.shape[1], len(ratio)))
    return moment_evidence(x, y, by_stratum, ratios, name)


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


def moment_evidence(x: Array, y: Array, modulating: Array, ratios: Array, name: str) -> Evidence:
    """Test whether products of residuals have mean 0.

    Args:
        x: Residuals of the probes of X, (n, k), scaled.
        y: Those of Y, (n, l).
        modulating: Functions of S that multiply the products, (n, q).
        ratios: From `variance_ratio`, of a constant and of these functions, (k, l, 1 + q).
        name: What the method is called.
    """
    statistic, weights = _quadratic_form(x, y, modulating, ratios)
    pvalue = weighted_chi_square_tail(statistic, weights)
    if rests_on_few_rows(x, y):
        # Residuals rest on few rows: where these never meet, the products hardly vary, and their own variance says too
        # little. Then the variance that independence implies must not be exceeded either.
        pvalue = max(pvalue, weighted_chi_square_tail(statistic, _implied_weights(x, y, modulating)))
    return Evidence(statistic, pvalue, name)


def _implied_weights(x: Array, y: Array, modulating: Array) -> Array:
    """Weights of the null distribution where residuals of X, of Y and the modulators are independent."""
    energy_x, energy_y, energy_m = (np.linalg.eigvalsh(z.T @ z / len(z)) for z in (x, y, modulating))
    lead_x, lead_y = (np.linalg.eigvalsh(z[:, :MODULATED].T @ z[:, :MODULATED] / len(z)) for z in (x, y))
    modulated = np.multiply.outer(np.multiply.outer(lead_x, lead_y), energy_m)
    return np.concatenate([np.multiply.outer(energy_x, energy_y).ravel(), modulated.ravel()]).clip(min=0)


def _quadratic_form(x: Array, y: Array, modulating: Array, ratios: Array) -> tuple[float, Array]:
    """The statistic and the weights of its null distribution."""
    n, lead = len(x), slice(MODULATED)
    total, gram, fourth = np.zeros(()), np.zeros(()), 0.0
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        plain = x[rows, :, None] * y[rows, None, :]
        leading = plain[:, lead, lead, None] * modulating[rows, None, None, :]
        block = np.hstack([plain.reshape(len(plain), -1), leading.reshape(len(plain), -1)])
        total = total + block.sum(axis=0)
        gram = gram + block.T @ block
        fourth += float(np.square(np.square(block).sum(axis=1)).sum())
    mean = total / n
    scale = np.sqrt(np.concatenate([ratios[:, :, 0].ravel(), ratios[lead, lead, 1:].ravel()]))
    covariance = (gram / n - np.outer(mean, mean)) * np.outer(scale, scale)
    spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return float(n * mean @ mean), less_spread(spectrum, fourth / float(np.square(gram).sum()), n)
