"""Proposition md:constraint: modes inside subspaces are the modes of the projection onto their tensor product."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, norm, product, random_counts, random_functions, rows

from featgeo import FiniteJoint, h_score


def projection(functions, mass):
    """The matrix that projects functions onto the span of given ones, in L2(mass)."""
    return functions @ np.linalg.solve(functions.T @ (mass[:, None] * functions), functions.T * mass)


@pytest.mark.parametrize("seed", SEEDS)
def test_constrained_modes_are_the_modes_of_the_projected_kernel(seed):
    joint = FiniteJoint(random_counts(seed, (6, 5)))
    p_x, p_y = joint.probability("x"), joint.probability("y")
    phi, psi = random_functions(seed, 6, 3), random_functions(seed + 50, 5, 2)
    projected = projection(phi, p_x) @ joint.cdk() @ projection(psi, p_y).T
    modes = joint.modes(x_space=phi, y_space=psi)
    np.testing.assert_allclose(modes.kernel(), projected, atol=1e-12)
    roots = np.sqrt(np.outer(p_x, p_y))
    np.testing.assert_allclose(modes.sigma, np.linalg.svd(roots * projected, compute_uv=False)[:2], atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_h_score_restricted_to_spans_is_maximised_by_the_constrained_modes_only(seed):
    counts = random_counts(seed, (6, 5))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    phi, psi = random_functions(seed, 6, 3), random_functions(seed + 50, 5, 2)
    top = joint.modes(1, x_space=phi, y_space=psi)
    phi_t, psi_t = torch.from_numpy(phi), torch.from_numpy(psi)
    results = ascend(lambda a, b: h_score((phi_t @ a)[x], (psi_t @ b)[y]), [(3, 1), (2, 1)])
    a, b = assert_reached_never_passed(results, top.energy / 2)
    np.testing.assert_allclose(product(phi_t @ a, psi_t @ b), top.kernel(), atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_error_splits_into_expressive_power_and_dimension(seed):
    """Eq. fg:err:w."""
    joint = FiniteJoint(random_counts(seed, (6, 5)))
    p_x, p_y = joint.probability("x"), joint.probability("y")
    inside = joint.modes(x_space=random_functions(seed, 6, 3), y_space=random_functions(seed + 50, 5, 2))
    total = norm(joint.cdk() - inside.top(1).kernel(), p_x, p_y) ** 2
    missed = norm(joint.cdk() - inside.kernel(), p_x, p_y) ** 2
    assert total == pytest.approx(missed + np.sum(inside.sigma[1:] ** 2), abs=1e-13)
