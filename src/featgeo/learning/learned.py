"""What the engine hands on: features, and what is known of them on rows they have not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.features.functions import FeatureFunction, SpanFunction
from featgeo.features.spaces import Space
from featgeo.geometry.validation import Array
from featgeo.learning.solve import Solution

N_FOLDS = 5
UNSEEN_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Unseen:
    """Features of some rows of the fit as solutions see them that were learned without those rows.

    Attributes:
        rows: Positions of the rows.
        f: sigma_i f_i in the coordinates of the final g, (len(rows), k).
    """

    rows: np.ndarray
    f: Array


@dataclass(frozen=True, eq=False)
class Learned:
    """Features of X and of Y, and what is known of them on rows they have not seen.

    Attributes:
        sigma: Singular values on the rows of the fit, (k,).
        f: Functions of X.
        g: Functions of Y.
        held_out_sigma: Correlations of f_i and g_i on held-out rows, (folds, k).
        held_out_score: H-score on held-out rows.
        solver: "exact", "closed" or "neural".
        spaces: What the spaces of X and of Y are.
        ridge: The ridge that was chosen.
        rotations: Inner products of the f_i of each fold with those of all rows, (folds, k, k).
        residual: Largest deviation of E[f f^T] and E[g g^T] from the identity, over all rows.
        unseen: Held-out features of some rows, for calibration.
    """

    sigma: Array
    f: FeatureFunction
    g: FeatureFunction
    held_out_sigma: Array
    held_out_score: float
    solver: str
    spaces: tuple[str, str]
    ridge: float
    rotations: Array
    residual: float
    unseen: Unseen | None = None


def from_solution(
    solution: Solution, x_space: Space, y_space: Space, names: tuple[str, str], solver: str, unseen: Unseen | None
) -> Learned:
    """The record of a closed-form solution of one level."""
    modes = solution.levels[0]
    return Learned(
        modes.sigma,
        SpanFunction(x_space, modes.f),
        SpanFunction(y_space, modes.g),
        solution.held_out_sigma[0],
        solution.held_out_score,
        solver,
        names,
        solution.ridge,
        _rotations(solution),
        _residual(solution),
        unseen,
    )


def unseen_features(solution: Solution, x_features: Array, fold_of_row: np.ndarray) -> Array:
    """Values of sigma f at each row by the solution of the folds without it, in the coordinates of the final g."""
    final = solution.levels[0]
    result = np.zeros((len(x_features), len(final)))
    covariance = solution.folds.whole.joint_covariance(final.y, final.y)
    for fold, (part,) in zip(solution.held_out, solution.parts, strict=True):
        rows = fold_of_row == fold
        turn = part.g.weight.T @ covariance @ final.g.weight  # inner products of both sets of g
        result[rows] = (part.f(x_features[rows]) * part.sigma) @ turn
    return result


def _rotations(solution: Solution) -> Array:
    """Inner products of the features of each fold with the final ones, (folds, k, k)."""
    final = solution.levels[0]
    covariance = solution.folds.whole.joint_covariance(final.x, final.x)
    result = np.zeros((len(solution.parts), len(final), len(final)))
    for fold, (part,) in enumerate(solution.parts):
        turn = part.f.weight.T @ covariance @ final.f.weight
        turn = turn / np.sqrt(np.diag(part.f.weight.T @ covariance @ part.f.weight))[:, None]
        result[fold, : len(turn)] = turn[: len(final)]
    return result


def _residual(solution: Solution) -> float:
    modes, whole = solution.levels[0], solution.folds.whole
    sides = ((modes.f.weight, modes.x), (modes.g.weight, modes.y))
    grams = [weight.T @ whole.joint_covariance(names, names) @ weight for weight, names in sides]
    return max(float(np.abs(gram - np.eye(len(gram))).max(initial=0)) for gram in grams)


def deal(n_rows: int, seed: int) -> np.ndarray:
    """A fold for each row, (n,), at random and of equal size."""
    return np.random.default_rng(seed).permutation(n_rows) % min(N_FOLDS, n_rows)


def some_rows(n_rows: int, seed: int) -> np.ndarray:
    """Positions of the rows whose held-out features are kept."""
    if n_rows <= UNSEEN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, UNSEEN_ROWS, replace=False))
