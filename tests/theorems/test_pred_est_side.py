"""Proposition pred:est:side: both components give the posterior and expectations given x and s."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_posterior_and_expectations_given_side_information(seed):
    joint = FiniteJoint(random_counts(seed, (4, 3, 5)), names=("x", "s", "y"))
    markov, conditional = joint.conditional("x", "y", "s")
    p, p_xs, p_sy = joint.probability(), joint.probability("x", "s"), joint.probability("s", "y")
    p_y_given_s = p_sy / joint.probability("s")[:, None]
    posterior = p / p_xs[:, :, None]

    correction = conditional.kernel() / (1 + markov.kernel())[:, :, None]
    np.testing.assert_allclose(p_y_given_s * (1 + correction), posterior, atol=1e-12)

    psi = random_functions(seed, 5, 2)
    lambda_s = np.einsum("sy,yd,syk->sdk", p_y_given_s, psi, conditional.g)
    shift = np.einsum("sdk,xk->xsd", lambda_s, conditional.f * conditional.sigma)
    expected = p_y_given_s @ psi + shift / (1 + markov.kernel())[:, :, None]
    np.testing.assert_allclose(expected, posterior @ psi, atol=1e-12)
