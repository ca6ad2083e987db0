"""Spaces that regressors learn: what rows of the fit are told comes from models that never saw them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from featgeo.features.trees import MAX_CATEGORIES, RegressorSpace, as_matrix, trees
from featgeo.features.variables import Variable


class Rote(RegressorMixin, BaseEstimator):
    """Knows by heart the rows that it has seen, and answers all others with a number that no target has."""

    def fit(self, X, y):
        self.known_ = {row.tobytes(): target for row, target in zip(np.asarray(X), y, strict=True)}
        return self

    def predict(self, X):
        return np.array([self.known_.get(row.tobytes(), -99.0) for row in np.asarray(X)])


def _rows(values):
    return Variable.seen(values, "X").rows(values)


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    return X, np.column_stack([X @ [1.0, 2.0], X @ [-3.0, 0.5]]) + 0.3 * rng.standard_normal((60, 2))


def test_rows_of_the_fit_are_told_only_by_models_that_never_saw_them(numbers):
    X, targets = numbers
    _, unseen = RegressorSpace.fit(_rows(X), targets, np.arange(60) % 5, Rote())
    np.testing.assert_array_equal(unseen, -99.0)


def test_every_row_has_taught_the_models_that_new_rows_meet(numbers):
    X, targets = numbers
    space, _ = RegressorSpace.fit(_rows(X), targets, np.arange(60) % 5, Rote())
    assert (space(_rows(X)) > -99).all()


def test_models_have_seen_every_row_outside_the_fold(numbers):
    """Each row stands twice, in different folds: the models of a fold know all its rows from their copies."""
    X, targets = numbers
    twice, targets = np.vstack([X, X]), np.vstack([targets, targets])
    _, unseen = RegressorSpace.fit(_rows(twice), targets, np.arange(120) // 60, Rote())
    np.testing.assert_array_equal(unseen, targets)


def test_unseen_features_are_the_regressions_of_the_other_folds(numbers):
    X, targets = numbers
    fold_of_row = np.random.default_rng(1).permutation(60) % 4
    _, unseen = RegressorSpace.fit(_rows(X), targets, fold_of_row, LinearRegression())
    for fold in range(4):
        out = fold_of_row == fold
        expected = LinearRegression().fit(X[~out], targets[~out]).predict(X[out])
        np.testing.assert_allclose(unseen[out], expected, atol=1e-10)


def test_new_rows_get_the_regression_itself(numbers):
    """Where all folds say the same, so does the space, for any rows and in any order."""
    X, _ = numbers
    exact = X @ np.array([[1.0, -3.0], [2.0, 0.5]]) + [4.0, 5.0]
    space, unseen = RegressorSpace.fit(_rows(X), exact, np.arange(60) % 3, LinearRegression())
    np.testing.assert_allclose(unseen, exact, atol=1e-10)
    fresh = np.random.default_rng(2).standard_normal((7, 2))
    rows = Variable.seen(X, "X").rows(fresh)
    np.testing.assert_allclose(space(rows), fresh @ [[1.0, -3.0], [2.0, 0.5]] + [4.0, 5.0], atol=1e-10)


def test_trees_see_an_interaction_and_follow_the_seed():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (400, 3))
    target = (X[:, 0] * X[:, 1])[:, None]
    fold_of_row = np.arange(400) % 4
    space, unseen = RegressorSpace.fit(_rows(X), target, fold_of_row, seed=1)
    np.testing.assert_allclose(unseen, target, atol=0.05)
    np.testing.assert_allclose(space(_rows(X)), target, atol=0.05)
    assert trees(_rows(X), 7).random_state == 7
    assert trees(_rows(X), 7, max_iter=3).max_iter == 3


def test_trees_read_numbers_then_labels_with_what_is_missing_as_such():
    frame = pd.DataFrame(
        {"word": ["b", "a", None, "b"], "number": [1.5, np.nan, -2.0, 0.0], "flag": [True, False, True, True]}
    )
    rows = _rows(frame)
    matrix = as_matrix(rows).numpy()
    n_numbers = rows.table.numbers.shape[1]
    np.testing.assert_array_equal(matrix[:, :n_numbers], rows.table.numbers)
    np.testing.assert_array_equal(np.isnan(matrix[:, 0]), [False, True, False, False])
    words = matrix[:, n_numbers:][:, [np.unique(column[[0, 1]]).size == 2 for column in matrix[:, n_numbers:].T]]
    assert (words[0] == words[3]).all()
    assert trees(rows, 0).categorical_features == list(range(n_numbers, matrix.shape[1]))
    assert trees(_rows(np.zeros((4, 2)) + np.arange(4)[:, None]), 0).categorical_features is None


def test_a_label_that_the_fit_never_saw_is_missing_to_trees():
    frame = pd.DataFrame({"word": list("abab"), "other": list("xxyy")})
    variable = Variable.seen(frame, "X")
    matrix = as_matrix(variable.rows(pd.DataFrame({"word": ["a", "new"], "other": ["y", "x"]}))).numpy()
    np.testing.assert_array_equal(np.isnan(matrix), [[False, False], [True, False]])


@pytest.mark.parametrize(("n_labels", "as_sets"), [(MAX_CATEGORIES, [1]), (MAX_CATEGORIES + 1, None)])
def test_labels_are_split_as_sets_up_to_what_the_trees_can_take(n_labels, as_sets):
    words = [f"w{i:03d}" for i in range(n_labels)] * 3  # a label of a single row would name that row
    rows = _rows(pd.DataFrame({"word": words, "number": np.arange(len(words)) % 7.0}))
    model = trees(rows, 0, max_iter=2)
    assert model.categorical_features == as_sets
    model.fit(as_matrix(rows).numpy(), np.arange(len(words), dtype=float))
