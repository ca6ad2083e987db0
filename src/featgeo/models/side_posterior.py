"""How features of x become P(y|x, s): by the formula, or by a model that reads them beside s; held-out rows decide.

The formula (Prop. pred:est:side) is exact where all modes are there. Where X and S depend strongly, modes are many and
the divisor 1 + f_markov.g_markov is large, and the few modes that a sample can tell fall short of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from featgeo.assembly.conditional import Calibration, MassLink, Recalibration, Support, best_share, losses
from featgeo.card import Card, Shown
from featgeo.geometry.validation import Array
from featgeo.schema import saved

ALONE = "y given s alone"

Way = Literal["formula", "features"]


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Shown):
    """How Y given X and S is assembled, and how it fares on rows that its features have not seen.

    Attributes:
        way: "formula" for that of Prop. pred:est:side, "features" for a model of Y from features of X beside S.
        prior_share: How much of P(y|s) is mixed in; at 1 nothing but P(y|s) is left.
        measure: Of the losses: "log loss", or "CRPS" (the continuous ranked probability score) for numbers.
        losses: The mean of each way with its best share, of P(y|s) alone, and of what was chosen.
        gain: By how much the choice is better than P(y|s) alone, on the same rows and in the same units: for log loss
            nats a row, an estimate from below of the information that X adds to S.
        gain_error: Its standard error over the rows.
        r2: For numbers the coefficients of determination of the means, by the choice and by P(y|s) alone.
        n_rows: How many rows judged; 0 where there were too few.
        recalibration: For numbers, how the distribution function of the choice is mapped to what these rows show.
    """

    way: Way = "formula"
    prior_share: float = 0.0
    measure: str = "log loss"
    losses: Mapping[str, float] | None = None
    gain: float = float("nan")
    gain_error: float = float("nan")
    r2: tuple[float, float] | None = None
    n_rows: int = 0
    recalibration: Recalibration | None = None

    @classmethod
    def judged(
        cls, alone: Array, ways: Mapping[Way, Array], happened: np.ndarray, support: Support, mixed: bool = True
    ) -> Posterior:
        """Choose the way and the share of the smallest loss; the formula where nothing is clearly better.

        Args:
            alone: P(y|s) over the support, (n, m), from rows other than these.
            ways: P(y|x, s) by each way, in the order of preference.
            happened: What Y was, (n,): for continuous numbers itself, else its position in the support.
            support: The values of Y.
            mixed: Whether some of P(y|s) may be mixed in.
        """
        shares = {way: best_share(mass, alone, happened, support) if mixed else 0.0 for way, mass in ways.items()}
        masses = {way: (1 - share) * ways[way] + share * alone for way, share in shares.items()}
        lost = {way: losses(mass, happened, support) for way, mass in masses.items()}
        chosen = next(iter(ways))
        for way in ways:
            lead = lost[chosen] - lost[way]
            if lead.mean() > _error(lead):
                chosen = way
        lost_alone = losses(alone, happened, support)
        lead = lost_alone - lost[chosen]
        return cls(
            chosen,
            shares[chosen],
            "CRPS" if support.continuous else "log loss",
            {way: float(part.mean()) for way, part in (lost | {ALONE: lost_alone}).items()},
            float(lead.mean()),
            _error(lead),
            (_r2(masses[chosen], happened, support), _r2(alone, happened, support)) if support.continuous else None,
            len(happened),
            Calibration.fit(support, masses[chosen], happened, MassLink()).recalibration,
        )

    def card(self) -> Card:
        """In one line how Y is assembled, and how well."""
        if not self.losses:
            return Card([f"y given x and s: by the {self.way}; no rows were held out to judge it"])
        by = {"formula": "the formula", "features": "a model of features of x beside s"}[self.way]
        share = f", {self.prior_share:.2g} of y given s mixed in" if self.prior_share else ""
        losses = ", ".join(f"{name} {loss:.4f}" for name, loss in self.losses.items())
        r2 = f"; R^2 {self.r2[0]:.4f}, of s alone {self.r2[1]:.4f}" if self.r2 else ""
        unit = " nats a row" if self.measure == "log loss" else ""
        line = (
            f"y given x and s: by {by}{share}; {self.measure} on {self.n_rows} held-out rows: {losses}; "
            f"gain over s alone {self.gain:.4f} +- {self.gain_error:.4f}{unit}{r2}"
        )
        return Card([line])


def _r2(mass: Array, numbers: Array, support: Support) -> float:
    return float(1 - np.mean((numbers - mass @ support.values) ** 2) / numbers.var())


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
