"""Theorem sspc:opt:n: the refined configuration learns the modes of both components, one by one."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, random_counts, random_functions, rows

from featgeo import FiniteJoint, Nesting, nested_h_score


@pytest.mark.parametrize("seed", SEEDS)
def test_maximiser_of_the_refined_nesting_holds_every_mode(seed):
    counts = random_counts(seed, (6, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    phi = random_functions(seed, 6, 2)
    aligned, orthogonal = joint.projected(phi)
    nesting, span = Nesting([2, 2]).refine(), torch.from_numpy(phi)

    def score(a, g_bar, f, g):
        return nested_h_score(torch.hstack([span @ a, f])[x], torch.hstack([g_bar, g])[y], nesting)

    maximum = np.cumsum(np.concatenate([aligned.sigma[:2], orthogonal.sigma[:2]]) ** 2).sum() / 2
    a, g_bar, f, g = assert_reached_never_passed(ascend(score, [(2, 2), (4, 2), (6, 2), (4, 2)], starts=6), maximum)
    for component, left, right in ((aligned, span @ a, g_bar), (orthogonal, f, g)):
        for i in range(2):
            mode = component.sigma[i] * np.outer(component.f[:, i], component.g[:, i])
            np.testing.assert_allclose(np.outer(left[:, i], right[:, i]), mode, atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_single_levels_give_the_modal_decomposition(seed):
    """Eq. md:fg: the nesting of k single levels is maximised by the k top modes."""
    counts = random_counts(seed, (5, 4))
    modes, (x, y) = FiniteJoint(counts).modes(3), rows(counts)
    score = lambda f, g: nested_h_score(f[x], g[y], Nesting.modes(3))  # noqa: E731
    f, g = assert_reached_never_passed(ascend(score, [(5, 3), (4, 3)], starts=6), np.cumsum(modes.sigma**2).sum() / 2)
    for i in range(3):
        mode = modes.sigma[i] * np.outer(modes.f[:, i], modes.g[:, i])
        np.testing.assert_allclose(np.outer(f[:, i], g[:, i]), mode, atol=1e-4)
