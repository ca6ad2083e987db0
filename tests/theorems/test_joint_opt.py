"""Proposition joint:opt: every strictly increasing way to combine the levels leads to the same maximiser."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts, rows

from featgeo import FiniteJoint, Nesting, h_score, nested_h_score


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weights", [(1, 1), (0.1, 3), (5, 0.5)])
def test_weights_change_the_value_and_not_the_maximiser(seed, weights):
    counts = random_counts(seed, (5, 4))
    modes, (x, y) = FiniteJoint(counts).modes(3), rows(counts)
    nesting = Nesting([1, 2], weights)
    maximum = sum(w * modes.top(end).energy for w, end in zip(weights, nesting.ends, strict=True)) / 2
    results = ascend(lambda f, g: nested_h_score(f[x], g[y], nesting), [(5, 3), (4, 3)], starts=6)
    f, g = assert_reached_never_passed(results, maximum)
    np.testing.assert_allclose(product(f[:, :1], g[:, :1]), modes.top(1).kernel(), atol=1e-4)
    np.testing.assert_allclose(product(f, g), modes.kernel(), atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_increasing_aggregations_have_the_same_maximiser(seed):
    counts = random_counts(seed, (5, 4))
    modes, (x, y) = FiniteJoint(counts).modes(3), rows(counts)

    def combined(first, second):
        return first.exp() + second + second**3

    def score(f, g):
        return combined(h_score(f[x][:, :1], g[y][:, :1]), h_score(f[x], g[y]))

    maximum = combined(*(torch.tensor(modes.top(k).energy / 2, dtype=torch.float64) for k in (1, 3)))
    f, g = assert_reached_never_passed(ascend(score, [(5, 3), (4, 3)], starts=6), maximum.item())
    np.testing.assert_allclose(product(f[:, :1], g[:, :1]), modes.top(1).kernel(), atol=1e-4)
    np.testing.assert_allclose(product(f, g), modes.kernel(), atol=1e-4)
