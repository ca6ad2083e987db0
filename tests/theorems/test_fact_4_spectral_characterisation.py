"""Fact 4 and Corollary hgr: mode i maximises the correlation among features orthogonal to the modes before it."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, random_counts

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("i", [0, 1, 2])
def test_each_mode_maximises_correlation_orthogonally_to_the_earlier_ones(seed, i):
    joint = FiniteJoint(random_counts(seed, (5, 4)))
    modes = joint.modes()
    p_xy, p_x, p_y = (torch.from_numpy(joint.probability(*names)) for names in (("x", "y"), ("x",), ("y",)))
    earlier_f, earlier_g = torch.from_numpy(modes.f[:, :i]), torch.from_numpy(modes.g[:, :i])

    def unit(function, mass, earlier):
        function = function - earlier @ (earlier.T @ (mass * function))
        return function / (mass @ function**2).sqrt()

    def covariance(f, g):
        f, g = unit(f, p_x, earlier_f), unit(g, p_y, earlier_g)
        return f @ p_xy @ g - (p_x @ f) * (p_y @ g)

    f, g = assert_reached_never_passed(ascend(covariance, [(5,), (4,)]), modes.sigma[i])
    f, g = unit(f, p_x, earlier_f).numpy(), unit(g, p_y, earlier_g).numpy()
    sign = np.sign(f @ (p_x.numpy() * modes.f[:, i]))
    np.testing.assert_allclose(sign * f, modes.f[:, i], atol=1e-5)
    np.testing.assert_allclose(sign * g, modes.g[:, i], atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_singular_value_is_the_correlation_of_its_features(seed):
    joint = FiniteJoint(random_counts(seed, (5, 4)))
    modes = joint.modes()
    np.testing.assert_allclose(np.diag(modes.f.T @ joint.probability() @ modes.g), modes.sigma, atol=1e-13)
    assert joint.maximal_correlation() == pytest.approx(modes.sigma[0], abs=1e-15)
