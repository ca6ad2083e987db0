"""Proposition pbi:pint: one component keeps the pairs with y, the other makes them independent."""

import numpy as np
import pytest
from support import SEEDS, weak_joint

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_of_the_component_distributions(seed):
    joint = FiniteJoint(weak_joint(seed, (3, 4, 3), eps=0.3, n_x=2))
    parts = joint.multimodal()
    reference = np.multiply.outer(joint.probability("x1", "x2"), joint.probability("y"))
    bivariate = reference * (1 + parts.bivariate.kernel())
    interaction = reference * (1 + parts.interaction.kernel())
    assert bivariate.min() >= 0
    assert interaction.min() >= 0  # the proposition's assumption
    for table in (bivariate, interaction):
        np.testing.assert_allclose(table.sum(2), joint.probability("x1", "x2"), atol=1e-14)
    for name, axis in (("x1", 1), ("x2", 0)):
        np.testing.assert_allclose(bivariate.sum(axis), joint.probability(name, "y"), atol=1e-14)
        independent = np.outer(joint.probability(name), joint.probability("y"))
        np.testing.assert_allclose(interaction.sum(axis), independent, atol=1e-14)
