"""Distances of functions, by functions whose distance is known."""

from __future__ import annotations

import numpy as np
import pytest
from support import random_counts

from featgeo import FiniteJoint
from featgeo.geometry import Modes
from featgeo.paper import record
from featgeo.report.contents import Number

JOINT = FiniteJoint(random_counts(0, (6, 5)))
MASS, MODES = JOINT.probability("x"), JOINT.modes()
THETA = 0.3


def turned_by(angle: float) -> np.ndarray:
    """The first two functions, turned in their plane: they stay orthonormal."""
    f = MODES.f[:, :2]
    return f @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_standardised_functions_have_mean_0_and_variance_1_under_the_distribution():
    values = record.standardised(3 * MODES.f - 2, MASS)
    np.testing.assert_allclose(values, MODES.f, atol=1e-12)


def test_turning_by_an_angle_costs_its_cosine_and_its_chord():
    values = 5 * turned_by(THETA) + 1
    np.testing.assert_allclose(record.decorrelation(values, MODES.f[:, :2], MASS), 1 - np.cos(THETA), atol=1e-12)
    error = record.relative_error(turned_by(THETA), MODES.f[:, :2], MASS)
    np.testing.assert_allclose(error, 2 * np.sin(THETA / 2), atol=1e-12)
    np.testing.assert_allclose(record.relative_error(3 * MODES.f, MODES.f, MASS), 2, atol=1e-12)
    np.testing.assert_allclose(record.relative_error(MODES.f, 2 * MODES.f, MASS), 0.5, atol=1e-12)


def test_signs_point_the_way_of_the_counterpart():
    turn = np.array([1, -1, 1, -1])
    np.testing.assert_array_equal(record.signs(MODES.f * turn, MODES.f, MASS), turn)
    np.testing.assert_allclose(record.aligned(7 * MODES.f * turn + 2, MODES.f, MASS), MODES.f, atol=1e-12)
    np.testing.assert_allclose(record.decorrelation(-MODES.f, MODES.f, MASS), 0, atol=1e-12)  # up to sign
    np.testing.assert_allclose(record.decorrelation(MODES.f, MODES.f, MASS, -np.ones(4)), 2, atol=1e-12)


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_the_error_of_a_kernel_is_the_root_of_the_share_of_energy_that_it_lacks(missing):
    kept = [i for i in range(4) if i != missing]
    modes = Modes(MODES.sigma[kept], MODES.f[:, kept], MODES.g[:, kept])
    error = record.kernel_error(modes, MODES.kernel(), MASS, JOINT.probability("y"))
    assert error == pytest.approx(np.sqrt(MODES.sigma[missing] ** 2 / MODES.energy), abs=1e-12)


def test_equal_weights_add_up_to_one():
    np.testing.assert_array_equal(record.uniform(4), [0.25] * 4)


def test_a_number_passes_up_to_what_is_allowed():
    assert Number("a", error=0.2, bound=0.2).passed
    assert not Number("a", error=np.nextafter(0.2, 1), bound=0.2).passed
