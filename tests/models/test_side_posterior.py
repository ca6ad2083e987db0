"""Given S: no dependence is made up where there is none, and posteriors are those that held-out rows prefer."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from support import support_of_numbers

from featgeo import Conditional, ConditionalDecomposition, load, options
from featgeo.assembly.calibration import spread
from featgeo.assembly.links import MassLink, Recalibration, Support
from featgeo.assembly.side import ModelLink, SideRows
from featgeo.features.variables import Variable
from featgeo.learning.setting import Plan
from featgeo.models.given_s import BY_S_ALONE, FeaturesModel, Posterior, WithResiduals, over_pairs


def waves(n: int, frequency: float, seed: int) -> tuple[np.ndarray, ...]:
    """X and Y are independent given S, and fine functions of it but for noise."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(-1, 1, n)
    x = np.sin(frequency * s) + 0.1 * rng.standard_normal(n)
    return x, np.cos(frequency * s) + 0.3 * rng.standard_normal(n), s


def close_to_s(n: int, rho: float, seed: int) -> tuple[np.ndarray, ...]:
    """X is hardly more than S, and Y hangs on the little more that it is; the last is E[Y|x, s]."""
    rng = np.random.default_rng(seed)
    s, own = rng.standard_normal((2, n))
    mean = 0.5 * s + own
    return rho * s + np.sqrt(1 - rho**2) * own, mean + 0.5 * rng.standard_normal(n), s, mean


@pytest.mark.parametrize("frequency", [8, 15])
def test_fine_functions_of_s_are_no_conditional_dependence(frequency):
    x, y, s = waves(1500, frequency, 3)
    model = ConditionalDecomposition(x_space="kernel", y_given_s=LinearRegression(), random_state=0).fit(x, y, s)
    part = model.conditional_
    assert model.markov_.held_out_energy_ > 0.5
    assert part.held_out_energy_ <= 2 * part.held_out_energy_error_
    assert model.score(*waves(2000, frequency, 4)) < 0.01


def test_functions_of_the_conditional_component_have_mean_0_given_s():
    x, y, s = waves(2000, 8, 0)
    spaces = {"x_space": "kernel", "y_space": "kernel", "s_space": "kernel"}
    y = y + 0.3 * x  # there is something to find
    model = ConditionalDecomposition(2, 2, **spaces, y_given_s=LinearRegression(), random_state=0).fit(x, y, s)
    new_x, new_y, new_s = waves(20_000, 8, 1)
    g = model.conditional_values(new_s, new_y + 0.3 * new_x)
    cell = np.digitize(new_s, np.linspace(-1, 1, 41)[1:-1])
    means = np.array([g[cell == i].mean(axis=0) for i in range(40)])
    # The noise that a regression on at most 100 functions of s follows.
    assert np.mean(means**2) < 100 / 2000 * np.mean(g**2)


def test_distributions_are_learned_when_asked_for_as_they_would_have_been_in_the_fit():
    x, y, s, _ = close_to_s(600, 0.9, 5)
    model = ConditionalDecomposition(1, 1, "closed", "linear", "linear", "linear", random_state=0)
    with options(calibrating_rows=100_000):  # nothing is judged by rows held out
        later, now = clone(model).fit(x, y, s), clone(model).fit(x, y, s)
        assert now.posterior_.n_rows == 0
    assert now.given(x, s).proba().tolist() == later.given(x, s).proba().tolist()
    copied = pickle.loads(pickle.dumps(model.fit(x, y, s)))  # noqa: S301
    assert model.posterior_.n_rows > 0
    assert copied.given(x, s).proba().tolist() == model.given(x, s).proba().tolist()
    assert model.fit(x, -y, s).given(x, s).mean() @ now.given(x, s).mean() < 0, "of the last fit"
    with pytest.raises(NotFittedError):
        _ = clone(model).posterior_


def test_what_cannot_be_learned_when_saved_is_said_and_leaves_no_file(tmp_path, monkeypatch):
    x, y, s, _ = close_to_s(200, 0.9, 6)
    model = ConditionalDecomposition(1, 1, "closed", "linear", "linear", "linear", random_state=0).fit(x, y, s)

    def fail(*_):
        raise AttributeError("no such thing")

    monkeypatch.setattr(ConditionalDecomposition, "_choose_posterior", fail)
    with pytest.raises(AttributeError, match="no such thing"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_finite_s_takes_exact_means_off():
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b", "c"], 240)
    x = rng.standard_normal(240) + (s == "a")
    y = x * np.where(s == "b", -1, 1) + rng.standard_normal(240)
    model = ConditionalDecomposition(2, 1, x_space="spline", random_state=0).fit(x, y, s)
    g = model.conditional_values(s, y)
    np.testing.assert_allclose([g[s == label].mean(axis=0) for label in "abc"], 0, atol=1e-8)


def test_functions_at_all_pairs_are_those_at_each():
    x, y, s = waves(200, 3, 0)
    spaces = {"x_space": "kernel", "s_space": "spline", "y_space": "spline"}  # kernels would magnify rounding
    model = ConditionalDecomposition(2, 1, **spaces, y_given_s=LinearRegression(), random_state=0).fit(x, y, s)
    some = [model.s_variable_.rows(s[:7]), model.y_variable_.rows(y[:5])]
    together = over_pairs(model.learned_.components[1].g, *some)
    each = model.conditional_values(np.repeat(s[:7], 5), np.tile(y[:5], 7)).reshape(7, 5, -1)
    np.testing.assert_allclose(together, each, atol=1e-9)


def test_a_posterior_where_x_and_s_depend_strongly(tmp_path):
    x, y, s, _ = close_to_s(1000, 0.95, 0)
    model = ConditionalDecomposition(6, 6, x_space="kernel", y_given_s=LinearRegression(), random_state=0)
    features = model.fit_transform(x, y, s)
    np.testing.assert_array_equal(features, model.transform(x))
    assert model.posterior_.way == "features"
    new_x, _, new_s, truth = close_to_s(500, 0.95, 1)
    posterior = model.given(new_x, new_s)
    assert np.sqrt(np.mean((posterior.mean() - truth) ** 2)) < 0.35  # 1 without X, 0.4 by the formula
    report = model.report()
    assert report.posterior.r2[0] > 0.6 > 0.3 > report.posterior.r2[1]
    assert "held-out rows" in str(report)
    assert [line.split()[:3] for line in str(report).splitlines() if line.startswith("conditional")] == [
        ["conditional", str(len(model.conditional_.singular_values_)), f"{model.conditional_.energy_:.4f}"]
    ]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", trusted=[LinearRegression])
    np.testing.assert_array_equal(again.given_features(model.transform(new_x), new_s).mean(), posterior.mean())
    assert str(again.report()) == str(report)


LABELS = Support("labels", np.array(["a", "b"]), np.array([0.5, 0.5]), np.zeros((2, 0)))


def test_held_out_rows_choose_the_way_and_the_share():
    support, y = LABELS, np.tile([0, 1], 40)
    right = np.tile([[0.8, 0.2], [0.2, 0.8]], (40, 1))
    alone = np.full((80, 2), 0.5)
    chosen = Posterior.judged(alone, {"formula": right, "features": right}, y, support)
    assert (chosen.way, chosen.prior_share) == ("formula", 0.0)  # as good: then by the formula
    assert chosen.gain == pytest.approx(np.log(1.6))
    assert Posterior.judged(alone, {"formula": alone, "features": right}, y, support).way == "features"
    assert Posterior.judged(alone, {"formula": right[:, ::-1]}, y, support).prior_share == 1.0
    assert Posterior.judged(alone, {"formula": right[:, ::-1]}, y, support, mixed=False).gain < 0


def test_losses_of_numbers_are_those_of_the_whole_distribution():
    """The ranked probability score, E|Y - y| - E|Y - Y'| / 2, of distributions on the support."""
    rng = np.random.default_rng(0)
    values = np.sort(rng.standard_normal(7))
    support = Support("numbers", values, np.full(7, 1 / 7), np.zeros((7, 0)), np.column_stack([values, values + 0.01]))
    y = rng.choice(values, 60)
    alone, formula, features = rng.dirichlet(np.ones(7), (3, 60))
    formula[np.arange(60), np.searchsorted(values, y)] += 1
    formula /= 2

    def score(mass):
        distance = np.abs(np.subtract.outer(values, values))
        return np.array([m @ np.abs(values - one) - m @ distance @ m / 2 for m, one in zip(mass, y, strict=True)])

    shares = np.linspace(0, 1, 1001)
    found = Posterior.judged(alone, {"formula": formula, "features": features}, y, support)
    means = {way: [score((1 - share) * mass + share * alone).mean() for share in shares]
             for way, mass in (("formula", formula), ("features", features))}  # fmt: skip
    assert found.way == "formula"
    assert found.prior_share == pytest.approx(shares[int(np.argmin(means["formula"]))], abs=1e-3)
    assert all(found.losses[way] <= min(losses) for way, losses in means.items())
    assert found.losses == pytest.approx(
        {way: min(losses) for way, losses in means.items()} | {BY_S_ALONE: score(alone).mean()}, rel=1e-5
    )
    mixed = (1 - found.prior_share) * formula + found.prior_share * alone
    lead = score(alone) - score(mixed)
    assert found.gain == pytest.approx(lead.mean())
    assert found.gain_error == pytest.approx(lead.std(ddof=1) / np.sqrt(60))
    r2 = [1 - np.mean((y - mass @ values) ** 2) / y.var() for mass in (mixed, alone)]
    assert found.r2 == pytest.approx(r2)
    assert (found.measure, found.n_rows) == ("CRPS", 60)
    assert f"R^2 {r2[0]:.4f}, of s alone {r2[1]:.4f}" in str(found)
    pit = Conditional(support, mixed, link=MassLink()).pit(y, spread(y))
    np.testing.assert_allclose(found.recalibration.predicted, Recalibration.fit(pit).predicted)


def test_x_that_says_nothing_leaves_y_given_s():
    rng = np.random.default_rng(0)
    s, x = rng.standard_normal((2, 1000))
    y = np.where(rng.random(1000) < ndtr(s), "yes", "no")
    spaces = {"x_space": "spline", "s_space": "spline"}
    model = ConditionalDecomposition(1, 1, **spaces, y_given_s=LogisticRegression(), random_state=0).fit(x, y, s)
    assert abs(model.posterior_.gain) < 2 * model.posterior_.gain_error + 1e-3
    proba, alone = model.given(x, s).proba(), model.y_given_s_.predict_proba(s[:, None])
    assert np.abs(proba - alone).mean() < 0.03


def test_a_model_that_reads_features_answers_the_same_questions():
    support = LABELS
    mass, given = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.95, 0.05], [0.5, 0.5]])
    link = ModelLink(lambda f, s: mass, lambda s: given, 0.5)
    rows = SideRows(np.zeros((2, 1)), np.ones(2), None)
    np.testing.assert_allclose(link.ratio(rows, support) * support.mass, (mass + given) / 2)
    np.testing.assert_array_equal(link.likelihood(rows, support).argmax(axis=1), [1, 1])  # y given s plays no part
    np.testing.assert_array_equal(link.negative_mass(rows, support), [0, 0])


def test_a_model_of_features_knows_no_label_that_its_rows_did_not_show():
    rng = np.random.default_rng(0)
    f, s = rng.standard_normal((200, 1)), rng.standard_normal(200)
    y = np.where(f[:, 0] + s > 0, "a", "c").tolist()
    support = Support("labels", np.array(["a", "b", "c"]), np.full(3, 1 / 3), np.zeros((3, 0)))
    side, labelled = Variable.seen(s, "S").rows(s), Variable.seen(y, "Y").rows(y)
    mass = FeaturesModel.fit(f, side, labelled, support, Plan()).mass(f, side, support)
    np.testing.assert_allclose(mass.sum(axis=1), 1)
    np.testing.assert_array_equal(mass[:, 1], 0)
    assert np.mean(np.array(["a", "b", "c"])[mass.argmax(axis=1)] == y) > 0.9


@pytest.mark.parametrize("fitted", [False, True])
def test_a_regressor_and_its_residuals_are_a_model_of_y_given_s(fitted):
    x, y, s, _ = close_to_s(240, 0.3, 0)
    brought = LinearRegression().fit(s[:, None], y) if fitted else LinearRegression()
    model = ConditionalDecomposition(1, 1, x_space="spline", y_given_s=brought, random_state=0).fit(x, y, s)
    mass = model._mass_given(model.s_variable_.rows([0.0, 1.0]))
    mean = mass @ model.support_.values
    spread = np.sqrt(mass @ model.support_.values**2 - mean**2)
    np.testing.assert_allclose(mass.sum(axis=1), 1)
    np.testing.assert_allclose(mean, [0, 0.5], atol=0.25)
    np.testing.assert_allclose(spread, np.sqrt(1.25), atol=0.15)


def test_what_is_no_model_of_y_given_s():
    x, y, s, _ = close_to_s(300, 0.3, 0)
    with pytest.raises(ValueError, match=r"`y_given_s` must be a model .* got <function"):
        ConditionalDecomposition(1, 1, y_given_s=lambda s: s).fit(x, y, s)
    with pytest.raises(ValueError, match="Pass a classifier"):
        ConditionalDecomposition(1, 1, y_given_s=LinearRegression()).fit(x, np.where(y > 0, "yes", "no"), s)


def test_residuals_of_a_regressor_are_as_many_steps_of_equal_height():
    """P(y <= t | s) rises from 1 / 2r at the lowest of r residuals to 1 - 1 / 2r at the highest."""
    s = Variable.seen(np.zeros((1, 1)), "S").rows(np.zeros((1, 1)))
    model = WithResiduals(DummyRegressor().fit([[0.0]], [10.0]), np.array([-2.0, 0.0, 1.0, 3.0]))
    support = support_of_numbers(np.array([7.0, 9.0, 11.0, 15.0]), lambda rows: np.zeros((len(rows), 0)))
    mass = model.mass(s, support)[0]  # edges at 8, 10 and 13
    np.testing.assert_allclose(np.cumsum(mass), [1 / 8, 3 / 8, 7 / 8, 1])
