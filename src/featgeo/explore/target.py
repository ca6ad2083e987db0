"""What all columns say of one: alone, beside all others, and which few of them say it.

The functions g of the target are orthonormal, and sums of functions of the columns predict them: the energy of a set of
columns is the variance of these predictions, sum_i Var(E[g_i | columns]), which is the sum of squared strengths of its
modes with the target. On any rows it is 2 <h, g> - <h, h> for predictions h of others' making. The n rows that d
functions are learned from show d / n of what is not told too much, and other rows d / (n - d - 1) too little (Gaussian
rows, no ridge): what both show, weighed so that this cancels, is biased by neither. A column adds what the energy falls
by when it alone is left out.

The fewest columns are found forward, on held-out rows, each step the column that adds most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from featgeo.explore.gram import Moments
from featgeo.features.variables import preferred_places
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class About:
    """What columns say of a target.

    Attributes:
        columns: The columns, by place.
        together: Energy of all columns.
        alone: Energy of each column, (p,), and its standard error over the folds, (p,).
        added: What each adds to all others, (p,), and its standard error, (p,).
        pvalue: That a column adds nothing to all others, (p,).
        order: Columns, by their place in `columns`, in the order in which they add most to those before; those that add
            next to nothing are not there.
        curve: Energy of the first 1, 2, ... of them on held-out rows, (steps,).
    """

    columns: tuple[int, ...]
    together: float
    alone: tuple[Array, Array]
    added: tuple[Array, Array]
    pvalue: Array
    order: tuple[int, ...]
    curve: Array


def about_target(moments: Moments, target: int, columns: Sequence[int]) -> About:
    """What columns say of a target, given whatever was swept from the moments."""
    every = _Regression.of(moments, target, columns)
    # Held-out rows choose a ridge for each function of the target, or that nothing is said of it.
    ridges = in_force.get().ridges
    scores = np.stack([np.zeros_like(every.held[1][:, 0]), *(every.fitted(ridge).energies() for ridge in ridges)])
    costs = np.array([0.0] + [1.0] * len(ridges))
    chosen = preferred_places(scores.transpose(2, 0, 1), np.tile(costs, (scores.shape[2], 1)))
    parts = [(every.about(chosen == i), ridge) for i, ridge in enumerate(ridges, start=1) if (chosen == i).any()]
    order, curve = _forward(parts, len(columns), moments.shares)
    plain = every.fitted(min(ridges))  # a ridge would leave what one column tells to another, or to none
    n = range(len(columns))
    together = plain.shown()
    alone = np.array([every.only(i).fitted(min(ridges)).shown() for i in n])
    added = np.array([together - plain.without(i).shown() for i in n])
    return About(
        tuple(columns),
        float(together[0] @ moments.shares),
        _with_errors(alone, moments.shares),
        _with_errors(added, moments.shares),
        np.array([plain.pvalue(i) for i in n]),
        order,
        curve,
    )


def _with_errors(values: Array, shares: Array) -> tuple[Array, Array]:
    """Unbiased energies, (p,), and standard errors from those of the rows of each fold alone; from both, (p, 2, F)."""
    return values[:, 0] @ shares, values[:, 1].std(axis=1, ddof=1) / np.sqrt(len(shares))


@dataclass(frozen=True, eq=False)
class _Regression:
    """Moments of the functions of some columns and of those of the target.

    Attributes:
        inner: Covariances of functions of columns, on all rows and on all but those of each fold, (1 + F, d, d).
        cross: Theirs with the functions of the target, (1 + F, d, e).
        own: Those of the functions of the target, (1 + F, e, e).
        held: The same three on the rows of each fold.
        places: The functions of each column.
        roughness: Of the functions of the columns, (d,), which a ridge weighs.
        n: Rows: all, and all but those of each fold, (1 + F,).
    """

    inner: Array
    cross: Array
    own: Array
    held: tuple[Array, Array]
    places: tuple[np.ndarray, ...]
    roughness: Array
    n: Array

    @classmethod
    def of(cls, moments: Moments, target: int, columns: Sequence[int]) -> _Regression:
        x, y = moments.functions(columns), moments.values[target]
        # What is swept, or missing, leaves less than unit variance: it is brought back, so that energies are of g.
        root = np.linalg.inv(np.linalg.cholesky(moments.seen[0][np.ix_(y, y)] + 1e-9 * np.eye(len(y)))).T
        ends = np.cumsum([len(moments.places[i]) for i in columns])
        places = tuple(np.arange(end - len(moments.places[i]), end) for end, i in zip(ends, columns, strict=True))
        seen, held = moments.seen, moments.held
        return cls(
            seen[:, x[:, None], x],
            seen[:, x[:, None], y] @ root,
            root.T @ seen[:, y[:, None], y] @ root,
            (held[:, x[:, None], x], held[:, x[:, None], y] @ root),
            places,
            moments.roughness[x],
            moments.n,
        )

    def only(self, column: int) -> _Regression:
        """The same for one of the columns."""
        own = self.places[column]
        square = own[:, None], own
        return replace(
            self,
            inner=self.inner[:, *square],
            cross=self.cross[:, own],
            held=(self.held[0][:, *square], self.held[1][:, own]),
            places=(np.arange(len(own)),),
            roughness=self.roughness[own],
        )

    def about(self, functions: np.ndarray) -> _Regression:
        """The same for some functions of the target."""
        held = self.held[0], self.held[1][:, :, functions]
        return replace(self, cross=self.cross[:, :, functions], own=self.own[:, functions][:, :, functions], held=held)

    def fitted(self, ridge: float) -> _Fit:
        """The regression, under a ridge."""
        inverse = np.asarray(np.linalg.inv(self.inner + np.diag(ridge * self.roughness)), dtype=np.float64)
        return _Fit(self, inverse, inverse @ self.cross, self.inner.shape[1])


@dataclass(frozen=True, eq=False)
class _Fit:
    """A regression on all rows, and on all but those of each fold.

    Attributes:
        of: What was regressed.
        inverse: Of the covariances of the functions plus ridge, (1 + F, d, d).
        weights: Of the predictions, (1 + F, d, e).
        n_functions: Of the columns that predict.
    """

    of: _Regression
    inverse: Array
    weights: Array
    n_functions: int

    def energies(self) -> Array:
        """Of the predictions of each function on the rows of each fold, (F, e)."""
        (inner, cross), weights = self.of.held, self.weights[1:]
        return np.einsum("fde,fde->fe", weights, 2 * cross - inner @ weights)

    def shown(self) -> Array:
        """Energy of all predictions, unbiased, and on the rows of each fold alone, (2, F)."""
        cross, weights = self.of.cross[1:], self.weights[1:]
        seen = np.einsum("fde,fde->f", weights, 2 * cross - self.of.inner[1:] @ weights)
        held = self.energies().sum(axis=1)
        n, left = self.of.n[1:], np.maximum(self.of.n[1:] - self.n_functions - 1, 1.0)
        return np.stack([(n * seen + left * held) / (n + left), held])

    def without(self, i: int) -> _Fit:
        """The regression on all columns but one, from that on all of them."""
        own = self.of.places[i]
        block = self.inverse[:, own[:, None], own]
        weights = self.weights - self.inverse[:, :, own] @ np.linalg.solve(block, self.weights[:, own])
        return _Fit(self.of, self.inverse, weights, self.n_functions - len(own))

    def pvalue(self, i: int) -> float:
        """That a column adds nothing to all others: Wald's statistic, against chi-square."""
        own = self.of.places[i]
        weights, block = self.weights[0][own], self.inverse[0][np.ix_(own, own)]
        left = self.of.own[0] - self.of.cross[0].T @ self.weights[0]  # covariance of what is not predicted
        left = (left + left.T) / 2 + 1e-12 * np.eye(len(left))
        rows = max(self.of.n[0] - self.n_functions - 1, 1.0)
        statistic = rows * np.trace(np.linalg.solve(left, weights.T @ np.linalg.solve(block, weights)))
        return float(chdtrc(weights.size, max(statistic, 0.0)))


def _forward(
    parts: Sequence[tuple[_Regression, float]], n_columns: int, shares: Array
) -> tuple[tuple[int, ...], Array]:
    """Columns in the order in which they add most on held-out rows, and the energy of the first 1, 2, ... of them."""
    order: list[int] = []
    curve: list[float] = []
    left = list(range(n_columns))
    residuals = [_Residual(part.inner[1:], part.cross[1:], *part.held) for part, _ in parts]
    while left and parts:
        penalties = [[ridge * part.roughness[part.places[i]] for part, ridge in parts] for i in left]
        own = [parts[0][0].places[i] for i in left]
        gains = [
            sum(
                float(residual.gain(place, penalty) @ shares) for residual, penalty in zip(residuals, some, strict=True)
            )
            for place, some in zip(own, penalties, strict=True)
        ]
        best = int(np.argmax(gains))
        if gains[best] <= in_force.get().least_gain * (curve[-1] if curve else 0.0):
            break
        residuals = [one.swept(own[best], penalty) for one, penalty in zip(residuals, penalties[best], strict=True)]
        order.append(left.pop(best))
        curve.append(gains[best] + (curve[-1] if curve else 0.0))
    return tuple(order), np.array(curve)


@dataclass(frozen=True, eq=False)
class _Residual:
    """What columns taken so far leave of all others and of the target, on seen rows and on held-out ones, by fold."""

    inner: Array  # (F, d, d)
    cross: Array  # (F, d, e)
    held_inner: Array
    held_cross: Array

    def gain(self, own: np.ndarray, penalty: Array) -> Array:
        """What a column would add on held-out rows, (F,)."""
        square = own[:, None], own
        weights = np.linalg.solve(self.inner[:, *square] + np.diag(penalty), self.cross[:, own])
        return np.einsum("fde,fde->f", weights, 2 * self.held_cross[:, own] - self.held_inner[:, *square] @ weights)

    def swept(self, own: np.ndarray, penalty: Array) -> _Residual:
        """The same after a column was taken."""
        square = own[:, None], own
        ridged = self.inner[:, *square] + np.diag(penalty)
        told, weights = np.linalg.solve(ridged, self.inner[:, own]), np.linalg.solve(ridged, self.cross[:, own])
        parts = []
        for inner, cross in ((self.inner, self.cross), (self.held_inner, self.held_cross)):
            block, outer = inner[:, *square], inner[:, :, own]
            back = told.transpose(0, 2, 1)
            left = inner - outer @ told - back @ outer.transpose(0, 2, 1) + back @ block @ told
            rest = cross - outer @ weights - back @ cross[:, own] + back @ block @ weights
            parts += [left, rest]
        return _Residual(*parts)
