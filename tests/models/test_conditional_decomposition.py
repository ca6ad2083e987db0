"""Learning with side information: components, posteriors and expectations against exact truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from support import random_counts, rows

from featgeo import ConditionalDecomposition, FeatureClassifier, FiniteJoint, ModalDecomposition, Training, load


def triples(seed: int, shape: tuple[int, int, int] = (5, 3, 3)) -> tuple[np.ndarray, ...]:
    counts = random_counts(seed, shape)
    return counts, *(part.numpy() for part in rows(counts))


def gaussian(n: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    s = rng.standard_normal(n)
    x = 0.6 * s + 0.8 * rng.standard_normal(n)
    y = 0.5 * s + 0.4 * x + 0.6 * rng.standard_normal(n)
    return x, y, s


@pytest.mark.parametrize("seed", range(3))
def test_finite_alphabets_give_the_exact_components(seed):
    counts, x, s, y = triples(seed)
    model = ConditionalDecomposition(n_modes=4, n_markov_modes=2).fit(x, y, s)
    exact = FiniteJoint(counts, names=("x", "s", "y")).conditional("x", "y", "s")
    assert model.solver_ == "exact"
    np.testing.assert_allclose(model.markov_.singular_values_, exact.markov.sigma, atol=1e-8)
    k = len(exact.conditional.sigma)
    np.testing.assert_allclose(model.conditional_.singular_values_[:k], exact.conditional.sigma, atol=1e-8)
    f = model.transform(np.arange(5))
    sign = np.sign(f[:, 2] @ exact.conditional.f[:, 0])
    np.testing.assert_allclose(sign * f[:, 2], exact.conditional.f[:, 0], atol=1e-7)
    every_s, every_y = (grid.ravel() for grid in np.indices((3, 3)))
    g = model.conditional_values(every_s, every_y)[:, 0]
    np.testing.assert_allclose(sign * g, exact.conditional.g[..., 0].ravel(), atol=1e-7)
    assert model.get_feature_names_out().tolist()[:3] == ["markov1", "markov2", "conditional1"]


@pytest.mark.parametrize("seed", range(3))
def test_the_posterior_at_full_rank_is_the_empirical_conditional(seed):
    counts, x, s, y = triples(seed)
    model = ConditionalDecomposition(n_modes=10, n_markov_modes=10).fit(x, y, s)
    every_x, every_s = (grid.ravel() for grid in np.indices((5, 3)))
    total = counts.sum(axis=2, keepdims=True)
    truth = (counts / total).reshape(-1, 3)
    posterior = model.given(every_x, every_s)
    np.testing.assert_allclose(posterior.proba(), truth, atol=1e-8)
    np.testing.assert_allclose(posterior.mean(lambda y: y**2.0), truth @ [0.0, 1.0, 4.0], atol=1e-8)
    every = np.arange(15)
    np.testing.assert_allclose(truth[every, posterior.map()], truth.max(axis=1), atol=1e-8)
    likelihood = (counts / counts.sum(axis=0, keepdims=True)).reshape(-1, 3)  # P(x|s, y)
    np.testing.assert_allclose(likelihood[every, posterior.mle()], likelihood.max(axis=1), atol=1e-8)


def test_pairs_of_x_and_s_that_never_met_fall_back_on_s_alone():
    counts, *_ = triples(0)
    counts[0, 0] = 0
    x, s, y = (part.numpy() for part in rows(counts))
    model = ConditionalDecomposition(n_modes=10, n_markov_modes=10).fit(x, y, s)
    alone = counts[:, 0].sum(axis=0) / counts[:, 0].sum()
    np.testing.assert_allclose(model.given([0], [0]).proba()[0], alone, atol=1e-8)


def test_gaussian_variables_with_a_continuous_s():
    x, y, s = gaussian(4000, 0)
    model = ConditionalDecomposition(random_state=0).fit(x, y, s)
    # Mehler: a Gaussian pair of correlation r has energy r^2 / (1 - r^2).
    assert model.markov_.singular_values_[0] == pytest.approx(0.6, abs=0.02)
    assert 0.45 < model.markov_.held_out_energy_ < 0.5625 + 0.05
    joint = 1 - 0.64 * 0.36 / (0.16 * 0.64 + 0.36)  # squared correlation of x with (s, y)
    assert 0.2 < model.conditional_.held_out_energy_ < joint / (1 - joint) - 0.5625 + 0.03
    new_x, _, new_s = gaussian(1000, 1)
    truth = 0.5 * new_s + 0.4 * new_x
    error = np.sqrt(np.mean((model.given(new_x, new_s).mean() - truth) ** 2))
    without = np.sqrt(np.mean((model.y_given_s_.given(new_s).mean() - truth) ** 2))
    assert error < 0.3 * without


def test_conditional_independence_leaves_no_held_out_energy():
    rng = np.random.default_rng(0)
    s = rng.standard_normal(1000)
    x, y = s + rng.standard_normal(1000), s + rng.standard_normal(1000)
    model = ConditionalDecomposition(random_state=0).fit(x, y, s)
    assert model.markov_.held_out_energy_ > 0.5
    assert model.conditional_.held_out_energy_ <= 2 * model.conditional_.held_out_energy_error_


def mixed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, np.ndarray]:
    """The sign of the dependence turns with a label of S: no marginal shows it."""
    rng = np.random.default_rng(seed)
    side = pd.DataFrame({"u": rng.standard_normal(n), "group": rng.choice(["a", "b"], n)})
    x = rng.standard_normal((n, 2))
    p = 1 / (1 + np.exp(-1.5 * x[:, 0] * np.where(side["group"] == "a", 1, -1) - side["u"].to_numpy()))
    return x, np.where(rng.random(n) < p, "yes", "no"), side, p


def test_a_mixed_s_whose_label_turns_the_dependence():
    x, y, s, _ = mixed(1500, 0)
    new_x, _, new_s, p = mixed(1000, 1)
    model = ConditionalDecomposition(x_space="spline", random_state=0).fit(x, y, s)
    assert isinstance(model.y_given_s_, FeatureClassifier)
    error = np.sqrt(np.mean((model.given(new_x, new_s).proba()[:, 1] - p) ** 2))
    without = np.sqrt(np.mean((model.y_given_s_.predict_proba(new_s)[:, 1] - p) ** 2))
    assert error < 0.3 * without


def test_several_columns_that_act_together_are_learned_by_trees_where_rows_are_many():
    """Of X only the product tells what Y adds to S; sums of functions of its columns know nothing of it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 2))
    s = rng.integers(0, 2, 600)
    y = s + x[:, 0] * x[:, 1] + 0.3 * rng.standard_normal(600)
    model = ConditionalDecomposition(n_modes=1, y_space="linear", random_state=0).fit(x, y, s)
    assert model.conditional_.held_out_energy_ > 0.2
    assert abs(np.corrcoef(model.transform(x)[:, -1], x[:, 0] * x[:, 1])[0, 1]) > 0.8


def test_only_features_of_x_need_to_cross(tmp_path):
    x, y, s, _ = mixed(200, 0)
    ConditionalDecomposition(1, 1, x_space="spline", random_state=0).fit(x, y, s).save(tmp_path / "model")
    sensor, centre = load(tmp_path / "model"), load(tmp_path / "model")
    message = sensor.transform(x[:50])  # all that is sent
    assert message.shape == (50, 2)
    at_centre = centre.given_features(message, s[:50]).proba()
    np.testing.assert_array_equal(at_centre, centre.given(x[:50], s[:50]).proba())
    with pytest.raises(ValueError, match="what `transform` gives"):
        centre.given_features(message[:, :1], s[:50])


def test_users_may_bring_a_model_of_y_given_s():
    counts, x, s, y = triples(0)
    one_hot = np.eye(3)[s]
    single = ConditionalDecomposition(10, 10, y_given_s=LogisticRegression()).fit(x, y, s.astype(float))
    assert single.given(x[:4], s[:4].astype(float)).proba().shape == (4, 3)
    for brought in (LogisticRegression(C=1e8), LogisticRegression(C=1e8).fit(one_hot, y)):
        model = ConditionalDecomposition(10, 10, y_given_s=brought).fit(x, y, one_hot)
        posterior = model.given([2], np.eye(3)[[1]]).proba()[0]
        np.testing.assert_allclose(posterior, counts[2, 1] / counts[2, 1].sum(), atol=1e-3)
    with pytest.raises(ValueError, match="predict_proba"):
        ConditionalDecomposition(1, 1, y_given_s=Constant()).fit(x, y, s).given(x, s).proba()


class Constant(BaseEstimator):
    """It predicts nothing."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True


def test_networks_learn_both_components():
    x, y, s = gaussian(4000, 0)
    model = ConditionalDecomposition(
        1,
        1,
        solver="neural",
        y_given_s=LinearRegression(),
        random_state=0,
        training=Training(max_epochs=10, surplus=1),
    ).fit(x, y, s)
    assert model.solver_ == "neural"
    assert model.markov_.held_out_singular_values_[0] == pytest.approx(0.6, abs=0.07)
    assert model.conditional_.held_out_singular_values_[0] > 0.3
    g, f = model.conditional_values(s, y)[:, 0], model.transform(x)[:, 1]
    assert np.corrcoef(f, g)[0, 1] == pytest.approx(model.conditional_.singular_values_[0], abs=1e-4)
    assert abs(np.corrcoef(g, s)[0, 1]) < 0.05


def test_score_is_half_the_energy_on_the_rows_of_the_fit():
    _, x, s, y = triples(1)
    model = ConditionalDecomposition(n_modes=10, n_markov_modes=10).fit(x, y, s)
    assert model.score(x, y, s) == pytest.approx(model.conditional_.energy_ / 2, abs=1e-8)


def network() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(1, 6), torch.nn.Tanh())


def test_networks_of_the_user_come_back_each_to_its_place(tmp_path):
    x, y, s = gaussian(600, 0)
    quick = Training(max_epochs=2)
    model = ConditionalDecomposition(
        1, 1, x_space=network(), s_space=network(), y_space="network", random_state=0, training=quick
    ).fit(x, y, s)
    model.save(tmp_path / "model")
    modules = {"x": network(), "s": network(), "y_given_s.x": network()}
    again = load(tmp_path / "model", modules=modules)
    np.testing.assert_array_equal(again.transform(x), model.transform(x))
    np.testing.assert_array_equal(again.given(x[:9], s[:9]).mean(), model.given(x[:9], s[:9]).mean())
    with pytest.raises(ValueError, match=r"y_given_s\.x"):
        load(tmp_path / "model", modules={"x": network(), "s": network()})
    with pytest.raises(ValueError, match="y_space='network'"):
        ConditionalDecomposition(y_space=network()).fit(x, y, s)


@pytest.mark.parametrize("values", [[0.25, 0.75], [1, 2], [True, False], ["a", None]])
def test_finite_values_of_y_of_any_type(values, tmp_path):
    rng = np.random.default_rng(0)
    s, x = rng.standard_normal(600), rng.standard_normal(600)
    index = (x + s + rng.standard_normal(600) > 0).astype(int)
    y = np.array(values, dtype=object if None in values else None)[index]
    model = ConditionalDecomposition(1, 1, x_space="spline", s_space="spline", random_state=0).fit(x, y, s)
    posterior = model.given(x, s)
    assert set(posterior.classes.tolist()) == set(values)
    of_first = posterior.proba()[:, posterior.classes.tolist().index(values[1])]
    assert np.corrcoef(of_first, x + s)[0, 1] > 0.8
    assert np.sqrt(np.mean((of_first - ndtr(x + s)) ** 2)) < 0.1


def test_vectors_missing_values_and_labels_that_the_fit_never_saw():
    rng = np.random.default_rng(0)
    side = pd.DataFrame({"u": rng.standard_normal(800), "group": rng.choice(["a", "b"], 800)})
    side.loc[::7, "u"] = np.nan
    side.loc[::11, "group"] = None
    x = rng.standard_normal(800)
    y = np.stack([x + rng.standard_normal(800), rng.standard_normal(800)], axis=1)
    model = ConditionalDecomposition(1, 1, x_space="spline", y_space="spline", random_state=0).fit(x, y, side)
    new = pd.DataFrame({"u": [0.0], "group": ["never"]})
    mean = model.given([2.0], new).mean(lambda y: y)[0]
    assert mean[0] > 0.5 > abs(mean[1])


def test_a_model_of_y_given_s_from_other_rows():
    x, y, s = gaussian(1500, 0)
    _, other_y, other_s = gaussian(1500, 5)
    spaces = {"x_space": "spline", "y_space": "spline"}
    brought = ModalDecomposition("auto", **spaces, random_state=0).fit(other_s, other_y)
    model = ConditionalDecomposition(**spaces, s_space="spline", y_given_s=brought, random_state=0).fit(x, y, s)
    truth = 0.5 * s[:300] + 0.4 * x[:300]
    assert np.sqrt(np.mean((model.given(x[:300], s[:300]).mean() - truth) ** 2)) < 0.15


class InAnotherOrder(BaseEstimator):
    """P(y|s) of a table of counts, of classes in another order and with one that the fit never sees."""

    classes_ = np.array([2, 7, 0, 1])

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, S):
        table = self.of_s_[np.asarray(S)[:, 0].astype(int)]
        return np.column_stack([table[:, 2], np.full(len(table), 0.5), table[:, 0], table[:, 1]]) / 1.5


def test_classes_of_a_model_of_y_given_s_may_come_in_another_order_and_with_others():
    counts, x, s, y = triples(0)
    brought = InAnotherOrder()
    brought.of_s_ = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
    model = ConditionalDecomposition(10, 10, y_given_s=brought).fit(x, y, s)
    for a, b in ((0, 1), (2, 0), (1, 2)):
        posterior = model.given([a], [b], calibrated=False).proba()[0]
        np.testing.assert_allclose(posterior, counts[a, b] / counts[a, b].sum(), atol=1e-9)
    fewer = InAnotherOrder()
    fewer.of_s_, fewer.classes_ = brought.of_s_, np.array([2, 7, 8, 1])
    with pytest.raises(ValueError, match="and 1 of the 3 of the fit, such as 0, are not among them"):
        ConditionalDecomposition(10, 10, y_given_s=fewer).fit(x, y, s).given(x[:2], s[:2]).proba()


def test_errors_say_what_is_wrong():
    _, x, s, y = triples(0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="value of its own"):
        ConditionalDecomposition(1, 1, solver="exact").fit(*rng.standard_normal((3, 100)))
    with pytest.raises(ValueError, match="`s_space`"):
        ConditionalDecomposition(s_space="trees").fit(*rng.standard_normal((3, 200)))
    with pytest.raises(ValueError, match="same rows"):
        ConditionalDecomposition().fit(x, y, s[:-1])
    with pytest.raises(ValueError, match="S never varies"):
        ConditionalDecomposition().fit(x, y, np.zeros(len(x)))
    with pytest.raises(ValueError, match="n_markov_modes"):
        ConditionalDecomposition(n_markov_modes=0).fit(x, y, s)
    with pytest.raises(ValueError, match="same rows"):
        ConditionalDecomposition(1, 1).fit(x, y, s).given(x, s[:-1])


def test_several_columns_of_x_are_learned_with_the_spaces_of_their_own_choice():
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((150, 2)), rng.standard_normal(150)
    y = s + 2 * x[:, 0] + rng.standard_normal(150)
    model = ConditionalDecomposition(1, 1, y_given_s=LinearRegression(), random_state=0).fit(x, y, s)
    assert np.abs(np.corrcoef(model.transform(x)[:, 1], x[:, 0])[0, 1]) > 0.8
