"""scikit-learn's own checks, and the tools around estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from featgeo import FeatureClassifier, FeatureRegressor, ModalDecomposition
from featgeo.tuning import options

EXPECTED = {
    "check_fit1d": "a single variable may be an array of one dimension: fit(x, y) is the commonest call",
}
OF_REGRESSION = {
    f"check_sample_weight_equivalence_on_{kind}_data": "it shuffles rows too, and folds are dealt by where rows stand"
    for kind in ("dense", "sparse")
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(
    [ModalDecomposition(), FeatureClassifier(), FeatureRegressor()],
    expected_failed_checks=lambda estimator: EXPECTED | (OF_REGRESSION if is_regressor(estimator) else {}),
)
def test_scikit_learn_checks(estimator, check):
    # Every space is tried as by default; of trees and kernels there are fewer, of which the checks say nothing.
    with options(forest_trees=30, averaged_forests=1, bagged_trees=5, joint_kernel_features=50, metric_gammas=(1.0,)):
        check(estimator)


def test_grid_search_maximises_the_held_out_h_score():
    X, y = load_diabetes(return_X_y=True)
    search = GridSearchCV(ModalDecomposition(1, x_space="linear"), {"y_space": ["linear", "spline"]}, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() > 0.1
    best = clone(search.best_estimator_).fit(X[::2], y[::2])
    assert best.score(X[1::2], y[1::2]) > 0.1


def test_features_feed_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), ModalDecomposition(1, x_space="linear"), LogisticRegression())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.94


def test_output_can_be_a_named_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    frame = ModalDecomposition(2, x_space="linear").set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == ["f1", "f2"]
    assert frame.index.equals(X.index)


def test_parameters_survive_a_clone():
    model = ModalDecomposition(2, solver="closed", x_space=StandardScaler(), y_space="spline", random_state=4)
    copy = clone(model)
    assert copy.get_params()["random_state"] == 4
    assert isinstance(copy.x_space, StandardScaler)
    assert copy.x_space is not model.x_space


def test_a_classifier_and_a_regressor_in_the_usual_loop():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(FeatureClassifier(), X, y, cv=2).mean() > 0.93
    X, y = load_diabetes(return_X_y=True)
    found = cross_validate(FeatureRegressor(), X, y, cv=2, return_estimator=True)
    assert found["test_score"].mean() > 0.4
    assert np.isfinite(found["estimator"][0].predict_interval(X)).all()
