"""Objects of scikit-learn as plain values and back: the same predictions, and nothing that does not go together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import QuantileTransformer, SplineTransformer

from featgeo.models import objects

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((300, 2)), RNG.integers(0, 5, 300)])
Y = X[:, 0] * (X[:, 2] == 2) + np.isin(X[:, 2], [0, 3]) + 0.1 * RNG.standard_normal(300)


def test_trees_that_were_never_fitted_keep_their_options():
    again = objects.rebuilt(*objects.plain(HistGradientBoostingRegressor(max_iter=7)))
    assert again.max_iter == 7
    assert not hasattr(again, "_predictors")


def test_trees_that_were_fitted_are_left_to_others():
    assert objects.plain(HistGradientBoostingRegressor(max_iter=2).fit(X, Y)) is None
    name, state = objects.plain(HistGradientBoostingRegressor())
    with pytest.raises(ValueError, match="attributes of a HistGradientBoostingRegressor"):
        objects.rebuilt(name, {**state, "learned": {"n_features_in_": 3}})


FITTED = {
    "quantiles": QuantileTransformer(n_quantiles=20).fit(X),
    "splines": SplineTransformer(n_knots=4).fit(X),
    "kernel": Nystroem(n_components=10, random_state=0).fit(X),
    "line": LinearRegression().fit(X, Y),
}


@pytest.mark.parametrize("kind", FITTED)
def test_other_objects_give_the_same(kind):
    model = FITTED[kind]
    if kind == "splines":  # their parts are objects themselves, which files keep apart
        name, state = objects.plain(model)
        parts = [objects.rebuilt(*objects.plain(part)) for part in state["learned"]["bsplines_"]]
        again = objects.rebuilt(name, {**state, "learned": {**state["learned"], "bsplines_": parts}})
    else:
        again = objects.rebuilt(*objects.plain(model))
    answer = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(again, answer)(X), getattr(model, answer)(X))
    assert type(again) is type(model)


@pytest.mark.parametrize(
    ("kind", "part", "change"),
    [
        ("quantiles", "quantiles_", lambda values: values[:, :2]),
        ("quantiles", "references_", lambda values: values[1:]),
        ("quantiles", "n_quantiles_", float),
        ("splines", "bsplines_", lambda splines: splines[:-1]),
        ("splines", "bsplines_", lambda splines: [*splines[:-1], 1.0]),
        ("kernel", "components_", lambda values: values[1:]),
        ("kernel", "normalization_", lambda values: values.astype(str)),
        ("kernel", "component_indices_", lambda values: values[None]),
        ("line", "coef_", lambda values: values[:2]),
        ("line", "intercept_", lambda value: np.array([value])),
        ("line", "n_features_in_", lambda count: count + 1),
    ],
)
def test_learned_parts_that_do_not_go_together_are_refused(kind, part, change):
    name, state = objects.plain(FITTED[kind])
    learned = {**state["learned"], part: change(state["learned"][part])}
    with pytest.raises(ValueError, match="of a "):
        objects.rebuilt(name, {**state, "learned": learned})


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"n_jobs": 2}},
        {"parameters": {"positive": "yes"}},
        {"learned": {"predict": 1.0}},
        {"learned": {"not a name": 1.0}},
        {"learned": {"coef_": print}},
    ],
)
def test_parameters_and_attributes_are_those_of_the_class(change):
    name, state = objects.plain(FITTED["line"])
    with pytest.raises(ValueError, match="LinearRegression"):
        objects.rebuilt(name, {key: {**value, **change.get(key, {})} for key, value in state.items()})


def test_what_cannot_be_made_again_is_left_to_others():
    for other in (
        HistGradientBoostingClassifier(),
        HistGradientBoostingRegressor(loss="poisson").fit(X, np.abs(Y)),
        HistGradientBoostingRegressor(monotonic_cst={"a": 1}),
        LinearRegression(n_jobs=2),
        LinearRegression().fit(X, np.column_stack([Y, Y])),
        np.ones(3),
    ):
        assert objects.plain(other) is None
    curve = BSpline(np.arange(8.0), np.ones(4), 3, extrapolate=False)
    again = objects.rebuilt(*objects.plain(curve))
    assert (again.k, again.extrapolate) == (3, False)
    np.testing.assert_array_equal(again.t, curve.t)
