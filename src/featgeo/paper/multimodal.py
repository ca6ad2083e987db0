"""The laws of two sources and a label (section 7.4): what each source says alone, and what only both say together.

X1 and X2 on [-1, 1] have density (1 + cos(2 pi (x1 - x2))) / 4, so each is uniform, and Y is 1 or -1 with

    P(Y = 1 | x1, x2) = 1/2 + w (cos(pi x1) + cos(pi x2) + cos(pi (x1 + x2))).

The first two terms are the bivariate component, the third, whose mean given either source is 0, the interaction. The
paper's w = 1/4 is no probability: at 0 it gives 5/4. A sampler that compares it with a uniform number cuts it at 1:
that is the law "clipped". The law "valid" has w = 1/6, which stays within [1/4, 1]. The law "pairwise" has w = 1/4
without the third term, and can be learned from pairs of variables.

What is cut off, e(x1, x2), enters every truth of the clipped law. At a fixed x1, with a = pi x1 and t = pi x2 + a/2, it
is a quarter of 2 cos(a/2) cos(t) - (2 - cos(a)) where that is positive: smooth between two known ends, so that Gauss's
rule integrates it to the last digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.paper.cosine import companions

SAMPLES = 50_000
LAWS = {"clipped": (1 / 4, 1), "valid": (1 / 6, 1), "pairwise": (1 / 4, 0)}  # w, and whether the third term is there

CELLS = 128
GRID = (np.arange(CELLS) + 0.5) * 2 / CELLS - 1
GRID_1, GRID_2 = (part.ravel() for part in np.meshgrid(GRID, GRID, indexing="ij"))

LAST_CUT = 2 * np.arccos((np.sqrt(7) - 1) / 2) / np.pi  # beyond this |x1| nothing is cut off, whatever x2


class Sample(NamedTuple):
    """Triples of two sources and a label, (n,) each."""

    x1: Array
    x2: Array
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Learned:
    """What is learned of a law, on the grids.

    Attributes:
        features: Of the bivariate component at (`GRID_1`, `GRID_2`) and, where the law has one, of the interaction.
        posterior: P(Y=1|x1, x2) there.
        singles: P(Y=1|x1) and P(Y=1|x2) on `GRID`.
        sigma: Singular value of each component.
    """

    features: Sequence[Array]
    posterior: Array
    singles: Sequence[Array]
    sigma: Sequence[float]


def density(x1: Array, x2: Array) -> Array:
    """Of (X1, X2)."""
    return (1 + np.cos(2 * np.pi * (x1 - x2))) / 4


WEIGHTS = density(GRID_1, GRID_2) * (2 / CELLS) ** 2  # of the points of the grid; they sum to 1


class Truth:
    """What a law says exactly.

    The feature of the bivariate component is the best sum h(x1) + h(x2) for P(Y=1|x1, x2), so h + tau h is what one
    source alone says, with tau the conditional expectation given the other one. For this density tau halves
    cos(2 pi x) and sends all else that is even with mean 0 to 0: only the coefficient of that cosine is corrected.

    Args:
        law: One of `LAWS`.
        nodes: Integrals over one source take this many points on each side of the last cut.

    Attributes:
        prior: P(Y=1).
        sigma: Singular value of the bivariate component and, where the law has one, of the interaction, (k,).
    """

    def __init__(self, law: str, nodes: int = 200) -> None:
        self.weight, self.interacting = LAWS[law]
        self.cut = law == "clipped"
        x, mass = _quadrature(nodes)
        lost, squared = (float(mass @ excess(x, power)) if self.cut else 0.0 for power in (1, 2))
        self.prior = 1 / 2 - lost
        said = self.single(x) - self.prior
        self.coefficient = 2 * float(mass @ (said * np.cos(2 * np.pi * x)))
        bivariate = 2 * float(mass @ (self.half(x) * said))
        # (p - e - 1/2)^2 = (p - 1/2)^2 - e - e^2, for p = 1 + e wherever e is not 0.
        whole = self.weight**2 * (1 + self.interacting / 2) - lost - squared - lost**2
        self.scales = np.sqrt([bivariate, whole - bivariate][: 1 + self.interacting])  # of the features
        self.sigma = self.scales / np.sqrt(self.prior * (1 - self.prior))

    def posterior(self, x1: Array, x2: Array) -> Array:
        """P(Y=1|x1, x2)."""
        alone = np.cos(np.pi * x1) + np.cos(np.pi * x2)
        return np.minimum(1 / 2 + self.weight * (alone + self.interacting * np.cos(np.pi * (x1 + x2))), 1)

    def single(self, x: Array) -> Array:
        """P(Y=1|x1) as a function of x1; by symmetry also P(Y=1|x2) of x2."""
        uncut = 1 / 2 + self.weight * np.cos(np.pi * x)
        return uncut - excess(x) if self.cut else uncut

    def half(self, x: Array) -> Array:
        """The part of P(Y=1|x1, x2) that is a function of one source, h(x1) or h(x2)."""
        return self.single(x) - self.prior - self.expected_half(x)

    def expected_half(self, x: Array) -> Array:
        """E[h(X2)|x1] as a function of x1."""
        return self.coefficient / 3 * np.cos(2 * np.pi * x)

    def features(self, x1: Array, x2: Array) -> list[Array]:
        """Of the bivariate component and, where the law has one, of the interaction; each of mean 0 and variance 1."""
        alone = self.half(x1) + self.half(x2)
        parts = (alone, self.posterior(x1, x2) - self.prior - alone)
        return [part / scale for part, scale in zip(parts, self.scales, strict=False)]


truth = cache(Truth)  # the exact functions of a law


def excess(x1: Array, power: int = 1) -> Array:
    """E[e(X1, X2)^power | x1], e being what the law "clipped" cuts off."""
    a = np.pi * np.asarray(x1, dtype=float)[..., None]
    height, level = 2 * np.cos(a / 2), 2 - np.cos(a)
    # Nothing is cut off where the height does not reach the level: both ends of the integral are then 0.
    end = np.arccos(np.divide(level, height, out=np.ones_like(a), where=height > level))
    nodes, weights = np.polynomial.legendre.leggauss(32)
    t = end * nodes
    cut = (height * np.cos(t) - level) / 4
    return (cut**power * (1 + np.cos(3 * a - 2 * t)) * weights * end).sum(axis=-1) / (2 * np.pi)


def _quadrature(nodes: int) -> tuple[Array, Array]:
    """Points and weights for the mean of an even function of one source, smooth on each side of the last cut."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    ends = ((0.0, LAST_CUT), (LAST_CUT, 1.0))
    x = np.concatenate([(low + high) / 2 + (high - low) / 2 * points for low, high in ends])
    return x, np.concatenate([(high - low) / 2 * weights for low, high in ends])


def draw(law: str, seed: int, n: int = SAMPLES) -> Sample:
    """Draw n triples of a law."""
    rng = np.random.default_rng(seed)
    x1 = rng.uniform(-1, 1, n)
    x2 = companions(x1, 2, rng)
    return Sample(x1, x2, np.where(rng.random(n) < truth(law).posterior(x1, x2), 1, -1))
