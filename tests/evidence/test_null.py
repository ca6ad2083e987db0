"""Null distributions: tails of weighted sums of chi-squares against closed forms, and p-values of permutations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from featgeo.evidence import shuffling
from featgeo.evidence.blocks import table_evidence
from featgeo.evidence.shuffling import Shuffling, permutation_pvalue, weighted_chi_square_tail
from featgeo.features.scored import Symbols


@pytest.mark.parametrize("freedom", [1, 2, 5, 144])
@pytest.mark.parametrize("tail", [0.999, 0.5, 0.05, 1e-8, 1e-100])
def test_equal_weights_are_chi_square(freedom, tail):
    at = chi2.isf(tail, freedom)
    assert weighted_chi_square_tail(3 * at, np.full(freedom, 3.0)) == pytest.approx(tail, rel=1e-8)


def test_two_pairs_of_weights_have_a_closed_form():
    """Pairs of equal weights are exponentials: P = (a e^(-q/2a) - b e^(-q/2b)) / (a - b)."""
    a, b, q = 2.0, 0.5, np.array([0.1, 3.0, 40.0])
    exact = (a * np.exp(-q / 2 / a) - b * np.exp(-q / 2 / b)) / (a - b)
    np.testing.assert_allclose([weighted_chi_square_tail(at, [a, a, b, b]) for at in q], exact, rtol=1e-10)


def test_weighted_tail_agrees_with_draws():
    weights = np.arange(1, 9) ** -1.5
    draws = np.random.default_rng(0).chisquare(1, (100_000, 8)) @ weights
    for at in (0.5, 2.0, 6.0):
        tail = weighted_chi_square_tail(at, weights)
        assert np.mean(draws > at) == pytest.approx(tail, abs=4 * np.sqrt(tail * (1 - tail) / 100_000))


@pytest.mark.parametrize("at", [0.5, 0.8, 1.0, 1.5])
def test_many_small_weights_beside_a_few_large_ones_agree_with_draws(at):
    weights = np.array([*np.full(120, 0.1), 2.6, 1.3, 0.8])
    rng = np.random.default_rng(0)
    draws = 0.1 * rng.chisquare(120, 100_000) + rng.chisquare(1, (100_000, 3)) @ weights[-3:]
    tail = weighted_chi_square_tail(at * weights.sum(), weights)
    assert np.mean(draws > at * weights.sum()) == pytest.approx(tail, abs=0.007)


def test_ends_of_the_weighted_tail():
    assert weighted_chi_square_tail(0, [1, 2]) == 1
    assert weighted_chi_square_tail(np.inf, [1, 2]) == 0
    assert weighted_chi_square_tail(2, [1, 0, 1e-30]) == pytest.approx(chi2.sf(2, 1))
    assert weighted_chi_square_tail(1, [0, 0]) == 1
    with pytest.raises(ValueError, match="at least 0"):
        weighted_chi_square_tail(1, [1, -0.5])
    with pytest.raises(ValueError, match="NaN"):
        weighted_chi_square_tail(np.nan, [1])


@pytest.mark.parametrize("q", [0.1, 2.0, 20.0, 400.0])
def test_many_pairs_of_weights_are_a_sum_of_exponentials(q):
    weights = np.array([1.0, 0.5, 0.2, 0.03])
    shares = [np.prod([w / (w - v) for v in weights if v != w]) for w in weights]
    assert weighted_chi_square_tail(q, np.repeat(weights, 2)) == pytest.approx(shares @ np.exp(-q / 2 / weights))


def test_p_values_of_as_few_draws_as_needed_are_exact(monkeypatch):
    monkeypatch.setattr(shuffling, "REACHED", 5)
    rng = np.random.default_rng(0)
    pvalues = np.array([permutation_pvalue(rng.random(), rng.random((3, 33)), False) for _ in range(20_000)])
    for level in (0.01, 0.03, 0.05, 0.1, 0.5):
        assert np.mean(pvalues <= level) < level + 3.7 * np.sqrt(level * (1 - level) / len(pvalues))
    assert np.mean(pvalues <= 0.05) == pytest.approx(0.05, abs=0.006)
    assert permutation_pvalue(2.0, [np.zeros(9)], False) == 1 / 10
    assert permutation_pvalue(0.0, [np.ones(99)], False) == 1


def test_more_permutations_within_strata_give_smaller_p_values():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 120)
    x, s = Symbols(codes, 8), Symbols(rng.integers(0, 3, 120), 3)
    for most in (99, 1999):
        assert table_evidence(x, x, Shuffling(most, rng), s).pvalue == 1 / (most + 1)
