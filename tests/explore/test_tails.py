"""Tails of energies under no dependence, against laws that can be counted out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2_contingency, hypergeom

from featgeo.explore.batches import Batch
from featgeo.explore.cells import Cells
from featgeo.explore.steps import contrasts
from featgeo.explore.tails import Null, Peaks, block_tail


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
    exact = [mean, *(chance @ (energy - mean) ** power for power in (2, 3))]

    peaks = [
        Peaks.of(h[None], (own / n)[None], np.array([[h.shape[1]]]), np.array([float(n)]))
        for h, own in ((f, of_a), (g, of_b))
    ]
    null = Null.of(*peaks, np.array([float(n)]))
    np.testing.assert_allclose([chance.sum(), null.mean.item()], [1, mean], rtol=1e-9)
    np.testing.assert_allclose(null.variance.item(), exact[1], rtol=1e-9)
    np.testing.assert_allclose(null.third.item(), exact[2], rtol=0.1)  # to leading orders of 1 / n


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


@pytest.mark.parametrize("sizes", [([1], [1, 2, 4, 8, 16, 32]), ([1, 2, 3], [1, 2, 3]), ([1, 2, 4, 8, 16],) * 2])
def test_no_dependence_is_called_one_no_more_often_than_a_p_value_says(sizes):
    draws, (a, b) = 40_000, (np.array(own) for own in sizes)
    energy = np.random.default_rng(0).chisquare(
        np.multiply.outer(*(np.diff(own, prepend=0) for own in (a, b))), size=(draws, len(a), len(b))
    )
    freedom = np.broadcast_to(np.multiply.outer(a, b).astype(float), energy.shape)
    there = tuple(np.ones((draws, len(own)), dtype=bool) for own in (a, b))
    found = block_tail(energy.cumsum(axis=1).cumsum(axis=2), Null.scaled(freedom, 2 * freedom), there)
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


def test_the_p_value_of_few_labels_is_that_of_pearsons_statistic():
    table = np.random.default_rng(0).multinomial(2000, np.full(16, 1 / 16)).reshape(4, 4) + 40 * np.eye(4, dtype=int)
    f, g = (contrasts(table.sum(axis=axis) / table.sum())[None] for axis in (1, 0))
    found = Batch(table[None, None].astype(float), f, g, np.ones((1, 2), dtype=bool)).pvalues().item()
    assert found == pytest.approx(chi2_contingency(table).pvalue, rel=0.05)
