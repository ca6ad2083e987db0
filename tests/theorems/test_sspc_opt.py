"""Theorem sspc:opt: the two-level nested H-score learns the aligned and the orthogonal component at once."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts, random_functions, rows

from featgeo import FiniteJoint, Nesting, nested_h_score


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weights", [None, (0.3, 2.0)])
def test_maximiser_is_the_projection_and_the_top_modes_of_the_rest(seed, weights):
    counts = random_counts(seed, (6, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    phi = random_functions(seed, 6, 2)  # no constant among them: the theorem holds for every subspace
    aligned, orthogonal = joint.projected(phi)
    nesting = Nesting([2, 1], weights)
    span = torch.from_numpy(phi)

    def score(a, g_bar, f, g):
        return nested_h_score(torch.hstack([span @ a, f])[x], torch.hstack([g_bar, g])[y], nesting)

    first, second = nesting.weights
    maximum = (first * aligned.energy + second * (aligned.energy + orthogonal.sigma[0] ** 2)) / 2
    a, g_bar, f, g = assert_reached_never_passed(ascend(score, [(2, 2), (4, 2), (6, 1), (4, 1)], starts=6), maximum)
    np.testing.assert_allclose(product(span @ a, g_bar), aligned.kernel(), atol=1e-5)
    np.testing.assert_allclose(product(f, g), orthogonal.top(1).kernel(), atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_components_are_orthogonal_and_add_up(seed):
    joint = FiniteJoint(random_counts(seed, (6, 4)))
    p_x, phi = joint.probability("x"), random_functions(seed, 6, 2)
    aligned, orthogonal = joint.projected(phi)
    np.testing.assert_allclose(aligned.kernel() + orthogonal.kernel(), joint.cdk(), atol=1e-12)
    np.testing.assert_allclose(phi.T @ (p_x[:, None] * orthogonal.f), 0, atol=1e-12)
    coefficients = np.linalg.lstsq(phi, aligned.f, rcond=None)[0]
    np.testing.assert_allclose(phi @ coefficients, aligned.f, atol=1e-12)
    assert aligned.energy + orthogonal.energy == pytest.approx(joint.mean_square_contingency(), abs=1e-12)
