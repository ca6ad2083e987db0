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
from typing import Any

import numpy as np
from scipy.optimize import brentq

from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import ExponentialLink, LinearLink, Link, Recalibration
from featgeo.assembly.support import Support
from featgeo.geometry.validation import Array
from featgeo.schema import saved

FEWEST_ROWS = 50  # with fewer, observed frequencies are off by more than 0.07, as much as most formulas are
CELLS = 4_000_000  # probabilities that a link is judged by, at most, for time: a row has one for each label
FEWEST_JUDGING = 200  # rows, however many labels there are
SMALLEST = 1e-12  # probability in a log loss: no single row outweighs all others


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
    def fit(cls, support: Support, f: Array, happened: np.ndarray, link: Link | None = None) -> Calibration:
        """Learn it from rows that the features have not seen; too few of them leave the formula as it is.

        Args:
            support: The values of Y.
            f: Features of those rows, (n, k), each times its singular value; or whatever else the link reads.
            happened: What Y was there, (n,): for continuous numbers itself, else its position in the support.
            link: The one to keep; of labels the best when None.
        """
        enough, plain = len(f) >= FEWEST_ROWS and support.kind != "rows", LinearLink() if link is None else link
        if enough and support.continuous:
            return cls(plain, Recalibration.fit(Conditional(support, f, link=plain).pit(happened, spread(happened))))
        return cls(calibrated_link(f, happened, support) if enough and link is None else plain)

    def given(self, support: Support, f: Any, prior: Any = None) -> Conditional:
        """The distributions of rows with these features, (n, k), each times its singular value."""
        return Conditional(support, f, prior, self.link, self.recalibration)


def calibrated_link(f: Array, index: np.ndarray, support: Support) -> Link:
    """The link of the smallest log loss on rows that the features have not seen.

    Args:
        f: Features of those rows, (n, k), each times its singular value.
        index: Position of each row's value of Y in the support, (n,).
        support: The labels.
    """
    some = _affordable(len(f), support.m)
    f, index = f[some], index[some]
    linear = LinearLink(best_share(Conditional(support, f).proba(), support.mass, index, support))
    half = np.arange(len(f)) % 2 == 0  # the softmax has parameters: judge it on rows it was not fitted to
    if not f.shape[1] or any(set(index[part]) != set(index) or len(set(index)) < 2 for part in (half, ~half)):
        return linear
    crossed = [
        _mean_loss(ExponentialLink.fit(f[part], index[part], support), f[~part], index[~part], support)
        for part in (half, ~half)
    ]
    better = np.mean(crossed) < _mean_loss(linear, f, index, support)
    return ExponentialLink.fit(f, index, support) if better else linear


def _affordable(n: int, m: int) -> np.ndarray:
    """Positions of rows, evenly spread, whose probabilities of all labels are had in little time."""
    return np.unique(np.linspace(0, n - 1, min(n, max(FEWEST_JUDGING, CELLS // m))).astype(int))


def _mean_loss(link: Link, f: Array, index: np.ndarray, support: Support) -> float:
    return float(losses(Conditional(support, f, link=link).proba(), index, support).mean())


def losses(mass: Array, happened: np.ndarray, support: Support) -> Array:
    """How far masses over the support, (n, m), are from what happened, for each row, (n,).

    For labels the log loss, in nats; for continuous numbers the ranked probability score, the squared distance of the
    distribution functions. Both are convex in the masses.

    Args:
        mass: Of each row.
        happened: As in `Calibration.fit`.
        support: The values of Y.
    """
    if support.continuous:
        return _missed(mass, happened, support) ** 2 @ np.diff(support.values)
    return -np.log(mass[np.arange(len(mass)), happened].clip(min=SMALLEST))


def best_share(mass: Array, alone: Array, happened: np.ndarray, support: Support) -> float:
    """How much of some masses, (n, m) or (m,), to mix into others, (n, m), for the smallest mean loss."""
    alone = np.broadcast_to(alone, mass.shape)
    if support.continuous:
        widths = np.diff(support.values)
        apart = np.cumsum(mass - alone, axis=1)[:, :-1]
        size = float((apart**2 @ widths).sum())
        wanted = float((apart * _missed(mass, happened, support) @ widths).sum())
        return min(max(wanted / size, 0.0), 1.0) if size > 0 else 0.0
    p, q = (part[np.arange(len(mass)), happened].clip(min=SMALLEST) for part in (mass, alone))

    def slope(share: float) -> float:  # it rises with the share
        return float(np.mean((p - q) / ((1 - share) * p + share * q)))

    if slope(0.0) >= 0 or slope(1.0) <= 0:
        return 0.0 if slope(0.0) >= 0 else 1.0
    return float(brentq(slope, 0.0, 1.0))


def _missed(mass: Array, happened: Array, support: Support) -> Array:
    """By how much the distribution function is off between each two neighbouring numbers, (n, m - 1)."""
    return np.cumsum(mass, axis=1)[:, :-1] - (happened[:, None] <= support.values[:-1])


def spread(values: Array) -> Array:
    """Evenly from 0 to 1 over the rows that share a value, in their order: where in the jump of an atom each falls."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    place = np.empty(len(values))
    place[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray((place + 0.5) / counts[inverse])
