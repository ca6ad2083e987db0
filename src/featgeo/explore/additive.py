"""What all columns tell of a target beside each other: sums of functions of single columns, and what they leave.

An interaction is what such a sum cannot tell, so it depends on how the target is measured. A number is measured by the
rising function that sums tell the most of (L. Breiman and J. Friedman (1985), JASA 80:580): where y is a sum and noise,
or a rising function of them, that is about the scale on which it is a sum. Where this is nearly y itself, y is a second
scale. Classes have two, shares and log-odds. What is called an interaction must be one on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import isotonic_regression, minimize

from featgeo.explore.cells import Cells, coarser, is_same_date, places_in
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

MOST_FUNCTIONS = 1024  # of all columns: their Gram matrix takes the square of that
SCALE_STEPS = 20  # towards the best scale of a number, each a projection of functions of a few cells
MOST_COLUMNS = 128  # that are added one after the other
MOST_STEPS = 100  # towards the log-odds
GRAIN = 2.0**30  # residuals are multiples of its inverse: sums of a million are exact, and do not depend on the order


def is_of_classes(column: Cells) -> bool:
    """Whether a target counts as classes: labels, or a number of two values."""
    return column.kind == "label" or column.n_values == 2


@saved
@dataclass(frozen=True, eq=False)
class Additive:
    """A target less what sums of functions of single columns tell of it.

    Attributes:
        target: The place of the target.
        functions: Functions of the target, on its cells, for each scale, (scales, size, m); 0 where it is missing.
        classes: Of a target of classes, that of each cell, -1 where it is missing, (size,); of a number empty.
        starts: Where the cells of each column begin among those of all, (p + 1,).
        tables: What each cell of each column adds, (cells of all columns, scales * m): to the mean of the functions,
            and of classes to the log-odds of each beside the first.
        constant: What they are added to, (scales * m,).
        n_rows: Rows that it was learned from.
    """

    target: int
    functions: Array
    classes: np.ndarray
    starts: np.ndarray
    tables: Array
    constant: Array
    n_rows: int

    @classmethod
    def of_nothing(cls, columns: Sequence[Cells], target: int) -> Additive:
        """Of a target that does not vary in the sample, of which nothing can be told."""
        starts = np.r_[0, np.cumsum([one.size for one in columns])]
        functions, tables = np.zeros((1, columns[target].size, 1)), np.zeros((starts[-1], 1))
        return cls(target, functions, np.empty(0, dtype=np.int64), starts, tables, np.zeros(1), 0)

    @property
    def n_functions(self) -> int:
        """How many functions of the target there are, m."""
        return self.functions.shape[2]

    @property
    def n_scales(self) -> int:
        """On how many scales sums are subtracted."""
        return len(self.functions)

    @cached_property
    def used(self) -> list[int]:
        """Columns that add anything."""
        return [k for k, (a, b) in enumerate(zip(self.starts, self.starts[1:], strict=False)) if self.tables[a:b].any()]

    def residuals(self, cells: Sequence[np.ndarray]) -> Array:
        """What is left of the target's functions, on one scale after the other, (n, scales, m); 0 where it is missing.

        Args:
            cells: The cell of each row, of each column, (n,) each.
        """
        told = np.tile(self.constant, (len(cells[0]), 1))
        for k in self.used:
            told += self.tables[self.starts[k] + cells[k]]
        m, own = self.n_functions, cells[self.target]
        if len(self.classes):
            told[:, m:] = shares_of(told[:, m:]) @ self.by_class
        left = self.functions[:, own].transpose(1, 0, 2) - told.reshape(len(own), self.n_scales, m)
        left[own == self.functions.shape[1] - 1] = 0
        return np.round(left * GRAIN) / GRAIN

    @cached_property
    def class_shares(self) -> Array:
        """Of each class in the sample, (K,)."""
        # The functions are orthonormal: with the constant they make an orthogonal matrix of the roots of the shares.
        return 1 / (1 + np.square(self.by_class).sum(axis=1))

    @cached_property
    def by_class(self) -> Array:
        """The target's functions of each class, (K, m)."""
        first = [int(np.flatnonzero(self.classes == c)[0]) for c in range(self.n_functions + 1)]
        return self.functions[0, first]


def shares_of(log_odds: Array) -> Array:
    """Shares of all classes from log-odds beside the first, (n, K - 1) to (n, K)."""
    every = np.hstack([np.zeros((len(log_odds), 1)), log_odds])
    every = np.exp(every - every.max(axis=1, keepdims=True))
    return every / every.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Sums:
    """Functions of all columns on rows of a sample, side by side.

    Attributes:
        values: Of mean 0, in single precision, (n, d).
        means: What was taken off, (d,).
        column: The column that each is of, (d,).
        place: Which of its functions it is, (d,).
        bases: Functions on the cells of each column, (size, .) each.
        gram: Their Gram matrix, with a ridge, (d, d).
    """

    values: np.ndarray
    means: Array
    column: np.ndarray
    place: np.ndarray
    bases: list[Array]
    gram: Array

    @classmethod
    def of(cls, columns: Sequence[Cells], cells: Sequence[np.ndarray], target: int, wanted: Array) -> Sums:
        """Those that tell most of the target by themselves, where rows are too few for all.

        Args:
            columns: All of them; the target, and its date, are left out.
            cells: The cell of each row, of each column, (n,) each.
            target: The place of the target.
            wanted: Its functions on each row, (n, m).
        """
        n = len(wanted)
        bases, strength, of = [], [], []
        for k, (column, own) in enumerate(zip(columns, cells, strict=True)):
            apart = k == target or is_same_date(column, columns[target])
            basis = np.empty((column.size, 0)) if apart else _column_functions(column, own)
            sums = np.column_stack([np.bincount(own, one, minlength=column.size) for one in wanted.T])
            strength.append(np.square(basis.T @ sums).sum(axis=1))
            bases.append(basis)
            of += [(k, place) for place in range(basis.shape[1])]
        most = max(1, min(MOST_FUNCTIONS, n // in_force.get().rows_a_function))
        kept = np.sort(np.argsort(-np.concatenate(strength), kind="stable")[:most])
        column_of, place = np.array(of, dtype=np.int64).reshape(-1, 2)[kept].T
        values = np.empty((n, len(kept)), dtype=np.float32)
        for k in np.unique(column_of):
            mine = np.flatnonzero(column_of == k)
            values[:, mine] = bases[k].astype(np.float32)[:, place[mine]][cells[k]]
        means = values.mean(axis=0, dtype=np.float64)
        values -= means.astype(np.float32)
        gram = (values.T @ values).astype(np.float64) / max(n, 1)
        return cls(values, means, column_of, place, bases, gram + np.eye(len(gram)) / max(n, 1))

    @cached_property
    def root(self) -> Array:
        """Cholesky factor of their Gram matrix, (d, d)."""
        return np.asarray(np.linalg.cholesky(self.gram), dtype=np.float64)

    def taken(self, some: np.ndarray) -> Sums:
        """Some of the functions."""
        parts = (self.values[:, some], self.means[some], self.column[some], self.place[some])
        return Sums(*parts, self.bases, self.gram[np.ix_(some, some)])

    def needed(self, moments: Array, n_rows: int) -> np.ndarray:
        """Functions of the columns that tell more than chance beside each other, one column after the other, (.,).

        Args:
            moments: Means of products with functions of variance 1 that are to be told, (d, m).
            n_rows: That they are from.
        """
        gram, left, variance = self.gram.copy(), moments.copy(), np.ones(moments.shape[1])
        waiting = {int(k): np.flatnonzero(self.column == k) for k in np.unique(self.column)}
        chosen: list[np.ndarray] = []
        while waiting and len(chosen) < MOST_COLUMNS:
            gains = {k: _gain(gram[np.ix_(own, own)], left[own], variance, n_rows) for k, own in waiting.items()}
            best = max(gains, key=lambda k: gains[k])
            if gains[best] <= 0:
                break
            own = waiting.pop(best)
            along = np.linalg.solve(gram[np.ix_(own, own)], np.hstack([gram[own], left[own]]))
            variance = np.maximum(variance - np.sum(left[own] * along[:, len(gram) :], axis=0), COLLINEAR)
            left = left - gram[:, own] @ along[:, len(gram) :]
            gram = gram - gram[:, own] @ along[:, : len(gram)]
            chosen.append(own)
        return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.int64)

    def solved(self, right: Array) -> Array:
        """Coefficients of sums whose moments with the functions are these, (d, .)."""
        return np.asarray(cho_solve((self.root, True), right))

    def moments(self, other: Array) -> Array:
        """Means of products with other functions, (n, q) to (d, q)."""
        return (self.values.T @ other.astype(np.float32)).astype(np.float64) / max(len(other), 1)

    def tables(self, coefficients: Array, starts: np.ndarray) -> Array:
        """A sum as what each cell of each column adds, (d, q) to (cells of all columns, q)."""
        result = np.zeros((starts[-1], coefficients.shape[1]))
        for k, basis in enumerate(self.bases):
            mine = self.column == k
            result[starts[k] : starts[k + 1]] = basis[:, self.place[mine]] @ coefficients[mine]
        return result


def _column_functions(column: Cells, cells: np.ndarray) -> Array:
    """The first functions of a column, and that of being missing, where enough rows are, (size, .)."""
    counts = np.bincount(cells, minlength=column.size).astype(np.float64)
    basis = column.functions(counts)[:, : in_force.get().sum_functions]
    if min(counts[-1], counts[:-1].sum()) < in_force.get().rows_a_function:
        return basis
    share = counts[-1] / counts.sum()
    return np.column_stack([basis, (np.arange(column.size) == column.n_values) / np.sqrt(share * (1 - share))])


def additive_of(columns: Sequence[Cells], cells: Sequence[np.ndarray], target: int) -> tuple[Additive, Sums]:
    """What sums of functions of single columns tell of a target, from rows of a sample that all have it.

    Args:
        columns: The cells of each column.
        cells: The cell of each row, of each column, (n,) each.
        target: The place of the target.
    """
    column, own = columns[target], cells[target]
    starts = np.r_[0, np.cumsum([one.size for one in columns])]
    counts = np.bincount(own, minlength=column.size).astype(np.float64)
    if is_of_classes(column):
        classes, by_class = _classes(column, counts)
        functions = np.vstack([by_class, np.zeros(by_class.shape[1])])[classes][None]
        every = Sums.of(columns, cells, target, functions[0, own])
    else:
        classes, waves = np.empty(0, dtype=np.int64), column.functions(counts)[:, : in_force.get().explore_waves[1]]
        every = Sums.of(columns, cells, target, waves[own])
        moments = every.moments(waves[own])
        functions = _scales(column, waves, moments.T @ every.solved(moments), counts)
    sums = every.taken(every.needed(every.moments(functions[0, own]), len(own)))
    coefficients = sums.solved(sums.moments(np.hstack(functions[:, own])))
    constant = np.zeros(coefficients.shape[1])
    if len(classes):
        odds, odds_constant = _log_odds(sums, classes[own])
        functions = np.concatenate([functions, functions])
        coefficients, constant = np.hstack([coefficients, odds]), np.r_[constant, odds_constant]
    constant = constant - sums.means @ coefficients
    tables = sums.tables(coefficients, starts)
    return Additive(target, functions, classes, starts, tables, constant, len(own)), every


def _gain(gram: Array, left: Array, variance: Array, n_rows: int) -> float:
    """By how much what functions tell exceeds what as many would tell by chance, twice (Akaike's criterion).

    Args:
        gram: Gram matrix of the functions, less what was chosen before, (d, d).
        left: Their moments with what is left to be told, (d, m).
        variance: Of that, (m,).
        n_rows: That they are from.
    """
    told = np.sum(left * np.linalg.solve(gram + COLLINEAR * np.eye(len(gram)), left), axis=0)
    return float(n_rows * np.sum(told / variance) - 2 * left.size)


def _classes(column: Cells, counts: np.ndarray) -> tuple[np.ndarray, Array]:
    """The class of each cell, -1 where missing, (size,), and orthonormal functions of the classes, (K, K - 1).

    Labels that no row of the sample has count as the rarest class.
    """
    merged = coarser(column, counts, in_force.get().target_classes)
    inside = places_in(column, merged)
    rows = np.bincount(inside, counts, minlength=merged.size).astype(np.float64)
    seen = np.flatnonzero(rows[:-1])
    classes = np.full(merged.size, len(seen) - 1)
    classes[seen] = np.arange(len(seen))
    classes[-1] = -1
    return classes[inside], merged.functions(rows)[seen]


def _scales(column: Cells, waves: Array, told: Array, counts: np.ndarray) -> Array:
    """A number on the scale that sums tell most of, and as it is where that is nearly the same, (scales, size, 1).

    Where the noise of a sum changes with the columns, any other scale than that of the sum makes interactions of it.
    """
    best = _scale(waves, told, counts)
    share = counts[:-1] / counts[:-1].sum()
    with np.errstate(over="ignore"):  # numbers may be as large as numbers get
        centre = share @ column.places
        spread = np.sqrt(share @ np.square(column.places - centre))
    if not np.isfinite(spread) or spread <= 0:
        return best[None]
    plain = np.r_[(column.places - centre) / spread, 0.0][:, None]
    alike = float(share @ (plain * best)[:-1, 0]) ** 2
    return np.stack([best, plain]) if alike >= in_force.get().same_scale else best[None]


def _scale(waves: Array, told: Array, counts: np.ndarray) -> Array:
    """The rising function of a number that sums tell most of, on its cells, (size, 1).

    Functions that do not rise are not looked at: how far a number is from its middle is another question. Where sums
    tell little, what they tell best is left to chance, and the scale hardly matters: the normal score has a head start.

    Args:
        waves: Orthonormal functions of the number, from smooth to rough, (size, l); the first is its normal score.
        told: Covariance of what sums tell of them, (l, l).
        counts: Rows in each cell, (size,); the last one is that of missing values.
    """
    weights = counts[:-1] / counts[:-1].sum()
    seen = np.flatnonzero(weights)
    told = told.copy()
    told[0, 0] += in_force.get().normal_scale
    vector = np.eye(len(told))[0]
    result = np.zeros((len(waves), 1))
    for _ in range(SCALE_STEPS):
        rising = isotonic_regression(waves[seen] @ (told @ vector), weights=weights[seen]).x
        rising = rising - weights[seen] @ rising
        rising /= max(np.sqrt(weights[seen] @ np.square(rising)), COLLINEAR)
        vector = waves[seen].T @ (weights[seen] * rising)
    result[seen, 0] = rising
    unseen = np.setdiff1d(np.arange(len(weights)), seen)
    result[unseen, 0] = np.interp(unseen, seen, rising)
    return result


def _log_odds(sums: Sums, classes: np.ndarray) -> tuple[Array, Array]:
    """Log-odds of each class beside the first, as a sum: coefficients (d, K - 1) and constants (K - 1,)."""
    n, d, k = len(classes), len(sums.means), int(classes.max()) + 1
    share = np.bincount(classes, minlength=k) / n
    hit = np.eye(k)[classes]

    def split(flat: Array) -> tuple[Array, Array]:
        whitened = flat[: -(k - 1)].reshape(d, k - 1)
        return solve_triangular(sums.root, whitened, lower=True, trans="T"), flat[-(k - 1) :]

    def loss(flat: Array) -> tuple[float, Array]:
        coefficients, constant = split(flat)
        shares = shares_of((sums.values @ coefficients.astype(np.float32)).astype(np.float64) + constant)
        excess = (shares - hit)[:, 1:]
        slope = solve_triangular(sums.root, sums.moments(excess), lower=True) + flat[: -(k - 1)].reshape(d, k - 1) / n
        fit = -np.log(np.maximum(shares[np.arange(n), classes], 1e-300)).mean()
        return float(fit + np.square(flat[: -(k - 1)]).sum() / (2 * n)), np.r_[slope.ravel(), excess.mean(axis=0)]

    start = np.r_[np.zeros(d * (k - 1)), np.log(share[1:] / share[0])]
    # What is left of the slopes is a tenth of what chance leaves of one of them.
    precision = np.sqrt(0.1 / (n * max(d, 1)))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS, "gtol": precision})
    return split(found.x)
