"""What all spaces of x together tell of a number Y itself, whose mean is asked for most: E[Y|x].

Modes hold what few functions of x know of all functions of Y, and held-out rows choose spaces and numbers of them by
energy, the sum over all these functions. What is best for that sum need not be best for Y itself. So E[Y|x] is told
beside the modes: each space that was tried tells it by least squares, the same closed form with Y itself for all of the
y side, and boosted trees of Y itself where none were grown for other functions. The mean of them has weights that are
not negative and that rows left out prefer (Breiman's stacking).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.optimize import nnls

from featgeo.features.spaces import SideBySide, SpanFunction
from featgeo.features.trees import RegressorSpace
from featgeo.features.variables import cross_fitted
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.learned import Mean
from featgeo.tuning import in_force
from featgeo.watch import is_time_left

if TYPE_CHECKING:
    from featgeo.learning.closed import Bank

ITSELF = "itself"  # the name of Y as the only function of the y side


def mean_of(bank: Bank, rows: np.ndarray) -> Mean | None:
    """E[Y|x] by the spaces of a bank; None where none of them tells anything.

    Args:
        bank: Spaces that were tried, with the moments of Y itself.
        rows: Positions of the rows that are to be told by what has not seen them.
    """
    itself = bank.spaces[bank.task.setting.richest[1], ITSELF]
    t = itself(bank.task.every.y)
    several = [_told_by(bank, kind, t) for kind in _kinds(bank, t)]
    told = np.hstack([np.empty((len(t), 0)), *(unseen for _, unseen in several)])

    def without(out: np.ndarray) -> Array:
        return nnls(np.delete(told, out, axis=0), np.delete(t[:, 0], out))[0]

    weights, folds = without(np.empty(0, dtype=int)), cast("np.ndarray", bank.fold_of_row)
    _, unseen = cross_fitted(folds, without, lambda others, own: told[own] @ others[:, None])
    kept = np.flatnonzero(weights)
    if not len(kept):
        return None
    affine = AffineFeatures(np.zeros(len(kept)), weights[kept, None], np.zeros(1))
    f = SpanFunction(SideBySide(tuple(several[c][0] for c in kept)), affine)
    return Mean(f, itself, unseen[rows])


def _kinds(bank: Bank, t: Array) -> Iterator[str]:
    """Names of the spaces of x that are allowed, no means of others; and trees of Y itself, where no others are."""
    task, (x_name, _) = bank.task, bank.task.setting.richest
    allowed = task.recipes[x_name]
    known = [recipe.name for recipe in allowed if (x_name, recipe.name) in bank.spaces]
    yield from known
    boosted = [recipe.name for recipe in allowed if recipe.learned == "regressor" and recipe.argument is None]
    enough = not known or (len(t) >= in_force.get().few_rows and is_time_left())
    if boosted and boosted[0] not in known and enough:
        key = (x_name, f"{boosted[0]} of {ITSELF}")
        folds = cast("np.ndarray", bank.fold_of_row)
        space, bank.own[key] = RegressorSpace.fit(task.rows(x_name), t, folds, None, task.plan.seed)
        bank.spaces[key] = task.setting.blocks[x_name].seen_from_side(space).to(task.plan.device)
        yield key[1]


def _told_by(bank: Bank, kind: str, t: Array) -> tuple[SpanFunction, Array]:
    """E[t|x] by one space of x: for any rows, and for those of the bank by fits that have not seen them, (n, 1)."""
    x_name, y_name = bank.task.setting.richest
    names = {x_name: kind, y_name: ITSELF}
    mode = bank.learned(names).components[-1]
    sign = np.sign(mode.g(bank.task.every.y).T @ t).ravel()  # the only function of Y is t, up to its sign
    return mode.f.scaled(mode.sigma * sign), bank.unseen(names) * sign
