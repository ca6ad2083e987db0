"""Proposition pib: the bivariate component depends on the pairwise marginals only."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts, random_functions, rows

from featgeo import FiniteJoint, Nesting, nested_h_score


@pytest.mark.parametrize("seed", SEEDS)
def test_distributions_with_the_same_pairs_share_the_bivariate_component(seed):
    p = random_counts(seed, (3, 4, 3)) / 1.0
    p /= p.sum()
    a, b, c = (random_functions(seed + i, size) for i, size in enumerate(p.shape))
    change = np.einsum("i,j,k->ijk", a - a.mean(), b - b.mean(), c - c.mean())  # no pair of variables sees it
    q = p + 0.9 * change * np.min(p / np.abs(change))
    first, second = FiniteJoint(p).multimodal(), FiniteJoint(q).multimodal()
    np.testing.assert_allclose(first.bivariate.kernel(), second.bivariate.kernel(), atol=1e-12)
    assert np.abs(first.interaction.kernel() - second.interaction.kernel()).max() > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_single_source_dependence_is_a_projection_of_the_bivariate_component(seed):
    joint = FiniteJoint(random_counts(seed, (3, 4, 3)))
    bivariate, p_12 = joint.multimodal().bivariate.kernel(), joint.probability("x1", "x2")
    averaged = np.einsum("ij,ijy->iy", p_12 / p_12.sum(1, keepdims=True), bivariate)
    np.testing.assert_allclose(averaged, joint.cdk("x1", "y"), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_nested_h_score_learns_bivariate_and_interaction_components(seed):
    """Corollary hsbinest."""
    counts = random_counts(seed, (3, 3, 3))
    parts, (x1, x2, y) = FiniteJoint(counts).multimodal(), rows(counts)
    nesting = Nesting([2, 1], x=[("x1", "x2"), ("x1", "x2", "x12")])

    def score(f1, f2, g_bar, f, g):
        return nested_h_score(torch.hstack([f1[x1] + f2[x2], f[x1 * 3 + x2]]), torch.hstack([g_bar, g])[y], nesting)

    maximum = (2 * parts.bivariate.energy + parts.interaction.sigma[0] ** 2) / 2
    results = ascend(score, [(3, 2), (3, 2), (3, 2), (9, 1), (3, 1)], starts=6)
    f1, f2, g_bar, f, g = assert_reached_never_passed(results, maximum)
    f_bar = (f1[:, None] + f2[None, :]).reshape(9, 2)
    np.testing.assert_allclose(product(f_bar, g_bar).reshape(3, 3, 3), parts.bivariate.kernel(), atol=1e-4)
    np.testing.assert_allclose(product(f, g).reshape(3, 3, 3), parts.interaction.top(1).kernel(), atol=1e-4)
