"""Densities from features of any size."""

from __future__ import annotations

import numpy as np
import pytest

import featgeo as fg
from featgeo.assembly.links import nearest_density

rng = np.random.default_rng(0)


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12, 1e20, 1e99])
def test_the_nearest_density_of_large_functions_sits_where_they_are_largest(scale):
    ratio, mass = 1 + scale * rng.normal(size=(5, 40)), rng.dirichlet(np.ones(40))
    density = nearest_density(ratio, mass)
    largest = ratio.argmax(axis=1)
    expected = np.zeros((5, 40))
    expected[np.arange(5), largest] = 1 / mass[largest]
    np.testing.assert_allclose(density, expected, rtol=1e-6)


def test_nearly_equal_peaks_share_the_mass_however_high_they_are():
    ratio = np.array([[1e12, 1e12 - 1.0, -1e12, 0.0]])
    np.testing.assert_allclose(nearest_density(ratio, np.full(4, 0.25)), [[2.5, 1.5, 0.0, 0.0]], rtol=1e-3)


@pytest.mark.parametrize("x", [1e20, -1e20, 1e300, -1e300])
def test_predictions_far_away_are_values_that_occur(x):
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(size=300)
    model = fg.FeatureRegressor(x_space="linear", random_state=0).fit(X, y)
    far = np.array([[x, 0.0]])
    assert y.min() <= model.predict(far)[0] <= y.max()
    low, high = model.predict_interval(far)[0]
    assert y.min() <= low <= high <= y.max()
    np.testing.assert_allclose(model.given(far).proba().sum(), 1)
