"""Theorem dnn:multihead: a softmax head for each s learns the conditional component, for weak dependence."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_little_o, weak_joint

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_the_trained_multihead_network_holds_the_top_conditional_mode_to_first_order(seed):
    def error(eps):
        table = weak_joint(seed, (4, 2, 3), eps)
        joint = FiniteJoint(table, names=("x", "s", "y"))
        p, p_x, p_sy = (torch.from_numpy(joint.probability(*names)) for names in (("x", "s", "y"), ("x",), ("s", "y")))
        p_y_given_s = p_sy / p_sy.sum(1, keepdim=True)

        def likelihood(f, g, b):
            logits = eps * torch.einsum("xk,syk->xsy", f, g) + p_y_given_s.log() + eps * b
            return (p * torch.log_softmax(logits, dim=2)).sum() / eps**2

        results = ascend(likelihood, [(4, 1), (2, 3, 1), (2, 3)], starts=3)
        f, g, _ = max(results, key=lambda result: result[0])[1]
        f, g = f - p_x @ f, g - torch.einsum("sy,syk->sk", p_y_given_s, g)[:, None]
        learned = eps * np.einsum("xk,syk->xsy", f, g)
        difference = learned - joint.conditional("x", "y", "s", k=1).conditional.kernel()
        return float(np.sqrt(np.sum(np.multiply.outer(p_x.numpy(), p_sy.numpy()) * difference**2)))

    assert_little_o(error, order=1)
