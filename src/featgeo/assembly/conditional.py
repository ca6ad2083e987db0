"""Conditional distributions of Y, assembled from features: P(y|x) = P(y) (1 + sum_i sigma_i f_i(x) g_i(y)).

A few modes from a finite sample can push 1 + f.g below zero. What is used is then the nearest density, in the metric of
P_Y, that is nowhere negative: projecting onto a convex set that holds the truth never takes one further from it. The
mass that had to be removed is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from featgeo.assembly.links import LinearLink, Link, Recalibration
from featgeo.assembly.support import Support, unit_of
from featgeo.card import Card, Shown
from featgeo.geometry.validation import Array, as_numbers, as_real, check_level, check_whole, generator_of, shown

_SHOWN_ROWS = 5
_MOST_DRAWS = 2**30  # 8 GiB of them
_CELLS_AT_ONCE = 1 << 17  # a megabyte: what several passes run over stays close to the processor
_MODEL_CELLS_AT_ONCE = 4_000_000  # where each call asks a model, calls cost more than memory does


class Conditional(Shown):
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

    def card(self) -> Card:
        """How many there are, and the first of them: middle and 90 % interval of numbers, the most probable label."""
        title = f"Conditional({len(self)} distributions over {self._support.m} {self._support.kind})"
        first = copy(self)
        first._f = self._f[:_SHOWN_ROWS]
        if self._support.kind == "numbers":
            columns: tuple[str, ...] = ("row", "mean", "median", "5 %", "95 %")
            cells = np.column_stack([first.mean(), first.quantile([0.5, 0.05, 0.95])])
            rows = [(str(i), *(f"{value:.4g}" for value in row)) for i, row in enumerate(cells)]
        elif self._support.kind == "labels":
            columns = ("row", "most probable", "probability")
            likely = zip(first.map(), first.proba().max(axis=1), strict=True)
            rows = [(str(i), str(label), f"{p:.3f}") for i, (label, p) in enumerate(likely)]
        else:
            return Card([title])
        return Card([title], columns, rows)

    @property
    def classes(self) -> np.ndarray:
        """The values of Y, in the order of the columns of `proba`."""
        return self._support.values

    def proba(self) -> Array:
        """Probability of each value of Y, (n, m)."""
        return self._by_rows(lambda rows: _normalised(self._weights(rows)))

    @cached_property
    def negative_mass(self) -> float:
        """Mass that 1 + f.g put below zero and that was removed, the average over the rows."""
        removed = self._by_rows(lambda rows: self._link.negative_mass(self._f[rows], self._support))
        return float(removed.sum() / max(len(self), 1))

    def map(self) -> np.ndarray:
        """The most probable value of Y for each row; for numbers, where the density is highest."""
        density = self._marginal_density()
        return self._support.values[self._by_rows(lambda rows: np.argmax(self._weights(rows) / density, axis=1))]

    def mle(self) -> np.ndarray:
        """The value of Y under which each row is most likely, argmax_y p(x|y): the prior plays no part."""
        likelihood = self._link.likelihood
        best = self._by_rows(lambda rows: np.argmax(likelihood(self._f[rows], self._support), axis=1))
        return self._support.values[best]

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
        if psi is not None and not callable(psi):
            raise ValueError(f"`psi` must be a function of the array of all values of Y, got {shown(psi)}. Pass one.")
        values = as_real(self._support.values if psi is None else psi(self._support.values), "psi(classes)")
        if len(np.atleast_1d(values)) != self._support.m or values.ndim not in (1, 2):
            raise ValueError(
                f"psi must give one number, or one row of numbers, for each of the {self._support.m} values of Y, got "
                f"shape {values.shape}. Write it as a function of the whole array."
            )
        return self._by_rows(lambda rows: _normalised(self._weights(rows)) @ values)

    def cdf(self, y: Any) -> Array:
        """P(Y <= y | x): for a single number y one value a row, (n,); for an array (m,) of them, (n, m)."""
        at = np.atleast_1d(as_numbers(y, "y", "Pass values of Y."))
        position, share = self._place(at)
        result = self._by_rows(lambda rows: _below(self._cumulative(rows), position, share))
        return self._outer(result[:, 0] if np.ndim(y) == 0 else result)

    def quantile(self, q: Any) -> Array:
        """The q-quantile of Y for each row, (n,); for an array (m,) of levels, (n, m)."""
        levels = np.atleast_1d(as_numbers(q, "q", "Use 0.5 for the median."))
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"Quantile levels must lie between 0 and 1, got {shown(q)}. Divide percentages by 100.")
        self._ordered("A quantile")
        result = self._quantiles(np.broadcast_to(levels, (len(self), len(levels))))
        return result[:, 0] if np.ndim(q) == 0 else result

    def interval(self, level: float = 0.9) -> Array:
        """Lower and upper end, (n, 2), of the interval that leaves (1 - level) / 2 on either side, or less where an end
        has a probability of its own: intervals of counts hold more than `level`.
        """
        check_level(level, "level", "Use 0.9 for 90 %.")
        return self.quantile([(1 - level) / 2, (1 + level) / 2])

    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n values of Y for each row, (n rows, n) or (n rows, n, columns)."""
        n = check_whole(n, "n", 0, "Use 1 for one value a row.")
        if n * len(self) > _MOST_DRAWS:
            raise ValueError(
                f"{shown(n)} values for each of {len(self)} rows are more than {_MOST_DRAWS:,}. Draw fewer, or some "
                "rows at a time."
            )
        rng = np.random.default_rng() if random_state is None else generator_of(random_state)
        return self._quantiles(rng.random((len(self), n)))

    def pit(self, y: Any, share: Any = 1.0) -> Array:
        """P(Y <= y_i | x_i) for a value of Y of each row, (n,): uniform where the distributions are right.

        Args:
            y: The values.
            share: How much of the probability of exactly y_i counts, where it has any: 1 for P(Y <= y_i), 0 for
                P(Y < y_i), numbers drawn evenly between, one a row, for what is uniform there too.
        """
        at = as_numbers(y, "y", "Pass a value of Y for each row.")
        if at.shape != (len(self),):
            raise ValueError(f"`y` must have one value for each of {len(self)} rows, got shape {at.shape}.")
        shares = as_numbers(share, "share", "Use 1 for P(Y <= y).")
        if shares.shape not in ((), at.shape) or not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"`share` must lie between 0 and 1, one for all rows or one a row, got {shown(share)}.")
        position, inside = self._place(at)
        has_mass = np.isin(at, self._support.values[self._support.atoms])  # a probability of its own
        before = (position - has_mass).clip(min=0)
        places, parts = np.stack([before, position], axis=1), inside[:, None] * [0, 1]
        both = self._by_rows(lambda rows: _below(self._cumulative(rows), places[rows], parts[rows]))
        below, up_to = self._outer(both).T
        below = np.where(before == position, up_to, below)
        return np.asarray(below + shares * (up_to - below))

    def _marginal_density(self) -> Array:
        """What to divide masses by to get densities: 1 for labels, the mass per length for numbers."""
        support = self._support
        if not support.continuous or support.m < 3:
            return np.ones(support.m)
        from scipy.stats import gaussian_kde  # slow to import

        values = support.values / unit_of(support.values)
        density = gaussian_kde(values, weights=support.mass)(values)
        return support.mass / density

    def _by_rows(self, part: Callable[[slice], Any]) -> Any:
        """An array of one entry a row, computed for some rows at a time."""
        cells = self._link.cells_a_value
        step = max(1, (_MODEL_CELLS_AT_ONCE // cells if cells else _CELLS_AT_ONCE) // self._support.m)
        return np.concatenate([part(slice(start, start + step)) for start in range(0, max(len(self), 1), step)])

    def _weights(self, rows: slice, recalibrated: bool = True) -> Array:
        """What is proportional to the probabilities of the values, (some rows, m)."""
        weights = self._link.ratio(self._f[rows], self._support) * self._support.mass
        if self._recalibration is not None and recalibrated:
            weights = self._recalibration(weights)
        if self._tilt is None:
            return weights
        weights = weights * self._tilt
        possible = weights.sum(axis=1, keepdims=True) > 0  # what the new prior allows, the features may exclude:
        return np.where(possible, weights, self._support.mass * self._tilt)  # then it alone speaks

    @property
    def _recalibrates_last(self) -> bool:
        """Whether recalibration is a map of the distribution function alone: no new prior weighs its result."""
        return self._recalibration is not None and self._tilt is None

    def _outer(self, probability: Array) -> Array:
        return self._recalibration.forward(probability) if self._recalibrates_last else probability  # type: ignore[union-attr]

    def _cumulative(self, rows: slice) -> Array:
        """Probability up to each value, with a 0 in front, (rows, m + 1); before a recalibration that comes last."""
        weights = self._weights(rows, not self._recalibrates_last)
        result = np.zeros((len(weights), self._support.m + 1))
        np.cumsum(weights, axis=1, out=result[:, 1:])
        result /= result[:, -1:]
        return result

    def _place(self, at: Array) -> tuple[np.ndarray, Array]:
        """How many neighbourhoods end at or below each number, and which share of the next one lies below it."""
        support = self._ordered("A distribution function")
        if support.ends is None:
            return np.searchsorted(support.values, at, side="right"), np.zeros(at.shape)
        unit = unit_of(support.ends)
        low, high = support.ends.T / unit
        at = at / unit
        position = np.searchsorted(high, at, side="right")
        inside = position.clip(max=support.m - 1)
        share = np.zeros(at.shape)
        np.divide(at - low[inside], (high - low)[inside], out=share, where=(position == inside) & (high > low)[inside])
        return position, share.clip(0, 1)

    def _ordered(self, what: str) -> Support:
        if self._support.kind != "numbers":
            raise ValueError(f"{what} needs numbers in order, but Y takes {self._support.kind}. Use `proba`.")
        return self._support

    def _quantiles(self, levels: Array) -> Array:
        """Where each row's distribution function reaches its levels, (n, levels); values in the order of `classes`."""
        support = self._support
        if self._recalibrates_last:
            levels = self._recalibration.backward(levels)  # type: ignore[union-attr]

        def reached(rows: slice) -> Array:
            cumulative, wanted = self._cumulative(rows), levels[rows]
            cell = _first_above(cumulative[:, 1:], wanted)
            if support.ends is None:
                return support.values[cell]
            before, after = (np.take_along_axis(cumulative, cell + i, axis=1) for i in (0, 1))
            share = np.divide(wanted - before, after - before, out=np.zeros(cell.shape), where=after > before)
            low, high = support.ends[cell, 0], support.ends[cell, 1]
            return low * (1 - share.clip(0, 1)) + high * share.clip(0, 1)

        return np.asarray(self._by_rows(reached))


def _normalised(weights: Array) -> Array:
    return weights / weights.sum(axis=1, keepdims=True)


def _below(cumulative: Array, position: np.ndarray, share: Array) -> Array:
    """Probability of so many whole neighbourhoods and of a share of the next, at places of all rows or of each."""
    position = np.broadcast_to(position, (len(cumulative), position.shape[-1]))
    whole = np.take_along_axis(cumulative, position, axis=1)
    following = np.take_along_axis(cumulative, (position + 1).clip(max=cumulative.shape[1] - 1), axis=1)
    return whole + share * (following - whole)


def _first_above(ordered: Array, levels: Array) -> np.ndarray:
    """Position of the first of each row's ascending numbers, (n, m), that reaches its levels, (n, l): by halving."""
    levels = np.maximum(levels, np.finfo(float).tiny)  # what has no mass is never drawn
    low = np.zeros(levels.shape, dtype=np.intp)
    high = np.full(levels.shape, ordered.shape[1] - 1, dtype=np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        reached = np.take_along_axis(ordered, middle, axis=1) >= levels
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle + 1)
    return low


def _prior_mass(prior: Any, support: Support) -> Array:
    """Another prior as masses of the values of the support."""
    form = "Pass an array in the order of `classes`, a mapping from value to mass, or a function of the values."
    labels = support.values.tolist()
    if isinstance(prior, Mapping) and set(prior) != set(labels):
        unknown, missing = [label for label in prior if label not in labels], [x for x in labels if x not in prior]
        raise ValueError(
            f"`prior` needs a mass for every value of Y and for no other; {missing} are missing, and the fit never saw "
            f"{unknown}. Correct it."
        )
    try:
        given = prior(support.values) if callable(prior) else prior
        mass = as_real([given[label] for label in labels] if isinstance(given, Mapping) else given, "prior")
    except ValueError as error:
        raise ValueError(f"`prior` must give masses, one for each value of Y, got {shown(prior)}. {form}") from error
    if mass.shape != support.mass.shape or not np.isfinite(mass).all() or (mass < 0).any() or not mass.sum() > 0:
        raise ValueError(
            f"`prior` must give {support.m} finite masses that are not negative, one for each of `classes`, got shape "
            f"{mass.shape}. {form}"
        )
    mass = mass * support.mass if callable(prior) else mass
    return mass / mass.sum()
