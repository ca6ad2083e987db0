"""How much features still tell about something that they should not: a certificate for privacy and fairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from featgeo.card import Card, Shown
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Variable
from featgeo.geometry.validation import Array, as_real, check_same_rows, seed_of
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import N_FOLDS
from featgeo.learning.setting import Plan, Setting
from featgeo.nesting.scores import h_score_of_modes

FEWEST_ROWS = 4 * N_FOLDS
MANY_ROWS = 1000  # half of which teach enough
LEVEL = 0.95  # of the upper limits
# Share of the variance below which a combination of nearly collinear features counts as rounding. Erasers leave an
# exact copy of what they erase in such combinations, too small for any use.
ROUNDING = 1e-6


@dataclass(frozen=True, repr=False)
class Leakage(Shown):
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
    seed, values = seed_of(random_state), _numbers(features)
    if values.shape[1] == 0:
        return Leakage(0.0, 0.0, 0.0, 0.0, 0.0)  # no features tell nothing
    x, z = (Variable.seen(part, name).rows(part) for part, name in ((values, "features"), (Z, "Z")))
    check_same_rows(features=x, Z=z)
    data = Pairs(x, z)
    if len(data) < FEWEST_ROWS:
        raise ValueError(f"Leakage is measured on at least {FEWEST_ROWS} rows, got {len(data)}. Pass more.")
    return Leakage(*_linear(values, Encoding.fit(z, "standard")(z), seed), *_nonlinear(data, seed))


def _numbers(features: Any) -> Array:
    try:
        values = as_real(features, "features")
    except ValueError as error:
        raise ValueError(
            f"Features must be numbers, (n, k). {error} Or measure what the columns tell by independence_test(X, Z), "
            "which reads labels."
        ) from error
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise ValueError(f"Features must have shape (n, k), got {values.shape}. Flatten each row to a vector.")
    if not np.isfinite(values).all():
        n_bad = np.count_nonzero(~np.isfinite(values).all(axis=1))
        raise ValueError(
            f"Features must be finite, got NaN or infinite values in {n_bad} of {len(values)} rows. Leave these rows "
            "out of the features and of Z, or impute the values."
        )
    return values


def _upper(value: float, error: float) -> float:
    """What a share or a correlation is at most, by Student's t for a mean of few folds."""
    return max(value, 0.0) + float(stats.t.ppf(LEVEL, N_FOLDS - 1)) * error


def _nonlinear(data: Pairs, seed: int) -> tuple[float, float, float, float, float]:
    """Energy and strongest correlation with their standard errors, and the p-value.

    Everything is learned without the rows that judge it, down to the choice of the spaces: a choice on the same rows
    would find something where nothing is.
    """
    n_parts = 2 if len(data) >= MANY_ROWS else 3
    part_of_row = np.random.default_rng(seed).permutation(len(data)) % n_parts
    gains, energies, products, pvalues = [], [], [], []
    for part in range(n_parts):
        train, test = (data.take(np.flatnonzero(rows)) for rows in (part_of_row != part, part_of_row == part))
        (component,) = learn(train, Setting.bivariate("auto", "auto", "auto"), Plan(seed=seed)).components
        f, g = component.f(test.x), component.g(test.y)
        energies.append(2 * h_score_of_modes(f, g, component.sigma))
        product = (f - f.mean(axis=0)) * (g - g.mean(axis=0))
        gains.append(2 * product @ component.sigma)
        spread = f[:, :1].std(axis=0) * g[:, :1].std(axis=0)
        first = np.divide(product[:, :1], spread, out=np.zeros((len(f), min(1, f.shape[1]))), where=spread > 0)
        products.append(first.sum(axis=1))
        correlation = float(products[-1].mean())
        t = correlation * np.sqrt((len(test) - 2) / max(1 - correlation**2, 1e-12))
        pvalues.append(float(stats.t.sf(t, len(test) - 2)))
    gain, product = np.concatenate(gains), np.concatenate(products)
    scale = 1 / np.sqrt(len(data))
    pvalue = min(1.0, n_parts * min(pvalues))
    return (
        float(np.mean(energies)),
        float(gain.std() * scale),
        float(product.mean()),
        float(product.std() * scale),
        pvalue,
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
