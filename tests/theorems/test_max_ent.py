"""Proposition max-ent: for weak dependence the bivariate component is that of the maximum-entropy distribution."""

import numpy as np
import pytest
from support import SEEDS, assert_little_o, norm, random_counts, random_functions, weak_joint

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_bivariate_component_is_the_maximum_entropy_dependence_to_first_order(seed):
    def error(eps):
        joint = FiniteJoint(weak_joint(seed, (3, 4, 3), eps, n_x=2))
        difference = joint.multimodal().bivariate.kernel() - joint.maximum_entropy().cdk()
        return norm(difference, joint.probability("x1", "x2"), joint.probability("y"))

    assert_little_o(error, order=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_proportional_fitting_keeps_the_pairs_and_maximises_entropy(seed):
    joint = FiniteJoint(random_counts(seed, (3, 4, 3)))
    fitted = joint.maximum_entropy()
    for pair in (("x1", "x2"), ("x1", "y"), ("x2", "y")):
        np.testing.assert_allclose(fitted.probability(*pair), joint.probability(*pair), atol=1e-12)

    def entropy(p):
        return -np.sum(p * np.log(p))

    best = fitted.probability()
    assert entropy(best) > entropy(joint.probability())
    # First-order optimality: the entropy is flat along every direction that keeps the pairs.
    a, b, c = (random_functions(seed + i, size) for i, size in enumerate(best.shape))
    change = np.einsum("i,j,k->ijk", a - a.mean(), b - b.mean(), c - c.mean())
    assert abs(np.sum(change * np.log(best))) < 1e-9
