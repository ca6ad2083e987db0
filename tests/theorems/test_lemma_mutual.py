"""Lemma mutual: for weak dependence the mutual information is half the mean square contingency."""

import pytest
from support import SEEDS, assert_little_o, weak_joint

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_mutual_information_is_half_the_energy_to_second_order(seed):
    def error(eps):
        joint = FiniteJoint(weak_joint(seed, (5, 4), eps))
        return abs(joint.mutual_information() - joint.mean_square_contingency() / 2)

    assert_little_o(error, order=2)
