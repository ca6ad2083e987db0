"""What a test says: a statistic beside its null distribution, which is a limit or orders of the rows.

Where rows of one variable, all of them or those within a stratum, may change places, random orders of them give an
exact null distribution, for any number of rows. Orders are drawn until `REACHED` of them reach the statistic: with h of
the first l, h / l is an exact p-value too (J. Besag and P. Clifford (1991), Biometrika 78:301), so that orders are
spent where the evidence is strong.

Null distributions: tails of weighted sums of chi-squares, and the weights that moments of products have.

The tail of Q = sum_i w_i Z_i^2, with Z_i independent standard normals, is the integral

    P(Q > q) = 1 / (2 pi i) * integral of exp(K(s) - s q) / s ds,    K(s) = -1/2 sum_i log(1 - 2 w_i s),

along any path that crosses the real axis once, between 0 and 1 / (2 max w). A path through the saddle point that bends
to the right makes the integrand fall like a bell, so that a few hundred points give nearly all digits, however far the
tail. The path is a hyperbola whose slope stays below 1: there s^2 has a negative real part, without which many small
weights, whose sum is nearly normal, would make the integrand grow along it.

Variables as users hand them in, read as rows and checked.

Weights of a test count rows: a weight of 2 is the row twice, in the statistic, in its null distribution and in how many
rows there are. So rows are taken as often as they count before anything is computed of them, and every test, also by
arrangements of the rows, means the same by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.optimize import brentq

from featgeo.card import Card
from featgeo.features.columns import counted
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array, as_real, check_same_rows, check_whole, generator_of
from featgeo.records import Result
from featgeo.tuning import in_force


def read_rows(sample_weight: Any = None, **variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable, as many of all, each as often as it counts; once when `sample_weight` is None."""
    variables = dict(zip(variables, counted(sample_weight, **variables), strict=True))
    every = {name: Rows.seen(values, name) for name, values in variables.items()}
    check_same_rows(**every)
    return tuple(every.values())


def checked(*variables: Rows, tensors: bool = False) -> tuple[Rows, ...]:
    """The same rows, but of an X or Y that never varies, or images and sequences unless tensors will do."""
    for rows in variables:
        name = rows.variable.name
        if rows.variable.is_sparse:
            raise TypeError(f"{name} is a large sparse matrix. Reduce it first, such as by TruncatedSVD(64).")
        if rows.variable.is_tensor and not tensors:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network; `independence_test` learns some with "
                "method='learned'."
            )
        if name != "S":
            check_not_constant(rows, name)
    return variables


_EDGE = 0.5  # where K ends, once the largest weight is 1
_SLOPE = 0.5  # of the path, far out: integrals are the same along any
_ENDS = np.linspace(0, 30, 61)  # where the path may end, as arguments of sinh


def rests_on_few_rows(x: Array, y: Array) -> bool:
    """Whether products of centred features, (n, k) and (n, l), vary on too few rows for their means to be normal."""
    return in_force.get().ample_count * kurtosis(x) * kurtosis(y) > len(x)


def kurtosis(features: Array) -> float:
    """The largest fourth moment of a feature of variance 1: 1.5 for cosines, n / m for an indicator of m rows.

    One that does not vary counts as an indicator of a single row: these rows lack that row.
    """
    squares = np.square(features)
    second, fourth = np.mean(squares, axis=0), np.mean(np.square(squares), axis=0)
    worst = np.full(len(second), float(len(features)))
    return float(np.max(np.divide(fourth, second**2, out=worst, where=second > 0), initial=0))


def less_spread(spectrum: Array, same_row: float, n_rows: int) -> Array:
    """Eigenvalues drawn towards their mean, by as much as those of an empirical covariance matrix spread too far.

    Args:
        spectrum: Eigenvalues, (m,).
        same_row: Of the sum over all pairs of rows i, j of (p_i . p_j)^2, with p the products behind the covariance,
            the share with i = j. It is noise: the other pairs alone estimate the sum of squared eigenvalues.
        n_rows: Number of rows.
    """
    squares, equal = float(np.square(spectrum).sum()), float(spectrum.sum()) ** 2 / len(spectrum)
    spread = squares - equal
    if spread <= 0:
        return spectrum
    share = (squares * (1 - same_row) * n_rows / (n_rows - 1) - equal) / spread
    return spectrum.mean() + np.sqrt(np.clip(share, 0.0, 1.0)) * (spectrum - spectrum.mean())


def weighted_chi_square_tail(statistic: float, weights: Any) -> float:
    """P(sum_i w_i Z_i^2 > statistic) for independent standard normals Z_i.

    Args:
        statistic: Where the tail begins.
        weights: Weights w, (m,), at least 0. For a sum of squared cross-moments of features of two sides they are the
            products of the eigenvalues of the two covariances.

    Returns:
        The probability, to ten digits or more; 1 where the statistic or all weights are zero.
    """
    known = as_real(weights, "weights").ravel()
    largest = float(known.max(initial=0.0))
    # Eigenvalues may come out a little below zero.
    if not np.isfinite(known).all() or (known < -1e-6 * largest).any() or (largest == 0 and known.any()):
        raise ValueError(f"`weights` must be finite and at least 0, got {known}. Pass eigenvalues of covariances.")
    if math.isnan(statistic):
        raise ValueError("`statistic` must be a number, got NaN. Look for missing values in what it came from.")
    if statistic <= 0 or largest == 0:
        return 1.0
    if math.isinf(statistic):
        return 0.0
    return _contour_integral(statistic / largest, known[known > 1e-12 * largest] / largest)


def _contour_integral(q: float, weights: Array) -> float:
    """The tail beyond q; the largest weight is 1."""

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * weights * s)) - q - 1 / s)

    # K(s) - s q - log s is convex between 0 and the edge, and infinite at both ends.
    saddle = brentq(slope, _EDGE * 1e-13, _EDGE * (1 - 1e-13), xtol=1e-15)
    width = 1 / np.sqrt(2 * np.sum((weights / (1 - 2 * weights * saddle)) ** 2) + 1 / saddle**2)
    bend = _SLOPE**2 * (_EDGE - saddle + width)

    def integrand(angle: Array) -> Array:
        across = width * np.sinh(angle)
        right = np.hypot(bend, _SLOPE * across)
        path = saddle + right - bend + 1j * across
        factors = 1 - 2 * np.multiply.outer(path, weights)
        # Logarithms of moduli, eight factors at a time, and phases: the complex ones take three times as long.
        squares = np.square(factors.real) + np.square(factors.imag)
        moduli = np.multiply.reduceat(squares, np.arange(0, len(weights), 8), axis=1)
        logarithms = 0.5 * np.log(moduli).sum(axis=1) + 1j * np.arctan2(factors.imag, factors.real).sum(axis=1)
        direction = (_SLOPE**2 * across / right + 1j) * width * np.cosh(angle)
        return np.exp(-0.5 * logarithms - path * q) / path * direction

    # With many weights the path ends soon: where no digit of the integral would show what is left of it.
    sizes = np.abs(integrand(_ENDS))
    alive = int(np.flatnonzero(sizes >= 1e-20 * sizes.max())[-1])
    angle = np.linspace(0, _ENDS[min(alive + 1, len(_ENDS) - 1)], 160)
    values = integrand(angle).imag
    return float(np.clip(angle[1] * (values.sum() - values[0] / 2) / np.pi, 0.0, 1.0))


REACHED = 50  # orders that reach the statistic, and no more are needed: p-values above 0.05 to a seventh of them
MOST_PERMUTATIONS = 10**7  # of a thousand rows, more take longer than anyone waits
BATCH_ENTRIES = 2**17  # rows of all orders of a batch; a small batch stays in the cache
_TIE = 1e-9  # statistics that differ by less, relatively, are equal: sums in another order

OfOrders = Callable[[np.ndarray], Array]
Limit = tuple[Callable[[float], Any], str]
Groups = list[np.ndarray]


@dataclass(frozen=True, repr=False)
class Evidence(Result):
    """The outcome of a test.

    Attributes:
        statistic: What the test measured; larger speaks against the hypothesis.
        pvalue: How often chance alone gives a statistic as large where the hypothesis holds.
        method: How it was measured and what it was compared with.
        doubtful: Given S, whether regressions on it miss what X and Y share of it, as far as regressions of another
            kind tell. The p-value allows for as much as these tell; more may be missed.
    """

    statistic: float
    pvalue: float
    method: str
    doubtful: bool = False

    def card(self) -> Card:
        """All in one line."""
        doubt = "; doubtful: regressions on S miss what X and Y share" if self.doubtful else ""
        return Card([f"p = {self.pvalue:.3g} (statistic {self.statistic:.4g}; {self.method}{doubt})"])


@dataclass(frozen=True, eq=False)
class Shuffling:
    """How the rows of a variable change places.

    Attributes:
        n_permutations: How many random orders, at most; all orders, where there are no more than that.
        rng: Source of randomness.
    """

    n_permutations: int
    rng: np.random.Generator

    @classmethod
    def of(cls, n_permutations: int, random_state: Any) -> Shuffling:
        """From the arguments of a test."""
        check_whole(n_permutations, "n_permutations", 1, "999 is usual.", MOST_PERMUTATIONS)
        return cls(int(n_permutations), generator_of(random_state))

    def is_complete(self, groups: Groups) -> bool:
        """Whether rows that stay within these groups have so few orders that all are tried."""
        orders = sum(math.lgamma(len(group) + 1) for group in groups)  # the logarithm of their number
        return orders < math.log(self.n_permutations + 1.5)

    def orders(self, groups: Groups) -> Iterator[np.ndarray]:
        """Orders of the rows that keep them within their groups, (b, n) at a time."""
        place = np.argsort(np.concatenate(groups))
        if self.is_complete(groups):
            every = product(*(permutations(group) for group in groups))
            yield np.array([np.concatenate(parts) for parts in every])[:, place]
            return
        batch = max(1, min(2 * REACHED, BATCH_ENTRIES // len(place)))
        for start in range(0, self.n_permutations, batch):
            size = min(batch, self.n_permutations - start)
            parts = [self.rng.permuted(np.tile(group, (size, 1)), axis=1) for group in groups]
            yield np.hstack(parts)[:, place]

    def evidence(self, of_orders: OfOrders, groups: Groups, name: str, limit: Limit | None = None) -> Evidence:
        """Compare a statistic with its limit, or with itself over orders of the rows of one variable.

        Args:
            of_orders: The statistic for each order of the rows, (b, n) to (b,).
            groups: The rows that may change places with each other.
            name: What the statistic is called.
            limit: The tail of its null distribution, and what that is called, where it is known.
        """
        statistic = float(of_orders(np.arange(sum(map(len, groups)))[None])[0])
        if limit is not None:
            return Evidence(statistic, float(limit[0](statistic)), f"{name}{limit[1]}")
        complete = self.is_complete(groups)
        pvalue = permutation_pvalue(statistic, map(of_orders, self.orders(groups)), complete)
        kind = "arrangements of the rows" if len(groups) == 1 else "permutations within strata"
        return Evidence(statistic, pvalue, f"{name}{'all ' * complete}{kind}")


def permutation_pvalue(statistic: float, draws: Iterable[Array], complete: bool) -> float:
    """The share of orders whose statistic is as large, which is exact at any number of rows.

    Args:
        statistic: Of the rows as they are.
        draws: Of orders, some at a time; no more are looked at where `REACHED` of them have reached the statistic.
        complete: Whether the orders are all there are, the one observed included.
    """
    reached = count = 0
    for some in draws:
        hits = reached + np.cumsum(some >= statistic - _TIE * max(abs(statistic), 1.0))
        if hits[-1] >= REACHED and not complete:
            return REACHED / (count + 1 + int(np.searchsorted(hits, REACHED)))
        reached, count = int(hits[-1]), count + len(some)
    return reached / count if complete else (1 + reached) / (1 + count)
