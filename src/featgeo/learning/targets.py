"""What regressors learn to predict: functions of the other variable, and whether there is more in them to explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featgeo.features.label_means import columns_of_many_labels, told_apart
from featgeo.features.space import Space
from featgeo.features.spaces import TableSpace
from featgeo.features.trees import as_matrix, trees
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array

MAX_TARGETS = 12
PROBE_ROWS = 10_000  # that small trees are grown on, at most, and as many that judge them: bounds time
GLANCE = {"max_iter": 10, "learning_rate": 0.3, "max_leaf_nodes": 15}  # few trees, in large steps
CLEAR = 2.0  # standard errors
LEAST = 0.01  # the sigma of functions that nothing is known of: they come last


def are_all_known(space: Space) -> bool:
    """Whether a variable has so few values that all its functions can be targets."""
    return isinstance(space, TableSpace) and len(space.shares) - 1 <= MAX_TARGETS


def targets(space: Space, rows: Any, found: Sequence[Array]) -> Array:
    """All functions of a variable where they are few, else the strongest that a pilot found.

    Args:
        space: The space of the variable.
        rows: Its rows.
        found: The pilot's functions at these rows, the most wanted first, (n, k_i) each.

    Returns:
        Targets of unit variance, (n, k).
    """
    if isinstance(space, TableSpace) and are_all_known(space):
        share = space.shares
        basis = np.linalg.svd((np.eye(len(share)) - share) * np.sqrt(share)[:, None])[0][:, : len(share) - 1]
        return (basis / np.sqrt(share)[:, None])[space.index(rows)]
    return np.hstack(list(found))[:, :MAX_TARGETS]


def wanted(rows: Any, space: Space, others: Any, pilot: Sequence[tuple[Array, Array]], cheap: bool) -> Array:
    """Targets of a regressor on some rows: functions of the other variable, with those that many labels tell apart.

    Args:
        rows: Rows that the regressor reads.
        space: The space of the other variable.
        others: Its rows.
        pilot: The pilot's sigma_i, (k,), and functions of the other variable, (n, k), the most wanted first.
        cheap: Whether more targets take hardly more time.

    Returns:
        Targets of unit variance, (n, k).
    """
    if not columns_of_many_labels(rows.variable):
        return targets(space, others, [values for _, values in pilot])
    found = np.hstack([values * sigma for sigma, values in pilot])
    most = MAX_TARGETS if cheap or are_all_known(space) else min(found.shape[1] + 1, MAX_TARGETS)
    if are_all_known(space):
        found = np.hstack([found, LEAST * targets(space, others, [])])
    return told_apart(rows, space(others), found, most)


def is_more_to_explain(rows: Rows, residuals: Array, seed: int) -> bool:
    """Whether small trees know anything of what is left over, by two standard errors for any target."""
    return clearness(rows, residuals, seed) > CLEAR


def clearness(rows: Rows, residuals: Array, seed: int) -> float:
    """How clearly small trees grown on one half of the rows know something of what is left over on the other.

    Trees see interactions, bumps and jumps alike. It does not matter how small what they see is, nor what else they
    made up.

    Args:
        rows: Rows of the variable.
        residuals: What is left of each target, (n, k).
        seed: Of the halves.

    Returns:
        The correlation of what they predict with what is left, in standard errors, for the target where it is largest.
    """
    order = np.random.default_rng(seed).permutation(len(rows))[: 2 * PROBE_ROWS]
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    inputs = as_matrix(rows)
    if inputs.shape[1] == 0:  # labels only, too many to be split as sets
        return 0.0
    clear = 0.0
    for residual in (residuals - residuals.mean(axis=0)).T:
        products = np.concatenate(
            [
                trees(rows, seed, **GLANCE).fit(inputs[grown], residual[grown]).predict(inputs[judged])
                * residual[judged]
                for grown, judged in (halves, halves[::-1])
            ]
        )
        spread = products.std() / np.sqrt(len(products))
        clear = max(clear, float(products.mean() / spread) if spread > 0 else 0.0)
    return clear
