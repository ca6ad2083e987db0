"""Where no space is clearly best, the mean of several is taken, with weights that rows left out prefer."""

import numpy as np
import pandas as pd
import pytest

import featgeo as fg
from featgeo import FeatureRegressor, ModalDecomposition


def law(n, seed):
    """A jump, a wave and a product, of three columns of five; what is to be told of y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    truth = 1.5 * (X[:, 0] > 0.5) + np.sin(2 * X[:, 1]) + 0.5 * X[:, 1] * X[:, 2]
    return X, truth + 0.5 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def mean():
    return ModalDecomposition(2, random_state=0).fit(*law(800, 0))


def test_the_mean_of_spaces_tells_fresh_rows_more_than_each_of_them(mean):
    several = mean.spaces_[0].split(" and ")
    assert len(several) > 1
    fresh = law(20_000, 1)
    alone = [ModalDecomposition(2, x_space=name, random_state=0).fit(*law(800, 0)) for name in ("metric", "forest")]
    assert {"metric", "forest"} <= set(several)
    assert mean.score(*fresh) > max(model.score(*fresh) for model in alone)


def test_what_is_told_of_held_out_rows_is_true_of_fresh_ones(mean):
    f, g = mean.transform(*law(20_000, 1))
    correlations = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(2)]
    np.testing.assert_allclose(mean.held_out_singular_values_, correlations, atol=0.05)


def test_a_mean_is_saved_as_a_whole(mean, tmp_path):
    mean.save(tmp_path / "mean.fg")
    X, _ = law(50, 2)
    again = fg.load(tmp_path / "mean.fg")
    assert again.spaces_ == mean.spaces_
    np.testing.assert_allclose(again.transform(X), mean.transform(X), atol=1e-12)


def test_weights_are_found_again_on_all_rows_where_some_chose(mean, monkeypatch):
    monkeypatch.setattr("featgeo.learning.closed.PATIENT_ROWS", 800)
    model = ModalDecomposition(2, random_state=0).fit(*law(1500, 3))
    assert " and " in model.spaces_[0]
    assert model.score(*law(5000, 4)) > mean.score(*law(5000, 4))


def test_columns_of_many_labels_are_read_beside_numbers():
    """Functions of Y that no pilot found are wanted as well, the least of all."""
    rng = np.random.default_rng(3)
    n = 1500
    names = np.array([f"l{i}" for i in range(300)])
    code, a, b = rng.integers(300, size=n), rng.normal(size=n), rng.normal(size=n)
    effect = rng.normal(size=300)
    X = pd.DataFrame({"label": names[code], "a": a, "b": b})
    y = effect[code] + a * b + 0.3 * rng.normal(size=n)
    model = FeatureRegressor(random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.3
