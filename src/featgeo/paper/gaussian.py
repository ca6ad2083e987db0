"""Gaussian variables (they accompany the paper): Hermite polynomials are the modes of a bivariate normal.

For standard normal X and Y with correlation rho, the i-th mode is the normalised Hermite polynomial of degree i on both
sides, and sigma_i = rho^i (Mehler's formula).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import factorial

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from torch import nn

from featgeo.geometry import Modes, Moments, decompose
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.nesting import Nesting, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import decorrelation, signs, standardised
from featgeo.paper.record import Experiment, Number, Outcome, subscript
from featgeo.report.panels import Bars, Curves, Plot

RHO = 0.8
SAMPLES = 50_000
MODES = 5
SIGMA = RHO ** np.arange(1, MODES + 1)
EPOCHS, MINIBATCH = 400, 512  # of the published notebook

GRID = np.linspace(-4.5, 4.5, 901)
MASS = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()
SHOWN = np.abs(GRID) <= 3

FUNCTION_BOUNDS = (0.001, 0.005, 0.02, 0.07)  # of 1 - correlation, for the first four
SIGMA_BOUNDS = (0.015, 0.015, 0.015, 0.03, 0.03)


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of numbers, (n,) each."""

    x: Array
    y: Array


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n pairs."""
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return Sample(x, RHO * x + np.sqrt(1 - RHO**2) * noise)


def hermite(x: Array) -> Array:
    """Normalised Hermite polynomials of degree 1 to 5, (n, 5)."""
    scale = np.sqrt([factorial(i) for i in range(1, MODES + 1)])
    return hermevander(x, MODES)[:, 1:] / scale


def fast(data: Sample, seed: int) -> Modes:
    """Spaces and ridge are chosen on held-out rows, and the strengths are those of held-out rows."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    return Modes(model.held_out_singular_values_, *model.transform(GRID, GRID))


def published(data: Sample, seed: int) -> Modes:
    """Networks with batch normalisation; the gradient of each level stops at the levels before it."""
    x, y, grid = (recipe.column(values) for values in (data.x, data.y, GRID))
    with recipe.seeded(seed):
        f, g = _network(), _network()
    nesting = Nesting.modes(MODES)
    recipe.maximise(
        (f, g),
        lambda rows: nested_h_score(f(x[rows]), g(y[rows]), nesting, mode="sequential"),
        len(x),
        seed,
        minibatch=MINIBATCH,
        epochs=EPOCHS,
    )
    return recipe.modes(f, g, (x, y), (grid, grid))


def _network() -> nn.Module:
    """Layers of 64 and 128, each input normalised over the minibatch."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((1, 64, 128, MODES)):
        layers += [nn.BatchNorm1d(inputs), nn.Linear(inputs, outputs), nn.Softplus()]
    return nn.Sequential(*layers[:-1])


def exact_optimum(data: Sample) -> Modes:
    """The best modes of the sample among polynomials of degree 5."""
    (best,) = decompose(Moments.from_features({"x": hermite(data.x), "y": hermite(data.y)}), [("x", "y")])
    return best.at(hermite(GRID), hermite(GRID))


def measure(data: Sample, learned: Modes) -> Outcome:
    """Functions beside Hermite polynomials, strengths beside powers of rho."""
    truth, best = hermite(GRID), exact_optimum(data)
    numbers = []
    for side in ("f", "g"):
        errors, floors = (
            decorrelation(getattr(modes, side), truth, MASS, signs(modes.f, truth, MASS)) for modes in (learned, best)
        )
        numbers += [
            Number(
                f"1 − corr({side}{subscript(i + 1)}, Hermite {i + 1})",
                float(errors[i]),
                bound=bound,
                floor=float(floors[i]),
            )
            for i, bound in enumerate(FUNCTION_BOUNDS)
        ]
    numbers += [
        Number.value(f"σ{subscript(i + 1)}", SIGMA[i], learned.sigma[i], bound=SIGMA_BOUNDS[i], optimum=best.sigma[i])
        for i in range(MODES)
    ]
    f, g = (standardised(side, MASS) * signs(learned.f, truth, MASS) for side in (learned.f, learned.g))
    panels: list[Curves | Bars] = [
        Curves(
            f"Mode {i + 1}",
            GRID[SHOWN].tolist(),
            truth[SHOWN, i].tolist(),
            {"$f$": f[SHOWN, i].tolist(), "$g$": g[SHOWN, i].tolist()},
            "$x$, $y$",
        )
        for i in range(MODES)
    ]
    spectrum = Bars(
        "$\\sigma_i$",
        [str(i + 1) for i in range(MODES)],
        SIGMA.tolist(),
        {"learned": learned.sigma.tolist()},
        "$i$",
    )
    plot = Plot(
        "gaussian",
        "The first five modes over Hermite polynomials, and their strengths over powers of 0.8.",
        "Five charts of learned functions f and g over Hermite polynomials of degree one to five, and a bar chart of "
        "their strengths.",
        [*panels, spectrum],
        columns=3,
    )
    return Outcome(numbers, [plot])


EXPERIMENT = Experiment(
    name="gaussian",
    title="Gaussian variables and Hermite polynomials",
    source="Accompanies the paper",
    law=f"X and Y standard normal with correlation 0.8; {SAMPLES:,} samples, five modes.",
    statement="The modes of jointly Gaussian variables are the Hermite polynomials, with powers of the correlation as "
    "strengths.",
    formula=r"\sigma_i = \rho^i, \qquad f_i^* = g_i^* = \frac{\mathrm{He}_i}{\sqrt{i!}}",
    code="""\
import featgeo as fg
from featgeo.paper import gaussian

data = gaussian.draw(seed=0)
model = fg.ModalDecomposition(5).fit(data.x, data.y)
model.held_out_singular_values_, model.transform([-1.0, 0.0, 1.0])""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
