"""From features to density ratios p(y|x) / p(y), and how probabilities are set right on held-out rows.

- `LinearLink` is the theory's 1 + f.g, made a density where it goes below zero; a share of the prior mixed in keeps it
  away from zero.
- `ExponentialLink` is a softmax of the features: the same to first order where the dependence is weak (section 3.3 of
  the paper), always positive, and fitted to held-out rows by maximum likelihood. The features stay as they are.
- `Recalibration` maps the predicted to the observed frequencies of {Y <= quantile}.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from featgeo.assembly.support import Support
from featgeo.geometry.validation import Array
from featgeo.schema import saved

# Held-out rows are finite: no event is called impossible that they merely did not show.
SMALLEST_RATIO = 1e-6
FAR = 1e9  # beside larger numbers 1 is no longer known to seven digits
FARTHEST = 1e100  # products of such features with others are numbers
FEWEST_BELOW = 10  # rows that tell how often Y lies further out than a quantile


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
        density = nearest_density(1 + _bounded(f) @ support.g.T, support.mass)
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
        weight, bias = np.zeros((support.m, f.shape[1])), np.full(support.m, np.log(SMALLEST_RATIO))
        if len(model.classes_) == 2:  # scikit-learn keeps only the second of two
            weight[model.classes_[1]], bias[model.classes_[0]] = model.coef_[0], 0.0
            bias[model.classes_[1]] = model.intercept_[0]
        else:
            weight[model.classes_], bias[model.classes_] = model.coef_, model.intercept_
        return cls(weight / scale, bias - np.log(support.mass))

    def ratio(self, f: Array, support: Support) -> Array:
        """Always positive."""
        logits = f @ self.weight.T + self.bias
        return np.exp(logits - logits.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class MassLink(Link):
    """Probabilities that are known already, in place of features."""

    def ratio(self, f: Array, support: Support) -> Array:
        """Over the prior."""
        return f / support.mass


@saved
@dataclass(frozen=True, eq=False)
class Recalibration:
    """A monotone map from predicted to observed probabilities of Y <= quantile.

    Attributes:
        predicted: Knots, (r,), from 0 to 1.
        observed: Their images.
    """

    predicted: Array
    observed: Array

    @classmethod
    def fit(cls, pit: Array) -> Recalibration:
        """From P(Y <= y_i | x_i) at rows that the features have not seen, (n,)."""
        # Each step rests on twice the root of the number of rows: more would follow noise (the slope multiplies
        # densities), fewer miss where the map bends.
        steps = max(2, round(np.sqrt(len(pit)) / 2))
        halves = 1 / steps / 2 ** np.arange(1, max(1, len(pit) // (steps * FEWEST_BELOW)).bit_length())
        knots = np.unique(np.concatenate([np.linspace(0, 1, steps + 1), halves, 1 - halves]))
        predicted = np.quantile(pit, knots)
        predicted[[0, -1]] = 0, 1
        # Where many rows share a value the quantiles do too; a slope, however small, keeps the map invertible.
        predicted = np.maximum.accumulate(predicted + 1e-9 * np.arange(len(knots)))
        return cls(predicted / predicted[-1], knots)

    def forward(self, probability: Array) -> Array:
        """What was observed where so much was predicted."""
        return np.interp(probability, self.predicted, self.observed)

    def backward(self, probability: Array) -> Array:
        """What was predicted where so much was observed."""
        return np.interp(probability, self.observed, self.predicted)

    def __call__(self, weights: Array) -> Array:
        """Probabilities of ordered values, (n, m), set right."""
        cumulative = np.cumsum(weights, axis=1)
        cumulative /= cumulative[:, -1:]
        return np.diff(self.forward(cumulative), axis=1, prepend=0)


def _bounded(f: Array) -> Array:
    """Features, (n, k), with rows that lie beyond all measure brought back along their direction: what follows is the
    same, since the density is long that of the largest f.g alone.
    """
    size = np.abs(f).max(axis=1, keepdims=True, initial=0)
    return f * (FARTHEST / size.clip(min=FARTHEST)) if (size > FARTHEST).any() else f


def mean_under(values: Array, mass: Array) -> Array:
    """The mean of each row, (n,), under masses that all rows share, (m,), or that each has of its own, (n, m)."""
    return values @ mass if mass.ndim == 1 else (values * mass).sum(axis=1)


def nearest_density(ratio: Array, mass: Array) -> Array:
    """The nearest functions, in the metric of `mass`, that are nowhere negative and have mean 1: max(0, ratio - shift).

    Args:
        ratio: One function a row, (n, m).
        mass: Of the values, (m,), or of each row's own, (n, m).
    """
    ratio = _within_reach(ratio, mass)
    shift = mean_under(ratio, mass) - 1
    below = np.flatnonzero(ratio.min(axis=1, initial=np.inf) < shift)
    if len(below) == len(ratio):
        shift = _shift(ratio, mass)
    elif len(below):
        shift[below] = _shift(ratio[below], mass if mass.ndim == 1 else mass[below])
    result = ratio - shift[:, None]
    return np.maximum(result, 0, out=result)


def _within_reach(ratio: Array, mass: Array) -> Array:
    """Rows with values so large that 1 is lost beside them, (n, m), moved to a largest value of 0.

    A density of mean 1 is at most 1 over the mass of its largest value there. So values that much lower are 0 in the
    end, however low they are.
    """
    far = np.flatnonzero(np.abs(ratio).max(axis=1, initial=0) > FAR)
    if len(far) == 0:
        return ratio
    moved = ratio[far] - ratio[far].max(axis=1, keepdims=True)
    top = np.take_along_axis(np.broadcast_to(mass, ratio.shape)[far], moved.argmax(axis=1)[:, None], axis=1)
    ratio = ratio.copy()
    ratio[far] = np.maximum(moved, -2 / np.maximum(top, 1 / FAR))
    return ratio


def _shift(ratio: Array, mass: Array) -> Array:
    """What to take off each row, (n,), for what is left above zero to have mean 1.

    What lies below is left out until nothing more does (Michelot's algorithm); rows are done one after the other.
    """
    product = "nm,nm,m->n" if mass.ndim == 1 else "nm,nm,nm->n"
    shift = mean_under(ratio, mass) - 1
    left, reached = np.arange(len(ratio)), np.full(len(ratio), np.inf)
    while len(left):
        above = (ratio > shift[left, None]).astype(np.float64)
        whole = mean_under(above, mass)
        shift[left] = (np.einsum(product, ratio, above, mass) - 1) / whole
        changed = whole != reached
        left, reached, ratio = left[changed], whole[changed], ratio[changed]
        mass = mass if mass.ndim == 1 else mass[changed]
    return shift
