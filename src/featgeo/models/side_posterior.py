"""How features of x become P(y|x, s): by the formula, or by a model that reads them beside s; held-out rows decide.

The formula (Prop. pred:est:side) is exact where all modes are there. Where X and S depend strongly, modes are many and
the divisor 1 + f_markov.g_markov is large, and the few modes that a sample can tell fall short of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import spread
from featgeo.assembly.links import MassLink, Recalibration
from featgeo.assembly.support import Support
from featgeo.card import Card, Shown
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.models.components import DependenceComponent
from featgeo.models.supports import positions
from featgeo.schema import saved

SHARES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of P(y|s), to choose from
SMALLEST = 1e-12
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
        cls, alone: Array, ways: Mapping[Way, Array], y: Rows, support: Support, shares: tuple[float, ...] = SHARES
    ) -> Posterior:
        """Choose the way and the share of the smallest loss; the formula where nothing is clearly better.

        Args:
            alone: P(y|s) over the support, (n, m), from rows other than these.
            ways: P(y|x, s) by each way, in the order of preference.
            y: What happened.
            support: The values of Y.
            shares: To choose from.
        """
        loss = _loss_of(y, support)
        best: dict[Way, tuple[float, Array]] = {}
        for way, mass in ways.items():
            tried = [loss((1 - share) * mass + share * alone) for share in shares]
            i = int(np.argmin([losses.mean() for losses in tried]))
            best[way] = shares[i], tried[i]
        chosen = next(iter(best))
        for way, (_, losses) in best.items():
            lead = best[chosen][1] - losses
            if lead.mean() > _error(lead):
                chosen = way
        share, losses = best[chosen]
        lead = loss(alone) - losses
        means = {way: float(losses.mean()) for way, (_, losses) in best.items()}
        mixed = (1 - share) * ways[chosen] + share * alone
        return cls(
            chosen,
            share,
            "CRPS" if support.continuous else "log loss",
            means | {ALONE: float(loss(alone).mean())},
            float(lead.mean()),
            _error(lead),
            (_r2(mixed, y, support), _r2(alone, y, support)) if support.continuous else None,
            len(y),
            _recalibrated(mixed, y, support),
        )

    def card(self) -> Card:
        """In one line how Y is assembled, and how well."""
        if not self.losses:
            return Card([f"y given x and s: by the {self.way}; no rows were held out to judge it"])
        by = {"formula": "the formula", "features": "a model of features of x beside s"}[self.way]
        share = f", {self.prior_share:g} of y given s mixed in" if self.prior_share else ""
        losses = ", ".join(f"{name} {loss:.4f}" for name, loss in self.losses.items())
        r2 = f"; R^2 {self.r2[0]:.4f}, of s alone {self.r2[1]:.4f}" if self.r2 else ""
        unit = " nats a row" if self.measure == "log loss" else ""
        line = (
            f"y given x and s: by {by}{share}; {self.measure} on {self.n_rows} held-out rows: {losses}; "
            f"gain over s alone {self.gain:.4f} +- {self.gain_error:.4f}{unit}{r2}"
        )
        return Card([line])


@dataclass(frozen=True, eq=False, repr=False)
class SideReport(Shown):
    """What a fit with side information found; print it for lines of text.

    Attributes:
        markov: The Markov component.
        conditional: The conditional component.
        posterior: How Y given X and S is assembled, and how it fares.
        dropped: What held-out rows called worse than no dependence, and is therefore not there.
    """

    markov: DependenceComponent
    conditional: DependenceComponent
    posterior: Posterior
    dropped: tuple[str, ...] = ()

    def card(self) -> Card:
        """A line for each part."""
        doubts = [part.doubt for part in (self.markov, self.conditional) if part.doubt]
        lines = [str(part) for part in (self.markov, self.conditional, self.posterior)]
        return Card(lines, doubts=[*doubts, *self.dropped])


def _loss_of(y: Rows, support: Support) -> Callable[[Array], Array]:
    """From masses, (n, m), to the loss of each row, (n,)."""
    if support.continuous:
        happened = y.single_numbers[:, None] <= support.values[:-1]
        widths = np.diff(support.values)
        return lambda mass: (np.cumsum(mass, axis=1)[:, :-1] - happened) ** 2 @ widths
    index = positions(y, support.values)[:, None]
    return lambda mass: -np.log(np.take_along_axis(mass, index, axis=1)[:, 0].clip(min=SMALLEST))


def _recalibrated(mass: Array, y: Rows, support: Support) -> Recalibration | None:
    """How masses, (n, m), are to be mapped for numbers to fall below their quantiles as often as they should."""
    if not support.continuous:
        return None
    numbers = y.single_numbers
    return Recalibration.fit(Conditional(support, mass, link=MassLink()).pit(numbers, spread(numbers)))


def _r2(mass: Array, y: Rows, support: Support) -> float:
    numbers = y.single_numbers
    return float(1 - np.mean((numbers - mass @ support.values) ** 2) / numbers.var())


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
