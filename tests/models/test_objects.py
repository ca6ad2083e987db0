"""Objects of scikit-learn as plain values and back: the same predictions, and nothing that does not go together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import QuantileTransformer, SplineTransformer

from featgeo.features.index import IndexRegressor
from featgeo.models import objects

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((300, 2)), RNG.integers(0, 5, 300)])
Y = X[:, 0] * (X[:, 2] == 2) + np.isin(X[:, 2], [0, 3]) + 0.1 * RNG.standard_normal(300)


def trees(labels=True, **options):
    categorical = [2] if labels else None
    return HistGradientBoostingRegressor(max_iter=5, categorical_features=categorical, **options).fit(X, Y)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_trees_predict_the_same(labels, early):
    model = trees(labels, early_stopping=early)
    again = objects.rebuilt(*objects.plain(model))
    new = np.column_stack([RNG.standard_normal((50, 2)), RNG.integers(-1, 7, 50)])  # labels never seen, too
    new[:5] = np.nan
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again.get_params() == model.get_params()
    assert again.do_early_stopping_ == early
    np.testing.assert_array_equal(again.train_score_, model.train_score_)
    np.testing.assert_array_equal(again.validation_score_, model.validation_score_)
    assert [len(stage) for stage in again._predictors] == [1] * len(model._predictors)


def test_trees_that_were_never_fitted_keep_their_options():
    again = objects.rebuilt(*objects.plain(HistGradientBoostingRegressor(max_iter=7)))
    assert again.max_iter == 7
    assert not hasattr(again, "_predictors")


def nodes(field, value, inner=True):
    def change(state):
        tree = state["nodes"].view(PREDICTOR_RECORD_DTYPE)
        tree[field][np.flatnonzero((tree["is_leaf"] == 0) == inner)[0]] = value

    return change


def entry(name, change):
    def changed(state):
        state[name] = change(state[name])

    return changed


NUMBERS_ALONE = {
    "a node that asks for a set of labels": nodes("is_categorical", 1),
    "a column that is not there": nodes("feature_idx", 3),
    "a column before the first": nodes("feature_idx", -1),
    "a child that is the node itself": nodes("left", 0),
    "a child in another tree": nodes("right", 10_000),
    "sizes of other trees": entry("sizes", lambda sizes: sizes + 1),
    "sizes that are no counts": entry("sizes", lambda sizes: sizes.astype(float)),
    "an empty tree": entry("sizes", lambda sizes: np.array([0, *sizes])),
    "a size below 0": entry("sizes", lambda sizes: np.array([*sizes[:-1], sizes[-1] + 5, -5])),
    "no trees": entry("sizes", lambda sizes: sizes[:0]),
    "fewer numbers of sets than trees": entry("n_sets", lambda n_sets: n_sets[1:]),
    "sets that are not there": entry("n_sets", lambda n_sets: n_sets + 1),
    "one part of the sets": entry("sets", lambda sets: sets[:1]),
    "sets of another type": entry("sets", lambda sets: [part.astype(np.uint64) for part in sets]),
    "sets of another width": entry("sets", lambda sets: [part[:, :7] for part in sets]),
    "labels of columns that have none": entry("labels", lambda labels: [np.arange(3.0)]),
    "labels that are no numbers": entry("labels", lambda labels: [np.array(["a"])]),
    "marks that are no truth values": entry("is_label", lambda marks: marks.astype(int)),
    "another loss": entry("parameters", lambda parameters: parameters | {"loss": "poisson"}),
    "a baseline of another shape": entry("baseline", np.ravel),
    "a baseline of another type": entry("baseline", lambda baseline: baseline.astype(np.float32)),
}
WITH_LABELS = {
    "a set that is not there": nodes("bitset_idx", 10_000),
    "a set of a column of numbers": nodes("feature_idx", 1),  # scikit-learn puts labels first
    "a column of numbers that is marked": entry("is_label", lambda marks: np.array([True, False, True])),
    "no labels of a column that is marked": entry("labels", lambda labels: []),
    "labels in two dimensions": entry("labels", lambda labels: [labels[0][:, None]]),
    "a table without end": entry("labels", lambda labels: [np.arange(float(2**21))]),
}
ALL = [(False, case) for case in NUMBERS_ALONE] + [(True, case) for case in WITH_LABELS]


@pytest.mark.parametrize(("labels", "case"), ALL)
def test_parts_of_trees_that_do_not_go_together_are_refused(labels, case):
    model = trees(labels)
    if labels:  # a first node that asks for labels
        model = HistGradientBoostingRegressor(max_iter=2, max_depth=1, categorical_features=[2]).fit(X, X[:, 2] == 2)
    name, state = objects.plain(model)
    state = {key: [part.copy() for part in value] if key == "sets" else value for key, value in state.items()}
    state["nodes"] = state["nodes"].copy()
    objects.rebuilt(name, state)
    (WITH_LABELS if labels else NUMBERS_ALONE)[case](state)
    with pytest.raises(ValueError, match="of trees"):
        objects.rebuilt(name, state)


FITTED = {
    "quantiles": QuantileTransformer(n_quantiles=20).fit(X),
    "splines": SplineTransformer(n_knots=4).fit(X),
    "kernel": Nystroem(n_components=10, random_state=0).fit(X),
    "line": LinearRegression().fit(X, Y),
    "index": IndexRegressor().fit(X, Y),
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
        ("index", "at_", lambda values: values[1:]),
        ("index", "n_features_in_", lambda count: count + 1),
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
