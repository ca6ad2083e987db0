"""What the engine hands on: features of each level, and what is known of them on rows they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from featgeo.features.blocks import SideBySide
from featgeo.features.functions import FeatureFunction, SpanFunction
from featgeo.features.spaces import Space
from featgeo.geometry.problem import SpanModes
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.setting import Setting
from featgeo.learning.solve import Solution

N_FOLDS = 5
UNSEEN_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Unseen:
    """Features of some rows of the fit as solutions see them that were learned without those rows.

    Attributes:
        rows: Positions of the rows.
        f: sigma_i f_i in the coordinates of the final g, (len(rows), k), of all levels side by side.
        judging: Which of the rows are those of the first fold, (len(rows),): they can judge what is made without them.
        without_judging: sigma_i f_i of the last level by the solution without these, (len(rows), k').
        final: The same by the solution of all rows, (len(rows), k); only the spaces have not seen the row. The last
            three are empty for the modes of a single table.
    """

    rows: np.ndarray
    f: Array
    judging: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    without_judging: Array = field(default_factory=lambda: np.empty((0, 0)))
    final: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of(cls, solution: Solution, rows: np.ndarray, x_features: Array, fold_of_row: np.ndarray) -> Unseen:
        """See some rows, by their features of x and their folds."""
        without, final = solution.parts[0][-1], solution.levels[-1]
        return cls(
            rows,
            unseen_features(solution, x_features, fold_of_row),
            fold_of_row == solution.held_out[0],
            without.f(x_features) * without.sigma,
            final.f(x_features) * final.sigma,
        )


@dataclass(frozen=True, eq=False)
class Component:
    """The part of the dependence that one level holds.

    Attributes:
        sigma: Singular values on the rows of the fit, (k,).
        f: Functions of X.
        g: Functions of Y.
        held_out_sigma: Correlations of f_i and g_i on held-out rows, (folds, k).
        held_out_energies: Energy of the component on held-out rows, twice its H-score there, (folds,).
        rotations: Inner products of the f_i of each fold with those of all rows, (folds, k, k).
    """

    sigma: Array
    f: FeatureFunction
    g: FeatureFunction
    held_out_sigma: Array
    held_out_energies: Array
    rotations: Array

    def __len__(self) -> int:
        return len(self.sigma)


@dataclass(frozen=True, eq=False)
class Learned:
    """The components of a dependence, and what they rest on.

    Attributes:
        components: One a level.
        held_out_score: H-score of all together on held-out rows.
        solver: "exact", "closed" or "neural".
        spaces: What the richest spaces of X and of Y are.
        ridge: The ridge that was chosen.
        residual: Largest deviation of E[f f^T] and E[g g^T] from the identity, over all rows and levels.
        unseen: Held-out features of some rows, for calibration.
    """

    components: tuple[Component, ...]
    held_out_score: float
    solver: str
    spaces: tuple[str, str]
    ridge: float
    residual: float
    unseen: Unseen | None = None


def from_solution(
    solution: Solution,
    setting: Setting,
    spaces: Mapping[str, Space],
    names: tuple[str, str],
    solver: str,
    unseen: Unseen | None,
) -> Learned:
    """The record of a closed-form solution.

    Args:
        solution: The modes of each level.
        setting: The levels.
        spaces: The space of each block.
        names: What the richest spaces are called.
        solver: How they were found.
        unseen: Held-out features of some rows.
    """
    dims = solution.folds.whole.dims
    components = tuple(
        Component(
            modes.sigma,
            _function(modes.f, [spaces[name] for name in setting.x], modes.x[: reach[0]], dims),
            _function(modes.g, [spaces[name] for name in setting.y], modes.y[: reach[1]], dims),
            solution.held_out_sigma[level],
            solution.held_out_energies(level),
            _rotations(solution, level),
        )
        for level, (modes, reach) in enumerate(zip(solution.levels, setting.reach, strict=True))
    )
    residual = max(_residual(solution, modes) for modes in solution.levels)
    return Learned(components, solution.held_out_score, solver, names, solution.ridge, residual, unseen)


def _function(
    affine: AffineFeatures, spaces: list[Space], names: tuple[str, ...], dims: Mapping[str, int]
) -> SpanFunction:
    """Features that read no more than the blocks of their level: weights of later blocks are zero."""
    d = sum(dims[name] for name in names)
    kept = spaces[: len(names)]
    own = AffineFeatures(affine.centre[:d], affine.weight[:d], affine.offset, affine.removed)
    return SpanFunction(kept[0] if len(kept) == 1 else SideBySide(tuple(kept)), own)


def unseen_features(solution: Solution, x_features: Array, fold_of_row: np.ndarray) -> Array:
    """Values of sigma f at each row by the solution of the folds without it, in the coordinates of the final g.

    Args:
        solution: The modes of each level.
        x_features: Of all blocks of x, side by side, (n, d).
        fold_of_row: (n,).

    Returns:
        Those of all levels side by side, (n, k).
    """
    levels = []
    for final, *parts in zip(solution.levels, *solution.parts, strict=True):
        values = np.zeros((len(x_features), len(final)))
        covariance = solution.covariance(final.y)
        for fold, part in zip(solution.held_out, parts, strict=True):
            rows = fold_of_row == fold
            turn = part.g.weight.T @ covariance @ final.g.weight  # inner products of both sets of g
            values[rows] = (part.f(x_features[rows]) * part.sigma) @ turn
        levels.append(values)
    return np.hstack(levels)


def _rotations(solution: Solution, level: int) -> Array:
    """Inner products of the features of each fold with the final ones, (folds, k, k)."""
    final = solution.levels[level]
    covariance = solution.covariance(final.x)
    result = np.zeros((len(solution.parts), len(final), len(final)))
    for fold, parts in enumerate(solution.parts):
        weight = parts[level].f.weight
        turn = weight.T @ covariance @ final.f.weight
        turn = turn / np.sqrt(np.diag(weight.T @ covariance @ weight))[:, None]
        result[fold, : len(turn)] = turn[: len(final)]
    return result


def _residual(solution: Solution, modes: SpanModes) -> float:
    sides = ((modes.f.weight, modes.x), (modes.g.weight, modes.y))
    grams = [weight.T @ solution.covariance(names) @ weight for weight, names in sides]
    return max(float(np.abs(gram - np.eye(len(gram))).max(initial=0)) for gram in grams)


def some_rows(n_rows: int, seed: int) -> np.ndarray:
    """Positions of the rows whose held-out features are kept."""
    if n_rows <= UNSEEN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, UNSEEN_ROWS, replace=False))
