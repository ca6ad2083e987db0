"""Tails of energies under no dependence, against laws that can be counted out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2_contingency, hypergeom
from scipy.stats import f as f_law

from featgeo.explore.batches import Batch
from featgeo.explore.cells import Cells
from featgeo.explore.steps import contrasts
from featgeo.explore.tails import Null, Peaks, block_tail, rung_weights


def _all_tables(of_a, of_b):
    """All tables of three by two, or two by two, with these margins, (m, a, b), and how likely each is."""
    free = np.stack(np.meshgrid(*(np.arange(rows + 1) for rows in of_a[:-1]), indexing="ij"), axis=-1)
    free = free.reshape(-1, len(of_a) - 1)
    first = np.column_stack([free, of_b[0] - free.sum(axis=1)])
    first = first[((first >= 0) & (first <= of_a)).all(axis=1)]
    chance = np.exp(_log_choose(of_a, first).sum(axis=1) - _log_choose(sum(of_b), of_b[0]))
    return np.stack([first, of_a - first], axis=2), chance


def _log_choose(n, k):
    return gammaln(np.add(n, 1.0)) - gammaln(np.add(k, 1.0)) - gammaln(np.subtract(n, k) + 1.0)


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [((20, 180), (30, 170)), ((10, 190), (10, 190)), ((20, 40, 140), (20, 180)), ((90, 110), (10, 190))],
)
def test_cumulants_of_energies_are_those_of_all_tables_with_the_same_margins(of_a, of_b):
    of_a, of_b = np.array(of_a), np.array(of_b)
    n = of_a.sum()
    f, g = contrasts(of_a / n), contrasts(of_b / n)
    tables, chance = _all_tables(of_a, of_b)
    energy = (n - 1) * np.square(np.einsum("mab,ak,bl->mkl", tables / n, f, g)).sum(axis=(1, 2))
    mean = chance @ energy
    exact = [mean, *(chance @ (energy - mean) ** power for power in (2, 3, 4))]
    exact[3] -= 3 * exact[1] ** 2

    peaks = [
        Peaks.of(h[None], (own / n)[None], np.array([[h.shape[1]]]), np.array([float(n)]))
        for h, own in ((f, of_a), (g, of_b))
    ]
    null = Null.of(*peaks, np.array([float(n)]))
    np.testing.assert_allclose([chance.sum(), null.mean.item()], [1, mean], rtol=1e-9)
    np.testing.assert_allclose(null.variance.item(), exact[1], rtol=1e-9)
    np.testing.assert_allclose(null.third.item(), exact[2], rtol=0.1)  # to leading orders of 1 / n
    np.testing.assert_allclose(null.fourth.item(), exact[3], rtol=1 / 3)


def test_third_moments_of_all_functions_on_cells_follow_from_their_number_and_skewness():
    """Of labels the first k functions are all those on k + 1 cells: k labels, and the others as one."""
    shares = np.array([0.35, 0.25, 0.2, 0.1, 0.02, 0.08])
    f = Cells("x", "label", np.empty(0), np.empty(0), labels=tuple("abcde")).functions(1000 * shares)[:-1]
    sizes = np.arange(1, 6)[None]
    peaks = Peaks.of(f[None], shares[None], sizes, np.array([1000.0]))
    third = np.square(np.einsum("a,ai,aj,ak->ijk", shares, f, f, f))
    np.testing.assert_allclose(peaks.triple[0], [third[:k, :k, :k].sum() for k in sizes[0]], rtol=1e-9)


def test_energies_of_as_many_functions_as_there_are_cells_are_as_skewed_as_under_permutations():
    rng, n, cells = np.random.default_rng(0), 90, 9
    own = np.repeat(np.arange(cells), n // cells)
    f = contrasts(np.full(cells, 1 / cells))
    orders = np.argsort(rng.random((20_000, n)), axis=1)
    tables = np.stack([np.bincount(cells * own + own[order], minlength=cells**2) for order in orders])
    energy = (n - 1) * np.square(f.T @ tables.reshape(-1, cells, cells) @ f / n).sum(axis=(1, 2))
    peaks = Peaks.of(f[None], np.full((1, cells), 1 / cells), np.array([[cells - 1]]), np.array([float(n)]))
    null = Null.of(peaks, peaks, np.array([float(n)]))
    third = np.mean((energy - energy.mean()) ** 3)
    assert null.third.item() == pytest.approx(third, rel=0.15)  # chi-square's is two thirds of it


@pytest.mark.parametrize(
    ("sizes", "are_labels"),
    [
        (([1], [1, 2, 4, 8, 16, 32]), (False, False)),
        (([1, 2, 3], [1, 2, 3]), (False, False)),
        (([1, 2, 4, 8, 16],) * 2, (False, False)),
        (([8, 16, 32, 64, 84], [8, 16, 32, 64, 84]), (True, True)),
        (([8, 16, 32, 64, 128, 199], [1, 2, 3]), (True, False)),
        (([8, 16, 19], [8, 16, 19]), (True, True)),
    ],
)
def test_no_dependence_is_called_one_no_more_often_than_a_p_value_says(sizes, are_labels):
    draws, (a, b) = 40_000, (np.array(own) for own in sizes)
    energy = np.random.default_rng(0).chisquare(
        np.multiply.outer(*(np.diff(own, prepend=0) for own in (a, b))), size=(draws, len(a), len(b))
    )
    freedom = np.broadcast_to(np.multiply.outer(a, b).astype(float), energy.shape)
    weights = tuple(
        np.repeat(rung_weights(own[None], label), draws, axis=0) for own, label in zip((a, b), are_labels, strict=True)
    )
    found = block_tail(energy.cumsum(axis=1).cumsum(axis=2), Null.scaled(freedom, 2 * freedom), weights)
    for level in (0.1, 0.05, 0.01):
        error = np.sqrt(level * (1 - level) / draws)
        assert 0.8 * level < np.mean(found <= level) < level + 3 * error


@pytest.mark.parametrize(("n", "rare", "rarer"), [(5000, 100, 100), (5000, 100, 25), (500, 25, 20)])
def test_labels_that_few_rows_have_meet_by_chance_as_often_as_they_do(n, rare, rarer):
    """The p-value is that of drawing rows without replacement, two-sided, half of the observed count included."""
    law = hypergeom(n, rare, rarer)
    for both in range(12):
        table = np.array([[both, rare - both], [rarer - both, n - rare - rarer + both]], dtype=float)
        f, g = (contrasts(margin / n)[None] for margin in (table.sum(axis=1), table.sum(axis=0)))
        found = Batch(table[None, None], f, g, np.ones((1, 2), dtype=bool)).pvalues().item()
        beyond = law.sf(both - 1) - law.pmf(both) / 2
        assert found == pytest.approx(2 * min(beyond, 1 - beyond), rel=1e-6)


def test_tails_that_are_longer_than_those_of_a_chi_square_are_those_of_an_f_law_with_the_same_four_cumulants():
    law = f_law(30, 20)
    mean, variance, skewness, kurtosis = map(float, law.stats("mvsk"))
    cumulants = (mean, variance, skewness * variance**1.5, kurtosis * variance**2)
    values = np.array([1.0, 2.0, 5.0, 20.0]) + mean
    null = Null(*(np.full((4, 1, 1), each) for each in cumulants))
    one = np.ones((4, 1))
    np.testing.assert_allclose(block_tail(values[:, None, None], null, (one, one)), law.sf(values), rtol=1e-9)


def _drawn_table(rng, shares_of_a, shares_of_b, strength, n):
    """A table with any dependence whose chi-square over n is about strength^2, (a, b)."""
    joint = np.outer(shares_of_a, shares_of_b)
    ratio = rng.standard_normal(joint.shape)
    ratio -= (ratio @ shares_of_b)[:, None] + shares_of_a @ ratio - np.vdot(joint, ratio)
    joint = np.maximum(joint * (1 + strength * ratio / np.sqrt(np.vdot(joint, ratio**2))), 0)
    return rng.multinomial(n, (joint / joint.sum()).ravel()).reshape(joint.shape).astype(float)


def _batch(table, are_labels):
    shares = [table.sum(axis=axis) / table.sum() for axis in (1, 0)]
    f, g = (
        _of_labels(own)[None] if label else contrasts(own)[None] for own, label in zip(shares, are_labels, strict=True)
    )
    return Batch(table[None, None], f, g, np.array([are_labels]))


def _of_labels(shares):
    """The functions of labels, the most frequent first."""
    cells = Cells("x", "label", np.empty(0), np.empty(0), labels=tuple(map(str, range(len(shares) - 1))))
    return cells.functions(1e6 * shares)[:-1]


@pytest.mark.parametrize("sizes", [(85, 2), (85, 6), (30, 30), (85, 85), (200, 3)])
def test_what_pearsons_statistic_of_a_table_of_many_labels_finds_is_found(sizes):
    rng, n, sure = np.random.default_rng(sum(sizes)), 5000, 0
    freedom = np.prod(np.subtract(sizes, 1))
    for draw in range(20):
        evenness = (1.0, 10.0)[draw % 2]
        shares = [np.sort(rng.dirichlet(np.full(size, evenness)) + 0.2 / size)[::-1] for size in sizes]
        table = _drawn_table(rng, *(own / own.sum() for own in shares), np.sqrt(7 * np.sqrt(2 * freedom) / n), n)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        exact = chi2_contingency(table, correction=False).pvalue
        if exact < 1e-6:
            sure += 1
            assert _batch(table, (True, sizes[1] > 2)).pvalues().item() < 1e-5
    assert sure >= 10


@pytest.mark.parametrize("sizes", [(85, 2), (85, 30), (120, 3), (40, 40)])
def test_tables_of_many_labels_are_called_dependent_by_chance_no_more_often_than_p_values_say(sizes):
    """Under all orders of the rows, which keep the margins; a few labels have only 10 rows."""
    rng, n, draws = np.random.default_rng(sum(sizes)), 2000, 2000
    rows = [np.sort(rng.multinomial(n - 10 * size, rng.dirichlet(np.ones(size))) + 10)[::-1] for size in sizes]
    own = [np.repeat(np.arange(size), of_label) for size, of_label in zip(sizes, rows, strict=True)]
    first = own[0] * sizes[1]
    tables = np.stack([np.bincount(first + rng.permutation(own[1]), minlength=np.prod(sizes)) for _ in range(draws)])
    one = _batch(tables[0].reshape(sizes).astype(float), (True, True))
    alike = Batch(
        tables.reshape(draws, 1, *sizes).astype(float),
        *(np.repeat(h, draws, 0) for h in (one.f, one.g)),
        np.ones((draws, 2), dtype=bool),
    )
    found = alike.pvalues()
    for level in (0.1, 0.05, 0.01):
        assert np.mean(found <= level) < level + 3 * np.sqrt(level * (1 - level) / draws)
        assert np.mean(found <= level) > 0.6 * level


def test_the_p_value_of_few_labels_is_that_of_pearsons_statistic():
    table = np.random.default_rng(0).multinomial(2000, np.full(16, 1 / 16)).reshape(4, 4) + 40 * np.eye(4, dtype=int)
    f, g = (contrasts(table.sum(axis=axis) / table.sum())[None] for axis in (1, 0))
    found = Batch(table[None, None].astype(float), f, g, np.ones((1, 2), dtype=bool)).pvalues().item()
    assert found == pytest.approx(chi2_contingency(table).pvalue, rel=0.05)
