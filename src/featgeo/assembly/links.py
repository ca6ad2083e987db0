"""From features to probabilities of the values of Y: P(y|x) = P(y) (1 + sum_i sigma_i f_i(x) g_i(y)), and its like.

The values of Y that distributions spread their mass over are a `Support`. Labels and tables have finitely many values.
Numbers are gathered into neighbourhoods, each with its mean value and the mean of g over it, so that means stay exact;
mass is spread evenly over each. Vectors are represented by rows drawn from the fit.

A `Link` leads from features to density ratios p(y|x) / p(y):

- `LinearLink` is the theory's 1 + f.g. A few modes from a finite sample can push it below zero. What is used is then
  the nearest density, in the metric of P_Y, that is nowhere negative: projecting onto a convex set that holds the truth
  never takes one further from it. A share of the prior mixed in keeps it away from zero.
- `ExponentialLink` is a softmax of the features: the same to first order where the dependence is weak (section 3.3 of
  the paper), always positive, and fitted to held-out rows by maximum likelihood. The features stay as they are.
- `LocatedLink` is a model of numbers given f(x), which is all of x that matters: a mean and a spread that follow the
  features, and errors of one shape. Where Y is nearly a function of X, a series needs many modes to say so; the first
  few tell its mean and spread all the same.
- `MixedLink` is a mean of several.

`Recalibration` is a map of the probabilities of numbers: the same for all x, or, where held-out rows show it, after a
shift and a stretch of log odds that follow where Y is on average (`Along`).

Densities of numbers: each neighbourhood spreads its probability as a bell curve about its mean value. A share of the
prior lies within one standard deviation of it on either side, the same share for all: curves are narrow where values
are dense, wide in the tails. Held-out rows choose the share by the log score, each without its own part in the
neighbourhoods, and how much of the prior is mixed in so that nothing is called impossible (`Smoothing`). Values with a
probability of their own (atoms) keep it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.polynomial.legendre import legvander
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, ndtr, ndtri
from scipy.stats import rankdata
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from torch import Tensor

from featgeo.features.space import interpolated
from featgeo.features.variables import Candidate, preferred
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

# Neighbourhoods of equal mass: every answer costs as much as there are. What few modes say is smooth in the rank of y,
# so 256 even steps of it lose less than one row in a few hundred does; at both ends, where numbers lie far apart, the
# outermost is halved again and again.
MAX_NUMBERS = 256
EVALUATED_EACH = 5  # rows of each, for time
ERROR_STEPS = 2048  # of the distribution function of errors: finer than rows can tell
MAX_ROWS = 2000  # that stand for vectors, for time
CELLS_AT_ONCE = 1 << 17  # a megabyte: what several passes run over stays close to the processor
JUDGING_ROWS = 1000  # that choose links and how to smooth, for time
GRID = np.array([-6, -4, -2.5, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2.5, 4, 6])  # where each bell is seen by integrals
FAINT = 1e-200  # densities below are summed by their logarithms
TINY = 1e-300  # in place of 0, where logarithms are taken
STEPS = 3  # of Fisher's scoring: the last changes less than rows can tell
INFORMATION = np.array([[1 / 3], [(3 + np.pi**2) / 9]])  # Fisher's, of the shift and the stretch of a logistic law
KNOTS = 32  # between which polynomials of degree 4 are all but straight
BELL = 1.06  # width of the bells that suit n draws of a bell curve, over n^(-1/5) of its own (normal reference)


@saved
@dataclass(frozen=True, eq=False)
class Support:
    """Values of Y with their prior mass and the features g at each.

    Attributes:
        kind: "labels" have no order; "numbers" have one; "rows" are vectors.
        values: The values, (m,) or (m, columns).
        mass: Prior probability of each, (m,).
        g: Features of each, (m, k), of prior mean 0.
        ends: For continuous numbers, (m, 2): from where to where each neighbourhood reaches. Those that begin where
            they end are atoms, values that stand for themselves only, such as the zeros of rainfall. None where every
            value stands for itself.
        n: How many rows the masses of continuous numbers rest on.
        smoothing: How their masses become densities, where held-out rows said so.
        names: Of the columns of vectors.
    """

    kind: Literal["labels", "numbers", "rows"]
    values: np.ndarray
    mass: Array
    g: Array
    ends: Array | None = None
    n: int = 0
    smoothing: Smoothing | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of_numbers(cls, ordered: Array, features: Callable[[np.ndarray], Array]) -> Support:
        """Gather numbers into neighbourhoods.

        Args:
            ordered: The numbers, from the smallest to the largest, (n,).
            features: From positions among them, (m,), to g there, (m, k).
        """
        n, begins = len(ordered), ordered[1:] != ordered[:-1]
        if np.count_nonzero(begins) < MAX_NUMBERS:
            ranks = np.flatnonzero(np.concatenate([[True], begins]))
            counts = np.diff(ranks, append=n)
            first = ranks[counts > in_force.get().atom_rows * np.median(counts)]
        else:
            ranks = np.searchsorted(ordered, ordered[_ranks(n)])
            further = int(in_force.get().atom_rows * n / MAX_NUMBERS)  # a value that comes more often is still there
            first = np.searchsorted(ordered, np.unique(ordered[further:][ordered[further:] == ordered[: n - further]]))
        # No value is split, and atoms, each of which holds a rank, end where they do.
        ends = np.searchsorted(ordered, ordered[first], side="right")
        starts = np.unique(np.concatenate([ranks, ends]))
        starts = starts[starts < n]
        sizes = np.diff([*starts, n])
        lowest, highest = ordered[starts], ordered[starts + sizes - 1]
        unit = unit_of(ordered[[0, -1]])
        means = np.where(lowest == highest, lowest, np.add.reduceat(ordered / unit, starts) / sizes * unit)
        # A few rows of each neighbourhood tell the mean of g over it.
        some = starts[:, None] + (np.linspace(0.1, 0.9, EVALUATED_EACH) * sizes[:, None]).astype(int)
        g = features(some.ravel()).reshape(len(starts), EVALUATED_EACH, -1).mean(axis=1)
        atoms = (lowest == highest) & np.isin(lowest, ordered[first])
        g -= np.average(g, axis=0, weights=sizes)
        return cls("numbers", means, sizes / n, g, _ends(lowest, highest, atoms), n)

    def beside(self, t: Array) -> Support:
        """The same with another function first, (m, 1), and of its own what is uncorrelated with it."""
        t = t - self.mass @ t
        own = self.g - t * (self.mass @ (self.g * t) / max(float(self.mass @ np.square(t[:, 0])), TINY))
        return replace(self, g=np.hstack([t, own]))

    @property
    def m(self) -> int:
        """How many values there are."""
        return len(self.mass)

    @property
    def reach(self) -> Array:
        """From where to where each value stands for others, (m, 2); atoms begin where they end."""
        return np.stack([self.values] * 2, axis=1) if self.ends is None else self.ends

    @property
    def continuous(self) -> bool:
        """For numbers, whether each stands for its neighbourhood and not only for itself."""
        return self.ends is not None


def unit_of(values: np.ndarray) -> float:
    """A power of two near the largest of some numbers: sums and differences of their multiples of it stay finite."""
    return float(np.ldexp(1.0, int(np.frexp(np.abs(values).max(initial=0.0))[1]) - 1))


def _ranks(n: int) -> np.ndarray:
    """Where neighbourhoods begin among n ordered numbers: evenly, and ever closer towards both ends."""
    even = np.linspace(0, n, MAX_NUMBERS + 1).astype(int)[:-1]
    halves = n // MAX_NUMBERS // 2 ** np.arange(1, 40)
    return np.unique(np.concatenate([even, halves, n - halves[halves > 0]]))


def _ends(lowest: Array, highest: Array, atoms: np.ndarray) -> Array:
    """Where neighbourhoods that hold numbers from lowest to highest meet, (m, 2); atoms keep to themselves."""
    unit = unit_of(np.array([lowest[0], highest[-1]]))
    between = (lowest[1:] / unit + highest[:-1] / unit) / 2 * unit
    ends = np.stack([np.concatenate([lowest[:1], between]), np.concatenate([between, highest[-1:]])], axis=1)
    return np.where(atoms[:, None], lowest[:, None], ends)


FARTHEST = np.cbrt(np.finfo(np.float64).max)  # sums of products of such features with others are numbers


class Link(ABC):
    """From features of x to density ratios over the support."""

    cells_a_value = 0  # numbers that a row needs for each value of y, besides its probability

    @abstractmethod
    def ratio(self, f: Any, support: Support) -> Array:
        """Density ratios up to a factor a row, (n, m), none negative."""

    def likelihood(self, f: Any, support: Support) -> Array:
        """What is proportional to p(x|y), (n, m): where nothing else is known, the density ratios."""
        return self.ratio(f, support)

    def negative_mass(self, f: Any, support: Support) -> Array:
        """Mass of each row below zero before it was made a density, (n,)."""
        return np.zeros(len(f))


@saved
@dataclass(frozen=True)
class LinearLink(Link):
    """1 + f.g, projected onto the densities.

    Attributes:
        prior_share: How much of the prior is mixed in.
    """

    prior_share: float = 0.0

    def ratio(self, f: Array, support: Support) -> Array:
        """The nearest non-negative function of prior mean 1."""
        # Rows beyond all measure are brought back along their direction: the density is long that of the largest f.g.
        near = f / (np.abs(f).max(axis=1, keepdims=True, initial=0) / FARTHEST).clip(min=1)
        density = nearest_density(1 + near @ support.g.T, support.mass)
        return (1 - self.prior_share) * density + self.prior_share if self.prior_share else density

    def negative_mass(self, f: Array, support: Support) -> Array:
        """What lies below zero."""
        return (-(1 + f @ support.g.T)).clip(min=0) @ support.mass


@saved
@dataclass(frozen=True, eq=False)
class ExponentialLink(Link):
    """exp(f.weight_y + bias_y), normalised.

    Attributes:
        weight: One row a label, (m, k).
        bias: (m,).
    """

    weight: Array
    bias: Array

    @classmethod
    def fit(cls, f: Array, index: np.ndarray, support: Support) -> ExponentialLink:
        """Maximum likelihood on rows that the features have not seen.

        Args:
            f: Features of those rows, (n, k).
            index: Position of each row's value of Y in the support, (n,).
            support: The labels; those that never occur among the rows are all but impossible.
        """
        spread = f.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        model = LogisticRegression(max_iter=1000).fit(f / scale, index)
        # Held-out rows are finite: no label is called impossible that they merely did not show.
        weight, bias = np.zeros((support.m, f.shape[1])), np.full(support.m, np.log(in_force.get().unseen_ratio))
        bias[model.classes_] = 0.0
        kept = model.classes_[-len(model.coef_) :]  # of two labels scikit-learn keeps only the second
        weight[kept], bias[kept] = model.coef_, model.intercept_
        return cls(weight / scale, bias - np.log(support.mass))

    def ratio(self, f: Array, support: Support) -> Array:
        """Always positive."""
        logits = f @ self.weight.T + self.bias
        return np.exp(logits - logits.max(axis=1, keepdims=True))


@saved
@dataclass(frozen=True, eq=False)
class LocatedLink(Link):
    """Numbers Y = m(x) + s(x) e, with m and log s linear in the features; or so for the normal score of Y.

    Attributes:
        by_rank: Whether it is the normal score, by the prior, that has the mean and the spread.
        mean: The constant and the weight of each feature, (k + 1,).
        log_spread: The same of the logarithm of s.
        spreads: The least and the largest log s.
        errors: The least and the largest e.
        below: The distribution function of e at even steps from the least to the largest, from 0 to 1.
    """

    by_rank: bool
    mean: Array
    log_spread: Array
    spreads: tuple[float, float]
    errors: tuple[float, float]
    below: Array

    @classmethod
    def fit(cls, f: Array, happened: Array, support: Support, by_rank: bool = False) -> LocatedLink:
        """Least squares for the mean, and for what is left the logarithm of its mean size.

        Args:
            f: Features of rows that they have not seen, (n, k).
            happened: What Y was there, (n,).
            support: The values of Y.
            by_rank: As above.
        """
        options, numbers = in_force.get(), happened / unit_of(support.values)
        if by_rank:
            numbers = np.interp(numbers, edges_of(support, False), edges_of(support, True))
        size = np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
        line = LinearRegression().fit(f / size, numbers)
        left = numbers - line.predict(f / size)
        typical = max(float(np.abs(left).mean()), TINY)
        # Finds means of sizes whatever their law is, of zeros too; as if one row more said nothing.
        spread = PoissonRegressor(alpha=1 / len(f), max_iter=300).fit(f / size, np.abs(left) / typical)
        log_spread = np.append(spread.intercept_ + np.log(typical), spread.coef_ / size)
        told = log_spread[0] + f @ log_spread[1:]
        low, high = np.quantile(told, [options.outer_share, 1 - options.outer_share])
        errors = left / np.exp(told.clip(low, high))
        ends = _outermost(errors)
        steps = np.linspace(*ends, ERROR_STEPS + 1)
        ordered = np.sort(errors)
        below = np.interp(steps, ordered, (np.arange(len(ordered)) + 0.5) / len(ordered))
        below[[0, -1]] = 0, 1
        mean = np.append(line.intercept_, line.coef_ / size)
        return cls(by_rank, mean, log_spread, (float(low), float(high)), ends, below)

    def ratio(self, f: Array, support: Support) -> Array:
        """The mass between the middles of neighbouring values, over that of the prior."""
        edges = torch.from_numpy(edges_of(support, self.by_rank))
        return np.asarray(self.between(torch.from_numpy(f), edges).numpy() / support.mass)

    def between(self, f: Tensor, edges: Tensor) -> Tensor:
        """Probabilities between edges, (n, edges + 1), for features of rows, (n, k)."""
        fields = (
            self.mean,
            self.log_spread,
            self.below,
            self.spreads,
            self.errors,
        )  # tensors: graphs round plain numbers
        mean, log_spread, below, spreads, errors = (
            torch.as_tensor(values, dtype=f.dtype, device=f.device) for values in fields
        )
        last = len(below) - 1
        # Where the edges stand among the steps of the errors.
        steps = last / (errors[1] - errors[0])
        scale = torch.exp(-(log_spread[0] + f @ log_spread[1:]).clamp(spreads[0], spreads[1])) * steps
        first = -(mean[0] + f @ mean[1:]) * scale - errors[0] * steps
        at = torch.addcmul(first[:, None], scale[:, None], edges).clamp_(0, last)
        step = at.long().clamp_(max=last - 1)
        slope = torch.diff(below)
        start = below[:-1] - slope * torch.arange(last, dtype=f.dtype, device=f.device)  # of the straight piece, at 0
        cumulative = torch.addcmul(start[step], at, slope[step])
        ends = torch.zeros_like(cumulative[:, :1])
        return torch.diff(torch.cat([ends, cumulative, ends + 1], dim=1), dim=1)


def edges_of(support: Support, by_rank: bool) -> Array:
    """Halfway from each value to the next, in units or as normal scores, (m - 1,)."""
    if by_rank:
        return np.asarray(ndtri(np.cumsum(support.mass)[:-1].clip(TINY, 1 - 1e-16)))
    ends = support.reach / unit_of(support.values)
    return np.asarray((ends[:-1, 1] + ends[1:, 0]) / 2)


def _outermost(errors: Array) -> tuple[float, float]:
    """Where errors end: few that lie far off do not make all steps wide."""
    options = in_force.get()
    low, high = np.quantile(errors, [options.outer_share, 1 - options.outer_share])
    reach = options.outer_reach * max(high, -low)
    return max(float(errors.min()), -reach), min(float(errors.max()), reach) + 1e-9  # there may be none


@saved
@dataclass(frozen=True, eq=False)
class MixedLink(Link):
    """A mean of several links.

    Attributes:
        links: Each gives ratios of prior mean 1.
        shares: How much of each, (links,), adding up to 1.
    """

    links: tuple[Link, ...]
    shares: Array

    def ratio(self, f: Any, support: Support) -> Array:
        """The mean of theirs."""
        result = np.zeros((len(f), support.m))
        for share, link in zip(self.shares, self.links, strict=True):
            result += share * link.ratio(f, support)
        return result

    def negative_mass(self, f: Any, support: Support) -> Array:
        """The mean of theirs."""
        parts = (share * link.negative_mass(f, support) for share, link in zip(self.shares, self.links, strict=True))
        return np.asarray(sum(parts))


@dataclass(frozen=True)
class MassLink(Link):
    """Probabilities that are known already, in place of features."""

    def ratio(self, f: Array, support: Support) -> Array:
        """Over the prior."""
        return f / support.mass


@saved
@dataclass(frozen=True, eq=False)
class Along:
    """A shift and a stretch of log odds of probabilities, which follow where Y is on average.

    Where distributions are right, P(Y <= y_i | x_i) do not depend on means, and log odds of their ranks have a logistic
    law. Both moves are polynomials of the means' ranks, and the likeliest are found by Fisher's scoring: each step is
    the mean of products of these polynomials with the scores of that law.

    Attributes:
        weight: From features to the mean of Y, in some unit, by a straight line: the constant and the weight of each,
            (k + 1,).
        at: Means, from the smallest to the largest, (c,).
        moves: The shift, and the logarithm of the stretch, there, (2, c).
    """

    weight: Array
    at: Array
    moves: Array

    @classmethod
    def fit(cls, pit: Array, f: Array, happened: Array) -> Along | None:
        """From P(Y <= y_i | x_i) at rows that the features have not seen; None where means show nothing but noise.

        Of both, the share of energy stays that is beyond what noise has.

        Args:
            pit: The probabilities, (n,).
            f: Features of these rows, (n, k).
            happened: What Y was there, (n,).
        """
        if not f.shape[1]:  # all rows are predicted alike
            return None
        n, waves = len(pit), in_force.get().mean_waves
        size = np.where(f.std(axis=0) > 0, f.std(axis=0), 1.0)
        line = LinearRegression().fit(f / size, happened / unit_of(happened))
        mean = line.predict(f / size)
        rank, u = ((rankdata(values) - 0.5) / n for values in (mean, pit))
        basis, odds, found = _polynomials(rank, waves), logit(u), np.zeros((2, waves))
        middle = basis.mean(axis=0)  # beside 0 where ranks come in ties; what all rows share is not for means to tell
        basis -= middle
        for _ in range(STEPS):
            shift, stretch = found[0] @ basis.T, np.exp(found[1] @ basis.T)
            left = (odds - shift) / stretch
            side = np.tanh(left / 2)
            found += np.stack([side * stretch, side * left - 1]) @ basis / n / INFORMATION
        beyond = 1 - waves / (n * INFORMATION[:, 0] * np.square(found).sum(axis=1).clip(min=TINY))
        if (beyond <= 0).all():
            return None
        even = (np.arange(KNOTS) + 0.5) / KNOTS
        moves = beyond.clip(min=0)[:, None] * found @ (_polynomials(even, waves) - middle).T
        return cls(np.append(line.intercept_, line.coef_ / size), np.quantile(mean, even), moves)

    def of(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """The shift and the stretch of rows with these features, (n, 1) each."""
        fields = (self.weight, self.at[None], self.moves)  # tensors: graphs round plain numbers
        weight, at, moves = (torch.as_tensor(values, dtype=f.dtype, device=f.device) for values in fields)
        mean = torch.clamp((weight[0] + f @ weight[1:])[:, None], at[:, :1], at[:, -1:])  # beyond, nothing changes
        return interpolated(mean, at, moves[:1]), torch.exp(interpolated(mean, at, moves[1:]))

    def right(self, probability: Array, f: Array) -> Array:
        """Probabilities of rows with these features, (n, l), set right."""
        shift, stretch = (moved.numpy() for moved in self.of(torch.from_numpy(f)))
        with np.errstate(divide="ignore", over="ignore"):
            odds = np.log(probability / np.maximum(1 - probability, 0))  # rounding may reach beyond 1
            odds -= shift
            odds /= -stretch
            np.exp(odds, out=odds)
        odds += 1
        return np.reciprocal(odds, out=odds)

    def wrong(self, probability: Array, f: Array) -> Array:
        """The inverse of `right`."""
        shift, stretch = (moved.numpy() for moved in self.of(torch.from_numpy(f)))
        return np.asarray(expit(stretch * logit(probability) + shift))


def _polynomials(rank: Array, degree: int) -> Array:
    """Of ranks, orthonormal from 0 to 1 and to constants, (n, degree)."""
    return np.asarray(legvander(2 * rank - 1, degree)[:, 1:] * np.sqrt(2 * np.arange(1, degree + 1) + 1))


@saved
@dataclass(frozen=True, eq=False)
class Recalibration:
    """A monotone map from predicted to observed probabilities of Y <= quantile.

    Attributes:
        predicted: Knots, (r,), from 0 to 1.
        observed: Their images.
        along: How log odds of predicted probabilities are to be moved before, by row; not at all when None.
    """

    predicted: Array
    observed: Array
    along: Along | None = None

    @classmethod
    def fit(cls, pit: Array, along: Along | None = None, f: Any = None) -> Recalibration:
        """From P(Y <= y_i | x_i) at rows that the features have not seen, (n,).

        Args:
            pit: The probabilities.
            along: What is set right before.
            f: Features of these rows, (n, k), for that.
        """
        if along is not None:
            pit = along.right(pit[:, None], f)[:, 0]
        # Each step rests on twice the root of the number of rows: more would follow noise (the slope multiplies
        # densities), fewer miss where the map bends.
        steps = max(2, round(np.sqrt(len(pit)) / 2))
        halves = (
            1 / steps / 2 ** np.arange(1, max(1, len(pit) // (steps * max(1, in_force.get().tail_rows))).bit_length())
        )
        knots = np.unique(np.concatenate([np.linspace(0, 1, steps + 1), halves, 1 - halves]))
        predicted = np.quantile(pit, knots)
        predicted[[0, -1]] = 0, 1
        # Where many rows share a value the quantiles do too; a slope, however small, keeps the map invertible.
        predicted = np.maximum.accumulate(predicted + 1e-9 * np.arange(len(knots)))
        return cls(predicted / predicted[-1], knots, along)

    def forward(self, probability: Array, f: Any = None) -> Array:
        """What was observed where so much was predicted, of each row, (n, l), with these features."""
        right = probability if self.along is None else self.along.right(probability, f)
        return np.interp(right, self.predicted, self.observed)

    def backward(self, probability: Array, f: Any = None) -> Array:
        """What was predicted where so much was observed."""
        right = np.interp(probability, self.observed, self.predicted)
        return right if self.along is None else self.along.wrong(right, f)

    def bends(self, f: Any) -> Array:
        """Where the map bends in rows with these features, (n, r)."""
        return self.backward(np.broadcast_to(self.observed, (len(f), len(self.observed))), f)

    def __call__(self, weights: Array, f: Any = None) -> Array:
        """Probabilities of ordered values, (n, m), set right."""
        cumulative = np.cumsum(weights, axis=1)
        cumulative /= cumulative[:, -1:]
        right = self.forward(cumulative, f)
        right[:, 1:] -= right[:, :-1].copy()
        return right


def by_row(at: Array, knots: Array, values: Array) -> Array:
    """`numpy.interp` of each row: at is (n, l); ascending knots and their values are (n, r), or (1, r) for all.

    Of knots that are the same the last one counts.
    """
    within = np.minimum(at, knots[..., -1:])  # beyond, even infinitely far, nothing changes
    x, k, v = (torch.from_numpy(np.array(part, ndmin=2, order="C")) for part in (within, knots, values))
    left = torch.searchsorted(k[0] if len(k) == 1 else k, x, right=True).sub_(1).clamp_(min=0)
    gap, rise = (torch.diff(part, append=part[:, -1:]) for part in (k, v))
    gap[gap <= 0] = 1.0  # nothing lies between

    def there(table: Tensor) -> Tensor:
        return table[0][left] if len(table) == 1 else torch.gather(table, 1, left)

    # Shares are numbers where slopes over tiny gaps are not.
    share = x.sub_(there(k)).clamp_(min=0).div_(there(gap))
    return np.asarray(share.mul_(there(rise)).add_(there(v)).numpy())


def nearest_density(ratio: Array, mass: Array) -> Array:
    """The nearest functions, in the metric of `mass`, that are nowhere negative and have mean 1: max(0, ratio - shift).

    Args:
        ratio: One function a row, (n, m).
        mass: Of the values, (m,), or of each row's own, (n, m).
    """
    ratio = ratio - ratio.max(axis=1, keepdims=True)  # beside it digits count; what all values share says nothing
    shift = np.vecdot(ratio, mass) - 1
    left = np.flatnonzero(ratio.min(axis=1) < shift)
    # What lies below is left out until nothing more does (Michelot's algorithm): the shift rises until then.
    while len(left):
        own, weight, before = ratio[left], mass if mass.ndim == 1 else mass[left], shift[left]
        above = (own > before[:, None]).astype(np.float64)
        shift[left] = (np.vecdot(own * above, weight) - 1) / np.vecdot(above, weight)
        left = left[shift[left] > before]
    return np.maximum(ratio - shift[:, None], 0)


@saved
@dataclass(frozen=True)
class Smoothing:
    """How masses become densities.

    Attributes:
        share: Of the prior, within one standard deviation of a kernel on either side.
        prior_share: How much of the prior is mixed in.
    """

    share: float
    prior_share: float = 0.0

    @classmethod
    def of_rows(cls, n: int) -> Smoothing:
        """What suits n draws of a bell curve, where nothing else is known."""
        return cls(float(ndtr(BELL * max(n, 1) ** -0.2) - 0.5))


@dataclass(frozen=True, eq=False)
class Kernels:
    """Bell curves about the values of those neighbourhoods that are no atoms.

    Attributes:
        where: Which neighbourhoods these are, positions (c,).
        centres: Their values, (c,), in units.
        widths: Standard deviations, (c,), in units.
        unit: In which centres and widths are measured.
        share: Of the prior, that curves reach over on either side.
    """

    where: np.ndarray
    centres: Array
    widths: Array
    unit: float
    share: float

    @classmethod
    def of(cls, support: Support, share: float, unit: float) -> Kernels:
        """Curves that reach as far as a share of the prior does."""
        ends = support.reach
        where = np.flatnonzero(ends[:, 1] > ends[:, 0])
        centres, mass = support.values[where] / unit, support.mass[where] / max(support.mass[where].sum(), TINY)
        middle = np.cumsum(mass) - mass / 2
        low, high = (np.clip(middle + way * share, middle[:1], middle[-1:]) for way in (-1, 1))
        reach = np.interp(high, middle, centres) - np.interp(low, middle, centres) if len(where) else centres
        # At the ends of the data the share lies on one side alone. No curve is narrower than its neighbourhood is even.
        widths = np.divide(reach * share, high - low, out=np.zeros(len(where)), where=high > low)
        return cls(where, centres, np.maximum(widths, np.diff(ends[where] / unit)[:, 0] / np.sqrt(12)), unit, share)

    def log_density(self, mass: Array, at: Array) -> Array:
        """Of mixtures of the curves by masses over the whole support, (n, m), at numbers of each row, (n, l)."""
        with np.errstate(divide="ignore"):
            weights = np.log(mass[:, self.where])
        if not len(self.where):
            return np.full(at.shape, -np.inf)
        result = np.empty(at.shape)
        alone = np.ones(at.shape[1], dtype=bool)  # numbers that are taken one by one
        if at.shape[1] > 1:
            shared = np.flatnonzero((at == at[:1]).all(axis=0))  # curves are the same for all rows there
            for some in np.array_split(shared, 1 + len(shared) * len(self.where) // CELLS_AT_ONCE):
                density = mass[:, self.where] @ np.exp(self._logs(at[0, some, None] / self.unit)).T
                result[:, some] = np.log(np.maximum(density, TINY)) - np.log(self.unit)
                alone[some] = (density < FAINT).any(axis=0)
        for column in np.flatnonzero(alone).tolist():
            result[:, column] = self._mixed(weights, at[:, column])
        return result

    def grid(self) -> tuple[Array, Array]:
        """Places, (l,), and the values of all curves there, (c, l), both in units."""
        places = np.unique(self.centres[:, None] + self.widths[:, None] * GRID)
        return places, np.exp(self._logs(places[:, None])).T

    def without_own(self, at: Array, support: Support, *masses: Array) -> list[Array]:
        """Log densities of several masses at values of the fit, (n,), each as if its row had no part in any of them."""
        own = np.searchsorted(support.reach[self.where, 0], at, side="right") - 1
        row, place, n = np.arange(len(at)), at[:, None] / self.unit, support.n * support.mass[self.where]
        sizes, centres = np.maximum(n.round()[own], 1.0), np.tile(self.centres, (len(at), 1))
        centres[row, own] += (centres[row, own] - place[:, 0]) / np.maximum(sizes - 1, 1.0)  # the mean of the others
        # Curves reach over so many rows; without one of them they reach farther.
        reached = np.maximum(2 * self.share * n.sum(), 2.0)
        widths = self.widths * (1 + (np.abs(place - centres) <= self.widths) / (reached - 1))
        logs = _log_bell((place - centres) / widths, widths)
        top = logs.max(axis=1, initial=-1e300)
        curves, result = np.exp(logs - top[:, None]), []
        for mass in masses:
            weights = mass[:, self.where].copy()
            weights[row, own] *= (sizes - 1) / sizes
            weights /= weights.sum(axis=1, keepdims=True).clip(min=TINY)
            density = np.einsum("nc,nc->n", weights, curves)
            with np.errstate(divide="ignore"):
                told = np.log(density) + top
                faint = density < FAINT  # the highest curves have no weight
                told[faint] = logsumexp(logs[faint] + np.log(weights[faint]), axis=1)
            result.append(np.asarray(told - np.log(self.unit)))
        return result

    def _logs(self, places: Array) -> Array:
        """Logarithms of all curves at places that broadcast with (..., c), in units."""
        return _log_bell((places - self.centres) / self.widths, self.widths)

    def _mixed(self, weights: Array, at: Array) -> Array:
        return np.asarray(logsumexp(self._logs(at[:, None] / self.unit) + weights, axis=1) - np.log(self.unit))


def _log_bell(away: Array, widths: Array) -> Array:
    away = np.clip(away, -1e100, 1e100)  # even infinitely far off, the square is a number
    return np.asarray(-(away**2) / 2 - np.log(widths) - np.log(2 * np.pi) / 2)


def judging(happened: Array, support: Support) -> np.ndarray:
    """Positions of some rows, evenly spread, that can tell how smooth densities are: atoms have none."""
    first, last = support.reach.T
    others = np.flatnonzero(~np.isin(happened, support.values[first == last]))
    return others[np.linspace(0, len(others) - 1, min(len(others), JUDGING_ROWS)).astype(int)]


def smoothed(mass: Array, happened: Array, support: Support, unit: float) -> Smoothing:
    """The smoothing under which held-out values are most likely.

    Args:
        mass: Calibrated probabilities over the support, (n, m), of rows that their features have not seen.
        happened: What Y was there, (n,), no atoms; these rows are among those of the support.
        support: The values of Y.
        unit: A number of their size.
    """
    if not len(happened):
        return Smoothing.of_rows(support.n)
    prior, tried = np.broadcast_to(support.mass, mass.shape), []
    for share in in_force.get().density_shares:
        kernels = Kernels.of(support, share, unit)
        given, alone = kernels.without_own(happened, support, mass, prior)
        top = np.maximum(given, alone)
        p, q = (np.exp(part - top).clip(min=TINY) for part in (given, alone))
        mixed = max(best_mixture(p, q), 1 / (len(happened) + 1))  # no more certain than so many rows can tell
        tried.append(Candidate(Smoothing(share, mixed), 1, top + np.log((1 - mixed) * p + mixed * q)))
    return preferred(tried).what


def best_mixture(p: Array, q: Array) -> float:
    """How much of the probabilities q to mix into p, both of what happened and above 0, for the largest likelihood."""

    def slope(share: float) -> float:  # it rises with the share
        return float(np.mean((p - q) / ((1 - share) * p + share * q)))

    if slope(0.0) >= 0 or slope(1.0) <= 0:
        return 0.0 if slope(0.0) >= 0 else 1.0
    return float(brentq(slope, 0.0, 1.0))
