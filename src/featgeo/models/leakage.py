"""How much features still tell about something that they should not: a certificate for privacy and fairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from featgeo.features.encoding import Encoding
from featgeo.features.variables import Variable
from featgeo.geometry.validation import Array, as_features
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import N_FOLDS
from featgeo.learning.setting import Setting
from featgeo.models.components import mean_and_error

FEWEST_ROWS = 2 * N_FOLDS
# Share of the variance below which a combination of nearly collinear features counts as rounding. Erasers leave an
# exact copy of what they erase in such combinations, too small for any use.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Leakage:
    """What features tell about Z on rows that neither they nor the predictors of Z were fitted to.

    Attributes:
        linear: Share of the variance of Z that the best linear predictor explains; for labels, of their indicators.
        linear_error: Its standard error over the folds.
        nonlinear: Energy of the dependence of the features and Z, the sum of squared singular values: for a Z of two
            values, the share of its variance that any predictor explains.
        nonlinear_error: Its standard error.
        maximal_correlation: The largest correlation of any function of the features with any function of Z.

    All are cross-validated: about zero, or a little below, where nothing is left.
    """

    linear: float
    linear_error: float
    nonlinear: float
    nonlinear_error: float
    maximal_correlation: float

    def __str__(self) -> str:
        return (
            f"linear {self.linear:.4f} +- {self.linear_error:.4f}, nonlinear {self.nonlinear:.4f} "
            f"+- {self.nonlinear_error:.4f}, maximal correlation {self.maximal_correlation:.4f}"
        )


def leakage(features: Any, Z: Any, random_state: int = 0) -> Leakage:
    """How much features tell about Z, linearly and by their own modal decomposition.

    Args:
        features: Of rows that they were not fitted to, (n, k).
        Z: What they should not tell: numbers, labels, or several columns, of the same rows.
        random_state: Seed of folds and spaces.
    """
    values = np.asarray(features, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 0:
        return Leakage(0.0, 0.0, 0.0, 0.0, 0.0)  # no features tell nothing
    values = as_features(values, "features").numpy()
    x_variable, z_variable = Variable.seen(values, "features"), Variable.seen(Z, "Z")
    data = Pairs(x_variable.rows(values), z_variable.rows(Z))
    if len(data) < FEWEST_ROWS:
        raise ValueError(f"Leakage is measured on at least {FEWEST_ROWS} rows, got {len(data)}. Pass more.")
    linear, linear_error = _linear(values, Encoding.fit(data.y.of("y"), "standard")(data.y.of("y")), random_state)
    (component,) = learn(data, Setting.bivariate("auto", "auto", "auto"), "auto", random_state).components
    nonlinear, nonlinear_error = mean_and_error(component.held_out_energies[:, None])
    correlation, _ = mean_and_error(component.held_out_sigma)
    return Leakage(
        linear, linear_error, float(nonlinear[0]), float(nonlinear_error[0]), float(correlation.max(initial=0))
    )


def _linear(features: Array, targets: Array, seed: int) -> tuple[float, float]:
    """Explained variance of all targets by least squares, on each fold from the others: mean and standard error."""
    shares = []
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=seed).split(features):
        model = make_pipeline(StandardScaler(), Ridge(ROUNDING * len(train))).fit(features[train], targets[train])
        residual = targets[test] - model.predict(features[test]).reshape(len(test), -1)
        total = np.square(targets[test] - targets[train].mean(axis=0)).sum()
        shares.append(1 - np.square(residual).sum() / total if total > 0 else 0.0)
    return float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
