"""Theorem sspc:opt: the two-level nested H-score learns the aligned and the orthogonal component at once."""

import numpy as np
import pytest
import torch
from support import (
    SEEDS,
    ascend,
    assert_reached_never_passed,
    plain_ascend,
    product,
    random_counts,
    random_functions,
    rows,
)

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
def test_plain_gradient_ascent_reaches_the_maximum(seed):
    """Steps in function space: the parameters are information vectors, f = xi / sqrt(p)."""
    counts = random_counts(seed, (6, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    roots_x, roots_y = (torch.from_numpy(joint.probability(name)).sqrt()[:, None] for name in ("x", "y"))
    phi = random_functions(seed, 6, 2)
    aligned, orthogonal = joint.projected(phi)
    span = torch.linalg.qr(roots_x * torch.from_numpy(phi))[0] / roots_x  # the same span, orthonormal

    def score(a, v_bar, u, v):
        f, g = torch.hstack([span @ a, u / roots_x]), torch.hstack([v_bar, v]) / roots_y
        return nested_h_score(f[x], g[y], Nesting([2, 1]))

    results = plain_ascend(score, [(2, 2), (4, 2), (6, 1), (4, 1)])
    maximum = aligned.energy + orthogonal.sigma[0] ** 2 / 2
    a, v_bar, u, v = assert_reached_never_passed(results, maximum)
    np.testing.assert_allclose(product(span @ a, v_bar / roots_y), aligned.kernel(), atol=1e-4)
    np.testing.assert_allclose(product(u / roots_x, v / roots_y), orthogonal.top(1).kernel(), atol=1e-4)


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
