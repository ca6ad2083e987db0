"""Proposition pim:pic: the Markov component of i(x; s, y) is i(x; s), the density ratio of P_{X|S} P_S P_{Y|S}."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts, rows

from featgeo import FiniteJoint, Nesting, nested_h_score


def world(seed):
    counts = random_counts(seed, (4, 3, 3))
    return counts, FiniteJoint(counts, names=("x", "s", "y"))


def markov_distribution(joint):
    p_xs, p_sy, p_s = joint.probability("x", "s"), joint.probability("s", "y"), joint.probability("s")
    return np.einsum("xs,sy,s->xsy", p_xs, p_sy, 1 / p_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_projection_onto_functions_of_x_and_s_is_the_markov_distribution(seed):
    _, joint = world(seed)
    projected, _ = joint.components([None, None], [["s"], None], x="x", y=("s", "y"))
    reference = np.multiply.outer(joint.probability("x"), joint.probability("s", "y"))
    ratio = FiniteJoint(markov_distribution(joint)).density_ratio(reference)
    np.testing.assert_allclose(projected.kernel(), ratio, atol=1e-12)
    np.testing.assert_allclose(projected.kernel(), joint.cdk("x", "s")[:, :, None].repeat(3, axis=2), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_conditional_component_is_what_the_markov_distribution_lacks(seed):
    """Eqs. lpmi:cond and pyth."""
    _, joint = world(seed)
    markov, conditional = joint.conditional("x", "y", "s")
    reference = np.multiply.outer(joint.probability("x"), joint.probability("s", "y"))
    np.testing.assert_allclose(
        conditional.kernel(), (joint.probability() - markov_distribution(joint)) / reference, atol=1e-12
    )
    whole = joint.mean_square_contingency("x", ("s", "y"))
    assert markov.energy == pytest.approx(joint.mean_square_contingency("x", "s"), abs=1e-13)
    assert markov.energy + conditional.energy == pytest.approx(whole, abs=1e-13)
    given_s = np.einsum("sy,syk->sk", joint.probability("s", "y"), conditional.g)
    np.testing.assert_allclose(given_s, 0, atol=1e-13)  # E[g(s, Y) | S = s] = 0


@pytest.mark.parametrize("seed", SEEDS)
def test_nested_h_score_with_side_information_learns_both_components(seed):
    """The corollary after eq. cside:def, with nesting on the y side."""
    counts, joint = world(seed)
    x, s, y = rows(counts)
    markov, conditional = joint.conditional("x", "y", "s")
    nesting = Nesting([len(markov), 1], y=["s", ("s", "sy")])
    k = len(markov)

    def score(f_bar, g_bar, f, g):
        return nested_h_score(torch.hstack([f_bar, f])[x], torch.hstack([g_bar[s], g[s * 3 + y]]), nesting)

    maximum = (2 * markov.energy + conditional.sigma[0] ** 2) / 2
    results = ascend(score, [(4, k), (3, k), (4, 1), (9, 1)], starts=6)
    f_bar, g_bar, f, g = assert_reached_never_passed(results, maximum)
    np.testing.assert_allclose(product(f_bar, g_bar), markov.kernel(), atol=1e-4)
    np.testing.assert_allclose(product(f, g).reshape(4, 3, 3), conditional.top(1).kernel(), atol=1e-4)
