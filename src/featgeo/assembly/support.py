"""The values of Y that a conditional distribution spreads its mass over.

Labels and tables have finitely many values. Numbers are gathered into at most a thousand neighbourhoods of equal mass,
each with its mean value and the mean of g over it, so that means stay exact; between them distributions are
interpolated. Vectors are represented by rows drawn from the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from featgeo.geometry.validation import Array

MAX_NUMBERS = 1000
MAX_EVALUATED = 5_000
MAX_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Support:
    """Values of Y with their prior mass and the features g at each.

    Attributes:
        kind: "labels" have no order; "numbers" have one; "rows" are vectors.
        values: The values, (m,) or (m, columns).
        mass: Prior probability of each, (m,).
        g: Features of each, (m, k), of prior mean 0.
        continuous: For numbers, whether each stands for its neighbourhood and not only for itself.
    """

    kind: Literal["labels", "numbers", "rows"]
    values: np.ndarray
    mass: Array
    g: Array
    continuous: bool = False

    @classmethod
    def of_numbers(cls, values: Array, features: Callable[[np.ndarray], Array]) -> Support:
        """Gather numbers into neighbourhoods.

        Args:
            values: The numbers, (n,).
            features: From positions among them, (m,), to g there, (m, k).
        """
        distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
        if len(distinct) <= MAX_NUMBERS:
            return cls("numbers", distinct, counts / counts.sum(), _centred(features(first), counts), True)
        positions = np.argsort(values, kind="stable")
        if len(positions) > MAX_EVALUATED:  # a few values of each neighbourhood tell its mean
            positions = positions[np.linspace(0, len(positions) - 1, MAX_EVALUATED).round().astype(int)]
        ordered = values[positions]
        edges = np.unique(np.searchsorted(ordered, ordered[np.linspace(0, len(ordered) - 1, MAX_NUMBERS).astype(int)]))
        counts = np.diff([*edges, len(ordered)])
        means = np.add.reduceat(np.column_stack([ordered, features(positions)]), edges, axis=0) / counts[:, None]
        return cls("numbers", means[:, 0], counts / len(ordered), _centred(means[:, 1:], counts), True)

    @property
    def m(self) -> int:
        """How many values there are."""
        return len(self.mass)


def _centred(g: Array, counts: Any) -> Array:
    return g - np.average(g, axis=0, weights=counts)
