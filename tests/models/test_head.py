"""Heads: the loss is chosen after the fit, and costs and priors act as decision theory says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import featgeo as fg

COST = np.array([[0.0, 5.0], [1.0, 0.0]])


def _two_bells(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels 0 and 1, and the true probability of 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    X = rng.standard_normal((n, 2)) + 1.5 * y[:, None] * [1, 0]
    odds = 0.4 / 0.6 * np.exp(1.5 * X[:, 0] - 1.125)
    return X, y, odds / (1 + odds)


@pytest.fixture(scope="module")
def model():
    X, y, _ = _two_bells(2000, seed=0)
    return fg.FeatureClassifier(x_space="linear", random_state=0).fit(X, y)


def test_with_all_modes_of_a_table_least_squares_are_its_probabilities():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 4000)
    y = (x + rng.integers(0, 2, 4000)) % 3
    fitted = fg.ModalDecomposition("auto", random_state=0).fit(x, y.astype(str))
    found = fitted.head("squared", X=x, y=y.astype(str)).given(np.arange(5)).proba()
    expected = [np.bincount(y[x == i], minlength=3) / np.sum(x == i) for i in range(5)]
    np.testing.assert_allclose(found, expected, atol=1e-3)  # one row in 4,000 is what scikit-learn's ridge counts


# Lines are poor probabilities far out: nobody asks least squares for costs that are far apart.
@pytest.mark.parametrize(
    ("loss", "cost"), [("log", None), ("hinge", None), ("squared", None), ("log", COST), ("hinge", COST)]
)
def test_decisions_are_nearly_as_good_as_those_of_the_true_law(model, loss, cost):
    X, y, p = _two_bells(20_000, seed=1)
    paid = 1 - np.eye(2) if cost is None else cost
    best = np.argmin(np.column_stack([1 - p, p]) @ paid, axis=1)
    assert paid[y, model.head(loss, cost).predict(X)].mean() < 1.05 * paid[y, best].mean()


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_label_shift_comes_before_costs(model, loss):
    X, _, _ = _two_bells(300, seed=2)
    head, prior = model.head(loss, COST, prior={0: 0.9, 1: 0.1}), np.array([0.9, 0.1])
    moved = model.head(loss).given(X).proba() * prior / model.support_.mass
    moved /= moved.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(head.given(X).proba(), moved)
    np.testing.assert_array_equal(head.predict(X), np.argmin(moved @ COST, axis=1))
    np.testing.assert_array_equal(head.given(X, prior=model.support_.mass).map(), model.head(loss).predict(X))


def test_for_planes_a_prior_and_a_cost_are_the_same_weights(model):
    X, _, _ = _two_bells(300, seed=2)
    prior = np.array([0.9, 0.1])
    weight = prior / model.support_.mass
    by_cost = model.head("hinge", [[0, weight[0]], [weight[1], 0]]).predict(X)
    np.testing.assert_array_equal(model.head("hinge", prior=prior).predict(X), by_cost)
    assert (by_cost == 1).mean() < (model.head("hinge").predict(X) == 1).mean()


def test_the_prior_of_weighted_labels_is_that_of_the_head():
    X, y, _ = _two_bells(500, seed=0)
    plain, even = (
        fg.FeatureClassifier(x_space="linear", class_weight=w, random_state=0).fit(X, y) for w in (None, "balanced")
    )
    np.testing.assert_array_equal(even.head().predict(X), plain.head(prior=[0.5, 0.5]).predict(X))


@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_are_linear_in_the_modes(columns):
    X, _, _ = _two_bells(300, seed=0)
    Y = (X @ [[1.0, 0.5], [0.0, -1.0]])[:, :columns].squeeze() ** 3
    fitted = fg.ModalDecomposition(2, x_space="linear", y_space="linear", random_state=0).fit(X, Y)
    scaled = StandardScaler().fit_transform(fitted.transform(X))
    expected = Ridge().fit(scaled, Y).predict(scaled)
    np.testing.assert_allclose(fitted.head("squared", X=X, y=Y).predict(X), expected)


def test_a_model_from_a_file_needs_rows(model, tmp_path):
    X, y, _ = _two_bells(300, seed=3)
    model.save(tmp_path / "model")
    loaded = fg.load(tmp_path / "model")
    with pytest.raises(ValueError, match="Pass rows"):
        loaded.head()
    np.testing.assert_array_equal(loaded.head(X=X, y=y).predict(X), model.head(X=X, y=y).predict(X))
    assert repr(loaded.head("hinge", X=X, y=y)) == "A layer of hinge loss on the modes, fitted to 300 rows"


def test_the_cheapest_decision_is_a_threshold_of_the_probability(model):
    X, _, _ = _two_bells(300, seed=2)
    given = model.given(X)
    np.testing.assert_array_equal(given.decide(1 - np.eye(2)), given.map())
    np.testing.assert_array_equal(given.decide(COST), (given.proba()[:, 1] > 5 / 6).astype(int))
