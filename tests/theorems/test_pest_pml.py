"""Theorem pest:pml: for weak dependence P_est is the maximum-likelihood estimate, to first order."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_little_o, weak_joint

from featgeo import FiniteJoint, heterogeneous_estimate


@pytest.mark.parametrize("seed", SEEDS)
def test_estimate_is_the_maximum_likelihood_to_first_order(seed):
    rng = np.random.default_rng(seed)
    drift = [rng.uniform(-1, 1, (3, 3)) for _ in range(2)]

    def error(eps):
        p = weak_joint(seed, (3, 3, 3), eps, n_x=2)
        tables = [4 * p, 5 * p.sum(1) * (1 + eps * drift[0]), 3 * p.sum(0) * (1 + eps * drift[1])]
        names = [("x1", "x2", "y"), ("x1", "y"), ("x2", "y")]
        datasets = [FiniteJoint(table, name) for table, name in zip(tables, names, strict=True)]
        estimate = heterogeneous_estimate(datasets, "y")
        reference = torch.from_numpy(np.multiply.outer(estimate.x.mass, estimate.y.mass))
        counts = [torch.from_numpy(table) for table in tables]

        def joint(logits):
            return torch.softmax((reference.log() + eps * logits).reshape(-1), dim=0).reshape(3, 3, 3)

        def likelihood(logits):
            q = joint(logits)
            terms = [(n * q.sum(axes).log()).sum() for n, axes in zip(counts[1:], ((1,), (0,)), strict=True)]
            return ((counts[0] * q.log()).sum() + sum(terms)) / eps**2

        (_, (logits,)) = ascend(likelihood, [(3, 3, 3)], starts=1)[0]
        return float(np.abs(joint(logits).numpy() - estimate.table).max())

    assert_little_o(error, order=1)
