"""Numbers of any size: far outliers, and features whose squares are not numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

import featgeo as fg
from featgeo.features.spaces import Encoding, KernelSpace, SpanFunction
from featgeo.features.variables import Variable
from featgeo.geometry.spans import AffineFeatures
from featgeo.tuning import Options

rng = np.random.default_rng(0)
X = rng.normal(size=(800, 4))
y = np.tanh(2 * X @ [0.5, -0.5, 0.5, 0.5]) + 0.5 * rng.normal(size=800)


def rows(values):
    return Variable.seen(values, "X").rows(values)


@pytest.mark.parametrize("outlier", [1e12, -1e300])
def test_one_outlier_does_not_turn_an_index(outlier):
    changed = X.copy()
    changed[5, 2] = outlier
    models = [fg.ModalDecomposition(1, x_space="index", random_state=0).fit(values, y) for values in (X, changed)]
    np.testing.assert_allclose(models[1].singular_values_, models[0].singular_values_, atol=0.02)


def test_bounded_numbers_end_beyond_the_outer_rows_and_others_stay():
    values = np.sort(rng.normal(size=(1001, 1)), axis=0)
    values[-1] = 1e9
    bounded = Encoding.fit(rows(values), "bounded")
    reach = Options().outer_reach
    low, middle, high = values[[2, 500, 998], 0]  # two rows of a thousand lie outside
    np.testing.assert_allclose(
        bounded.bounds[:, 0], [middle - reach * (middle - low), middle + reach * (high - middle)]
    )
    kept = values.clip(*bounded.bounds)
    np.testing.assert_allclose(bounded.numbers(rows(values)), (kept - kept.mean()) / kept.std())
    np.testing.assert_array_equal(kept[:-1], values[:-1])


def test_a_sparse_column_is_not_cut_off():
    values = np.zeros((1000, 1))
    values[3] = 5.0
    assert Encoding.fit(rows(values), "bounded").bounds.tolist() == [[-np.inf], [np.inf]]
    two = np.array([[1.0], [9.0]])  # of two rows none lies in the middle
    assert Encoding.fit(rows(two), "bounded").bounds.tolist() == [[-np.inf], [np.inf]]


@pytest.mark.parametrize("scale", [1e-170, 1e170])
@pytest.mark.parametrize("space", ["linear", FunctionTransformer()], ids=["linear", "transformer"])
def test_scale_does_not_change_the_dependence(scale, space):
    scaled, plain = (
        fg.ModalDecomposition(1, x_space=space, y_space="linear", random_state=0).fit(X * s, y * s) for s in (scale, 1)
    )
    np.testing.assert_allclose(scaled.singular_values_, plain.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(scaled.transform(X * scale), plain.transform(X), atol=1e-6)


def test_only_features_out_of_reach_are_scaled():
    model = fg.ModalDecomposition(1, x_space=FunctionTransformer(), random_state=0).fit(X * [1, 1e-150, 1, 1e150], y)
    space = model.learned_.components[0].f.space
    assert isinstance(space, SpanFunction)
    np.testing.assert_array_equal(space.weight[[0, 2]], np.eye(4)[[0, 2]])
    assert (np.abs(space(rows(X * [1, 1e-150, 1, 1e150]))) < 10).all()


def test_kernel_features_times_a_matrix_are_what_the_features_give():
    space = KernelSpace.fit(rows(X))
    values = space(rows(X))
    affine = AffineFeatures(values.mean(axis=0), rng.normal(size=(values.shape[1], 2)), np.array([1.0, 2.0]))
    np.testing.assert_allclose(SpanFunction(space, affine)(rows(X)), affine(values), atol=1e-10)


def test_many_rows_get_the_values_that_few_get(monkeypatch):
    model = fg.ModalDecomposition(2, x_space="kernel", random_state=0).fit(X, y)
    whole = model.transform(X)
    monkeypatch.setattr("featgeo.features.space.ROWS_AT_ONCE", 100)
    np.testing.assert_allclose(model.transform(X), whole, atol=1e-12)
