"""The classifier and the regressor: as good as their features, and as sure as they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from featgeo import FeatureClassifier, FeatureRegressor, load


def _logistic(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels and their true probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    p = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] * X[:, 2]))
    return X, rng.random(n) < p, p


def test_probabilities_are_close_to_the_truth():
    X, y, _ = _logistic(6000, seed=0)
    model = FeatureClassifier(random_state=0).fit(X, y)
    fresh, labels, truth = _logistic(4000, seed=1)
    p = model.predict_proba(fresh)[:, 1]
    assert np.sqrt(np.mean((p - truth) ** 2)) < 0.08
    assert log_loss(labels, p) < log_loss(labels, truth) + 0.03
    bins = np.digitize(p, np.linspace(0, 1, 6)[1:-1])
    for b in range(5):
        assert p[bins == b].mean() == pytest.approx(labels[bins == b].mean(), abs=0.05)


def test_calibration_can_be_left_out():
    X, y, _ = _logistic(1000, seed=0)
    plain = FeatureClassifier(x_space="linear", calibrate=False, random_state=0).fit(X, y)
    assert plain.link_.prior_share == 0
    np.testing.assert_allclose(plain.predict_proba(X).sum(axis=1), 1)


def test_labels_of_every_kind():
    X, y = load_wine(return_X_y=True)
    for labels in (y, y.astype(str), y.astype(float), pd.Series(y).map({0: "a", 1: "b", 2: "c"}), y == 1):
        model = FeatureClassifier(x_space="linear", random_state=0).fit(X, labels)
        assert model.score(X, labels) > 0.95
        assert set(model.predict(X)) <= set(np.unique(labels))
        assert model.predict(X).dtype == np.unique(labels).dtype


def test_many_classes():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = FeatureClassifier(x_space="kernel", random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.95
    assert model.n_modes_ == 9


def test_label_shift_is_a_matter_of_the_prior():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = (rng.standard_normal(4000) + y)[:, None]
    model = FeatureClassifier(random_state=0).fit(X, y)
    rare = rng.random(4000) < 0.1
    shifted = (rng.standard_normal(4000) + rare)[:, None]
    before, after = (model.given(shifted, prior=prior).proba()[:, 1].mean() for prior in (None, {0: 0.9, 1: 0.1}))
    assert after == pytest.approx(0.1, abs=0.02)
    assert before > 0.2


def _table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and labels that depend on them."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, n)
    return x, np.array(["a", "b", "c"])[(x * (rng.random(n) < 0.6) + rng.integers(0, 2, n)) % 3]


def test_to_weigh_labels_is_to_count_their_rows_so_often_without_another_fit():
    x, y = _table(400)
    plain = FeatureClassifier(calibrate=False, random_state=0)
    counted = plain.fit(x, y, sample_weight=np.where(y == "b", 3, 1)).predict_proba(x)
    weighted = FeatureClassifier(calibrate=False, class_weight={"b": 3}, random_state=0).fit(x, y)
    assert weighted.solver_ == "exact"
    np.testing.assert_allclose(weighted.predict_proba(x), counted, atol=1e-12)


def test_balanced_labels_have_one_prior_and_another_can_still_be_asked_for(tmp_path):
    X, y, _ = _logistic(600, seed=0)
    y = y & (X[:, 0] > 0.5)  # rare
    plain, balanced = (FeatureClassifier(x_space="linear", class_weight=w, random_state=0) for w in (None, "balanced"))
    p = plain.fit(X, y).predict_proba(X)
    even = p / np.array([np.mean(~y), np.mean(y)])
    np.testing.assert_allclose(balanced.fit(X, y).predict_proba(X), even / even.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(balanced.given(X, prior={False: np.mean(~y), True: np.mean(y)}).proba(), p)
    assert balanced.predict(X).mean() > plain.predict(X).mean()
    assert balanced.held_out_score_ != plain.held_out_score_  # that of its own predictions
    balanced.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), balanced.predict_proba(X))


def test_the_classifier_refuses_what_it_cannot_learn():
    X, y, _ = _logistic(100, seed=0)
    with pytest.raises(ValueError, match="one class"):
        FeatureClassifier().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="Unknown label type"):
        FeatureClassifier().fit(X, X[:, 0])
    model = FeatureClassifier(x_space="linear").fit(X, y.astype(int))
    with pytest.raises(ValueError, match="never saw"):
        model.transform(X, np.full(100, 7))


def _skewed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Spread and skewness of y depend on x."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, 2 * X[:, 0] + np.exp(X[:, 1]) * (rng.exponential(size=n) - 1)


def test_intervals_cover_as_often_as_they_say():
    X, y = _skewed(4000, seed=0)
    model = FeatureRegressor(x_space="kernel", random_state=0).fit(X, y)
    fresh, truth = _skewed(6000, seed=1)
    for level in (0.5, 0.9):
        low, high = model.predict_interval(fresh, level).T
        assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(level, abs=0.025)
        assert np.mean((high - low)[fresh[:, 1] > 0.5]) > 1.5 * np.mean((high - low)[fresh[:, 1] < -0.5])
    expected = 2 * fresh[:, 0]
    assert np.corrcoef(model.predict(fresh), expected)[0, 1] > 0.97


def test_the_regressor_refuses_what_it_cannot_learn():
    X, y = _skewed(50, seed=0)
    with pytest.raises(ValueError, match="numbers as y"):
        FeatureRegressor().fit(X, np.array(["a", "b"] * 25))
    with pytest.raises(ValueError, match="NaN"):
        FeatureRegressor().fit(X, np.where(np.arange(50) == 3, np.nan, y))
    with pytest.raises(ValueError, match="never varies"):
        FeatureRegressor().fit(X, np.ones(50))


def test_a_regressor_of_few_distinct_values_has_the_right_mean():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2000)
    for y in ((rng.random(2000) < 0.5).astype(float), rng.binomial(4, 1 / (1 + np.exp(-x))).astype(float)):
        model = FeatureRegressor(random_state=0).fit(x[:, None], y)
        assert model.predict(x[:, None]).mean() == pytest.approx(y.mean(), abs=0.02)


def test_zeros_of_a_rainy_variable_stay_zeros():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(3000)
    y = np.where(x + rng.standard_normal(3000) > 0, rng.exponential(size=3000), 0.0)
    given = FeatureRegressor(random_state=0).fit(x[:, None], y).given(np.array([[-2.0], [0.0], [2.0]]))
    assert (given.quantile([0.0, 0.01, 0.3]) >= 0).all()
    dry = given.cdf(0.0)
    assert dry[0] > 0.8
    assert dry[2] < 0.25
    assert given.cdf(-0.1) == pytest.approx(0)


def test_too_many_classes_are_refused_before_any_work_with_the_way_out():
    n = 2100
    with pytest.raises(ValueError, match=r"2100 values, indicators are made for 2000.*ModalDecomposition"):
        FeatureClassifier().fit(np.random.default_rng(0).normal(size=(2 * n, 2)), np.arange(2 * n) % n)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_the_held_out_score_is_that_of_new_rows_and_stays_with_the_file(tmp_path, kind):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    y = np.sin(2 * a) + 0.5 * rng.normal(size=4000)
    X = pd.DataFrame({"a": a, "b": b})
    target = pd.Series(y if kind == "numbers" else np.where(y > 0, "up", "down"), name="of [interest]")
    model = (FeatureRegressor if kind == "numbers" else FeatureClassifier)(random_state=0)
    model.fit(X[:2000], target[:2000]).save(tmp_path / "model")
    assert model.held_out_score_ == pytest.approx(model.score(X[2000:], target[2000:]), abs=0.03)
    again = load(tmp_path / "model")
    assert (again.held_out_score_, again.target_name_) == (model.held_out_score_, "of [interest]")


def test_a_target_without_a_name_has_none(tmp_path):
    X, y = np.arange(40.0)[:, None], np.tile([0.0, 1.0], 20)
    model = FeatureRegressor(random_state=0).fit(pd.DataFrame(X), pd.Series(y, name="y"))
    assert not hasattr(model.fit(X, y), "target_name_")


def _three_targets(n: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Rows, and three numbers of which two share their noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    noise = 0.5 * rng.standard_normal((2, n))
    one, two = X[:, 0] + noise[0], X[:, 1] + noise[0]
    return X, pd.DataFrame({"one": one, "two": two, "three": X[:, 0] - X[:, 1] + noise[1]})


def test_each_of_several_columns_has_a_fit_of_its_own_and_draws_depend_as_new_rows_do(tmp_path):
    X, Y = _three_targets(400, seed=0)
    options = {"n_modes": 6, "x_space": "linear", "y_space": "spline", "random_state": 0}
    model = FeatureRegressor(**options).fit(X, Y)
    fresh, truth = _three_targets(1000, seed=1)
    single = FeatureRegressor(**options).fit(X, Y["two"])
    np.testing.assert_allclose(model.predict(fresh)[:, 1], single.predict(fresh))
    low, high = np.moveaxis(model.predict_interval(fresh), -1, 0)
    assert ((low <= truth) & (truth <= high)).mean().to_numpy() == pytest.approx(0.9, abs=0.05)
    assert model.score(fresh, truth) == pytest.approx(model.held_out_score_, abs=0.05)
    np.testing.assert_array_equal(model.given(fresh).column("one").mean(), model.predict(fresh)[:, 0])
    drawn = model.given(fresh[:50]).sample(200, random_state=0)
    away = (drawn - drawn.mean(axis=1, keepdims=True)).reshape(-1, 3)
    expected = np.corrcoef((truth.to_numpy() - model.predict(fresh)).T)
    assert expected[0, 1] > 0.5  # what two columns share, less what fits of few modes miss
    np.testing.assert_allclose(np.corrcoef(away.T), expected, atol=0.15)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(fresh), model.predict(fresh))
