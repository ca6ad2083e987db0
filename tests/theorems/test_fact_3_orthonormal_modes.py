"""Fact 3: singular values fall, features are orthonormal, modes are orthogonal to each other and to remainders."""

import numpy as np
import pytest
from support import SEEDS, random_counts

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_features_are_orthonormal_and_modes_orthogonal(seed):
    joint = FiniteJoint(random_counts(seed, (7, 5)))
    p_x, p_y, modes = joint.probability("x"), joint.probability("y"), joint.modes()
    k = len(modes)
    assert np.all(np.diff(modes.sigma) <= 0)
    assert modes.sigma[-1] > 0
    np.testing.assert_allclose(modes.f.T @ (p_x[:, None] * modes.f), np.eye(k), atol=1e-12)
    np.testing.assert_allclose(modes.g.T @ (p_y[:, None] * modes.g), np.eye(k), atol=1e-12)

    metric = np.outer(p_x, p_y)
    single = [modes.sigma[i] * np.outer(modes.f[:, i], modes.g[:, i]) for i in range(k)]
    for i in range(k):
        for j in range(i, k):
            remainder = joint.cdk() - sum(single[: j + 1])
            assert abs(np.sum(metric * single[i] * remainder)) < 1e-13
            if i < j:
                assert abs(np.sum(metric * single[i] * single[j])) < 1e-13


@pytest.mark.parametrize("seed", SEEDS)
def test_modes_add_up_to_the_kernel_and_energies_to_its_squared_norm(seed):
    joint = FiniteJoint(random_counts(seed, (7, 5)))
    modes = joint.modes()
    np.testing.assert_allclose(modes.kernel(), joint.cdk(), atol=1e-12)
    assert modes.energy == pytest.approx(joint.mean_square_contingency(), abs=1e-13)
