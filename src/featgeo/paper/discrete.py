"""Discrete data (section 7.1.1): the modes of a random 8 x 6 distribution from 30,000 samples.

The truth is the exact modal decomposition of the distribution; what a sample of finite alphabets can teach is the exact
decomposition of its counts. The distance between the two is sampling error alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from featgeo.geometry import FiniteJoint, Modes
from featgeo.models import ModalDecomposition
from featgeo.nesting import Nesting, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import kernel_error, relative_error, signs, standardised
from featgeo.paper.record import Experiment, Number, Outcome, subscript
from featgeo.report.panels import Bars, Plot

SEED = 20_230_606  # the paper's, for the distribution
SAMPLES = 30_000
SHAPE = (8, 6)
MODES = 3
MINIBATCH = 128


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of symbols, (n,) each."""

    x: np.ndarray
    y: np.ndarray

    def counts(self) -> FiniteJoint:
        """The distribution of the sample."""
        counts = np.zeros(SHAPE)
        np.add.at(counts, (self.x, self.y), 1)
        return FiniteJoint(counts)


def distribution() -> FiniteJoint:
    """The paper's random distribution: uniform numbers, normalised."""
    return FiniteJoint(np.random.RandomState(SEED).rand(*SHAPE))


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n pairs."""
    mass = distribution().probability()
    x, y = np.unravel_index(np.random.default_rng(seed).choice(mass.size, n, p=mass.ravel()), SHAPE)
    return Sample(x, y)


def fast(data: Sample, seed: int) -> Modes:
    """Symbols are recognised as a finite alphabet, and solved exactly."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    f, g = model.transform(*(np.arange(size) for size in SHAPE))
    return Modes(model.singular_values_, f, g)


def published(data: Sample, seed: int) -> Modes:
    """One linear layer on each side, of indicators."""
    x, y = recipe.one_hot(data.x, SHAPE[0]), recipe.one_hot(data.y, SHAPE[1])
    with recipe.seeded(seed):
        f, g = (nn.Linear(size, MODES) for size in SHAPE)
    nesting = Nesting.modes(MODES)
    recipe.maximise(
        (f, g), lambda rows: nested_h_score(f(x[rows]), g(y[rows]), nesting), len(x), seed, minibatch=MINIBATCH
    )
    return recipe.modes(f, g, (x, y), (torch.eye(SHAPE[0]), torch.eye(SHAPE[1])))


def measure(data: Sample, learned: Modes) -> Outcome:
    """Strengths and functions beside those of the distribution, and of the sample's own."""
    joint, sample = distribution(), data.counts()
    truth, exact = joint.modes(MODES), sample.modes(MODES)
    masses = {"f": joint.probability("x"), "g": joint.probability("y")}
    kernels = [kernel_error(modes, truth.kernel(), *masses.values()) for modes in (learned, exact)]
    numbers = [Number("kernel of three modes, relative error", kernels[0], floor=kernels[1])]
    numbers += [
        Number.value(f"σ{subscript(i + 1)}", truth.sigma[i], learned.sigma[i], bound=0.02, optimum=exact.sigma[i])
        for i in range(MODES)
    ]
    shown: dict[str, np.ndarray] = {}
    turns = [signs(modes.f, truth.f, masses["f"]) for modes in (learned, exact)]
    for side, mass in masses.items():
        true = getattr(truth, side)
        found = (standardised(getattr(modes, side), mass) for modes in (learned, exact))
        shown[side], best = (values * turn for values, turn in zip(found, turns, strict=True))
        errors, floors = (relative_error(values, true, mass) for values in (shown[side], best))
        numbers += [
            Number(f"{side}{subscript(i + 1)}, relative error", float(errors[i]), floor=float(floors[i]))
            for i in range(MODES)
        ]
    difference = float(np.abs(learned.sigma - exact.sigma).max())
    numbers.append(Number("σ, from the sample's own", difference, bound=1e-10))
    panels = [
        Bars(
            f"${side}_{i + 1}^*({argument})$",
            [str(symbol + 1) for symbol in range(len(shown[side]))],
            getattr(truth, side)[:, i].tolist(),
            {"learned": shown[side][:, i].tolist()},
            f"${argument}$",
        )
        for side, argument in (("f", "x"), ("g", "y"))
        for i in range(MODES)
    ]
    spectrum = Bars(
        "$\\sigma_i$",
        [str(i + 1) for i in range(MODES)],
        truth.sigma.tolist(),
        {"learned": learned.sigma.tolist()},
        "$i$",
    )
    plot = Plot(
        "discrete",
        f"The three strongest modes of the distribution (bars), and what {len(data.x):,} samples gave (dots).",
        "Two rows of three bar charts, f and g of the first three modes, and one chart of their strengths: bars "
        "for the true values, dots for the learned ones.",
        [*panels[:MODES], spectrum, *panels[MODES:]],
        columns=MODES + 1,
    )
    return Outcome(numbers, [plot])


EXPERIMENT = Experiment(
    name="discrete",
    title="Discrete data",
    source="Section 7.1.1",
    law=f"X has 8 symbols and Y has 6, with a random joint distribution; {SAMPLES:,} samples, three modes.",
    statement="The nested H-score is greatest exactly when its features are the strongest modes of the dependence, in "
    "their order.",
    formula=r"\frac{P_{X,Y}(x,y)}{P_X(x)P_Y(y)} - 1 = \sum_{i} \sigma_i\, f_i^*(x)\, g_i^*(y)",
    code="""\
import featgeo as fg
from featgeo.paper import discrete

data = discrete.draw(seed=0)
model = fg.ModalDecomposition(3).fit(data.x, data.y)
model.singular_values_, model.transform(range(8), range(6))""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
