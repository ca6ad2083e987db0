"""Sequential data (section 7.1.3): hidden binary factors behind pairs of binary sequences.

X has 40 symbols and Y 30. Hidden U and V decide how often they flip: the flip probability is 0.1 or 0.9. Given U and V
the sequences are independent, so there is one mode, and it depends on a sequence through its number of flips alone
(Prop. seq): f(x) is the standardised P(U=1|x), a hyperbolic tangent of that number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import binom
from torch import nn

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.nesting import h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import decorrelation, signs, standardised, uniform
from featgeo.paper.record import Experiment, Number, Outcome
from featgeo.report.panels import Cells, Plot, Points

LENGTHS = (40, 30)
FLIP = np.array([0.1, 0.9])
FACTORS = np.array([[0.1, 0.4], [0.2, 0.3]])  # P(U, V), a row for each U
SAMPLES, FRESH = 50_000, 10_000
MINIBATCH = 128
SHOWN = 1_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of sequences to learn from, (n, 40) and (n, 30), and fresh ones with their hidden factors, (m, 2)."""

    x: Array
    y: Array
    fresh_x: Array
    fresh_y: Array
    factors: np.ndarray


@dataclass(frozen=True, eq=False)
class Learned:
    """Features of the fresh sequences, (m,) each, and the strength of the mode."""

    f: Array
    g: Array
    sigma: float


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


def law_of_flips() -> FiniteJoint:
    """The joint distribution of the numbers of flips of x and of y, which carries all dependence."""
    of_x, of_y = (binom.pmf(np.arange(length)[None, :], length - 1, FLIP[:, None]) for length in LENGTHS)
    return FiniteJoint(np.einsum("uv,ua,vb->ab", FACTORS, of_x, of_y))


def truth(data: Sample) -> tuple[Array, Array, float]:
    """The mode at the fresh sequences, and its strength."""
    modes = law_of_flips().modes(1)
    return modes.f[flips(data.fresh_x), 0], modes.g[flips(data.fresh_y), 0], float(modes.sigma[0])


def fast(data: Sample, seed: int) -> Learned:
    """Shares of windows of four symbols, as wide as the published convolutions, and a curve along one index of them."""
    model = ModalDecomposition(1, x_space="windows", y_space="windows", random_state=seed).fit(data.x, data.y)
    f, g = model.transform(data.fresh_x, data.fresh_y)
    return Learned(f[:, 0], g[:, 0], float(model.singular_values_[0]))


def published(data: Sample, seed: int) -> Learned:
    """An embedding, 32 convolutions of width 4, their average over positions, and a linear layer."""
    sides = [recipe.rows(part) for part in (data.x, data.y, data.fresh_x, data.fresh_y)]
    x, y, fresh_x, fresh_y = (torch.stack([1 - part, part], dim=1) for part in sides)
    with recipe.seeded(seed):
        f, g = (
            nn.Sequential(
                nn.Conv1d(2, 4, 1),
                nn.Conv1d(4, 32, 4),
                nn.ReLU(),
                nn.AdaptiveAvgPool1d(1),
                nn.Flatten(),
                nn.Linear(32, 1),
            )
            for _ in range(2)
        )
    recipe.maximise((f, g), lambda rows: h_score(f(x[rows]), g(y[rows])), len(x), seed, minibatch=MINIBATCH)
    modes = recipe.modes(f, g, (x, y), (fresh_x, fresh_y))
    return Learned(modes.f[:, 0], modes.g[:, 0], float(modes.sigma[0]))


def measure(data: Sample, learned: Learned) -> Outcome:
    """Features of fresh sequences beside the true ones."""
    true_f, true_g, sigma = truth(data)
    mass = uniform(FRESH)
    turn = signs(learned.f, true_f, mass)
    modes = law_of_flips().modes(1)
    of_sample = np.mean(modes.f[flips(data.x), 0] * modes.g[flips(data.y), 0])
    numbers = [
        Number("1 − corr(f, theory)", float(decorrelation(learned.f, true_f, mass)), bound=0.001),
        Number("1 − corr(g, theory)", float(decorrelation(learned.g, true_g, mass, turn)), bound=0.001),
        Number.value("σ", sigma, learned.sigma, bound=0.02, optimum=float(of_sample)),
    ]
    f, g = (turn * standardised(side, mass)[:SHOWN] for side in (learned.f, learned.g))
    groups = {
        f"U = {u}, V = {v}": np.stack([f, g], axis=1)[(data.factors[:SHOWN] == (u, v)).all(axis=1)].round(3).tolist()
        for u in range(2)
        for v in range(2)
    }
    pairs = {
        f"{side}, pair {i + 1}": sequences[i].astype(int).tolist()
        for i in range(3)
        for side, sequences in (("x", data.fresh_x), ("y", data.fresh_y))
    }
    plots = [
        Plot(
            "sequences-data",
            "Three pairs of sequences.",
            "Six rows of black and white cells: some sequences change at almost every step, some seldom.",
            [Cells("Pairs of sequences", pairs)],
            columns=1,
        ),
        Plot(
            "sequences-features",
            f"Learned features of {SHOWN:,} fresh pairs, marked by the hidden factors that nobody showed.",
            "Points at f(x) and g(y), with a mark for each pair of hidden factors.",
            [Points("Learned features", groups, ("$f(x)$", "$g(y)$"))],
            columns=1,
        ),
    ]
    return Outcome(numbers, plots)


EXPERIMENT = Experiment(
    name="sequences",
    title="Pairs of sequences",
    source="Section 7.1.3",
    law="Binary sequences of 40 and of 30 symbols that flip with probability 0.1 or 0.9 as hidden factors U and V say; "
    f"{SAMPLES:,} pairs to learn from, {FRESH:,} to compare on.",
    statement="The one mode of the sequences is a hyperbolic tangent of the number of flips, and so reveals the hidden "
    "factors.",
    formula=r"f^*(x) = c \left[\tanh(2w\,\varphi(x) + b_U) - \tanh(b_U)\right], "
    r"\quad w = \tfrac12 \log\tfrac{q_1}{q_0}",
    code="""\
import featgeo as fg
from featgeo.paper import sequences

data = sequences.draw(seed=0)
model = fg.ModalDecomposition(1, x_space="windows", y_space="windows").fit(data.x, data.y)
model.transform(data.fresh_x, data.fresh_y)""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
