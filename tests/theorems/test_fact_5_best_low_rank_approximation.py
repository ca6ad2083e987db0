"""Fact 5 (Eckart-Young-Mirsky) and Property hscore:max: the top modes are the best approximation of their rank."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, norm, plain_ascend, product, random_counts, rows

from featgeo import FiniteJoint, h_score


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2])
def test_h_score_is_maximised_by_the_top_modes_only(seed, k):
    counts = random_counts(seed, (5, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    top = joint.modes(k)
    results = ascend(lambda f, g: h_score(f[x], g[y]), [(5, k), (4, k)])
    f, g = assert_reached_never_passed(results, top.energy / 2)
    np.testing.assert_allclose(product(f, g), top.kernel(), atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_gradient_ascent_reaches_the_maximum(seed):
    """Steps in function space: the parameters are information vectors, f = xi / sqrt(p)."""
    counts = random_counts(seed, (5, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    roots_x, roots_y = (torch.from_numpy(joint.probability(name)).sqrt()[:, None] for name in ("x", "y"))
    top = joint.modes(2)
    results = plain_ascend(lambda u, v: h_score((u / roots_x)[x], (v / roots_y)[y]), [(5, 2), (4, 2)])
    u, v = assert_reached_never_passed(results, top.energy / 2)
    np.testing.assert_allclose(product(u / roots_x, v / roots_y), top.kernel(), atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_error_of_the_top_modes_is_the_energy_left_out(seed, k):
    joint = FiniteJoint(random_counts(seed, (5, 4)))
    modes = joint.modes()
    error = norm(joint.cdk() - modes.top(k).kernel(), joint.probability("x"), joint.probability("y"))
    assert error**2 == pytest.approx(np.sum(modes.sigma[k:] ** 2), abs=1e-13)
