"""An index is the direction of least squares, and the curve along it is the best of few."""

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from sklearn.linear_model import LinearRegression

from featgeo.features.trees import IndexRegressor
from featgeo.features.variables import copies_of, deal


def predicted(model, values):
    return model.forward(torch.from_numpy(values)).numpy()


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
    model = IndexRegressor.fit(values, target)
    found = values @ model.direction
    assert abs(np.corrcoef(found, index)[0, 1]) > 0.997
    assert np.corrcoef(predicted(model, values), curve(index))[0, 1] > 0.99


def test_predictions_do_not_depend_on_the_coordinates_of_the_columns():
    values, _, index = _columns(2000)
    target = np.tanh(index) + 0.1 * np.random.default_rng(1).standard_normal(len(index))
    turn = np.random.default_rng(2).standard_normal((6, 6)) + np.eye(6)
    first = predicted(IndexRegressor.fit(values, target), values)
    second = predicted(IndexRegressor.fit(values @ turn + 3, target), values @ turn + 3)
    np.testing.assert_allclose(second, first, atol=0.01)


def test_a_step_beats_the_line_that_fits_the_noise_of_many_columns():
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 5000)
    values = np.hstack([side[:, None] + 0.1 * rng.standard_normal((5000, 1)), rng.standard_normal((5000, 40))])
    target = 0.3 * side + rng.standard_normal(5000)
    line = LinearRegression().fit(values, target).predict(values)
    step = predicted(IndexRegressor.fit(values, target), values)
    assert np.corrcoef(line, side)[0, 1] < 0.96
    assert np.corrcoef(step, side)[0, 1] > 0.98


def test_predictions_stay_within_those_of_the_fit_beyond_its_rows():
    values, direction, index = _columns(2000)
    model = IndexRegressor.fit(values, index)
    far = predicted(model, np.array([1e6, -1e6])[:, None] * direction)
    assert np.isin(far, model.curve[[0, -1]]).all()


def test_nothing_to_follow_is_the_mean():
    values, _, index = _columns(200)
    np.testing.assert_allclose(predicted(IndexRegressor.fit(values, np.full(200, 3.0)), values), 3)
    np.testing.assert_allclose(predicted(IndexRegressor.fit(np.ones((200, 2)), index), np.ones((5, 2))), index.mean())
    np.testing.assert_allclose(predicted(IndexRegressor.fit(np.ones((1, 1)), np.array([2.0])), np.array([[7.0]])), 2)


def test_repeated_and_constant_columns_are_no_harm():
    values, _, index = _columns(3000)
    target = np.tanh(index)
    plain = predicted(IndexRegressor.fit(values, target), values)
    padded = np.hstack([values, values[:, :2], np.ones((3000, 1))])
    assert np.corrcoef(predicted(IndexRegressor.fit(padded, target), padded), plain)[0, 1] > 0.9999


def by_definition(X, y):
    """The direction of ridge regression that fares best without each part, and points and candidates of the curve."""
    n, d = X.shape
    values, target = X - X.mean(axis=0), y - y.mean()
    part = deal(n, 5, 0, copies_of(X, y[:, None]))

    def line(rows, ridge):
        strength = ridge * np.square(values[rows]).sum() / d  # as a share of the mean energy of a column
        augmented = np.vstack([values[rows], np.sqrt(strength) * np.eye(d)])
        return np.linalg.lstsq(augmented, np.append(target[rows], np.zeros(d)), rcond=None)[0]

    left_out = {}
    for ridge in (1e-9, 1e-6, 1e-4, 1e-2, 1.0):
        left_out[ridge] = np.empty(n)
        for i in range(5):
            left_out[ridge][part == i] = values[part == i] @ line(part != i, ridge)
    best = min(left_out, key=lambda ridge: np.sum((target - left_out[ridge]) ** 2))
    order = np.argsort(left_out[best], kind="stable")
    groups = np.array_split(order, min(1000, n))
    at, means, weight = (np.array([of(group) for group in groups]) for of in (
        lambda group: left_out[best][group].mean(), lambda group: y[group].mean(), len
    ))  # fmt: skip
    fold, curves = deal(len(at), 10, 0), []
    for size in (4, 7, 12):
        knots = np.quantile(at, np.linspace(0, 1, size))
        if len(at) > 2 * (size + 2):
            padded = np.r_[[knots[0]] * 3, knots, [knots[-1]] * 3]
            cubics = BSpline.design_matrix(at, padded, 3).toarray()

            def spline(points, cubics=cubics):
                root = np.sqrt(weight[points])
                return cubics @ np.linalg.lstsq(root[:, None] * cubics[points], root * means[points], rcond=None)[0]

            lost = np.empty(len(at))
            for out in (fold == i for i in range(10)):
                told = np.interp(at[out], at[~out], spline(~out)[~out])
                lost[out] = weight[out] * (means[out] - told) ** 2
            curves.append((spline(np.full(len(at), True)), lost))
    return line(np.ones(n, dtype=bool), best), at, curves


def cheapest_within_a_standard_error(curves):
    """Of curves in order of their parameters, with what they lose at each point without having seen it."""
    _, least = min(curves, key=lambda pair: pair[1].sum())
    more = [(curve, lost - least) for curve, lost in curves]
    return next(curve for curve, loss in more if loss.mean() <= loss.std(ddof=1) / np.sqrt(len(loss)))


@pytest.mark.parametrize(("law", "n"), [("wave", 400), ("bend", 120), ("line", 3000), ("few", 13), ("step", 300)])
def test_direction_and_curve_are_those_of_least_squares_and_of_what_points_left_out_prefer(law, n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + 1
    z = X @ [1.0, -0.5, 2.0]
    laws = {"wave": np.sin(2 * z) + z, "bend": np.abs(z) + z, "step": np.tanh(9 * z)}
    y = laws.get(law, z) + 0.2 * rng.normal(size=n)
    model = IndexRegressor.fit(X, y)
    direction, at, curves = by_definition(X, y)
    np.testing.assert_allclose(model.direction, direction, rtol=1e-6)
    np.testing.assert_allclose(model.at, at, rtol=1e-6)
    is_best = np.allclose(model.curve, cheapest_within_a_standard_error(curves), atol=1e-6)
    is_spline = any(np.allclose(model.curve, curve, atol=1e-6) for curve, _ in curves)
    assert is_best if law in ("wave", "bend") else is_best or not is_spline
    if law == "step":  # a + b tanh((z - c) / s): its logit is a line
        assert not is_spline
        share = (model.curve - model.curve.min()) / np.ptp(model.curve)
        inside = (share > 0.05) & (share < 0.95)
        curve = np.arctanh(2 * share[inside] - 1)
        assert np.corrcoef(curve, model.at[inside])[0, 1] > 0.99
