"""An index is the direction of least squares, and the curve along it is the best of few."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from featgeo.features.index import IndexRegressor


def _columns(n: int = 20_000, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated Gaussian columns, a direction of unit variance along them, and the index of each row."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d)) + 2 * np.eye(d)
    values = rng.standard_normal((n, d)) @ root.T
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(root.T @ direction)
    return values, direction, values @ direction


@pytest.mark.parametrize(
    "curve",
    [np.tanh, lambda z: z, lambda z: np.maximum(z, 0), lambda z: z + z**2, lambda z: np.sin(2 * z)],
    ids=["tanh", "line", "bend", "parabola", "sine"],
)
def test_gaussian_columns_show_the_direction_of_any_curve_that_is_not_even(curve):
    values, _, index = _columns()
    target = curve(index) + 0.3 * np.random.default_rng(1).standard_normal(len(index))
    model = IndexRegressor().fit(values, target)
    found = values @ model.direction_
    assert abs(np.corrcoef(found, index)[0, 1]) > 0.997
    assert np.corrcoef(model.predict(values), curve(index))[0, 1] > 0.99


def test_predictions_do_not_depend_on_the_coordinates_of_the_columns():
    values, _, index = _columns(2000)
    target = np.tanh(index) + 0.1 * np.random.default_rng(1).standard_normal(len(index))
    turn = np.random.default_rng(2).standard_normal((6, 6)) + np.eye(6)
    first = IndexRegressor().fit(values, target).predict(values)
    second = IndexRegressor().fit(values @ turn + 3, target).predict(values @ turn + 3)
    np.testing.assert_allclose(second, first, atol=0.01)


def test_a_step_beats_the_line_that_fits_the_noise_of_many_columns():
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 5000)
    values = np.hstack([side[:, None] + 0.1 * rng.standard_normal((5000, 1)), rng.standard_normal((5000, 40))])
    target = 0.3 * side + rng.standard_normal(5000)
    line = LinearRegression().fit(values, target).predict(values)
    step = IndexRegressor().fit(values, target).predict(values)
    assert np.corrcoef(line, side)[0, 1] < 0.96
    assert np.corrcoef(step, side)[0, 1] > 0.98


def test_predictions_stay_within_those_of_the_fit_beyond_its_rows():
    values, direction, index = _columns(2000)
    model = IndexRegressor().fit(values, index)
    far = model.predict(np.array([1e6, -1e6])[:, None] * direction)
    assert np.isin(far, model.curve_[[0, -1]]).all()


def test_nothing_to_follow_is_the_mean():
    values, _, index = _columns(200)
    np.testing.assert_allclose(IndexRegressor().fit(values, np.full(200, 3.0)).predict(values), 3)
    np.testing.assert_allclose(IndexRegressor().fit(np.ones((200, 2)), index).predict(np.ones((5, 2))), index.mean())
    np.testing.assert_allclose(IndexRegressor().fit([[1.0]], [2.0]).predict([[7.0]]), 2)


def test_repeated_and_constant_columns_are_no_harm():
    values, _, index = _columns(3000)
    target = np.tanh(index)
    plain = IndexRegressor().fit(values, target).predict(values)
    padded = np.hstack([values, values[:, :2], np.ones((3000, 1))])
    assert np.corrcoef(IndexRegressor().fit(padded, target).predict(padded), plain)[0, 1] > 0.9999
