"""Proposition posterior: for weak dependence P(y|x, s) = P(y|s) (1 + i(x; y|s)) to first order."""

import numpy as np
import pytest
from support import SEEDS, assert_little_o, weak_joint

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_local_posterior_needs_the_conditional_component_only(seed):
    def error(eps):
        joint = FiniteJoint(weak_joint(seed, (4, 3, 3), eps), names=("x", "s", "y"))
        conditional = joint.conditional("x", "y", "s").conditional
        p_y_given_s = joint.probability("s", "y") / joint.probability("s")[:, None]
        posterior = joint.probability() / joint.probability("x", "s")[:, :, None]
        return float(np.abs(p_y_given_s * (1 + conditional.kernel()) - posterior).max())

    assert_little_o(error, order=1)
