"""How much features still tell about something that they should not: a certificate for privacy and fairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from featgeo.card import Card
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Rows, in_turn
from featgeo.geometry.validation import Array, as_features, check_same_rows, seed_of
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import Component
from featgeo.learning.setting import Plan, Setting
from featgeo.models.base import mean_and_error
from featgeo.nesting.scores import h_score_of_modes
from featgeo.records import Result
from featgeo.tuning import in_force


@dataclass(frozen=True, repr=False)
class Leakage(Result):
    """What features tell about Z on rows that neither they nor the predictors of Z were fitted to.

    Attributes:
        linear: Share of the variance of Z that the best linear predictor explains; for labels, of their indicators.
        linear_error: Its standard error over the folds.
        nonlinear: Energy of the dependence of the features and Z, the sum of squared singular values: for a Z of two
            values, the share of its variance that any predictor explains.
        nonlinear_error: Its standard error.
        maximal_correlation: The largest correlation of any function of the features with any function of Z: that of
            the strongest pair of functions, found on other rows.
        maximal_correlation_error: Its standard error.
        pvalue: Of that correlation where nothing leaks: the smallest p-value of a t-test on each part of the rows,
            times their number, which holds however these depend on each other.

    All are cross-validated: about zero, or a little below, where nothing is left. The upper limits are those of what
    was found: functions learned from more rows may tell more.
    """

    linear: float
    linear_error: float
    nonlinear: float
    nonlinear_error: float
    maximal_correlation: float
    maximal_correlation_error: float = 0.0
    pvalue: float = 1.0

    @property
    def linear_upper(self) -> float:
        """Upper limit of `linear`, 95 %."""
        return _upper(self.linear, self.linear_error)

    @property
    def nonlinear_upper(self) -> float:
        """Upper limit of `nonlinear`, 95 %."""
        return _upper(self.nonlinear, self.nonlinear_error)

    @property
    def maximal_correlation_upper(self) -> float:
        """Upper limit of `maximal_correlation`, 95 %."""
        return min(1.0, _upper(self.maximal_correlation, self.maximal_correlation_error))

    def card(self) -> Card:
        """All figures in one line."""
        line = (
            f"linear {self.linear:.4f} +- {self.linear_error:.4f} (at most {self.linear_upper:.4f}), "
            f"nonlinear {self.nonlinear:.4f} +- {self.nonlinear_error:.4f} (at most {self.nonlinear_upper:.4f}), "
            f"maximal correlation {self.maximal_correlation:.4f} +- {self.maximal_correlation_error:.4f} "
            f"(at most {self.maximal_correlation_upper:.4f}), p-value of no leak {self.pvalue:.2g}"
        )
        return Card([line])


def leakage(features: Any, Z: Any, random_state: Any = 0) -> Leakage:
    """How much features tell about Z, linearly and by their own modal decomposition.

    Args:
        features: Of rows that they were not fitted to, (n, k).
        Z: What they should not tell: numbers, labels, or several columns, of the same rows.
        random_state: Seed of folds and spaces.
    """
    seed, values = seed_of(random_state), as_features(features, "features").cpu().numpy()
    if values.shape[1] == 0:
        return Leakage(0.0, 0.0, 0.0, 0.0, 0.0)  # no features tell nothing
    x, z = (Rows.seen(part, name) for part, name in ((values, "features"), (Z, "Z")))
    check_same_rows(features=x, Z=z)
    data = Pairs(x, z)
    fold_of_row, fewest = data.folds(in_force.get().folds, seed), 4 * in_force.get().folds
    if len(data) < fewest:  # variances of fewer than four rows a fold are off by more than their size
        raise ValueError(f"Leakage is measured on at least {fewest} rows, got {len(data)}. Pass more.")
    return Leakage(*_linear(values, Encoding.fit(z, "standard")(z), fold_of_row), *_nonlinear(data, seed))


def _upper(value: float, error: float) -> float:
    """What a share or a correlation is at most, by Student's t for a mean of few folds."""
    return max(value, 0.0) + float(stats.t.ppf(in_force.get().confidence, in_force.get().folds - 1)) * error


def _nonlinear(data: Pairs, seed: int) -> tuple[float, float, float, float, float]:
    """Energy and strongest correlation with their standard errors, and the p-value.

    Everything is learned without the rows that judge it, down to the choice of the spaces: a choice on the same rows
    would find something where nothing is.
    """
    n_parts = 2 if len(data) >= in_force.get().halved_rows else 3  # half of so many teach enough
    energies, pvalues, gain, product = [], [], np.zeros(len(data)), np.zeros(len(data))

    def without(rows: np.ndarray) -> Component:
        others = data.take(np.delete(np.arange(len(data)), rows))
        return learn(others, Setting.bivariate("auto", "auto", "auto"), Plan(seed=seed)).components[0]

    for component, rows in in_turn(data.folds(n_parts, seed), without):
        f, g = component.f(data.x.take(rows)), component.g(data.y.take(rows))
        energies.append(2 * h_score_of_modes(f, g, component.sigma))
        together, spread = (f - f.mean(axis=0)) * (g - g.mean(axis=0)), f.std(axis=0) * g.std(axis=0)
        gain[rows] = 2 * together @ component.sigma
        correlated = np.divide(together, spread, out=np.zeros(f.shape), where=spread > 0)
        product[rows] = correlated[:, :1].sum(axis=1)  # of the strongest mode, if there is one
        r, freedom = float(product[rows].mean()), len(rows) - 2
        pvalues.append(float(stats.t.sf(r * np.sqrt(freedom / max(1 - r**2, 1e-12)), freedom)))
    gain_error, error = (float(values.std() / np.sqrt(len(data))) for values in (gain, product))
    return float(np.mean(energies)), gain_error, float(product.mean()), error, min(1.0, n_parts * min(pvalues))


def _linear(features: Array, targets: Array, fold_of_row: np.ndarray) -> tuple[float, float]:
    """Explained variance of all targets by least squares, on each fold from the others: mean and standard error."""
    ridge, folds = in_force.get().erased_share * len(features), PredefinedSplit(fold_of_row)
    ways = (make_pipeline(StandardScaler(), Ridge(ridge)), DummyRegressor())  # by the features, and by the mean alone
    told = (cross_val_predict(way, features, targets, cv=folds).reshape(targets.shape) for way in ways)
    left, total = (np.bincount(fold_of_row, np.square(targets - means).sum(axis=1)) for means in told)
    shares = 1 - np.divide(left, total, out=np.ones_like(total), where=total > 0)
    mean, error = map(float, mean_and_error(shares))
    return mean, error
