"""Distributions of numbers as mixtures of even stretches and of atoms: every answer, from the mixture itself."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo import Conditional
from featgeo.assembly.links import Recalibration, Support

ENDS = np.array([[-3.0, -1.0], [-1.0, -1.0], [-1.0, 0.5], [0.5, 2.0], [2.0, 2.0]])  # two atoms, one at the top
MASS = np.array([0.2, 0.1, 0.3, 0.25, 0.15])
VALUES = np.array([-1.8, -1.0, -0.4, 1.1, 2.0])
G = np.array([[1.0], [0.3], [-0.5], [-0.7], [0.63333333333333333]])
F = np.array([[0.0], [0.6], [-0.9], [3.0]])
AT = np.array([-4.0, -3.0, -2.5, -1.0, -0.99, 0.0, 0.5, 1.3, 1.999, 2.0, 5.0])
LEVELS = np.array([0.0, 0.03, 0.2, 0.25, 0.5, 0.77, 0.95, 1.0])


def given(**options):
    g = G - MASS @ G
    return Conditional(Support("numbers", VALUES, MASS, g, ENDS), F, **options)


def masses():
    """1 + f.g, below zero or not: moved down and cut off until the mean is 1."""
    ratio, rows = 1 + F @ (G - MASS @ G).T, []
    for row in ratio:
        shift = max(c for c in np.linspace(-1, 4, 500_001)[::1000] if (row - c).clip(min=0) @ MASS >= 1)
        step = 0.01
        while step > 1e-15:
            while (row - shift - step).clip(min=0) @ MASS >= 1:
                shift += step
            step /= 2
        rows.append((row - shift).clip(min=0) * MASS)
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def below(mass, y, strictly=False):
    """P(Y <= y), or P(Y < y), of one row."""
    total = 0.0
    for (low, high), m in zip(ENDS, mass, strict=True):
        if low == high:
            total += m * (low < y or (low == y and not strictly))
        else:
            total += m * np.clip((y - low) / (high - low), 0, 1)
    return total


def reaches(mass, level):
    """The least y with P(Y <= y) at the level or above, by halving."""
    low, high = -3.0, 2.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if below(mass, middle) >= level - 1e-13 else (middle, high)
    return high


@pytest.fixture(scope="module")
def exact():
    return masses()


def test_probabilities_means_and_distribution_functions(exact):
    found = given()
    np.testing.assert_allclose(found.proba(), exact, atol=1e-9)
    np.testing.assert_allclose(found.mean(), exact @ VALUES, atol=1e-9)
    np.testing.assert_allclose(found.mean(lambda y: np.column_stack([y, y**2])), exact @ np.c_[VALUES, VALUES**2])
    expected = [[below(mass, y) for y in AT] for mass in exact]
    np.testing.assert_allclose(found.cdf(AT), expected, atol=1e-9)
    np.testing.assert_allclose(found.cdf(0.25), [below(mass, 0.25) for mass in exact], atol=1e-9)
    np.testing.assert_array_equal(found.classes, VALUES)
    assert len(found) == 4
    negative = np.mean((-(1 + F @ (G - MASS @ G).T)).clip(min=0) @ MASS)
    assert found.negative_mass == pytest.approx(negative)
    assert negative > 0


def test_quantiles_intervals_and_samples(exact):
    found = given()
    expected = np.array([[reaches(mass, level) for level in LEVELS] for mass in exact])
    positive = LEVELS > 0  # where nothing is below, the stretch of the first mass begins
    np.testing.assert_allclose(found.quantile(LEVELS)[:, positive], expected[:, positive], atol=1e-6)
    np.testing.assert_allclose(found.interval(0.5), found.quantile([0.25, 0.75]))
    np.testing.assert_allclose(found.quantile(0.77), expected[:, 5], atol=1e-6)
    uniform = np.random.default_rng(3).random((4, 12))
    drawn = found.sample(12, random_state=3)
    np.testing.assert_allclose(
        drawn, [[reaches(m, u) for u in row] for m, row in zip(exact, uniform, strict=True)], atol=1e-6
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_probabilities_below_what_happened(exact, share):
    found = given()
    for y in AT:
        strictly, up_to = ([below(mass, y, strict) for mass in exact] for strict in (True, False))
        expected = np.array(strictly) + share * (np.array(up_to) - strictly)
        np.testing.assert_allclose(found.pit(np.full(4, y), share), expected, atol=1e-9)


def test_recalibration_maps_the_distribution_function(exact):
    found = given(recalibration=Recalibration(np.array([0, 0.3, 1]), np.array([0, 0.6, 1])))

    def forward(p):
        return np.interp(p, [0, 0.3, 1], [0, 0.6, 1])

    plain = np.array([[below(mass, y) for y in AT] for mass in exact])
    np.testing.assert_allclose(found.cdf(AT), forward(plain), atol=1e-9)
    median = [reaches(mass, 0.25) for mass in exact]  # 0.25 is mapped to 0.5
    np.testing.assert_allclose(found.quantile(0.5), median, atol=1e-6)
    cumulative = forward(np.cumsum(exact, axis=1))
    np.testing.assert_allclose(found.proba(), np.diff(cumulative, axis=1, prepend=0), atol=1e-9)
    np.testing.assert_allclose(found.mean(), np.diff(cumulative, axis=1, prepend=0) @ VALUES, atol=1e-9)


@pytest.mark.parametrize("kind", ["array", "mapping", "function"])
def test_another_prior_weighs_each_value(exact, kind):
    new = np.array([0.5, 0.1, 0.1, 0.1, 0.2])
    prior = {
        "array": 3 * new,
        "mapping": dict(zip(VALUES.tolist(), new, strict=True)),
        "function": lambda y: new / MASS,
    }
    weights = exact * new / MASS
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given(prior=prior[kind]).proba(), expected, atol=1e-9)
    np.testing.assert_allclose(given(prior=prior[kind]).cdf(0.0), [below(mass, 0.0) for mass in expected], atol=1e-9)


def test_some_rows_at_a_time_are_all_rows(monkeypatch):
    whole = given()
    questions = (
        lambda c: c.proba(), lambda c: c.cdf(AT), lambda c: c.quantile(LEVELS), lambda c: c.map(), lambda c: c.mle(),
        lambda c: c.sample(3, random_state=0), lambda c: c.pit(np.array([-2.0, 0, 1, 2])), lambda c: c.negative_mass,
    )  # fmt: skip
    answers = [ask(whole) for ask in questions]
    monkeypatch.setattr("featgeo.assembly.conditional.CELLS_AT_ONCE", 10)  # two rows
    for ask, answer in zip(questions, answers, strict=True):
        np.testing.assert_allclose(ask(given()), answer)


@pytest.mark.parametrize("levels", [[0.5, 1.5], [-0.1, 0.5], 2.0, np.nan, "0.5"])
def test_levels_of_quantiles_lie_between_0_and_1(levels):
    with pytest.raises(ValueError, match=r"between 0 and 1|holds NaN|must be a number"):
        given().quantile(levels)
