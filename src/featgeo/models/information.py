"""Information in nats: how much one variable tells of another, log p(y|x) / p(y) on average.

Finite alphabets: counts, whose plug-in value is too large by (cells - rows - columns + 1) / 2n to first order (Miller
and Madow). Elsewhere: the density ratio that a fit assembles. On rows that its features have not seen it tells too
little, by as much as it was mislearned; on the rows of the fit too much, to first order by the same amount (as in
Akaike's criterion). So the mean of both is the estimate, and the interval reaches from the one less its error to the
other plus its error. What modes that were not found would tell is not in the estimate, which for strong dependence is
one from below. The interval reaches at least as far as what bell curves tell of each other that are correlated as the
strongest mode is, -log(1 - sigma^2) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from featgeo.assembly.calibration import Calibration, held_out_information
from featgeo.assembly.links import Support
from featgeo.card import Card
from featgeo.features.scored import joint_symbols
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.learned import Unseen
from featgeo.models.base import happened
from featgeo.records import Result
from featgeo.schema import saved
from featgeo.tuning import in_force

STRONGEST = 1 - 1e-12  # correlation: beyond, information is infinite


@saved
@dataclass(frozen=True, repr=False)
class Information(Result):
    """An amount of information, in nats.

    Attributes:
        estimate: The amount, at least 0.
        standard_error: Of the estimate, over the rows.
        interval: From where to where it is believed to lie, with the confidence of `Options`.
        n_rows: How many rows tell.
        rests_on: What the estimate was read from.
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    n_rows: int
    rests_on: str

    def card(self) -> Card:
        """In one line."""
        low, high = self.interval
        level = f"{in_force.get().confidence:.0%}"
        return Card(
            [
                f"{self.estimate:.4f} nats +- {self.standard_error:.4f} ({level}: {low:.4f} to {high:.4f}; "
                f"{self.n_rows:,} rows; {self.rests_on})"
            ]
        )


def of_bells(correlation: float) -> float:
    """What bell curves tell of each other, in nats."""
    return float(-0.5 * np.log1p(-(min(abs(float(correlation)), STRONGEST) ** 2)))


@dataclass(frozen=True, eq=False)
class Told:
    """What rows are told of Y by what is known of them: log p(y|x) / p(y), in nats.

    Attributes:
        rows: Positions of the rows, (n,), in order.
        below: What they are told if they took no part: on average too little, (n,).
        above: The same if they did: on average too much, (n,).
        freedom: Parameters behind it; with nothing to tell, the estimate varies as a chi-square of so many does.
        rests_on: In words.
        bell: What bell curves tell that are correlated as the strongest mode is; 0 for counts, which miss nothing.
        missed: What may be told besides, and was not asked.
    """

    rows: np.ndarray
    below: Array
    above: Array
    freedom: int
    rests_on: str
    bell: float = 0.0
    missed: float = 0.0

    @classmethod
    def nothing(cls, rows: np.ndarray) -> Told:
        """Where no mode was found."""
        return cls(rows, np.zeros(len(rows)), np.zeros(len(rows)), 0, "modes")

    @classmethod
    def by_counts(cls, x: Rows, y: Rows) -> Told | None:
        """From a table of counts; None where x or y take too many values for one."""
        one, other = joint_symbols(x), joint_symbols(y)
        if one is None or other is None or one.size * other.size > len(x):
            return None
        counts = np.zeros((one.size, other.size))
        np.add.at(counts, (one.codes, other.codes), 1)
        n, sums = len(x), (counts.sum(axis=1)[one.codes], counts.sum(axis=0)[other.codes])
        above = np.log(counts[one.codes, other.codes] * n / (sums[0] * sums[1]))
        bias = (np.count_nonzero(counts) - one.size - other.size + 1) / (2 * n)
        freedom = (one.size - 1) * (other.size - 1)
        return cls(np.arange(n), above - 2 * bias, above, freedom, f"counts in {one.size} x {other.size} cells")

    @classmethod
    def by_features(cls, support: Support, unseen: Unseen, y: Rows, sigma: Array, calibrated: bool = True) -> Told:
        """From the density ratio of a fit.

        Args:
            support: The values of Y, with features of the modes of the fit.
            unseen: Features of some rows, of which `f` have not seen them.
            y: Y in all rows.
            sigma: Strengths of the modes, (k,).
            calibrated: Whether distributions are calibrated.
        """
        k = support.g.shape[1]
        f = unseen.f[:, unseen.f.shape[1] - k :]
        seen, at = unseen.final if unseen.final.shape == f.shape else f, happened(y.take(unseen.rows), support)
        below = held_out_information(support, f, at, calibrated)
        calibration = Calibration.fit(support, seen, at) if calibrated else Calibration()
        above = calibration.given(support, seen).information(at if support.continuous else support.values[at])
        modes = f"density ratio of {k} mode{'s' * (k != 1)}"
        above = above.clip(min=np.log(in_force.get().least_probability))
        return cls(unseen.rows, below, above, max(k, 1), modes, of_bells(sigma.max(initial=0.0)))

    def beyond(self, less: Told) -> Told:
        """What the rows are told beyond what others tell them."""
        return self._with(less, -1, f"{self.rests_on} less {less.rests_on}")

    def __add__(self, more: Told) -> Told:
        return self._with(more, 1, f"{self.rests_on}, and {more.rests_on}")

    def _with(self, other: Told, sign: int, words: str) -> Told:
        rows, own, others = np.intersect1d(self.rows, other.rows, assume_unique=True, return_indices=True)
        below, above = (a[own] + sign * b[others] for a, b in ((self.below, other.below), (self.above, other.above)))
        freedom, bell = max(self.freedom + sign * other.freedom, 1), self.bell + sign * other.bell
        return Told(rows, below, above, freedom, words, bell, self.missed + other.missed)

    def information(self) -> Information:
        """The average over the rows."""
        n, (low, high) = len(self.rows), sorted((float(self.below.mean()), float(self.above.mean())))
        error = float(np.sqrt(self.below.var() / n + self.freedom / (2 * n**2)))
        reach = float(ndtri((1 + in_force.get().confidence) / 2)) * error
        interval = max(low - reach, 0.0), max(max(high, self.bell) + self.missed + reach, 0.0)
        return Information(max((low + high) / 2, 0.0), error, interval, n, self.rests_on)
