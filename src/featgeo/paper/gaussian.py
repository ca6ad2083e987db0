"""Gaussian variables (they accompany the paper): Hermite polynomials are the modes of a bivariate normal.

For standard normal X and Y with correlation rho, the i-th mode is the normalised Hermite polynomial of degree i on both
sides, and sigma_i = rho^i (Mehler's formula).
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.polynomial.hermite_e import hermevander

from featgeo.geometry import Modes, Moments, decompose
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.paper import published as recipe
from featgeo.paper.record import (
    Experiment,
    Number,
    Outcome,
    Pairs,
    about,
    bars,
    curves,
    decorrelation,
    figure,
    strengths,
    subscript,
    turned,
)

RHO = 0.8
SAMPLES = 50_000
MODES = 5
SIGMA: Array = RHO ** np.arange(1, MODES + 1, dtype=float)
EPOCHS, MINIBATCH = 400, 512  # of the published notebook

GRID = np.linspace(-4.5, 4.5, 901)
MASS = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()
SHOWN = np.abs(GRID) <= 3

FUNCTION_BOUNDS = (0.001, 0.005, 0.02, 0.07)  # of 1 - correlation, for the first four
SIGMA_BOUNDS = (0.015, 0.015, 0.015, 0.03, 0.03)


def draw(seed: int, n: int = SAMPLES) -> Pairs:
    """Draw n pairs."""
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return Pairs(x, RHO * x + np.sqrt(1 - RHO**2) * noise)


def hermite(x: Array) -> Array:
    """Normalised Hermite polynomials of degree 1 to 5, (n, 5)."""
    scale = np.sqrt([factorial(i) for i in range(1, MODES + 1)])
    return hermevander(x, MODES)[:, 1:] / scale


def fast(data: Pairs, seed: int) -> Modes:
    """Spaces and ridge are chosen on held-out rows, and the strengths are those of held-out rows."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    return Modes(model.held_out_singular_values_, *model.transform(GRID, GRID))


def published(data: Pairs, seed: int) -> Modes:
    """Layers of 64 and 128 with batch normalisation; the gradient of each level stops at the levels before it."""
    sides = [(recipe.column(own), recipe.column(GRID)) for own in data]
    return recipe.trained_modes(
        lambda: [recipe.mlp(1, 64, 128, MODES, normalised=True) for _ in sides],
        sides, MODES, seed, "sequential", minibatch=MINIBATCH, epochs=EPOCHS,
    )  # fmt: skip


def optimum(data: Pairs) -> Modes:
    """The best modes of the sample among polynomials of degree 5."""
    (best,) = decompose(Moments.from_features({"x": hermite(data.x), "y": hermite(data.y)}), [("x", "y")])
    return best.at(hermite(GRID), hermite(GRID))


def compare(data: Pairs, learned: Modes, best: Modes) -> Outcome:
    """Functions beside Hermite polynomials, strengths beside powers of rho."""
    truth = Modes(SIGMA, hermite(GRID), hermite(GRID))
    found = turned(learned, truth, MASS, MASS)
    functions = [
        Number(f"1 − corr({side}{subscript(i + 1)}, Hermite {i + 1})", float(error), bound=FUNCTION_BOUNDS[i])
        for side, values in (("f", found.f), ("g", found.g))
        for i, error in enumerate(decorrelation(values, truth.f, MASS, np.ones(MODES))[: len(FUNCTION_BOUNDS)])
    ]
    panels = [
        curves(f"Mode {i + 1}", GRID[SHOWN], true, {"$f$": found.f[SHOWN, i], "$g$": found.g[SHOWN, i]}, "$x$, $y$")
        for i, true in enumerate(truth.f[SHOWN].T)
    ]
    spectrum = bars("$\\sigma_i$", SIGMA, {"learned": learned.sigma}, "$i$")
    numbers = functions + strengths(SIGMA, learned.sigma, SIGMA_BOUNDS)
    return Outcome(numbers, [figure("gaussian", [*panels, spectrum])])


EXPERIMENT = Experiment(about("gaussian", samples=SAMPLES), draw, fast, published, optimum, compare)
