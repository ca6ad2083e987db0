"""A metric follows the gradients of a regression; deep trees are those of scikit-learn."""

import dataclasses

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor

from featgeo import options
from featgeo.features.trees import BaggedTrees, MetricRegressor, _Fit, _kernel


def predicted(model, values):
    return model.forward(torch.from_numpy(values)).numpy()


def explained(model, values, truth):
    return 1 - np.square(predicted(model, values)[:, 0] - truth).mean() / truth.var()


def a_fit(n=60, d=3, m=15, seed=0):
    rng = np.random.default_rng(seed)
    placed, targets = rng.standard_normal((n, d)), rng.standard_normal((n, 2))
    return _Fit.of(placed, placed[:m], targets), placed, targets


def test_outer_products_are_those_of_the_gradients_of_the_predictions():
    fit, placed, _ = a_fit()

    def values(at):
        return _kernel(at, fit.points) @ fit.weight + fit.offset

    step = 1e-5
    slopes = np.stack([(values(placed + e) - values(placed - e)) / (2 * step) for e in step * np.eye(3)], axis=2)
    assert_allclose(fit.gradients(placed), np.einsum("nki,nkj->ij", slopes, slopes) / len(placed), rtol=1e-6)


def test_the_gain_is_what_fits_without_each_row_explain_of_it():
    with options(metric_ridges=(1e-2,)):
        fit, placed, targets = a_fit()
    energies, axes = np.linalg.eigh(_kernel(placed[:15], placed[:15]))
    features = _kernel(placed, placed[:15]) @ (axes / np.sqrt(energies))
    ridge = 1e-2 * np.square(features - features.mean(axis=0)).sum()
    lost = 0.0
    for row in range(len(placed)):
        others = np.delete(np.arange(len(placed)), row)
        mean, aim = features[others].mean(axis=0), targets[others].mean(axis=0)
        inner = features[others] - mean
        weight = np.linalg.solve(inner.T @ inner + ridge * np.eye(15), inner.T @ (targets[others] - aim))
        lost += np.square(targets[row] - aim - (features[row] - mean) @ weight).sum()
    assert fit.gain == pytest.approx(1 - lost / np.square(targets - targets.mean(axis=0)).sum(), rel=1e-6)


def test_a_metric_keeps_the_few_columns_that_matter():
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.7, 1.7, (1500, 20))
    truth = values[:, 3] * values[:, 7]
    model = MetricRegressor.fit(values, (truth + 0.5 * rng.standard_normal(1500))[:, None])
    energy = np.square(model.metric).sum(axis=1)
    assert energy[[3, 7]].sum() > 0.9 * energy.sum()
    fresh = rng.uniform(-1.7, 1.7, (2000, 20))
    assert explained(model, fresh, fresh[:, 3] * fresh[:, 7]) > 0.9


def test_a_metric_finds_directions_of_many_columns():
    rng = np.random.default_rng(1)
    values, way = rng.standard_normal((1500, 10)), np.ones(10) / np.sqrt(10)
    truth = np.sin(2 * values @ way)
    model = MetricRegressor.fit(values, (truth + 0.5 * rng.standard_normal(1500))[:, None])
    assert np.square(way @ model.metric).sum() > 0.9 * np.square(model.metric).sum()
    fresh = rng.standard_normal((2000, 10))
    assert explained(model, fresh, np.sin(2 * fresh @ way)) > 0.9


def test_targets_that_columns_say_nothing_of_have_their_means():
    rng = np.random.default_rng(2)
    model = MetricRegressor.fit(rng.standard_normal((1000, 5)), 3 + rng.standard_normal((1000, 2)))
    assert_allclose(predicted(model, rng.standard_normal((200, 5))), 3, atol=0.3)
    constant = MetricRegressor.fit(np.ones((50, 2)), np.full((50, 1), 2.0))
    assert_allclose(predicted(constant, np.ones((3, 2))), 2)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_deep_trees_say_what_scikit_learn_says(n_targets):
    rng = np.random.default_rng(3)
    values = rng.integers(-50, 50, (400, 4)) / 8  # which single precision holds, as scikit-learn reads them
    targets = rng.standard_normal((400, n_targets))
    with options(bagged_trees=5):
        model = BaggedTrees.fit(values, targets)
    same = RandomForestRegressor(5, min_samples_leaf=5, max_features=0.5, max_samples=400, random_state=0)
    expected = same.fit(values, targets[:, 0] if n_targets == 1 else targets).predict(values).reshape(400, -1)
    assert_allclose(predicted(model, values), expected, rtol=0, atol=1e-12)
    at_once = model.tensor("said")[model.trees._leaves(torch.from_numpy(values))].sum(dim=1)
    assert_allclose(at_once.numpy(), expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="nodes of trees"):
        dataclasses.replace(model, said=model.said[1:])
