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
EVALUATED_EACH = 5
ATOM_ROWS = 3  # a value with so many times the rows of others keeps its mass to itself
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
        atoms: For continuous numbers, (m,): those that do stand for themselves only, such as the zeros of rainfall.
    """

    kind: Literal["labels", "numbers", "rows"]
    values: np.ndarray
    mass: Array
    g: Array
    continuous: bool = False
    atoms: np.ndarray | None = None

    @classmethod
    def of_numbers(cls, values: Array, features: Callable[[np.ndarray], Array]) -> Support:
        """Gather numbers into neighbourhoods.

        Args:
            values: The numbers, (n,).
            features: From positions among them, (m,), to g there, (m, k).
        """
        distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
        if len(distinct) <= MAX_NUMBERS:
            atoms = (counts > ATOM_ROWS) & (counts > ATOM_ROWS * np.median(counts))
            return cls("numbers", distinct, counts / counts.sum(), _centred(features(first), counts), True, atoms)
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        ends = np.cumsum(counts)
        often = counts > ATOM_ROWS * len(ordered) / MAX_NUMBERS
        even = np.searchsorted(ordered, ordered[np.linspace(0, len(ordered) - 1, MAX_NUMBERS).astype(int)])
        edges = np.unique(np.concatenate([even, (ends - counts)[often], ends[often]]))
        edges = edges[edges < len(ordered)]
        counts = np.diff([*edges, len(ordered)])
        same = ordered[edges] == ordered[edges + counts - 1]
        means = np.where(same, ordered[edges], np.add.reduceat(ordered, edges) / counts)
        # A few rows of each neighbourhood tell the mean of g over it.
        some = edges[:, None] + (np.linspace(0.1, 0.9, EVALUATED_EACH) * counts[:, None]).astype(int)
        g = features(order[some.ravel()]).reshape(len(edges), EVALUATED_EACH, -1).mean(axis=1)
        atoms = same & np.isin(means, distinct[often])
        return cls("numbers", means, counts / len(ordered), _centred(g, counts), True, atoms)

    @property
    def m(self) -> int:
        """How many values there are."""
        return len(self.mass)


def _centred(g: Array, counts: Any) -> Array:
    return g - np.average(g, axis=0, weights=counts)
