"""Densities of numbers, from probabilities of neighbourhoods; and the ranked score of a distribution function.

Each neighbourhood spreads its probability as a bell curve about its mean value. A share of the prior lies within one
standard deviation of it on either side, the same share for all: curves are narrow where values are dense, wide in the
tails. Held-out rows choose the share by the log score, each without its own part in the neighbourhoods, and how much of
the prior is mixed in so that nothing is called impossible (`Smoothing`). Values with a probability of their own (atoms)
keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

from featgeo.features.variables import Candidate, preferred
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from featgeo.assembly.conditional import Support

JUDGING_ROWS = 2000  # that choose how to smooth, for time
GRID = np.array([-6, -4, -2.5, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2.5, 4, 6])  # where each bell is seen by integrals
TINY = 1e-300  # in place of 0, where logarithms are taken
BELL = 1.06  # width of the bells that suit n draws of a bell curve, over n^(-1/5) of its own (normal reference)


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
        return np.stack([self._mixed(weights, column) for column in at.T], axis=1)

    def grid(self) -> tuple[Array, Array]:
        """Places, (l,), and the values of all curves there, (c, l), both in units."""
        places = np.unique(self.centres[:, None] + self.widths[:, None] * GRID)
        return places, np.exp(self._logs(places[:, None])).T

    def without_own(self, mass: Array, at: Array, support: Support) -> Array:
        """Log densities at values of the fit, (n,), each as if its row had no part in the neighbourhoods."""
        own = np.searchsorted(support.reach[self.where, 0], at, side="right") - 1
        row, place, n = np.arange(len(at)), at[:, None] / self.unit, support.n * support.mass[self.where]
        sizes, centres = np.maximum(n.round()[own], 1.0), np.tile(self.centres, (len(at), 1))
        centres[row, own] += (centres[row, own] - place[:, 0]) / np.maximum(sizes - 1, 1.0)  # the mean of the others
        # Curves reach over so many rows; without one of them they reach farther.
        reached = np.maximum(2 * self.share * n.sum(), 2.0)
        widths = self.widths * (1 + (np.abs(place - centres) <= self.widths) / (reached - 1))
        weights = mass[:, self.where].copy()
        weights[row, own] *= (sizes - 1) / sizes
        weights /= weights.sum(axis=1, keepdims=True).clip(min=TINY)
        logs = _log_bell((place - centres) / widths, widths)
        with np.errstate(divide="ignore"):
            return np.asarray(logsumexp(logs, axis=1, b=weights) - np.log(self.unit))

    def _logs(self, places: Array) -> Array:
        """Logarithms of all curves at places that broadcast with (..., c), in units."""
        return _log_bell((places - self.centres) / self.widths, self.widths)

    def _mixed(self, weights: Array, at: Array) -> Array:
        return np.asarray(logsumexp(self._logs(at[:, None] / self.unit) + weights, axis=1) - np.log(self.unit))


def _log_bell(away: Array, widths: Array) -> Array:
    away = np.clip(away, -1e100, 1e100)  # even infinitely far off, the square is a number
    return np.asarray(-(away**2) / 2 - np.log(widths) - np.log(2 * np.pi) / 2)


def smoothed(mass: Array, happened: Array, support: Support, unit: float) -> Smoothing:
    """The smoothing under which held-out values are most likely.

    Args:
        mass: Calibrated probabilities over the support, (n, m), of rows that their features have not seen.
        happened: What Y was there, (n,); these rows are among those of the support.
        support: The values of Y.
        unit: A number of their size.
    """
    first, last = support.reach.T
    some = np.flatnonzero(~np.isin(happened, support.values[first == last]))
    some = some[np.linspace(0, len(some) - 1, min(len(some), JUDGING_ROWS)).astype(int)]
    if not len(some):
        return Smoothing.of_rows(support.n)
    mass, at, tried = mass[some], happened[some], []
    prior = np.broadcast_to(support.mass, mass.shape)
    for share in in_force.get().density_shares:
        kernels = Kernels.of(support, share, unit)
        given, alone = (kernels.without_own(part, at, support) for part in (mass, prior))
        top = np.maximum(given, alone)
        p, q = (np.exp(part - top).clip(min=TINY) for part in (given, alone))
        mixed = max(best_mixture(p, q), 1 / (len(some) + 1))  # no more certain than so many rows can tell
        tried.append(Candidate(Smoothing(share, mixed), 1, top + np.log((1 - mixed) * p + mixed * q)))
    return preferred(tried).what


def best_mixture(p: Array, q: Array) -> float:
    """How much of the probabilities q to mix into p, both of what happened and above 0, for the largest likelihood."""

    def slope(share: float) -> float:  # it rises with the share
        return float(np.mean((p - q) / ((1 - share) * p + share * q)))

    if slope(0.0) >= 0 or slope(1.0) <= 0:
        return 0.0 if slope(0.0) >= 0 else 1.0
    return float(brentq(slope, 0.0, 1.0))


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
