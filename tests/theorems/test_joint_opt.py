"""Proposition joint:opt: any strictly positive weights of the levels lead to the same maximiser."""

import numpy as np
import pytest
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts, rows

from featgeo import FiniteJoint, Nesting, nested_h_score


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
