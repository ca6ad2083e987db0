"""Conditional distributions of Y, assembled from features: P(y|x) = P(y) (1 + sum_i sigma_i f_i(x) g_i(y)).

A few modes from a finite sample can push 1 + f.g below zero. What is used is then the nearest density, in the metric of
P_Y, that is nowhere negative: projecting onto a convex set that holds the truth never takes one further from it. The
mass that had to be removed is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from featgeo.assembly.links import LinearLink, Link, Recalibration
from featgeo.assembly.support import Support
from featgeo.geometry.validation import Array

_CELLS_AT_ONCE = 4_000_000


class Conditional:
    """One distribution of Y for each row of X.

    Args:
        support: The values of Y, their prior mass and features.
        f: Features of the rows of X, (n, k), each times its singular value; or whatever else the link reads.
        prior: Another prior of Y (label shift): masses in the order of `classes`, a mapping from value to mass, or a
            function of the values that gives weights; the prior of the fit when None.
        link: How features become density ratios.
        recalibration: A map of probabilities to what was observed on held-out rows; for numbers.
    """

    def __init__(
        self,
        support: Support,
        f: Any,
        prior: Any = None,
        link: Link | None = None,
        recalibration: Recalibration | None = None,
    ) -> None:
        self._support = support
        self._f = f
        self._tilt = None if prior is None else _prior_mass(prior, support) / support.mass
        self._link = LinearLink() if link is None else link
        self._recalibration = recalibration

    def __len__(self) -> int:
        return len(self._f)

    def __repr__(self) -> str:
        return f"Conditional({len(self)} distributions over {self._support.m} {self._support.kind})"

    @property
    def classes(self) -> np.ndarray:
        """The values of Y, in the order of the columns of `proba`."""
        return self._support.values

    def proba(self) -> Array:
        """Probability of each value of Y, (n, m)."""
        return np.vstack([np.empty((0, self._support.m)), *self._chunks()])

    @cached_property
    def negative_mass(self) -> float:
        """Mass that 1 + f.g put below zero and that was removed, the average over the rows."""
        removed = [self._link.negative_mass(part, self._support).sum() for part in self._f_chunks()]
        return float(np.sum(removed) / max(len(self), 1))

    def map(self) -> np.ndarray:
        """The most probable value of Y for each row; for numbers, where the density is highest."""
        density = self._marginal_density
        best = [np.argmax(weights / density, axis=1) for weights in self._chunks()]
        return self._support.values[np.concatenate([np.empty(0, dtype=int), *best])]

    def mle(self) -> np.ndarray:
        """The value of Y under which each row is most likely, argmax_y p(x|y): the prior plays no part."""
        best = [np.argmax(self._link.likelihood(part, self._support), axis=1) for part in self._f_chunks()]
        return self._support.values[np.concatenate([np.empty(0, dtype=int), *best])]

    def mean(self, psi: Callable[[np.ndarray], Any] | None = None) -> Array:
        """E[psi(Y)|x] for each row, (n,) or (n, d); of Y itself when psi is None.

        Args:
            psi: A function of the array of all values of Y, `classes`, that gives one number or one row of numbers for
                each.
        """
        if psi is None and self._support.values.dtype.kind not in "biuf":
            raise ValueError(
                f"Y takes labels such as {self._support.values[0]!r}, which have no mean. Pass psi, a function from an "
                "array of labels to numbers."
            )
        values = np.asarray(self._support.values if psi is None else psi(self._support.values), dtype=np.float64)
        if len(np.atleast_1d(values)) != self._support.m or values.ndim not in (1, 2):
            raise ValueError(
                f"psi must give one number, or one row of numbers, for each of the {self._support.m} values of Y, got "
                f"shape {values.shape}. Write it as a function of the whole array."
            )
        return np.concatenate([np.empty((0, *values.shape[1:])), *(weights @ values for weights in self._chunks())])

    def cdf(self, y: Any) -> Array:
        """P(Y <= y | x): for a single number y one value a row, (n,); for an array (m,) of them, (n, m)."""
        at = np.atleast_1d(np.asarray(y, dtype=np.float64))
        ordered = self._ordered_values("A distribution function")
        rows = []
        for cumulative in self._cumulative():
            if self._support.continuous:
                rows.append(_interpolated(at, *self._curve(ordered, cumulative)))
            else:
                rows.append(cumulative[:, np.searchsorted(ordered, at, side="right")])
        result = np.vstack([np.empty((0, len(at))), *rows])
        return result[:, 0] if np.ndim(y) == 0 else result

    def quantile(self, q: Any) -> Array:
        """The q-quantile of Y for each row, (n,); for an array (m,) of levels, (n, m)."""
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"Quantile levels must lie between 0 and 1, got {q}. Divide percentages by 100.")
        result = self._quantiles(np.broadcast_to(levels, (len(self), len(levels))))
        return result[:, 0] if np.ndim(q) == 0 else result

    def interval(self, level: float = 0.9) -> Array:
        """Lower and upper end, (n, 2), of the interval that leaves (1 - level) / 2 on either side."""
        if not 0 < level < 1:
            raise ValueError(f"The level of an interval must lie between 0 and 1, got {level}. Use 0.9 for 90 %.")
        return self.quantile([(1 - level) / 2, (1 + level) / 2])

    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n values of Y for each row, (n rows, n) or (n rows, n, columns)."""
        rng = np.random.default_rng(random_state)
        uniform = rng.random((len(self), n))
        if self._support.kind == "numbers" and self._support.continuous:
            return self._quantiles(uniform)
        drawn, start = [], 0
        for weights in self._chunks():
            cumulative = np.cumsum(weights, axis=1)
            levels = uniform[start : start + len(weights)] * cumulative[:, -1:]
            drawn.append(np.stack([np.searchsorted(c[:-1], at) for c, at in zip(cumulative, levels, strict=True)]))
            start += len(weights)
        return self._support.values[np.concatenate([np.empty((0, n), dtype=int), *drawn])]

    def pit(self, y: Any) -> Array:
        """P(Y <= y_i | x_i) for a value of Y of each row, (n,): uniform where the distributions are right."""
        at = np.asarray(y, dtype=np.float64)
        if at.shape != (len(self),):
            raise ValueError(f"`y` must have one value for each of {len(self)} rows, got shape {at.shape}.")
        ordered = self._ordered_values("A distribution function")
        parts, start = [], 0
        for cumulative in self._cumulative():
            part = at[start : start + len(cumulative)]
            start += len(cumulative)
            if self._support.continuous:
                parts.append(_paired(part, *self._curve(ordered, cumulative)))
            else:
                parts.append(cumulative[np.arange(len(part)), np.searchsorted(ordered, part, side="right")])
        return np.concatenate([np.empty(0), *parts])

    @cached_property
    def _marginal_density(self) -> Array:
        """What to divide masses by to get densities: 1 for labels, the mass per length for numbers."""
        support = self._support
        if not support.continuous or support.m < 3:
            return np.ones(support.m)
        from scipy.stats import gaussian_kde  # slow to import

        density = gaussian_kde(support.values, weights=support.mass)(support.values)
        return support.mass / density

    def _f_chunks(self) -> Iterator[Any]:
        step = max(1, _CELLS_AT_ONCE // (self._support.m * max(1, getattr(self._link, "cells_a_value", 1))))
        for start in range(0, len(self), step):
            yield self._f[start : start + step]

    def _chunks(self) -> Iterator[Array]:
        """Probabilities of the values, some rows at a time."""
        for part in self._f_chunks():
            weights = self._link.ratio(part, self._support) * self._support.mass
            if self._recalibration is not None:
                weights = self._recalibration(weights)
            if self._tilt is not None:
                weights = weights * self._tilt
            total = weights.sum(axis=1, keepdims=True)
            if self._tilt is not None:  # what the new prior allows, the features may exclude: then it alone speaks
                weights = np.where(total > 0, weights, self._support.mass * self._tilt)
                total = weights.sum(axis=1, keepdims=True)
            yield weights / total

    def _ordered_values(self, what: str) -> Array:
        if self._support.kind != "numbers":
            raise ValueError(f"{what} needs numbers in order, but Y takes {self._support.kind}. Use `proba`.")
        return self._support.values

    def _cumulative(self) -> Iterator[Array]:
        """Probability up to each value, with a 0 in front, (rows, m + 1)."""
        for weights in self._chunks():
            yield np.hstack([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1).clip(max=1)])

    def _curve(self, values: Array, cumulative: Array) -> tuple[Array, Array]:
        """Knots of the distribution function: it rises evenly over each neighbourhood, and at once at an atom."""
        between = (values[1:] + values[:-1]) / 2
        low, high = np.concatenate([values[:1], between]), np.concatenate([between, values[-1:]])
        if self._support.atoms is not None:
            low, high = (np.where(self._support.atoms, values, edge) for edge in (low, high))
        curve = np.stack([cumulative[:, :-1], cumulative[:, 1:]], axis=2).reshape(len(cumulative), -1)
        return np.stack([low, high], axis=1).ravel(), curve

    def _quantiles(self, levels: Array) -> Array:
        ordered = self._ordered_values("A quantile")
        parts, start = [], 0
        for cumulative in self._cumulative():
            part = levels[start : start + len(cumulative)]
            start += len(cumulative)
            if self._support.continuous and len(ordered) > 1:
                parts.append(_inverted(part, *self._curve(ordered, cumulative)))
            else:
                below = [np.searchsorted(c[1:-1], at) for c, at in zip(cumulative, part, strict=True)]
                parts.append(ordered[np.stack(below)])
        return np.concatenate([np.empty((0, levels.shape[1])), *parts])


def _place(at: Array, knots: Array) -> tuple[np.ndarray, Array]:
    """The knot to the right of each place, and how far it is on the way there."""
    right = np.searchsorted(knots, at, side="right").clip(1, len(knots) - 1)
    width = knots[right] - knots[right - 1]
    share = np.divide(at - knots[right - 1], width, out=np.where(at < knots[right], 0.0, 1.0), where=width > 0)
    return right, share.clip(0, 1)


def _interpolated(at: Array, knots: Array, curve: Array) -> Array:
    """Each row's curve at the same places, (rows, m)."""
    right, share = _place(at, knots)
    return curve[:, right - 1] * (1 - share) + curve[:, right] * share


def _paired(at: Array, knots: Array, curve: Array) -> Array:
    """Each row's curve at a place of its own, (rows,)."""
    right, share = _place(at, knots)
    row = np.arange(len(at))
    return curve[row, right - 1] * (1 - share) + curve[row, right] * share


def _inverted(levels: Array, knots: Array, curve: Array) -> Array:
    """Where each row's curve reaches its levels, (rows, m)."""
    result = np.empty(levels.shape)
    for i, (row, wanted) in enumerate(zip(curve, levels, strict=True)):
        result[i] = np.interp(wanted, row, knots)
    return result


def _prior_mass(prior: Any, support: Support) -> Array:
    """Another prior as masses of the values of the support."""
    if callable(prior):
        mass = np.asarray(prior(support.values), dtype=np.float64) * support.mass
    elif isinstance(prior, Mapping):
        labels = support.values.tolist()
        unknown = set(prior) - set(labels)
        if unknown:
            raise ValueError(f"`prior` names values that the fit never saw: {sorted(map(str, unknown))}. Drop them.")
        missing = [label for label in labels if label not in prior]
        if missing:
            raise ValueError(f"`prior` needs a mass for every value of Y; {missing} are missing. Add them.")
        mass = np.array([float(prior[label]) for label in labels])
    else:
        mass = np.asarray(prior, dtype=np.float64)
    if mass.shape != support.mass.shape or not np.isfinite(mass).all() or (mass < 0).any() or not mass.sum() > 0:
        raise ValueError(
            f"`prior` must give {support.m} finite masses that are not negative, one for each of `classes`, got shape "
            f"{mass.shape}. Pass an array in that order, a mapping from value to mass, or a function of the values."
        )
    return mass / mass.sum()
