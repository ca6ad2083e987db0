"""Distributions given x and side information s: exact from the exact components of a table, densities always."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import optimize
from support import SEEDS, random_counts

from featgeo import Conditional, FiniteJoint
from featgeo.assembly.links import Support
from featgeo.assembly.side import ModelLink, SideLink, SideRows

SHAPE = 4, 3, 5  # symbols of x, s and y


class Symbols:
    """Rows of s by their symbols, with the one method that assembly asks for."""

    def __init__(self, index: np.ndarray) -> None:
        self.index = index

    def take(self, rows: slice) -> Symbols:
        return Symbols(self.index[rows])


class Exact:
    """A random law of (x, s, y), and what its components make of every pair of x and s."""

    def __init__(self, seed: int, shift: float = 0.0, strength: float = 1.0) -> None:
        joint = FiniteJoint(random_counts(seed, SHAPE), names=("x", "s", "y"))
        self.p, self.p_y = joint.probability(), joint.probability("y")
        self.y_given_s = joint.probability("s", "y") / joint.probability("s")[:, None]
        markov, conditional = joint.conditional("x", "y", "s")
        x, s = (axis.ravel() for axis in np.indices(SHAPE[:2]))
        self.together = 1 + markov.kernel()
        self.tilt = strength * conditional.kernel() / self.together[:, :, None]
        f = strength * conditional.f * conditional.sigma
        self.rows = SideRows(f[x], self.together[x, s], Symbols(s))
        self.g = conditional.g + shift
        self.support = Support("labels", np.arange(SHAPE[2]), self.p_y, np.zeros((SHAPE[2], 0)))

    def link(self, **options: float) -> SideLink:
        return SideLink(lambda s: self.y_given_s[s.index], lambda s: self.g[s.index], **options)


@pytest.mark.parametrize("shift", [0.0, 3.0])  # a mean of g given s, were P(y|s) estimated apart, is taken off
@pytest.mark.parametrize("seed", SEEDS)
def test_all_modes_give_the_exact_posterior(seed, shift):
    exact = Exact(seed, shift)
    found = Conditional(exact.support, exact.rows, link=exact.link())
    posterior = exact.p / exact.p.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found.proba().reshape(SHAPE), posterior, atol=1e-12)
    likelihood = exact.p / exact.p.sum(axis=0)  # P(x|s, y)
    chosen = np.take_along_axis(likelihood.reshape(-1, 5), found.mle()[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, likelihood.reshape(-1, 5).max(axis=1), atol=1e-12)
    assert found.negative_mass == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_another_prior_multiplies_the_posterior_by_its_ratio(seed):
    exact = Exact(seed)
    prior = np.array([0.3, 0.1, 0.2, 0.15, 0.25])
    expected = exact.p / exact.p.sum(axis=2, keepdims=True) * prior / exact.p_y
    expected /= expected.sum(axis=2, keepdims=True)
    found = Conditional(exact.support, exact.rows, prior, exact.link()).proba()
    np.testing.assert_allclose(found.reshape(SHAPE), expected, atol=1e-12)


def test_what_lies_below_zero_is_weighed_by_y_given_s_and_projected_in_its_metric():
    exact = Exact(0, strength=4.0)  # four times too strong: below zero in places
    found = Conditional(exact.support, exact.rows, link=exact.link())
    below = (-(1 + exact.tilt)).clip(min=0)
    assert found.negative_mass == pytest.approx((below * exact.y_given_s).sum(axis=2).mean(), rel=1e-12)
    assert found.negative_mass > 0.05
    assert abs(found.negative_mass - (below @ exact.p_y).mean()) > 1e-3  # what the prior of y would make of it
    mass = found.proba().reshape(SHAPE)
    x, s = np.unravel_index(np.argmax(below.sum(axis=2)), SHAPE[:2])
    weights = exact.y_given_s[s]
    nearest = optimize.minimize(
        lambda q: weights @ (q - 1 - exact.tilt[x, s]) ** 2,
        np.ones(5),
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda q: weights @ q - 1},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    np.testing.assert_allclose(mass[x, s], weights * nearest.x, atol=1e-6)


def test_a_share_of_y_given_s_is_mixed_in():
    exact = Exact(1)
    plain, mixed = (
        Conditional(exact.support, exact.rows, link=exact.link(prior_share=share)).proba() for share in (0.0, 0.3)
    )
    alone = exact.y_given_s[exact.rows.s.index]
    np.testing.assert_allclose(mixed, 0.7 * plain + 0.3 * alone, atol=1e-12)


def test_pairs_that_never_meet_say_what_s_says_and_small_divisors_are_bounded():
    exact = Exact(2)
    never = SideRows(exact.rows.f, np.zeros(len(exact.rows)), exact.rows.s)
    alone = exact.y_given_s[exact.rows.s.index]
    np.testing.assert_allclose(Conditional(exact.support, never, link=exact.link()).proba(), alone, atol=1e-12)
    bounded = Conditional(exact.support, never, link=exact.link(fewest_together=50.0)).proba()
    tilt = exact.tilt * exact.together[:, :, None] / 50
    np.testing.assert_allclose(bounded, alone * (1 + tilt.reshape(-1, 5)), atol=1e-12)


def test_a_model_in_place_of_the_formula():
    exact = Exact(0)
    posterior = (exact.p / exact.p.sum(axis=2, keepdims=True)).reshape(-1, 5)
    index = np.arange(len(posterior))[:, None].astype(float)  # the feature names the pair of x and s
    rows = SideRows(index, np.ones(len(index)), exact.rows.s)
    link = partial(ModelLink, lambda f, s: posterior[f[:, 0].astype(int)], lambda s: exact.y_given_s[s.index])
    alone = exact.y_given_s[exact.rows.s.index]
    found = Conditional(exact.support, rows, link=link(0.2))
    np.testing.assert_allclose(found.proba(), 0.8 * posterior + 0.2 * alone, atol=1e-12)
    np.testing.assert_array_equal(found.mle(), np.argmax(posterior / alone, axis=1))
    assert found.negative_mass == 0
    y_given_s = exact.y_given_s.copy()
    y_given_s[:, 0] = 0  # what s rules out no x makes likely
    ruled_out = ModelLink(lambda f, s: posterior[f[:, 0].astype(int)], lambda s: y_given_s[s.index])
    likelihood = ruled_out.likelihood(rows, exact.support)
    np.testing.assert_array_equal(likelihood[:, 0], 0)
    np.testing.assert_allclose(likelihood[:, 1:], (posterior / alone)[:, 1:])
    np.testing.assert_allclose(ruled_out.ratio(rows, exact.support) * exact.support.mass, posterior)
