"""Neighbourhoods of numbers: exact means, atoms that keep their mass, numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest
from support import support_of_numbers

from featgeo import Conditional
from featgeo.assembly import links as room
from featgeo.assembly.links import MAX_NUMBERS, Support


def of(values: np.ndarray) -> tuple[Support, Conditional]:
    """The support of some numbers, and the distribution that says nothing of x."""
    support = support_of_numbers(values, lambda index: values[index, None] / np.abs(values).max())
    return support, Conditional(support, np.zeros((1, 1)))


def atoms_of(support: Support) -> np.ndarray:
    """Which neighbourhoods begin where they end."""
    return support.ends[:, 0] == support.ends[:, 1]


@pytest.mark.parametrize("n", [150, 300, 5000])
@pytest.mark.parametrize("atom", [-9.0, 0.3, 9.0])  # below, amidst and above all other numbers
def test_an_atom_keeps_its_mass_to_itself(atom, n):
    rng = np.random.default_rng(n)
    values = np.concatenate([rng.standard_normal(n), np.full(n // 2, atom)])
    support, prior = of(rng.permutation(values))
    (own,) = np.flatnonzero(atoms_of(support))
    assert support.values[own] == atom
    assert support.mass[own] == pytest.approx(1 / 3)
    below = np.mean(values < atom)
    just_below, at = prior.cdf([np.nextafter(atom, -np.inf), atom])[0]
    assert just_below == pytest.approx(below, abs=2 / n)
    assert at - just_below == pytest.approx(1 / 3, abs=1e-9)
    levels = below + np.array([0.01, 0.5, 0.99]) / 3
    np.testing.assert_array_equal(prior.quantile(levels)[0], atom)
    np.testing.assert_allclose(prior.pit([atom], [0.25]), below + 0.25 / 3, atol=2 / n)


@pytest.mark.parametrize("n", [200, 1500, 4000])
def test_neighbourhoods_part_the_numbers_and_their_mass_and_values_are_those_of_their_rows(n):
    rng = np.random.default_rng(n)
    atoms = np.repeat([-3.5, 0.25, 3.5], [n // 10, n // 5, n // 20])
    values = rng.permutation(np.concatenate([rng.uniform(-3, 3, n), rng.integers(-3, 3, n // 50) + 0.1, atoms]))
    support, _ = of(values)
    own = np.searchsorted(support.ends[:, 1], values)  # the first that reaches as far
    np.testing.assert_array_equal(np.bincount(own, minlength=support.m) / len(values), support.mass)
    np.testing.assert_allclose([values[own == i].mean() for i in range(support.m)], support.values, rtol=1e-12)
    np.testing.assert_array_equal(support.values[atoms_of(support)], [-3.5, 0.25, 3.5])
    low, high = support.ends.T
    for i in range(support.m):
        assert low[i] <= values[own == i].min() <= values[own == i].max() <= high[i]
    plain = ~atoms_of(support)
    between = plain[1:] & plain[:-1]
    np.testing.assert_array_equal(high[:-1][between], low[1:][between])  # they meet half-way
    for i in np.flatnonzero(between):
        assert high[i] == pytest.approx((values[own == i].max() + values[own == i + 1].min()) / 2)


def test_without_repeats_there_are_no_atoms():
    support, prior = of(np.random.default_rng(0).standard_normal(3000))
    assert not atoms_of(support).any()
    assert (np.diff(support.ends.ravel()) >= 0).all()
    at = prior.quantile(np.linspace(0, 1, 11))[0]
    np.testing.assert_allclose(prior.cdf(at)[0], np.linspace(0, 1, 11), atol=1e-12)


@pytest.mark.parametrize("n", [MAX_NUMBERS, MAX_NUMBERS + 1, 1000, 60_001])
def test_means_are_exact_and_the_ends_are_those_of_the_numbers(n):
    values = np.exp(2 * np.random.default_rng(n).standard_normal(n))
    support, prior = of(values)
    assert support.m <= MAX_NUMBERS + 2 * 16  # and the halves at both ends
    assert prior.mean()[0] == pytest.approx(values.mean(), rel=1e-12)
    np.testing.assert_array_equal(prior.quantile([0.0, 1.0])[0], [values.min(), values.max()])
    np.testing.assert_allclose(prior.quantile(0.99)[0], np.quantile(values, 0.99), rtol=0.1)


def test_g_is_the_mean_over_each_neighbourhood(monkeypatch):
    monkeypatch.setattr(room, "MAX_NUMBERS", 4)
    support = support_of_numbers(np.arange(80.0), lambda index: index[:, None].astype(float))
    wide = support.mass > 0.2
    np.testing.assert_allclose((support.g[:, 0] + 39.5)[wide], support.values[wide], atol=1.0)
    assert support.mass @ support.g[:, 0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-310, 1e-170, 1e300, 1e307])
def test_numbers_of_any_size_are_the_same_but_for_their_scale(scale):
    values = np.random.default_rng(1).uniform(-9, 9, 700)
    ask = (lambda c: c.mean(), lambda c: c.interval(0.9), lambda c: c.map(), lambda c: c.sample(3, random_state=0))
    (_, small), (_, large) = of(values), of(values * scale)
    for question in ask:
        np.testing.assert_allclose(question(large) / scale, question(small), rtol=1e-9)
    np.testing.assert_allclose(large.cdf(values[:50] * scale), small.cdf(values[:50]), atol=1e-9)


def test_the_most_probable_number_is_where_the_density_is_highest():
    """The ratio is largest at the end, the density where many numbers lie: mle takes the first, map the second."""
    values = np.random.default_rng(0).standard_normal(40_000)
    support = support_of_numbers(values, lambda index: values[index, None])
    given = Conditional(support, np.array([[0.5]]))  # proportional to phi(y) (1 + y / 2): its mode solves y (2 + y) = 1
    assert given.map()[0] == pytest.approx(np.sqrt(2) - 1, abs=0.15)
    assert given.mle()[0] == pytest.approx(values.max(), rel=0.05)


@pytest.mark.parametrize(
    ("values", "unit"), [([-1e308, 3.0], 2.0**1023), ([5.0, -6.0], 4.0), ([0.25], 0.25), ([], 0.5)]
)
def test_the_unit_is_a_power_of_two_near_the_largest_size(values, unit):
    assert room.unit_of(np.array(values)) == unit


def test_the_distribution_function_rises_evenly_through_the_topmost_neighbourhood():
    values = np.sort(np.random.default_rng(0).standard_normal(5 * MAX_NUMBERS))
    support = support_of_numbers(values, lambda rows: np.zeros((len(rows), 0)))
    low, high = support.ends[-1]
    assert high > low
    shares = np.array([0.0, 0.25, 0.5, 1.0])
    found = Conditional(support, np.zeros((1, 0))).cdf(low + shares * (high - low))[0]
    np.testing.assert_allclose(found, 1 - support.mass[-1] * (1 - shares), atol=1e-12)
