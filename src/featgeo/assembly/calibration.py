"""How assembled distributions are set right: by rows that their features have not seen.

Few modes of a strong dependence spread Y too widely, noisy ones too narrowly. Neither shows on the rows of the fit.

- Numbers: held-out rows say how often Y fell below each predicted quantile, and one map of probabilities, the same for
  all x, makes that as often as it should be (`Recalibration`). Intervals then cover as often as they say, on average
  over x.
- Labels, and numbers of few values: of the theory's formula with some of the prior mixed in, and a softmax of the same
  features, the one of the smallest log loss (`calibrated_link`).
- Vectors have no order and rarely come twice: they keep the formula.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import LinearLink, Link, Recalibration, calibrated_link
from featgeo.assembly.support import Support
from featgeo.geometry.validation import Array
from featgeo.schema import saved

FEWEST_ROWS = 50  # with fewer, observed frequencies are off by more than 0.07, as much as most formulas are


@saved
@dataclass(frozen=True, eq=False)
class Calibration:
    """From features to distributions, as held-out rows want it; without any, the plain formula 1 + f.g.

    Attributes:
        link: From features to density ratios.
        recalibration: A map of the distribution function, for numbers.
    """

    link: Link = field(default_factory=LinearLink)
    recalibration: Recalibration | None = None

    @classmethod
    def fit(cls, support: Support, f: Array, happened: np.ndarray) -> Calibration:
        """Learn it from rows that the features have not seen; too few of them leave the formula as it is.

        Args:
            support: The values of Y.
            f: Features of those rows, (n, k), each times its singular value.
            happened: What Y was there, (n,): for continuous numbers itself, else its position in the support.
        """
        if len(f) < FEWEST_ROWS or support.kind == "rows":
            return cls()
        if not support.continuous:
            return cls(calibrated_link(f, happened, support))
        return cls(recalibration=Recalibration.fit(Conditional(support, f).pit(happened, spread(happened))))


def spread(values: Array) -> Array:
    """Evenly from 0 to 1 over the rows that share a value, in their order: where in the jump of an atom each falls."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    place = np.empty(len(values))
    place[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray((place + 0.5) / counts[inverse])
