"""Functions of a side that have mean 0 given one of its variables: z - E[z|s].

What depends on Y given S must not be mistaken for a function of s, however fine. So the conditional means are
regressions on a space that is richer than those in which modes are sought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV
from torch import Tensor

from featgeo.features.combined import PartSpace
from featgeo.features.recipes import is_finite
from featgeo.features.space import Space
from featgeo.features.spaces import KernelSpace, SpanFunction, TableSpace
from featgeo.features.variables import Rows
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.schema import saved

REGRESSION_ROWS = 20_000
ROWS_A_FUNCTION = 10  # at least: with fewer a regression follows the noise
ONE_COLUMN, SEVERAL_COLUMNS = 100, 300  # functions, at most
GAMMAS = (0.3, 3.0, 30.0)  # from smooth to fine
SMALLEST = 1e-8  # relative to the largest: smaller directions are rounding
RIDGES = (1e-5, 1e-3, 1e-1, 1.0, 10.0)


def mean_given(name: str, side: Any, targets: Array, seed: int) -> SpanFunction:
    """Conditional means given a variable, by ridge regression; leave-one-out errors choose its space and its ridges.

    Args:
        name: The variable that is given, among those of a side.
        side: Rows of the side.
        targets: Functions on the same rows, (n, k).
        seed: Of the choice of rows and of centres.
    """
    rows: Rows = side.of(name)
    if len(rows) > REGRESSION_ROWS:
        some = np.random.default_rng(seed).choice(len(rows), REGRESSION_ROWS, replace=False)
        rows, targets = rows.take(some), targets[some]
    # Uncorrelated functions of equal variance, each with a ridge of its own: so the error of every sum of the
    # targets is small beside that very sum.
    left, scale, right = np.linalg.svd(targets - targets.mean(axis=0), full_matrices=False)
    unit = left[:, scale > SMALLEST * scale[0]] * np.sqrt(len(left))
    back = (scale[:, None] * right)[scale > SMALLEST * scale[0]] / np.sqrt(len(left))
    space, regression = _regression(rows, unit, seed)
    weight = np.atleast_2d(regression.coef_).T @ back
    offset = np.atleast_1d(regression.intercept_) @ back + targets.mean(axis=0)
    return SpanFunction(PartSpace((name,), space), AffineFeatures(np.zeros(len(weight)), weight, offset))


def _regression(rows: Rows, targets: Array, seed: int) -> tuple[Space, Any]:
    if is_finite(rows):
        table = TableSpace.fit(rows)
        return table, LinearRegression().fit(table(rows), targets)
    most = SEVERAL_COLUMNS if len(rows.variable.columns) > 1 else ONE_COLUMN
    most = max(1, min(most, len(rows) // ROWS_A_FUNCTION))
    spaces = [KernelSpace.fit(rows, gamma=gamma, seed=seed, features=most) for gamma in GAMMAS]
    fits = [RidgeCV(RIDGES, alpha_per_target=True).fit(space(rows), targets) for space in spaces]
    best = int(np.argmax([np.sum(fit.best_score_) for fit in fits]))
    return spaces[best], fits[best]


@saved
@dataclass(eq=False, repr=False)
class CentredSpace(Space):
    """Functions of a side less their means given one of its variables.

    Attributes:
        space: The functions.
        mean: Their means.
    """

    space: Space
    mean: SpanFunction

    @classmethod
    def fit(cls, space: Space, name: str, side: Any, seed: int) -> Space:
        """Learn the means, from rows of the side; images and sequences are no variables to regress on."""
        if side.of(name).variable.is_tensor:
            return space
        return cls(space, mean_given(name, side, space(side), seed))

    def forward(self, rows: Any) -> Tensor:
        """Features of mean 0 given the variable, (n, d)."""
        return self.space.forward(rows) - self.mean.forward(rows)
