"""Conditional distributions of Y, one for each row of X: what is asked of them, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr
from scipy.stats import gaussian_kde

from featgeo.assembly.columns import ColumnLink, Gathered
from featgeo.assembly.links import (
    CELLS_AT_ONCE,
    Kernels,
    LinearLink,
    Link,
    Recalibration,
    Smoothing,
    Support,
    by_row,
    unit_of,
)
from featgeo.card import Card, Shown
from featgeo.geometry.validation import (
    Array,
    as_numbers,
    as_real,
    check_level,
    check_whole,
    generator_of,
    is_whole,
    shown,
)
from featgeo.report import charts
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN_ROWS, _SHOWN_COLUMNS = 5, 4
_MOST_DRAWS = 2**30  # 8 GiB of them
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
        self._tilt = None if prior is None else prior_mass(prior, support) / support.mass
        self._link = LinearLink() if link is None else link
        self._recalibration = recalibration
        self._columns: tuple[Conditional, ...] = ()
        self._levels = np.empty((0, 0))
        # Where no new prior weighs its result, recalibration is a map of the distribution function alone.
        self._last = recalibration if prior is None else None

    def __len__(self) -> int:
        return len(self._f)

    def card(self) -> Card:
        """How many there are, and the first of them: middle and 90 % interval of numbers, the most probable label."""
        title = f"Conditional({len(self)} distributions over {self._support.m} {self._support.kind})"
        first = self._first(_SHOWN_ROWS)
        if self._support.kind == "numbers":
            columns: tuple[str, ...] = ("row", "mean", "median", "5 %", "95 %")
            cells = np.column_stack([first.mean(), first.quantile([0.5, 0.05, 0.95])])
            rows = [(str(i), *(f"{value:.4g}" for value in row)) for i, row in enumerate(cells)]
        elif self._support.kind == "labels":
            columns = ("row", "most probable", "probability")
            likely = zip(first.map(), first.proba().max(axis=1), strict=True)
            rows = [(str(i), str(label), f"{p:.3f}") for i, (label, p) in enumerate(likely)]
        else:
            columns = tuple(self._support.names[:_SHOWN_COLUMNS])
            said = " (medians, and where 90 % lie, or the most probable)" if columns else ""
            cells_of = [self.column(name)._first(_SHOWN_ROWS)._in_words() for name in columns]
            rows = [(str(i), *cells) for i, cells in enumerate(zip(*cells_of, strict=True))]
            title, columns = title + said, ("row", *columns) if columns else ()
        return Card([title], columns, rows)

    def _in_words(self) -> list[str]:
        """Each distribution in a cell of a table."""
        if self._support.kind == "labels":
            return [str(label) for label in self.map()]
        return ["{:.4g} ({:.4g} to {:.4g})".format(*row) for row in self.quantile([0.5, 0.05, 0.95])]

    def _first(self, n: int) -> Conditional:
        """The distributions of the first rows."""
        first = copy(self)
        first._f, first._columns = self._f[:n], tuple(column._first(n) for column in self._columns)
        return first

    @property
    def classes(self) -> np.ndarray:
        """The values of Y, in the order of the columns of `proba`."""
        return self._support.values

    def column(self, which: int | str) -> Conditional:
        """The distributions of one column of Y, by position or name, where Y has several: with all that is here."""
        names, values = self._support.names, self._support.values
        if self._support.kind != "rows" or values.ndim != 2:
            raise ValueError(f"Y takes {self._support.kind} of a single column: ask this distribution itself.")
        place: Any = names.index(which) if which in names else which
        if not is_whole(place) or not -values.shape[1] <= place < values.shape[1]:
            raise ValueError(f"Y has {values.shape[1]} columns, {list(names)}, got {shown(which)}. Use one of them.")
        if self._columns:
            return self._columns[place]
        gathered = Gathered.of(self._support, int(place))
        return Conditional(gathered.support, self._f, link=ColumnLink(self._mass_of, gathered))

    def with_columns(self, columns: Iterable[Conditional], levels: Array) -> Conditional:
        """The same joint distributions of vectors, with those of single columns that something else knows better.

        Args:
            columns: The distributions of each column.
            levels: P(Y_j <= y_j | x) of each column where all of them happened together, (rows, columns): how columns
                depend on each other given x, taken to be the same for all x. Draws go by it.
        """
        result = copy(self)
        result._columns, result._levels = tuple(columns), levels
        return result

    def _mass_of(self, f: Any) -> Array:
        """Probabilities of the values for rows of other features, (n, m)."""
        other = copy(self)
        other._f = f
        return _normalised(other._weights(slice(None)))

    def _by_columns(self, ask: Callable[[Conditional], Array]) -> Array:
        """What each column answers, (n, columns, ...)."""
        columns = range(self._support.values.shape[-1] if self._support.values.ndim == 2 else 1)
        return np.stack([ask(self.column(i)) for i in columns], axis=1)

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

    def decide(self, cost: Any) -> np.ndarray:
        """The value of Y for each row whose expected cost is the smallest, (n,).

        Args:
            cost: What decisions cost, (m, m): entry [i, j] that for the j-th of `classes` where Y is the i-th.
        """
        matrix = as_cost(cost, self._support)
        best = self._by_rows(lambda rows: np.argmin(_normalised(self._weights(rows)) @ matrix, axis=1))
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
        if psi is None and self._columns:
            return self._by_columns(Conditional.mean)
        if psi is not None and not callable(psi):
            raise ValueError(f"`psi` must be a function of the array of all values of Y, got {shown(psi)}. Pass one.")
        values = as_real(self._support.values if psi is None else psi(self._support.values), "psi(classes)")
        if len(np.atleast_1d(values)) != self._support.m or values.ndim not in (1, 2):
            raise ValueError(
                f"psi must give one number, or one row of numbers, for each of the {self._support.m} values of Y, got "
                f"shape {values.shape}. Write it as a function of the whole array."
            )
        return self._by_rows(lambda rows: _normalised(self._weights(rows)) @ values)

    def std(self) -> Array:
        """The standard deviation of Y for each row, (n,), or of each of its columns, (n, d)."""
        if self._columns:
            return self._by_columns(Conditional.std)
        mean, (values, within) = self.mean(), self._scaled_values()
        unit = unit_of(self._support.values)

        def part(rows: slice) -> Array:
            mass = _normalised(self._weights(rows))
            away = values - np.expand_dims(mean[rows] / unit, 1)
            return np.einsum("nm,nm...->n...", mass, away**2 + within)

        return np.asarray(np.sqrt(self._by_rows(part)) * unit)

    def pdf(self, y: Any) -> Array:
        """The density of Y at y; for labels, numbers of few values and others that come often, their probability.

        The density is positive everywhere and adds up to 1 with the probabilities of single values. Its integral is
        `cdf`, smoothed as far as held-out rows want it.

        Args:
            y: One value for all rows, or one for each, (n,), gives one number a row, (n,). Several, (1, l) for all rows
                or (n, l), give (n, l).
        """
        return np.exp(self.logpdf(y))

    def logpdf(self, y: Any) -> Array:
        """The logarithm of `pdf`; its mean where y is what happened is the log score, in nats."""
        return self._log_density(y, self._smooth_mass)

    def information(self, y: Any) -> Array:
        """Log p(y|x) / p(y), in nats: what x tells of y, below 0 where it speaks against it. For y as in `pdf`.

        The prior is that of the distributions, a new one where they have one.
        """
        n = len(self)

        def prior(rows: slice) -> Array:
            return np.broadcast_to(self._prior, (len(range(n)[rows]), self._support.m))

        with np.errstate(invalid="ignore"):
            return np.nan_to_num(self.logpdf(y) - self._log_density(y, prior), nan=0.0, neginf=-np.inf, posinf=np.inf)

    def _log_density(self, y: Any, mass_of: Callable[[slice], Array]) -> Array:
        """By masses of rows over the support."""
        support = self._single("A density")
        at, shape = self._at(y)
        place, known = _places(at, support)
        kernels = self._kernels if support.continuous else None

        def part(rows: slice) -> Array:
            mass = mass_of(rows)
            with np.errstate(divide="ignore"):
                own = np.log(np.where(known[rows], np.take_along_axis(mass, place[rows], axis=1), 0.0))
            return own if kernels is None else np.where(known[rows], own, kernels.log_density(mass, at[rows]))

        return np.asarray(self._by_rows(part)).reshape(shape)

    def entropy(self) -> Array:
        """-E[log pdf(Y)|x] in nats, (n,): for labels the entropy, for numbers the differential entropy."""
        support = self._single("An entropy")
        if not support.continuous:
            return self._by_rows(lambda rows: _plogp(self._smooth_mass(rows)).sum(axis=1))
        kernels = self._kernels
        places, curves = kernels.grid()
        atoms = np.delete(np.arange(support.m), kernels.where)

        def part(rows: slice) -> Array:
            mass = self._smooth_mass(rows)
            smooth = mass[:, kernels.where]
            spread = np.trapezoid(_plogp(smooth @ curves), places, axis=1) + smooth.sum(axis=1) * np.log(kernels.unit)
            return spread + _plogp(mass[:, atoms]).sum(axis=1)

        return np.asarray(self._by_rows(part))

    def crps(self, y: Any) -> Array:
        """The continuous ranked probability score of `cdf` where y happened, in the units of Y: 0 is perfect.

        It is the integral of (P(Y <= z|x) - 1{y <= z})^2 over z, without any approximation, but that where calibration
        follows predictions `cdf` is taken to be straight between a few hundred places. For y as in `pdf`.
        """
        support = self._ordered("A ranked score")
        at, shape = self._at(y)
        knots, n_below, unit = _bends(support.values if support.ends is None else support.ends)
        levels = np.empty((len(self), 0)) if self._last is None else self._last.bends(self._f)
        between = self._reached(levels) / unit

        def part(rows: slice) -> Array:
            below = self._cumulative(rows)[:, n_below]
            # Both rise together, so that each may be put in order by itself.
            places = np.sort(np.hstack([np.broadcast_to(knots, below.shape), between[rows]]), axis=1)
            below = np.sort(np.hstack([below, levels[rows]]), axis=1)
            below = below if self._last is None else self._last.forward(below, self._f[rows])
            return np.stack([ranked_score(places, below, column / unit) for column in at[rows].T], axis=1)

        return np.asarray(self._by_rows(part) * unit).reshape(shape)

    def cdf(self, y: Any) -> Array:
        """P(Y <= y | x): for a single number y one value a row, (n,); for an array (m,) of them, (n, m)."""
        at = np.atleast_1d(as_numbers(y, "y", "Pass values of Y."))
        result = self._below(np.broadcast_to(at, (len(self), len(at))), 1)[..., 0]
        return result[:, 0] if np.ndim(y) == 0 else result

    def quantile(self, q: Any) -> Array:
        """The q-quantile of Y for each row, (n,); for an array (m,) of levels, (n, m).

        Where Y has several columns, of each: (n, columns) or (n, columns, m).
        """
        levels = np.atleast_1d(as_numbers(q, "q", "Use 0.5 for the median."))
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"Quantile levels must lie between 0 and 1, got {shown(q)}. Divide percentages by 100.")
        if self._support.kind == "rows":
            return self._by_columns(lambda column: column.quantile(q))
        self._ordered("A quantile")
        result = self._quantiles(np.broadcast_to(levels, (len(self), len(levels))))
        return result[:, 0] if np.ndim(q) == 0 else result

    def interval(self, level: float = 0.9) -> Array:
        """Lower and upper end, (n, 2), of the interval that leaves (1 - level) / 2 on either side, or less where an end
        has a probability of its own: intervals of counts hold more than `level`.

        Where Y has several columns, of each: (n, columns, 2).
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
        if not self._columns:
            return self._quantiles(rng.random((len(self), n)))
        together = self._levels[rng.integers(len(self._levels), size=(len(self), n))]
        drawn = (column._quantiles(together[..., i]) for i, column in enumerate(self._columns))
        return np.stack(list(drawn), axis=-1)

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
        below, up_to = self._below(at[:, None], -1, 1)[:, 0].T
        return np.asarray(below + shares * (up_to - below))

    def plot(self, along: Any = None, y: Any = None) -> Figure:
        """A matplotlib figure: for numbers the median with bands of 50 % and 90 %, for labels their probabilities.

        Args:
            along: A value of one column for each row, numbers or labels, (n,), to draw the rows along; a series names
                the axis. In the order of the rows when None.
            y: What Y was, (n,), drawn as dots over bands.
        """
        self._single("A picture")
        axis = np.arange(len(self)) if along is None else np.asarray(along)
        if axis.shape != (len(self),):
            raise ValueError(f"`along` must have one value for each of {len(self)} rows, got shape {axis.shape}.")
        axis = axis if axis.dtype.kind in "biuf" else axis.astype(str)
        order = np.argsort(axis, kind="stable")
        names = ("row" if along is None else str(getattr(along, "name", None) or "x"), "Y")
        if self._support.kind == "labels":
            labels = [str(label) for label in self.classes]
            return charts().shares(axis[order], (names[0], "probability"), labels, self.proba()[order])
        happened = None if y is None else self._at(y)[0][order, 0]
        return charts().bands(axis[order], names, self.quantile([0.05, 0.25, 0.5, 0.75, 0.95])[order], happened)

    def _marginal_density(self) -> Array:
        """What to divide masses by to get densities: 1 for labels, the mass per length for numbers."""
        support = self._support
        if not support.continuous or support.m < 3:
            return np.ones(support.m)
        values = support.values / unit_of(support.values)
        density = gaussian_kde(values, weights=support.mass)(values)
        return support.mass / density

    def _by_rows(self, part: Callable[[slice], Any]) -> Any:
        """An array of one entry a row, computed for some rows at a time."""
        cells = self._link.cells_a_value
        step = max(1, (_MODEL_CELLS_AT_ONCE // cells if cells else CELLS_AT_ONCE) // self._support.m)
        return np.concatenate([part(slice(start, start + step)) for start in range(0, max(len(self), 1), step)])

    def _weights(self, rows: slice, recalibrated: bool = True) -> Array:
        """What is proportional to the probabilities of the values, (some rows, m)."""
        weights = self._link.ratio(self._f[rows], self._support) * self._support.mass
        if self._recalibration is not None and recalibrated:
            weights = self._recalibration(weights, self._f[rows])
        if self._tilt is None:
            return weights
        weights = weights * self._tilt
        possible = weights.sum(axis=1, keepdims=True) > 0  # what the new prior allows, the features may exclude:
        return np.where(possible, weights, self._support.mass * self._tilt)  # then it alone speaks

    def _cumulative(self, rows: slice) -> Array:
        """Probability up to each value, with a 0 in front, (rows, m + 1); before a recalibration that comes last."""
        weights = self._weights(rows, recalibrated=self._last is None)
        result = np.zeros((len(weights), self._support.m + 1))
        np.cumsum(weights, axis=1, out=result[:, 1:])
        result /= result[:, -1:]
        return result

    def _below(self, at: Array, *sides: int) -> Array:
        """At numbers of each row, (n, l): P(Y <= at | x) for the side 1, P(Y < at | x) for -1; (n, l, sides)."""
        support = self._ordered("A distribution function")
        knots, n_below, unit = _bends(support.values if support.ends is None else support.ends)

        def seen_from(side: int, rows: slice, below: Array) -> Array:
            return by_row(side * at[rows] / unit, side * knots[::side], below[:, ::side])

        def part(rows: slice) -> Array:
            below = self._cumulative(rows)[:, n_below]
            seen = [seen_from(side, rows, below) for side in sides]
            if self._last is not None:
                seen = [self._last.forward(one, self._f[rows]) for one in seen]
            return np.stack(seen, axis=-1)

        return np.asarray(self._by_rows(part))

    def _ordered(self, what: str) -> Support:
        if self._support.kind != "numbers":
            way_out = "Use `column(i)` for one of them." if self._support.kind == "rows" else "Use `proba`."
            raise ValueError(f"{what} needs numbers in order, but Y takes {self._support.kind}. {way_out}")
        return self._support

    def _quantiles(self, levels: Array) -> Array:
        """Where each row's distribution function reaches its levels, (n, levels); values in the order of `classes`."""
        return self._reached(levels if self._last is None else self._last.backward(levels, self._f))

    def _reached(self, levels: Array) -> Array:
        """The same before a recalibration that comes last."""
        support = self._support
        knots, n_below, unit = _bends(np.arange(support.m) if support.ends is None else support.ends)
        knots, n_below = knots[::-1], n_below[::-1]  # from right to left: where a level is reached first
        levels = np.maximum(levels, np.finfo(float).tiny)  # what has no mass is never drawn
        reached = self._by_rows(lambda rows: by_row(-levels[rows], -self._cumulative(rows)[:, n_below], knots))
        return np.asarray(reached * unit if support.continuous else support.values[(reached * unit).astype(int)])

    def _at(self, y: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        """Values of Y for each row, (n, l), and the shape of what is asked at them."""
        at, n = np.asarray(y), len(self)
        if self._support.kind != "labels":
            at = as_numbers(at.ravel() if at.ndim == 2 else y, "y", "Pass values of Y.").reshape(at.shape)
        if not (at.ndim == 0 or at.shape == (n,) or (at.ndim == 2 and at.shape[0] in (1, n))):
            raise ValueError(
                f"`y` must be one value, one for each of {n} rows, or several, (1, l) or ({n}, l), got shape "
                f"{at.shape}."
            )
        wide = at.reshape(-1, 1) if at.ndim < 2 else at
        return np.broadcast_to(wide, (n, wide.shape[1])), (n,) if at.ndim < 2 else (n, wide.shape[1])

    def _single(self, what: str) -> Support:
        if self._support.kind == "rows":
            raise ValueError(
                f"{what} needs a single number or label, but Y has several columns. Use `column(i)` for one of them."
            )
        return self._support

    def _held_out(self, happened: np.ndarray) -> Array:
        """Log p(y|x) / p(y) at values of the fit, or positions in the support, (n,)."""
        support, least = self._support, in_force.get().least_probability
        if not support.continuous:
            return self._by_rows(lambda rows: _log_at(self._smooth_mass(rows), happened[rows, None], least)) - _log_at(
                np.broadcast_to(self._prior, (len(self), support.m)), happened[:, None], least
            )
        place, known = _places(happened[:, None], support)

        def part(rows: slice) -> Array:
            mass, at = self._smooth_mass(rows), happened[rows]
            prior = np.broadcast_to(self._prior, mass.shape)
            smooth = self._kernels.without_own(at, support, mass, prior)
            own, alone = (
                np.where(known[rows, 0], _log_at(one, place[rows], least), density)
                for one, density in zip((mass, prior), smooth, strict=True)
            )
            return own - alone

        return np.asarray(self._by_rows(part))

    @cached_property
    def _smoothing(self) -> Smoothing:
        return self._support.smoothing or Smoothing.of_rows(self._support.n or self._support.m)

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels.of(self._support, self._smoothing.share, unit_of(self._support.values))

    def _smooth_mass(self, rows: slice) -> Array:
        """Probabilities of the values, (some rows, m); for continuous numbers some of the prior is mixed in."""
        mass, share = _normalised(self._weights(rows)), self._smoothing.prior_share
        if not self._support.continuous or not share:
            return mass
        return (1 - share) * mass + share * self._prior

    @property
    def _prior(self) -> Array:
        """Probabilities of the values without any x, (m,)."""
        prior = self._support.mass if self._tilt is None else self._support.mass * self._tilt
        return np.asarray(prior / prior.sum())

    def _scaled_values(self) -> tuple[Array, Array]:
        """Values in units, (m,) or (m, d), and the variance of each neighbourhood about its mean."""
        values, unit = self._support.values, unit_of(self._support.values)
        within = 0 * values if self._support.ends is None else np.diff(self._support.ends / unit)[:, 0] ** 2 / 12
        return values / unit, within


def _log_at(mass: Array, place: np.ndarray, least: float) -> Array:
    """Logarithms of masses, (n, m), at a position of each row, (n, 1); no smaller than that of the least."""
    return np.asarray(np.log(np.take_along_axis(mass, place, axis=1)[:, 0].clip(min=least)))


def _plogp(p: Array) -> Array:
    """-p log p, 0 where p is."""
    return np.asarray(entr(p))


def _places(at: np.ndarray, support: Support) -> tuple[np.ndarray, np.ndarray]:
    """Positions among the values of the support, (n, l), and whether they have a probability of their own there."""
    first, last = support.reach.T
    position = {value: i for i, value in enumerate(support.values.tolist()) if first[i] == last[i]}
    found = np.array([position.get(value, -1) for value in at.ravel().tolist()], dtype=int).reshape(at.shape)
    return found.clip(min=0), found >= 0


def _normalised(weights: Array) -> Array:
    return weights / weights.sum(axis=1, keepdims=True)


def _bends(ends: np.ndarray) -> tuple[Array, np.ndarray, float]:
    """Where distribution functions over neighbourhoods, (m, 2), or atoms, (m,), bend, and how many lie below each.

    Places are multiples of the unit that comes with them. Atoms are two places in one: at such the later one counts,
    for `by_row`.
    """
    below, unit = np.arange(len(ends))[:, None] + [0, 1], unit_of(ends)
    reach = np.broadcast_to(ends.reshape(len(ends), -1) / unit, below.shape)
    places, below = np.unique(np.column_stack([reach.ravel(), below.ravel()]), axis=0).T
    return places, below.astype(int), unit


def prior_mass(prior: Any, support: Support) -> Array:
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


def as_cost(cost: Any, support: Support) -> Array:
    """What decisions cost, (m, m), checked."""
    if support.continuous or support.kind == "rows":
        raise ValueError(
            f"Costs are those of finitely many labels, and Y takes {support.kind} of any size. Use `mean` for squared "
            "costs and `quantile` for costs by distance."
        )
    matrix = as_real(cost, "cost")
    if matrix.shape != (support.m, support.m) or not np.isfinite(matrix).all():
        raise ValueError(
            f"`cost` must be {support.m} x {support.m} finite numbers, the entry [i, j] for the decision classes[j] "
            f"where Y is classes[i], in the order {shown(support.values.tolist())}; got shape {matrix.shape}."
        )
    return matrix


def ranked_score(places: Array, below: Array, at: Array) -> Array:
    """The integral of (F(z) - 1{y <= z})^2 over z, exactly, for distribution functions in straight pieces, (n,).

    Args:
        places: Where they bend, (n, r), in order; twice where they jump.
        below: Their values there, (n, r), from 0 to 1.
        at: y of each row, (n,).
    """
    y = at[:, None]
    left, right, low, high = places[:, :-1], places[:, 1:], below[:, :-1], below[:, 1:]
    split, length = np.clip(y, left, right), right - left
    share = np.divide(split - left, length, out=np.zeros_like(length), where=length > 0)
    middle = low + share * (high - low)
    before = (split - left) * (low**2 + low * middle + middle**2)
    after = (right - split) * ((1 - middle) ** 2 + (1 - middle) * (1 - high) + (1 - high) ** 2)
    outside = np.maximum(places[:, 0] - at, 0) + np.maximum(at - places[:, -1], 0)
    return np.asarray((before + after).sum(axis=1) / 3 + outside)
