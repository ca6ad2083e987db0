"""Proposition dnn: for weak dependence the log-likelihood of a softmax classifier is the H-score, to second order."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_little_o, norm, random_functions, weak_joint

from featgeo import FiniteJoint


def log_likelihood(p_xy, f, g):
    """The likelihood maximised over the bias, whose stationary point matches the marginal of y (Newton's method)."""
    logits = f @ g.T
    p_x, p_y = p_xy.sum(1), p_xy.sum(0)
    bias = np.log(p_y)
    for _ in range(50):
        q = np.exp(logits + bias)
        q /= q.sum(1, keepdims=True)
        gradient = p_y - p_x @ q
        hessian = np.diag(p_x @ q) - (q.T * p_x) @ q
        bias = bias + np.linalg.lstsq(hessian, gradient, rcond=1e-10)[0]
    q = np.exp(logits + bias)
    return float(np.sum(p_xy * np.log(q / q.sum(1, keepdims=True))))


@pytest.mark.parametrize("seed", SEEDS)
def test_likelihood_gain_is_the_h_score_up_to_second_order(seed):
    direction_f, direction_g = random_functions(seed, 5, 2), random_functions(seed + 50, 4, 2)

    def error(eps):
        p_xy = weak_joint(seed, (5, 4), eps)
        p_x, p_y = p_xy.sum(1), p_xy.sum(0)
        f, g = 0.3 * eps * (direction_f - p_x @ direction_f), direction_g - p_y @ direction_g
        kernel = FiniteJoint(p_xy).cdk()
        h = (norm(kernel, p_x, p_y) ** 2 - norm(kernel - f @ g.T, p_x, p_y) ** 2) / 2
        return abs(log_likelihood(p_xy, f, g) - float(np.sum(p_y * np.log(p_y))) - h)

    assert_little_o(error, order=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_trained_classifier_holds_the_top_modes_to_first_order(seed):
    def error(eps):
        p_xy = torch.from_numpy(weak_joint(seed, (4, 3), eps))
        p_x, p_y = p_xy.sum(1), p_xy.sum(0)

        def likelihood(f, g, b):
            # Features are scaled so that ascent meets numbers of order one at every eps.
            return (p_xy * torch.log_softmax(eps * f @ g.T + p_y.log() + eps * b, dim=1)).sum() / eps**2

        f, g, _ = max(ascend(likelihood, [(4, 1), (3, 1), (3,)], starts=3), key=lambda result: result[0])[1]
        learned = (eps * (f - p_x @ f) @ (g - p_y @ g).T).numpy()
        return norm(learned - FiniteJoint(p_xy.numpy()).modes(1).kernel(), p_x.numpy(), p_y.numpy())

    assert_little_o(error, order=1)
