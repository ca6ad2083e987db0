"""Tests of independence and held-out spectra of lines, written down by hand: every number by its definition."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, norm, t

from featgeo import ModalDecomposition
from featgeo.evidence import held_out_spectrum, independence_test, mode_pvalues
from featgeo.evidence.shuffling import Shuffling, weighted_chi_square_tail
from featgeo.features.variables import deal

LINE = ModalDecomposition(1, x_space="linear", y_space="linear", random_state=0)


def two_numbers(n, seed=0, slope=0.3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return x, slope * x + rng.exponential(size=n)


def halves_of(n, seed):
    """Each half with the one that taught it, and the generator after the rows were dealt."""
    rng = np.random.default_rng(seed)
    fold = deal(n, 2, int(rng.integers(2**31)))
    one, other = np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)
    return [(other, one), (one, other)], rng


def arrangements(n, n_permutations, rng):
    return Shuffling(n_permutations, rng).orders([np.arange(n)])


def standardised(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


def taught(x, y, seen, held_out):
    """The line of one half on the other, standardised: x and y, the sign as it was learned."""
    sign = np.sign(np.corrcoef(x[seen], y[seen])[0, 1])
    return sign * standardised(x[held_out]), standardised(y[held_out])


def correlation(u, v):
    r = np.mean(u * v, axis=-1)
    influence = u * v - r[..., None] * (u**2 + v**2) / 2
    return r, np.sqrt(np.mean(influence**2, axis=-1) / u.shape[-1])


@pytest.mark.parametrize(("n", "level"), [(2101, 0.95), (2101, 0.8), (301, 0.95)])
def test_the_held_out_spectrum_of_a_line(n, level):
    x, y = two_numbers(n)
    found = held_out_spectrum(x, y, LINE, level, n_permutations=99, random_state=5)
    pairs, rng = halves_of(n, 5)
    measured, pvalues = [], []
    for seen, held_out in pairs:
        u, v = taught(x, y, seen, held_out)
        r, error = correlation(u, v)
        if len(u) > 1000:
            pvalues.append(t.sf(r / error, len(u) - 2))
        else:
            orders = np.concatenate(list(arrangements(len(u), 99, rng)))
            draws = np.divide(*correlation(u, v[orders]))
            pvalues.append((1 + np.sum(draws >= r / error - 1e-9)) / 100)
        measured.append((r, error))
    (r, s), (other_r, other_s) = measured
    middle = (r + other_r) / 2
    reach = t.ppf((1 + level) / 2, n // 2 - 2) * (s + other_s) / 2 / (1 - middle**2)
    assert found.sigma == pytest.approx([middle])
    assert found.low == pytest.approx([np.tanh(np.arctanh(middle) - reach)])
    assert found.high == pytest.approx([np.tanh(np.arctanh(middle) + reach)])
    assert found.pvalue == pytest.approx([min(1, sum(pvalues))], rel=1e-6)
    assert (found.n_rows, found.level) == (n, level)


@pytest.mark.parametrize("n", [2101, 301])
def test_the_learned_test_of_a_line(n):
    x, y = two_numbers(n, slope=0.1)
    found = independence_test(x, y, method="learned", model=LINE, n_permutations=99, random_state=5)
    pairs, rng = halves_of(n, 5)
    halves = []
    for seen, held_out in pairs:
        u, v = taught(x, y, seen, held_out)
        statistic = np.sqrt(len(u) - 1) * np.mean(u * v)  # in units of its spread over all arrangements
        if len(u) > 1000:
            halves.append((norm.sf(statistic), statistic))
            continue
        orders = np.concatenate(list(arrangements(len(u), 99, rng)))
        draws = np.sqrt(len(u) - 1) * np.mean(u * v[orders], axis=1)
        halves.append(((1 + np.sum(draws >= statistic - 1e-9)) / 100, statistic))
    pvalue, statistic = min(halves)
    assert found.pvalue == pytest.approx(min(1, 2 * pvalue), rel=1e-6)
    assert found.statistic == pytest.approx(statistic, rel=1e-6)


def canonical(X, Y):
    """Canonical variates and their correlations."""
    orthonormal = [np.linalg.qr(values - values.mean(axis=0))[0] * np.sqrt(len(values)) for values in (X, Y)]
    left, rho, right = np.linalg.svd(orthonormal[0].T @ orthonormal[1] / len(X))
    return orthonormal[0] @ left, rho, orthonormal[1] @ right.T


def bartlett(rho, i, n, p, q):
    return -(n - 1 - i - (p + q + 1) / 2 + np.sum(1 / rho[:i] ** 2)) * np.sum(np.log(1 - rho[i:] ** 2))


def several(n, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 3))
    Y = np.column_stack([X[:, 0] + rng.standard_normal(n), rng.standard_normal(n)])
    return X, Y + 0.03 * X[:, 1:]


def test_the_linear_test_is_bartletts():
    X, Y = several(1500)
    _, rho, _ = canonical(X, Y)
    found = independence_test(X, Y, method="linear")
    assert found.statistic == pytest.approx(bartlett(rho, 0, 1500, 3, 2))
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 6))
    assert found.method == "Bartlett's statistic of 3 x 2 features, chi-square with 6 d.f."


def test_the_linear_test_of_few_rows_is_compared_with_all_arrangements():
    x, y = two_numbers(6, seed=2)
    found = independence_test(x, y, method="linear")
    every = [abs(np.corrcoef(x, y[list(order)])[0, 1]) for order in permutations(range(6))]
    assert found.statistic == pytest.approx(-(6 - 1 - 3 / 2) * np.log(1 - every[0] ** 2))
    assert found.pvalue == pytest.approx(np.mean(np.array(every) >= every[0] - 1e-9))


def test_what_is_the_same_on_both_sides_is_no_infinity():
    X, _ = several(1500)
    found = independence_test(X, X[:, ::-1], method="linear")
    assert 1e4 < found.statistic < np.inf
    assert found.pvalue == 0
    assert mode_pvalues(X[:40], X[:40] + 0.0, n_permutations=99)[0] == 0.01


def test_modes_are_counted_by_bartletts_statistics_against_the_products_that_are_left():
    n = 1500
    X, Y = several(n)
    a, rho, b = canonical(X, Y)
    expected = []
    for i in range(2):
        products = np.column_stack([a[:, j] * b[:, k] for j in range(i, 3) for k in range(i, 2)])
        spectrum = np.linalg.eigvalsh(products.T @ products / n)
        gram = (products @ products.T) ** 2
        due = (gram.sum() - np.trace(gram)) / (n * (n - 1))  # the squares, without pairs of a row with itself
        mean = spectrum.mean()
        share = np.clip((due - len(spectrum) * mean**2) / np.sum((spectrum - mean) ** 2), 0, 1)
        weights = mean + np.sqrt(share) * (spectrum - mean)
        expected.append(weighted_chi_square_tail(bartlett(rho, i, n, 3, 2), weights))
    expected[0] = max(expected[0], chi2.sf(bartlett(rho, 0, n, 3, 2), 6))
    np.testing.assert_allclose(mode_pvalues(X, Y), np.maximum.accumulate(expected), rtol=1e-6)


def cosines(values, count):
    ranks = (np.argsort(np.argsort(values)) + 0.5) / len(values)
    return np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))) * np.sqrt(2)


@pytest.mark.parametrize(("n", "count"), [(1200, 12), (30, 7), (7, 1)])
def test_the_smooth_test_of_two_numbers(n, count):
    """The harmonic mean of tails over blocks of 1, 2, 4, 8 and 12 cosines a side, as many as a quarter of the rows.

    The i-th of these counts for 1 / i of the first.
    """
    x, y = two_numbers(n, seed=3, slope=0.5)
    found = independence_test(x, y, method="smooth", n_permutations=5039)
    f, g = (np.linalg.qr(cosines(z, count))[0] * np.sqrt(n) for z in (x, y))  # orthonormal but for rounding already
    rungs = [*(rung for rung in (1, 2, 4, 8, 12) if rung < count), count]

    def surprise(order):
        moments = np.sqrt(n - 1) * f.T @ g[order] / n
        tails = [chi2.sf(np.sum(moments[:k, :m] ** 2), k * m) for k in rungs for m in rungs]
        weights = [1 / (i * j) for i, j in product(range(1, len(rungs) + 1), repeat=2)]
        return np.log10(np.average(1 / np.array(tails), weights=weights))

    assert found.statistic == pytest.approx(surprise(np.arange(n)))
    if n == 7:
        every = np.array([surprise(list(order)) for order in permutations(range(7))])
        assert found.pvalue == pytest.approx(np.mean(every >= every[0] - 1e-9))
    assert f"{len(rungs) ** 2} block" in found.method


def test_few_rows_of_several_columns_have_few_components():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((21, 2))
    found = independence_test(X, rng.standard_normal(21), method="smooth", n_permutations=99)
    # A quarter of the rows: two waves of each column, or five components of both, (1, 2, 4) or (1, 2, 4, 5) of X, by
    # (1, 2, 4, 5) waves of Y; and the first two waves of either column of X by itself.
    assert found.method.startswith("44 blocks")
