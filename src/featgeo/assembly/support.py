"""The values of Y that a conditional distribution spreads its mass over.

Labels and tables have finitely many values. Numbers are gathered into neighbourhoods, each with its mean value and the
mean of g over it, so that means stay exact; mass is spread evenly over each. Vectors are represented by rows drawn from
the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.schema import saved

# Neighbourhoods of equal mass: every answer costs as much as there are. What few modes say is smooth in the rank of y,
# so 256 even steps of it lose less than one row in a few hundred does; at both ends, where numbers lie far apart, the
# outermost is halved again and again.
MAX_NUMBERS = 256
EVALUATED_EACH = 5
ATOM_ROWS = 3  # a value with so many times the rows of others keeps its mass to itself
MAX_ROWS = 2000


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
    """

    kind: Literal["labels", "numbers", "rows"]
    values: np.ndarray
    mass: Array
    g: Array
    ends: Array | None = None

    @classmethod
    def of_numbers(cls, values: Array, features: Callable[[np.ndarray], Array]) -> Support:
        """Gather numbers into neighbourhoods.

        Args:
            values: The numbers, (n,).
            features: From positions among them, (m,), to g there, (m, k).
        """
        distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
        if len(distinct) <= MAX_NUMBERS:
            often = counts > ATOM_ROWS * np.median(counts)
            ends = _ends(distinct, distinct, often)
            return cls("numbers", distinct, counts / len(values), _centred(features(first), counts), ends)
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        last = np.cumsum(counts)
        often = counts > ATOM_ROWS * len(ordered) / MAX_NUMBERS
        even = np.searchsorted(ordered, ordered[_ranks(len(ordered))])  # no value is split, and each atom holds a rank
        starts = np.unique(np.concatenate([even, last[often]]))
        starts = starts[starts < len(ordered)]
        sizes = np.diff([*starts, len(ordered)])
        lowest, highest = ordered[starts], ordered[starts + sizes - 1]
        unit = unit_of(values)
        means = np.where(lowest == highest, lowest, np.add.reduceat(ordered / unit, starts) / sizes * unit)
        # A few rows of each neighbourhood tell the mean of g over it.
        some = starts[:, None] + (np.linspace(0.1, 0.9, EVALUATED_EACH) * sizes[:, None]).astype(int)
        g = features(order[some.ravel()]).reshape(len(starts), EVALUATED_EACH, -1).mean(axis=1)
        atoms = (lowest == highest) & np.isin(lowest, distinct[often])
        return cls("numbers", means, sizes / len(ordered), _centred(g, sizes), _ends(lowest, highest, atoms))

    @property
    def m(self) -> int:
        """How many values there are."""
        return len(self.mass)

    @property
    def continuous(self) -> bool:
        """For numbers, whether each stands for its neighbourhood and not only for itself."""
        return self.ends is not None

    @property
    def atoms(self) -> np.ndarray:
        """Which values stand for themselves only, (m,)."""
        return np.ones(self.m, dtype=bool) if self.ends is None else self.ends[:, 0] == self.ends[:, 1]


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


def _centred(g: Array, counts: Any) -> Array:
    return g - np.average(g, axis=0, weights=counts)
