"""Distributions of Y given X and side information S, by Prop. pred:est:side:

    P(y|x, s) = P(y|s) (1 + f(x).g(s, y) / (1 + f_markov(x).g_markov(s))).

Only features of x meet s: where both are held by different parties, nothing else needs to cross.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from featgeo.assembly.links import Link, Support, nearest_density
from featgeo.geometry.validation import Array

# What rounding leaves where exact counts say that x and s never occur together: then x adds nothing to what s says.
NEVER_TOGETHER = np.sqrt(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class SideRows:
    """What is known of some rows; a slice of it is the same of fewer.

    Attributes:
        f: Features of x, (n, k), each times its singular value: those that the link reads.
        together: 1 + f_markov(x).g_markov(s), (n,): how much more often x and s occur together than if independent.
        s: Rows of the side information.
    """

    f: Array
    together: Array
    s: Any

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, rows: slice) -> SideRows:
        return SideRows(self.f[rows], self.together[rows], self.s.take(rows))


@dataclass(frozen=True, eq=False)
class ModelLink(Link):
    """From features of x and rows of s to density ratios, by a model of y that reads both.

    Attributes:
        mass: From features of x, (n, k), and rows of s to P(y|f(x), s) over the support, (n, m).
        mass_given: From rows of s to P(y|s) over the support, (n, m).
        prior_share: How much of P(y|s) is mixed in.
    """

    mass: Callable[[Array, Any], Array]
    mass_given: Callable[[Any], Array]
    prior_share: float = 0.0

    def ratio(self, rows: SideRows, support: Support) -> Array:
        """P(y|f(x), s) over the prior of the support, (n, m)."""
        mass = self.mass(rows.f, rows.s)
        if self.prior_share:
            mass = (1 - self.prior_share) * mass + self.prior_share * self.mass_given(rows.s)
        return mass / support.mass

    def likelihood(self, rows: SideRows, support: Support) -> Array:
        """What is proportional to p(f(x)|s, y) for each row, (n, m)."""
        given = self.mass_given(rows.s)
        return np.divide(self.mass(rows.f, rows.s), given, out=np.zeros_like(given), where=given > 0)


@dataclass(frozen=True, eq=False)
class SideLink(Link):
    """From features of x and rows of s to density ratios p(y|x, s) / p(y).

    Attributes:
        mass_given: From rows of s to P(y|s) over the support, (n, m).
        g: From rows of s to g(s, y) for each y of the support, (n, m, k).
        fewest_together: The least that 1 + f_markov.g_markov is taken to be, where it is only an estimate.
        prior_share: How much of P(y|s) is mixed in, so that nothing is called impossible that the sample did not show.
        cells_a_value: k: what a row needs for each value of y.
    """

    mass_given: Callable[[Any], Array]
    g: Callable[[Any], Array]
    fewest_together: float = 0.0
    prior_share: float = 0.0
    cells_a_value: int = 1

    def ratio(self, rows: SideRows, support: Support) -> Array:
        """The nearest densities, in the metric of P(y|s), over the prior of the support, (n, m)."""
        mass = self.mass_given(rows.s)
        density = nearest_density(self._tilt(rows, mass), mass)
        return ((1 - self.prior_share) * density + self.prior_share) * mass / support.mass

    def likelihood(self, rows: SideRows, support: Support) -> Array:
        """What is proportional to p(x|s, y) for each row, (n, m)."""
        return self._tilt(rows, self.mass_given(rows.s)).clip(min=0)

    def negative_mass(self, rows: SideRows, support: Support) -> Array:
        """What lies below zero before it is made a density, (n,)."""
        mass = self.mass_given(rows.s)
        return np.vecdot((-self._tilt(rows, mass)).clip(min=0), mass)

    def _tilt(self, rows: SideRows, mass: Array) -> Array:
        g = self.g(rows.s)
        g = g - np.einsum("nm,nmk->nk", mass, g)[:, None]  # E[g(s, Y)|s] = 0, also where P(y|s) was estimated apart
        together = np.maximum(rows.together, self.fewest_together)
        known = together > NEVER_TOGETHER
        scale = np.where(known, together, 1.0)
        return 1 + np.where(known[:, None], np.einsum("nk,nmk->nm", rows.f, g) / scale[:, None], 0.0)
