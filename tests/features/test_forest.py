"""Trees as tensors of their nodes say what scikit-learn's say, on every device and in files."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from support import DEVICES

from featgeo.features.trees import Forest

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((600, 2)), RNG.integers(0, 40, 600), RNG.integers(0, 5, 600)])
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0]) * (X[:, 3] == 2) + np.isin(X[:, 2], range(0, 40, 3)) + 0.1 * RNG.standard_normal(600)
NEW = np.column_stack([RNG.standard_normal((200, 2)), RNG.integers(0, 60, 200), RNG.integers(0, 9, 200)])
NEW[:20] = np.nan  # and labels that the fit never saw


def grown(labels: bool, **options) -> HistGradientBoostingRegressor:
    columns = [2, 3] if labels else None
    return HistGradientBoostingRegressor(max_iter=20, categorical_features=columns, **options).fit(X, Y)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("options", [{}, {"early_stopping": True}, {"max_depth": 1}], ids=str)
def test_predictions_are_those_of_scikit_learn(labels, options):
    model = grown(labels, **options)
    forest = Forest.of(model)
    for rows in (X, NEW):
        np.testing.assert_array_equal(forest.forward(torch.from_numpy(rows)).numpy(), model.predict(rows))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("labels", [True, False])
def test_all_rows_at_once_end_where_each_does(labels, device):
    """What other devices and exported graphs compute."""
    model = grown(labels)
    forest = Forest.of(model).to(device)
    leaves = forest._leaves(torch.from_numpy(NEW).to(device))
    found = forest.tensor("start") + forest.tensor("value")[leaves].sum(dim=1)
    np.testing.assert_allclose(found.cpu().numpy(), model.predict(NEW), rtol=0, atol=1e-12)


def test_other_losses_and_labels_that_are_no_codes_are_not_sums_of_nodes():
    assert Forest.of(HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(X, np.abs(Y))) is None
    shifted = X + np.array([0, 0, 0.5, 0])
    assert Forest.of(HistGradientBoostingRegressor(max_iter=2, categorical_features=[2]).fit(shifted, Y)) is None


def entry(column, value, inner=True):
    """Change a column of the first node that has children, or of the first that has none."""

    def change(forest):
        nodes = forest.nodes.copy()
        nodes[np.flatnonzero((forest.left != np.arange(len(nodes))) == inner)[0], column] = value
        return {"nodes": nodes}

    return change


def whole(name, change):
    return lambda forest: {name: change(getattr(forest, name))}


FEATURE, LEFT, RIGHT, SET = range(4)
CASES = {
    "a column before the first": entry(FEATURE, -1),
    "a column that is not there": entry(FEATURE, 4),
    "a column that is no number": entry(FEATURE, np.nan),
    "a child that is the node itself": entry(RIGHT, 0),
    "a child before its parent": entry(LEFT, -1),
    "a child in another tree": entry(RIGHT, 10_000),
    "a leaf with a child": entry(RIGHT, 10_000, inner=False),
    "a set that is not there": entry(SET, 10_000),
    "a set before the first": entry(SET, -2),
    "roots that are no positions": whole("roots", lambda roots: roots.astype(float)),
    "an empty tree": whole("roots", lambda roots: np.array([0, *roots])),
    "roots out of order": whole("roots", lambda roots: roots[::-1].copy()),
    "a root that is not the first node": whole("roots", lambda roots: roots + 1),
    "no trees": whole("roots", lambda roots: roots[:0]),
    "nodes of other columns": whole("nodes", lambda nodes: np.hstack([nodes, nodes])),
    "nodes of another type": whole("nodes", lambda nodes: nodes.astype(np.float32)),
    "sets of another type": whole("sets", lambda sets: sets.astype(np.uint64)),
    "sets of another width": whole("sets", lambda sets: sets[:, :7].copy()),
}


@pytest.mark.parametrize("case", CASES)
def test_nodes_that_do_not_go_together_are_refused(case):
    forest = Forest.of(grown(labels=True))
    dataclasses.replace(forest, start=1.0)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="nodes of trees"):
        dataclasses.replace(forest, **CASES[case](forest))


def test_columns_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="cannot read 1"):
        Forest.of(grown(labels=True)).forward(torch.zeros((3, 1), dtype=torch.float64))
