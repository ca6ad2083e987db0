"""Theorem hsbih: the heterogeneous nested H-score learns the components of P_est."""

import numpy as np
import pytest
import torch
from support import SEEDS, ascend, assert_reached_never_passed, product, random_counts

from featgeo import FiniteJoint, heterogeneous_estimate


def world(seed):
    complete = FiniteJoint(random_counts(seed, (3, 3, 3)), names=("x1", "x2", "y"))
    first = FiniteJoint(3 * random_counts(seed + 10, (3, 3)), names=("x1", "y"))
    second = FiniteJoint(2 * random_counts(seed + 20, (3, 3)), names=("x2", "y"))
    return complete, first, second


def heterogeneous_h_score(datasets, estimate):
    """Eq. hsm:def for features by their values: f on (x1, x2), g on y."""
    r_x, r_y = torch.from_numpy(estimate.x.mass), torch.from_numpy(estimate.y.mass)
    total = sum(dataset.total for dataset in datasets)
    shares = [dataset.total / total for dataset in datasets]
    tables = [torch.from_numpy(dataset.probability()).reshape(-1, 3) for dataset in datasets]
    masses = [r_x.ravel(), r_x.sum(1), r_x.sum(0)]

    def h_score(f, g, joint, mass):
        cross = ((joint.T @ f) * g).sum() - (mass @ f) @ (r_y @ g)
        return cross - torch.trace((f.T @ (mass[:, None] * f)) @ (g.T @ (r_y[:, None] * g))) / 2

    def score(f, g):  # f: (3, 3, k)
        weighted = r_x[:, :, None] * f
        given = [weighted.sum(1 - axis) / masses[1 + axis][:, None] for axis in (0, 1)]  # tau_i(f)
        seen = [f.reshape(9, -1), *given]
        return sum(
            share * h_score(own, g, joint, mass)
            for share, own, joint, mass in zip(shares, seen, tables, masses, strict=True)
        )

    return score


@pytest.mark.parametrize("seed", SEEDS)
def test_heterogeneous_nested_h_score_is_maximised_by_the_components_of_the_estimate(seed):
    datasets = world(seed)
    estimate = heterogeneous_estimate(datasets, "y")
    bivariate, interaction = estimate.components([["x1", "x2"], None])
    score = heterogeneous_h_score(datasets, estimate)

    def nested(f1, f2, g_bar, f, g):
        f_bar = f1[:, None] + f2[None, :]
        return score(f_bar, g_bar) + score(torch.cat([f_bar, f], dim=2), torch.hstack([g_bar, g]))

    def at(modes):
        return torch.from_numpy(modes.f * modes.sigma), torch.from_numpy(modes.g)

    (f_bar, g_bar), (f, g) = at(bivariate), at(interaction.top(1))
    maximum = score(f_bar, g_bar) + score(torch.cat([f_bar, f], dim=2), torch.hstack([g_bar, g]))
    results = ascend(nested, [(3, 3), (3, 3), (3, 3), (3, 3, 1), (3, 1)], starts=6)
    f1, f2, g_bar, f, g = assert_reached_never_passed(results, float(maximum))
    learned = product((f1[:, None] + f2[None, :]).reshape(9, 3), g_bar).reshape(3, 3, 3)
    np.testing.assert_allclose(learned, bivariate.kernel(), atol=1e-4)
    np.testing.assert_allclose(product(f.reshape(9, 1), g).reshape(3, 3, 3), interaction.top(1).kernel(), atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_estimate_minimises_the_weighted_distance_to_all_tables(seed):
    """Eq. L:bi, by its gradient: no density is closer."""
    datasets = world(seed)
    estimate = heterogeneous_estimate(datasets, "y")
    reference = np.multiply.outer(estimate.x.mass, estimate.y.mass)
    total = sum(dataset.total for dataset in datasets)

    def distance(table):
        value = 0.0
        for dataset, axes in zip(datasets, ((), (1,), (0,)), strict=True):
            r = reference.sum(axes)
            value += dataset.total / total * np.sum((dataset.probability() - table.sum(axes)) ** 2 / r)
        return value

    rng = np.random.default_rng(seed)
    best = distance(estimate.table)
    for _ in range(200):
        assert distance(estimate.table + 1e-3 * rng.standard_normal((3, 3, 3)) * reference) > best
    assert estimate.table.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_complete_data_alone_give_back_the_complete_table(seed):
    complete, *_ = world(seed)
    estimate = heterogeneous_estimate([complete], "y")
    np.testing.assert_allclose(estimate.table, complete.probability(), atol=1e-13)
    assert estimate.negative_mass == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_alone_identify_the_bivariate_component(seed):
    complete, *_ = world(seed)
    pairs = [complete.marginal("x1", "y"), complete.marginal("x2", "y")]
    estimate = heterogeneous_estimate(pairs, "y", sources=complete.marginal("x1", "x2"))
    bivariate, interaction = estimate.components([["x1", "x2"], None])
    np.testing.assert_allclose(bivariate.kernel(), complete.multimodal().bivariate.kernel(), atol=1e-10)
    assert len(interaction) == 0
