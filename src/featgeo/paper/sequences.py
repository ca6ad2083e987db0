"""Sequential data (section 7.1.3): hidden binary factors behind pairs of binary sequences.

X has 40 symbols and Y 30. Hidden U and V decide how often they flip: the flip probability is 0.1 or 0.9. Given U and V
the sequences are independent, so there is one mode, and it depends on a sequence through its number of flips alone
(Prop. seq): f(x) is the standardised P(U=1|x), a hyperbolic tangent of that number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import binom
from torch import nn

from featgeo.geometry import FiniteJoint, Modes
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.paper import published as recipe
from featgeo.paper.record import Experiment, Number, Outcome, about, decorrelation, figure, turned, uniform
from featgeo.report.panels import Cells, Points

LENGTHS = (40, 30)
FLIP = np.array([0.1, 0.9])
FACTORS = np.array([[0.1, 0.4], [0.2, 0.3]])  # P(U, V), a row for each U
SAMPLES, FRESH = 50_000, 10_000
MINIBATCH = 128
SHOWN = 1_000
MASS = uniform(FRESH)
# The joint distribution of the numbers of flips of x and of y, which carries all dependence:
_OF_X, _OF_Y = (binom.pmf(np.arange(length)[None, :], length - 1, FLIP[:, None]) for length in LENGTHS)
LAW = FiniteJoint(np.einsum("uv,ua,vb->ab", FACTORS, _OF_X, _OF_Y))
MODE = LAW.modes(1)


class Sample(NamedTuple):
    """Pairs of sequences to learn from, (n, 40) and (n, 30), and fresh ones with their hidden factors, (m, 2)."""

    x: Array
    y: Array
    fresh_x: Array
    fresh_y: Array
    factors: np.ndarray


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n pairs, and fresh ones."""
    rng = np.random.default_rng(seed)
    factors = np.stack(np.divmod(rng.choice(4, n + FRESH, p=FACTORS.ravel()), 2), axis=1)
    x, y = (_chains(length, FLIP[hidden], rng) for length, hidden in zip(LENGTHS, factors.T, strict=True))
    return Sample(x[:n], y[:n], x[n:], y[n:], factors[n:])


def _chains(length: int, flip: Array, rng: np.random.Generator) -> Array:
    """One binary sequence for each flip probability."""
    start = rng.integers(0, 2, (len(flip), 1))
    flips = rng.random((len(flip), length - 1)) < flip[:, None]
    return np.hstack([start, (start + np.cumsum(flips, axis=1)) % 2]).astype(float)


def flips(sequences: Array) -> np.ndarray:
    """How often each sequence changes."""
    return (sequences[:, 1:] != sequences[:, :-1]).sum(axis=1)


def truth(data: Sample) -> Modes:
    """The mode at the fresh sequences."""
    return Modes(MODE.sigma, MODE.f[flips(data.fresh_x)], MODE.g[flips(data.fresh_y)])


def fast(data: Sample, seed: int) -> Modes:
    """Shares of windows of four symbols, as wide as the published convolutions, and a curve along one index of them."""
    model = ModalDecomposition(1, x_space="windows", y_space="windows", random_state=seed).fit(data.x, data.y)
    return Modes(model.singular_values_, *model.transform(data.fresh_x, data.fresh_y))


def published(data: Sample, seed: int) -> Modes:
    """An embedding, 32 convolutions of width 4, their average over positions, and a linear layer."""
    parts = [recipe.rows(part) for part in (data.x, data.fresh_x, data.y, data.fresh_y)]
    x, fresh_x, y, fresh_y = (torch.stack([1 - part, part], dim=1) for part in parts)
    sides = (x, fresh_x), (y, fresh_y)
    return recipe.trained_modes(lambda: (_network(), _network()), sides, 1, seed, minibatch=MINIBATCH)


def _network() -> nn.Module:
    convolutions = [nn.Conv1d(2, 4, 1), nn.Conv1d(4, 32, 4), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 1))


def optimum(data: Sample) -> Modes:
    """The true mode, with the strength that it has in the sample."""
    true, strength = truth(data), np.mean(MODE.f[flips(data.x)] * MODE.g[flips(data.y)], axis=0)
    return Modes(strength, true.f, true.g)


def compare(data: Sample, learned: Modes, best: Modes) -> Outcome:
    """Features of fresh sequences beside the true ones, and by their hidden factors."""
    true = truth(data)
    found = turned(learned, true, MASS, MASS)
    numbers = [
        Number("1 − corr(f, theory)", decorrelation(found.f, true.f, MASS).item(), bound=0.001),
        Number("1 − corr(g, theory)", decorrelation(found.g, true.g, MASS, np.ones(1)).item(), bound=0.001),
        Number.value("σ", true.sigma[0], learned.sigma[0], bound=0.02),
    ]
    features, factors = np.hstack([found.f, found.g])[:SHOWN].round(3), data.factors[:SHOWN]
    groups = {
        f"U = {u}, V = {v}": features[(factors == (u, v)).all(axis=1)].tolist() for u in range(2) for v in range(2)
    }
    pairs = {
        f"{side}, pair {i + 1}": sequences[i].astype(int).tolist()
        for i in range(3)
        for side, sequences in (("x", data.fresh_x), ("y", data.fresh_y))
    }
    points = Points("Learned features", groups, ("$f(x)$", "$g(y)$"))
    plots = [
        figure("sequences-data", [Cells("Pairs of sequences", pairs)]),
        figure("sequences-features", [points], shown=SHOWN),
    ]
    return Outcome(numbers, plots)


EXPERIMENT = Experiment(about("sequences", samples=SAMPLES, fresh=FRESH), draw, fast, published, optimum, compare)
