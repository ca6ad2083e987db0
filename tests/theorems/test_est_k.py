"""Proposition est:k: k modes give the exact expectation of every psi in the span of 1, g_1, ..., g_k."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2])
def test_top_modes_are_exact_for_functions_in_their_span_and_not_beyond(seed, k):
    joint = FiniteJoint(random_counts(seed, (6, 4)))
    p_x, p_y, top = joint.probability("x"), joint.probability("y"), joint.modes(k)
    posterior = joint.probability() / p_x[:, None]

    def assembled(psi):
        return p_y @ psi + (top.f * top.sigma) @ (top.g.T @ (p_y[:, None] * psi))

    inside = np.column_stack([np.ones(4), top.g]) @ random_functions(seed, k + 1, 3)
    np.testing.assert_allclose(assembled(inside), posterior @ inside, atol=1e-12)
    next_g = joint.modes().g[:, [k]]
    assert np.abs(assembled(next_g) - posterior @ next_g).max() > 1e-3
