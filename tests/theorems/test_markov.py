"""Proposition markov: the dependence of Q is a function of (x, s) alone if and only if Q is Markov, X - S - Y."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions

from featgeo import FiniteJoint

NAMES = ("x", "s", "y")


def conditionally_independent(table):
    p_s, p_xs, p_sy = table.sum((0, 2)), table.sum(2), table.sum(0)
    return np.allclose(table, np.einsum("xs,sy,s->xsy", p_xs, p_sy, 1 / p_s), atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_markov_distributions_have_no_conditional_component(seed):
    p = random_counts(seed, (4, 3, 3)) / 1.0
    chain = np.einsum("xs,sy,s->xsy", p.sum(2), p.sum(0), 1 / p.sum((0, 2)))
    joint = FiniteJoint(chain, NAMES)
    assert len(joint.conditional("x", "y", "s").conditional) == 0
    assert np.ptp(joint.cdk("x", ("s", "y")), axis=2).max() < 1e-12  # constant in y


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kernel_of_x_and_s_alone_makes_a_markov_distribution(seed):
    rng = np.random.default_rng(seed)
    p_x, p_sy = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(9)).reshape(3, 3)
    gamma = random_functions(seed, 4, 3)
    gamma = gamma - p_x @ gamma
    gamma = gamma - (gamma @ p_sy.sum(1))[:, None]
    gamma *= 0.9 / np.abs(gamma).max()
    table = np.multiply.outer(p_x, p_sy) * (1 + gamma[:, :, None])
    joint = FiniteJoint(table, NAMES)
    np.testing.assert_allclose(joint.cdk("x", ("s", "y")), gamma[:, :, None].repeat(3, axis=2), atol=1e-12)
    assert conditionally_independent(table)
    assert len(joint.conditional("x", "y", "s").conditional) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_other_distributions_have_a_conditional_component(seed):
    table = random_counts(seed, (4, 3, 3)) / 1.0
    table /= table.sum()
    assert not conditionally_independent(table)
    assert FiniteJoint(table, NAMES).conditional("x", "y", "s").conditional.energy > 1e-3
