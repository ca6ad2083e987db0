"""Proposition opt:tran: Breiman and Friedman's optimal transformations are the top bivariate mode."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, random_counts

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_optimal_transformations_are_the_top_bivariate_mode(seed):
    joint = FiniteJoint(random_counts(seed, (4, 3, 4)))
    top = joint.multimodal().bivariate.top(1)
    p, p_y = torch.from_numpy(joint.probability()), torch.from_numpy(joint.probability("y"))

    def standardised(psi):
        psi = psi - p_y @ psi
        return psi / (p_y @ psi**2).sqrt()

    def negative_error(phi1, phi2, psi):
        residual = standardised(psi)[None, None, :] - phi1[:, None, None] - phi2[None, :, None]
        return -(p * residual**2).sum()

    results = ascend(negative_error, [(4,), (3,), (4,)])
    phi1, phi2, psi = assert_reached_never_passed(results, -(1 - top.sigma[0] ** 2))
    psi = standardised(psi).numpy()
    sign = np.sign(psi @ (p_y.numpy() * top.g[:, 0]))
    np.testing.assert_allclose(sign * psi, top.g[:, 0], atol=1e-4)
    np.testing.assert_allclose(sign * (phi1[:, None] + phi2).numpy(), top.sigma[0] * top.f[..., 0], atol=1e-4)
