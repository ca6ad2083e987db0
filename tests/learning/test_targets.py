"""What regressors learn: all functions of few values, orthonormal, or the strongest of a pilot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from featgeo.features.spaces import TableSpace
from featgeo.features.variables import Variable
from featgeo.learning.closed import CLEAR, MAX_TARGETS, are_all_known, clearness, targets, wanted


def _rows(values):
    return Variable.seen(values, "Y").rows(values)


@pytest.mark.parametrize("m", [2, 5, MAX_TARGETS + 1])
def test_few_values_have_an_orthonormal_basis_of_all_functions_of_mean_0(m):
    y = np.concatenate([np.arange(m), np.random.default_rng(0).integers(0, m, 300) ** 2 // m])
    rows = _rows(y)
    space = TableSpace.fit(rows)
    assert are_all_known(space)
    values = targets(space, rows, [])
    assert values.shape == (len(y), m - 1)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(values.T @ values / len(y), np.eye(m - 1), atol=1e-10)


def test_of_many_values_the_most_wanted_functions_are_taken():
    y = np.arange(3 * (MAX_TARGETS + 2)) % (MAX_TARGETS + 2)
    rows = _rows(y)
    space = TableSpace.fit(rows)
    assert not are_all_known(space)
    found = [np.random.default_rng(i).standard_normal((len(y), 8)) for i in range(2)]
    np.testing.assert_array_equal(targets(space, rows, found), np.hstack(found)[:, :MAX_TARGETS])
    np.testing.assert_array_equal(targets(space, rows, found[:1]), found[0])


def test_what_depends_on_the_rows_is_to_be_explained_in_any_of_the_targets():
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((900, 2)), rng.standard_normal((900, 1))
    assert clearness(_rows(X), np.hstack([noise, X[:, :1] + 5]), seed=0) > CLEAR  # a constant tells nothing
    assert clearness(_rows(X), np.full((900, 1), 5.0), seed=0) <= CLEAR


def test_of_few_values_those_functions_come_first_that_many_labels_tell_apart():
    rng = np.random.default_rng(1)
    label, y = rng.integers(200, size=4000), rng.integers(5, size=4000)
    y = np.where(rng.random(4000) < 0.3, 2 * (label % 2), y)  # labels know 0 from 2, and no more
    frame = pd.DataFrame({"label": np.char.add("l", label.astype(str)), "number": rng.normal(size=4000)})
    rows = _rows(y)
    space = TableSpace.fit(rows)
    pilot = [(np.array([0.02]), targets(space, rows, [])[:, :1])]  # what it found is weak
    values = wanted(Variable.seen(frame, "X").rows(frame), space, rows, pilot, cheap=False)
    means = np.array([values[y == value, 0].mean() for value in range(5)])
    np.testing.assert_allclose(values.T @ values / 4000, np.eye(4), atol=1e-10)  # all functions all the same
    assert abs(means[2] - means[0]) > 4 * np.ptp(means[[1, 3, 4]])
