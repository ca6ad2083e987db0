"""Tails of energies under no dependence, against laws that can be counted out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import hypergeom

from featgeo.explore.batches import Batch
from featgeo.explore.steps import contrasts
from featgeo.explore.tails import Null, Peaks


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


@pytest.mark.parametrize(("n", "rare", "rarer"), [(5000, 100, 100), (5000, 100, 25), (500, 25, 20)])
def test_labels_that_few_rows_have_meet_by_chance_as_often_as_they_do(n, rare, rarer):
    """The p-value is that of drawing rows without replacement, two-sided, half of the observed count included."""
    law = hypergeom(n, rare, rarer)
    for both in range(int(law.mean()) + 1, 12):
        table = np.array([[both, rare - both], [rarer - both, n - rare - rarer + both]], dtype=float)
        f, g = (contrasts(margin / n)[None] for margin in (table.sum(axis=1), table.sum(axis=0)))
        found = Batch(table[None, None], f, g).pvalues().item()
        assert found == pytest.approx(min(2 * law.sf(both - 1) - law.pmf(both), 1), rel=1e-6)
