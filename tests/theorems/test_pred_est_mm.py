"""Proposition pred:est:mm: posterior and expectations from both sources or from either one."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions

from featgeo import FiniteJoint


def additive_parts(f_bar):
    """f_bar(x1, x2) = f1(x1) + f2(x2), by its values on a full grid."""
    f1 = f_bar[:, 0]
    return f1, f_bar[0] - f1[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_set_of_features_answers_from_any_sources(seed):
    joint = FiniteJoint(random_counts(seed, (4, 3, 3)))
    parts = joint.multimodal()
    bivariate, interaction = parts.bivariate, parts.interaction
    p_12, p_y, p = joint.probability("x1", "x2"), joint.probability("y"), joint.probability()
    f1, f2 = additive_parts(bivariate.f * bivariate.sigma)
    np.testing.assert_allclose(f1[:, None] + f2[None], bivariate.f * bivariate.sigma, atol=1e-12)

    both = p_y * (1 + bivariate.kernel() + interaction.kernel())
    np.testing.assert_allclose(both, p / p_12[:, :, None], atol=1e-12)
    from_first = f1 + (p_12 / p_12.sum(1, keepdims=True)) @ f2
    from_second = f2 + (p_12 / p_12.sum(0)).T @ f1
    psi = random_functions(seed, 3, 2)
    for feature, name in ((from_first, "x1"), (from_second, "x2")):
        posterior = joint.probability(name, "y") / joint.probability(name)[:, None]
        np.testing.assert_allclose(p_y * (1 + feature @ bivariate.g.T), posterior, atol=1e-12)
        expected = p_y @ psi + feature @ (bivariate.g.T @ (p_y[:, None] * psi))
        np.testing.assert_allclose(expected, posterior @ psi, atol=1e-12)
