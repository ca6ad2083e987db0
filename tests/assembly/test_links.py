"""From features to probabilities: each link, and the choice among them, by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo.assembly import calibration
from featgeo.assembly.calibration import Calibration, best_share, calibrated_link
from featgeo.assembly.links import ExponentialLink, LinearLink, MassLink, Recalibration, Support

SHARES = (0.0, *np.geomspace(1e-9, 1.0, 2000))


def some_support(seed, m=4, k=2):
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.ones(m) * 3)
    g = rng.standard_normal((m, k))
    return Support("labels", np.arange(m), mass, g - mass @ g), rng


def density(f, support, share=0.0):
    """max(0, 1 + f.g - c), with the c for which its mean is 1 found by halving, and a share of 1 mixed in."""
    ratio = 1 + f @ support.g.T
    low, high = ratio.min(axis=1) - 1, ratio.max(axis=1)
    for _ in range(200):
        middle = (low + high) / 2
        above = (ratio - middle[:, None]).clip(min=0) @ support.mass > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (1 - share) * (ratio - low[:, None]).clip(min=0) + share


def loss(plain, index, support, share):
    """The log loss of a density (n, m), as `density` gives it, with a share of 1 mixed in."""
    probability = ((1 - share) * plain + share) * support.mass
    return -np.log(probability[np.arange(len(plain)), index].clip(min=1e-300)).mean()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_linear_link_is_the_nearest_density_and_a_share_of_the_prior(share):
    support, rng = some_support(0)
    f = np.vstack([0.1 * rng.standard_normal((20, 2)), 3 * rng.standard_normal((20, 2)), np.zeros((1, 2))])
    link = LinearLink(share)
    np.testing.assert_allclose(link.ratio(f, support), density(f, support, share), atol=1e-12)
    np.testing.assert_array_equal(link.likelihood(f, support), link.ratio(f, support))
    below = (-(1 + f @ support.g.T)).clip(min=0) @ support.mass
    np.testing.assert_allclose(link.negative_mass(f, support), below)
    assert below[-1] == 0 < below.max()


def test_features_beyond_all_measure_keep_their_direction():
    support, rng = some_support(1)
    f = rng.standard_normal((5, 2))
    far, farther = (LinearLink().ratio(f * scale, support) for scale in (1e12, 1e150))
    np.testing.assert_allclose(far, farther, atol=1e-6)
    np.testing.assert_allclose(far @ support.mass, 1)
    assert (np.argmax(far, axis=1) == np.argmax(f @ support.g.T, axis=1)).all()
    mixed = np.vstack([1e150 * f[:2], f[2:]])  # one row that is far away leaves the others as they are
    np.testing.assert_allclose(LinearLink().ratio(mixed, support)[2:], density(f[2:], support), atol=1e-12)


def test_the_exponential_link_is_a_softmax_over_the_prior():
    support, rng = some_support(2)
    link = ExponentialLink(rng.standard_normal((4, 2)), rng.standard_normal(4))
    f = rng.standard_normal((6, 2))
    ratio = link.ratio(f, support)
    expected = np.exp(f @ link.weight.T + link.bias)
    np.testing.assert_allclose(ratio / ratio.sum(axis=1, keepdims=True), expected / expected.sum(1, keepdims=True))
    assert np.isfinite(link.ratio(1e4 * f, support)).all()
    np.testing.assert_array_equal(link.likelihood(f, support), ratio)
    np.testing.assert_array_equal(link.negative_mass(f, support), np.zeros(6))


def test_known_probabilities_are_taken_over_the_prior():
    support, rng = some_support(3)
    mass = rng.dirichlet(np.ones(4), 5)
    np.testing.assert_allclose(MassLink().ratio(mass, support) * support.mass, mass)
    np.testing.assert_allclose(MassLink().likelihood(mass, support) * support.mass, mass)
    np.testing.assert_array_equal(MassLink().negative_mass(mass, support), np.zeros(5))


@pytest.mark.parametrize(("seed", "trust"), [(0, 1.0), (1, 0.97), (2, 0.6), (3, 0.0)])
def test_the_share_of_the_prior_is_that_of_the_smallest_log_loss(seed, trust):
    """Of rows that follow the features with some trust, and the prior else."""
    support, rng = some_support(seed, k=3)
    f = rng.standard_normal((600, 3))
    plain = density(f, support)
    true = trust * plain + 1 - trust
    index = (rng.random((600, 1)) > np.cumsum(true * support.mass, axis=1)).sum(axis=1).clip(max=3)
    share = best_share(plain * support.mass, support.mass, index, support)
    losses = [loss(plain, index, support, other) for other in (share, *SHARES[:: 1 if seed == 1 else 50])]
    assert losses[0] == min(losses)
    chosen = calibrated_link(f, index, support)
    half = np.arange(600) % 2 == 0
    mixed = density(f, support, share) * support.mass
    lead = -np.log(mixed[np.arange(600), index])
    for part in (half, ~half):
        weights = ExponentialLink.fit(f[part], index[part], support).ratio(f[~part], support) * support.mass
        probability = weights / weights.sum(axis=1, keepdims=True)
        lead[~part] += np.log(probability[np.arange(300), index[~part]])
    if lead.mean() > 0:
        assert isinstance(chosen, ExponentialLink)
        np.testing.assert_allclose(chosen.weight, ExponentialLink.fit(f, index, support).weight)
    else:
        assert chosen.prior_share == pytest.approx(share, rel=1e-6)


def test_links_are_judged_by_rows_evenly_spread(monkeypatch):
    monkeypatch.setattr(calibration, "CELLS", 300)
    monkeypatch.setattr(calibration, "FEWEST_JUDGING", 50)
    np.testing.assert_array_equal(calibration.affordable(40, 4), np.arange(40))
    np.testing.assert_array_equal(calibration.affordable(149, 4), np.arange(0, 149, 2))  # 75 of them
    assert len(calibration.affordable(1000, 100)) == 50
    support, rng = some_support(5)
    f, index = rng.standard_normal((149, 2)), rng.integers(0, 4, 149)
    all_rows, some = calibrated_link(f, index, support), calibrated_link(f[::2], index[::2], support)
    assert (all_rows == some) if isinstance(some, LinearLink) else np.allclose(all_rows.weight, some.weight)


def test_a_label_in_one_half_alone_leaves_the_softmax_out():
    support, rng = some_support(6)
    f = rng.standard_normal((200, 2))
    index = (np.argmax(f @ support.g.T, axis=1)).astype(int)
    assert isinstance(calibrated_link(3 * f, np.where(np.arange(200) % 2, index, index % 3), support), LinearLink)
    assert isinstance(calibrated_link(f, np.ones(200, dtype=int), support), LinearLink)
    no_modes = Support("labels", support.values, support.mass, support.g[:, :0])
    assert isinstance(calibrated_link(f[:, :0], index, no_modes), LinearLink)


@pytest.mark.parametrize("n", [60, 400, 10_000])
def test_recalibration_maps_predicted_quantiles_to_observed_ones(n):
    pit = np.random.default_rng(n).beta(2, 3, n)
    found = Recalibration.fit(pit)
    steps = round(np.sqrt(n) / 2)  # each of twice the root of the rows, and halves of the outermost with ten or more
    outer, ends = 1 / steps, []
    while outer / 2 * n >= 10 - 1e-9:
        outer /= 2
        ends.append(outer)
    knots = sorted({*np.linspace(0, 1, steps + 1), *ends, *(1 - np.array(ends))})
    np.testing.assert_allclose(found.observed, knots)
    np.testing.assert_allclose(found.predicted[1:-1], np.quantile(pit, knots)[1:-1], atol=1e-6)
    assert (found.predicted[0], found.predicted[-1]) == (0, 1)
    at = np.linspace(0, 1, 7)
    np.testing.assert_allclose(found.backward(found.forward(at)), at, atol=1e-9)
    np.testing.assert_allclose(found.forward(np.quantile(pit, 1 / steps)), 1 / steps, atol=1e-6)
    weights = np.array([[1.0, 2.0, 3.0, 2.0]])
    np.testing.assert_allclose(np.cumsum(found(weights), axis=1), found.forward(np.cumsum(weights, axis=1) / 8))


def test_as_many_rows_as_are_needed_calibrate():
    support, rng = some_support(7)
    f, index = np.zeros((50, 2)), rng.integers(0, 4, 50)
    f[:, 0] = 9.0  # features that say what never happens
    assert Calibration.fit(support, f[:49], index[:49]).link == LinearLink()
    assert Calibration.fit(support, f, index).link != LinearLink()
    assert Calibration.fit(support, f, index).recalibration is None
