"""What is measured of modes that are solved exactly."""

import numpy as np

from featgeo.learning.exact import correlations, residual


def test_correlations_are_those_of_centred_columns():
    rng = np.random.default_rng(0)
    f = rng.standard_normal((40, 3)) * [1, 5, 0.1] + [0, 100, -7]
    g = f * [1, -1, 0.5] + rng.standard_normal((40, 3)) + 20
    expected = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlations(f, g), expected, atol=1e-12)
    np.testing.assert_allclose(correlations(f - 3, 2 * g + 5), expected, atol=1e-12)


def test_what_is_constant_correlates_with_nothing():
    f = np.column_stack([np.zeros(5), np.full(5, 2.0), np.arange(5)])
    g = np.column_stack([np.arange(5), np.arange(5), np.full(5, -1.0)])
    np.testing.assert_array_equal(correlations(f, g), 0)


def test_residual_is_the_largest_deviation_from_the_identity():
    shares = np.array([0.25, 0.5, 0.25])
    values = np.array([[np.sqrt(2), 1.0], [0.0, -1.0], [-np.sqrt(2), 1.0]])
    assert residual(values, shares) < 1e-15
    assert abs(residual(values * [1, 2], shares) - 3) < 1e-12
    assert abs(residual(values[:, [1, 1]], shares) - 1) < 1e-12
