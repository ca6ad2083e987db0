"""Conditional distributions: exact where the modes are, densities always, and consistent with each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from support import SEEDS, random_counts, support_of_numbers

from featgeo import Conditional, FiniteJoint
from featgeo.assembly.calibration import calibrated_link
from featgeo.assembly.links import ExponentialLink, LinearLink, Recalibration, Support, nearest_density


def _exact(seed: int, values: np.ndarray | None = None, kind: str = "numbers") -> tuple[np.ndarray, Conditional]:
    """The table of a random joint distribution, and the conditional that all of its modes make for each symbol of x."""
    table = random_counts(seed, (5, 4)) / random_counts(seed, (5, 4)).sum()
    modes = FiniteJoint(table).modes()
    support = Support(kind, np.arange(4.0) if values is None else values, table.sum(axis=0), modes.g)
    return table, Conditional(support, modes.f * modes.sigma)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_modes_give_the_exact_posterior_and_expectations(seed):
    table, conditional = _exact(seed)
    posterior = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(conditional.proba(), posterior, atol=1e-12)
    np.testing.assert_allclose(conditional.mean(), posterior @ np.arange(4), atol=1e-12)
    np.testing.assert_allclose(conditional.mean(np.exp), posterior @ np.exp(np.arange(4)), atol=1e-11)
    squares = conditional.mean(lambda y: np.stack([y, y**2], axis=1))
    np.testing.assert_allclose(squares[:, 1], posterior @ np.arange(4) ** 2, atol=1e-12)
    np.testing.assert_allclose(conditional.cdf(1.0), posterior[:, :2].sum(axis=1), atol=1e-12)
    for answer, density in ((conditional.map(), posterior), (conditional.mle(), posterior / table.sum(axis=0))):
        chosen = np.take_along_axis(density, answer.astype(int)[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen, density.max(axis=1), atol=1e-12)
    assert conditional.negative_mass == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_another_prior_is_bayes_rule_with_the_same_likelihood(seed):
    table, conditional = _exact(seed)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    likelihood = table / table.sum(axis=0)
    expected = likelihood * prior / (likelihood @ prior)[:, None]
    support = conditional._support
    for given in (prior, dict(enumerate(prior)), lambda y: prior / table.sum(axis=0)):
        np.testing.assert_allclose(Conditional(support, conditional._f, prior=given).proba(), expected, atol=1e-12)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [1, 1, 1, -1], {0.0: 1.0}, {9: 1.0}, [0, 0, 0, 0]])
def test_impossible_priors_are_refused(prior):
    _, conditional = _exact(0)
    with pytest.raises(ValueError, match="prior"):
        Conditional(conditional._support, conditional._f, prior=prior)


@pytest.mark.parametrize("seed", SEEDS)
def test_nearest_density_is_the_projection(seed):
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.ones(6))
    ratio = 1 + 2 * rng.standard_normal((4, 6))
    ratio += 1 - (ratio @ mass)[:, None]
    projected = nearest_density(ratio, mass)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected @ mass, 1, atol=1e-12)
    for row, result in zip(ratio, projected, strict=True):
        found = optimize.minimize(
            lambda p, row=row: mass @ (p - row) ** 2,
            np.ones(6),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda p: mass @ p - 1},
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        np.testing.assert_allclose(result, found.x, atol=1e-5)


def test_projection_never_moves_away_from_a_density():
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(8))
    truth = nearest_density(1 + rng.standard_normal((200, 8)), mass)
    noisy = truth + rng.standard_normal(truth.shape)
    noisy += 1 - (noisy @ mass)[:, None]
    before, after = ((estimate - truth) ** 2 @ mass for estimate in (noisy, nearest_density(noisy, mass)))
    assert (after <= before + 1e-12).all()


def test_negative_mass_is_reported():
    support = Support("labels", np.array(["a", "b"]), np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]))
    conditional = Conditional(support, np.array([[2.0], [0.0]]))
    np.testing.assert_allclose(conditional.proba(), [[1, 0], [0.5, 0.5]])
    assert conditional.negative_mass == pytest.approx(0.25)  # 1 - 2 = -1 at mass 1/2, in one row of two


def _continuous() -> Conditional:
    values = np.random.default_rng(0).standard_normal(5000)
    support = support_of_numbers(values, lambda i: np.stack([values[i], values[i] ** 2 - 1], axis=1))
    return Conditional(support, np.array([[0.0, 0.0], [0.4, 0.1], [-0.3, 0.2]]))


def test_quantiles_invert_the_distribution_function():
    conditional = _continuous()
    levels = np.linspace(0.01, 0.99, 31)
    quantiles = conditional.quantile(levels)
    assert (np.diff(quantiles, axis=1) > 0).all()
    for row, at in enumerate(quantiles):
        np.testing.assert_allclose(conditional.cdf(at)[row], levels, atol=1e-9)
    np.testing.assert_allclose(conditional.interval(0.8), conditional.quantile([0.1, 0.9]))
    np.testing.assert_allclose(conditional.pit(conditional.quantile(0.3)), 0.3, atol=1e-9)


def test_prior_mean_stays_what_it_is_where_nothing_is_known():
    values = np.random.default_rng(1).standard_normal(50_000)
    support = support_of_numbers(values, lambda i: values[i, None])
    assert support.m <= 1000
    assert Conditional(support, np.zeros((1, 1))).mean()[0] == pytest.approx(values.mean(), abs=1e-3)
    assert Conditional(support, np.zeros((1, 1))).quantile(0.9)[0] == pytest.approx(np.quantile(values, 0.9), abs=5e-3)


def test_samples_follow_the_distribution_and_the_seed():
    conditional = _continuous()
    drawn = conditional.sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=1), conditional.mean(), atol=0.03)
    assert (drawn == conditional.sample(20_000, random_state=0)).all()
    table, labelled = _exact(0, values=np.array(["a", "b", "c", "d"]), kind="labels")
    share = (labelled.sample(20_000, random_state=1) == "b").mean(axis=1)
    np.testing.assert_allclose(share, (table / table.sum(axis=1, keepdims=True))[:, 1], atol=0.02)


def test_labels_have_no_order_and_no_mean():
    _, conditional = _exact(0, values=np.array(["a", "b", "c", "d"]), kind="labels")
    for ask in (lambda c: c.cdf(0), lambda c: c.quantile(0.5), lambda c: c.interval(0.9)):
        with pytest.raises(ValueError, match="proba"):
            ask(conditional)
    with pytest.raises(ValueError, match="psi"):
        conditional.mean()
    assert conditional.mean(lambda y: y == "a") == pytest.approx(conditional.proba()[:, 0])


@pytest.mark.parametrize("ask", [lambda c: c.quantile(1.5), lambda c: c.interval(90), lambda c: c.mean(lambda y: 1.0)])
def test_questions_without_an_answer_are_refused(ask):
    with pytest.raises(ValueError, match=r"between|psi"):
        ask(_continuous())


def test_softmax_link_recovers_a_softmax():
    rng = np.random.default_rng(0)
    f = rng.standard_normal((20_000, 2))
    weight = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -0.5]])
    logits = f @ weight.T
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    index = (rng.random((len(f), 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    mass = np.bincount(index) / len(index)
    support = Support("labels", np.arange(3), mass, np.eye(3, 2))
    link = calibrated_link(f, index, support)
    assert isinstance(link, ExponentialLink)
    found = Conditional(support, f, link=link).proba()
    assert np.abs(found - p).mean() < 0.01


def test_calibration_keeps_the_theory_where_it_is_right():
    rng = np.random.default_rng(3)
    table, conditional = _exact(3, values=np.arange(4), kind="labels")
    cells = rng.choice(20, 20_000, p=table.ravel())
    x, y = np.divmod(cells, 4)
    link = calibrated_link(conditional._f[x], y, conditional._support)
    assert isinstance(link, LinearLink)
    assert link.prior_share <= 0.01


def test_recalibration_makes_frequencies_true():
    rng = np.random.default_rng(0)
    prior = rng.standard_normal(20_000)
    support = support_of_numbers(prior, lambda i: prior[i, None])
    too_narrow = 0.5 * rng.standard_normal(5000)  # values of Y less spread than the prior says
    before = Conditional(support, np.zeros((5000, 1)))
    fitted = Recalibration.fit(before.pit(too_narrow))
    after = Conditional(support, np.zeros((5000, 1)), recalibration=fitted)
    fresh = 0.5 * rng.standard_normal(5000)
    low, high = after.interval(0.8).T
    assert np.mean((fresh >= low) & (fresh <= high)) == pytest.approx(0.8, abs=0.02)


def test_the_mean_of_a_heavy_tailed_prior_is_exact():
    values = np.exp(2.5 * np.random.default_rng(0).standard_normal(100_000))
    support = support_of_numbers(values, lambda i: np.log(values[i])[:, None])
    assert support.values @ support.mass == pytest.approx(values.mean(), rel=1e-12)


def test_one_value_for_each_row_is_due():
    with pytest.raises(ValueError, match="one value"):
        _continuous().pit([0.0])
    n = len(_continuous())
    with pytest.raises(ValueError, match="`share` must lie between 0 and 1"):
        _continuous().pit(np.zeros(n), np.append(np.zeros(n - 1), 2.0))  # one of them does not
