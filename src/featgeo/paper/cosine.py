"""Continuous data (section 7.1.2): the modes of the raised-cosine density, and estimators assembled from them.

X is uniform on [-1, 1] and p(y|x) = (1 + cos(pi (x - y))) / 2, so the dependence is the kernel cos(pi (x - y)). It has
two modes of equal strength 1/2: any pair of sinusoids of period 2 that differ in phase by a quarter. Single modes are
then arbitrary; what can be compared is the kernel, the strengths, and what is assembled from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
    curves,
    figure,
    kernel_error,
    root_mean_square,
    strengths,
    uniform,
)
from featgeo.report.panels import Map

SAMPLES = 50_000
MODES = 2
SIGMA = 1 / 2
GRID = (np.arange(200) + 0.5) / 100 - 1
MASS = uniform(len(GRID))
KERNEL = np.cos(np.pi * (GRID[:, None] - GRID))
BINS = 40  # of the histogram that is shown

Function = Callable[[Array], Array]
ESTIMATED: dict[str, Function] = {"Y": lambda y: y, "Y²": np.square, "eʸ": np.exp}
EXPECTATIONS: dict[str, Function] = {
    "Y": lambda x: np.sin(np.pi * x) / np.pi,
    "Y²": lambda x: 1 / 3 - 2 / np.pi**2 * np.cos(np.pi * x),
    "eʸ": lambda x: np.sinh(1) / (1 + np.pi**2) * (np.pi * np.sin(np.pi * x) - np.cos(np.pi * x) + np.pi**2 + 1),
}
BOUNDS = {"Y": 0.012, "Y²": 0.006, "eʸ": 0.014}
MATHEMATICS = {"Y": "Y", "Y²": "Y^2", "eʸ": "e^Y"}


@dataclass(frozen=True, eq=False)
class Learned:
    """Modes on `GRID`, and the expectation of each function in `ESTIMATED` given x there, (m,)."""

    modes: Modes
    expectations: dict[str, Array]


def draw(seed: int, n: int = SAMPLES) -> Pairs:
    """Draw n pairs."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return Pairs(x, companions(x, 1, rng))


def companions(x: Array, frequency: int, rng: np.random.Generator) -> Array:
    """For each x, a y of density (1 + cos(frequency pi (x - y))) / 2 on [-1, 1]."""
    step = np.empty(0)
    while len(step) < len(x):  # accept uniform proposals by the density
        proposal = rng.uniform(-1, 1, len(x))
        accepted = rng.random(len(x)) < (1 + np.cos(frequency * np.pi * proposal)) / 2
        step = np.concatenate([step, proposal[accepted]])
    return (x + step[: len(x)] + 1) % 2 - 1


def sinusoids(x: Array) -> Array:
    """The span of the true modes, (n, 2)."""
    return np.sqrt(2) * np.stack([np.cos(np.pi * x), np.sin(np.pi * x)], axis=1)


def fast(data: Pairs, seed: int) -> Learned:
    """Space, bandwidth and ridge are chosen on held-out rows."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    given = model.given(GRID, calibrated=False)  # the formula of the paper
    modes = Modes(model.singular_values_, *model.transform(GRID, GRID))
    return Learned(modes, {name: given.mean(psi) for name, psi in ESTIMATED.items()})


def published(data: Pairs, seed: int) -> Learned:
    """Softplus networks with two layers of 32."""
    sides = [(recipe.column(own), recipe.column(np.concatenate([GRID, own]))) for own in data]
    both = recipe.trained_modes(lambda: [recipe.mlp(1, 32, 32, MODES) for _ in sides], sides, MODES, seed)
    m = len(GRID)
    return _assembled(Modes(both.sigma, both.f[:m], both.g[:m]), both.g[m:], data.y)


def optimum(data: Pairs) -> Learned:
    """The best modes of the sample among sinusoids of period 2, and what is assembled from them."""
    moments = Moments.from_features({"x": sinusoids(data.x), "y": sinusoids(data.y)})
    (best,) = decompose(moments, [("x", "y")])
    return _assembled(best.at(sinusoids(GRID), sinusoids(GRID)), best.g(sinusoids(data.y)), data.y)


def _assembled(modes: Modes, own_g: Array, y: Array) -> Learned:
    """E[psi(Y)|x] = E[psi(Y)] + sum_i sigma_i f_i(x) E[psi(Y) g_i(Y)] (Prop. pred:est)."""
    expectations = {
        name: psi(y).mean() + (modes.f * modes.sigma) @ (own_g.T @ psi(y)) / len(y) for name, psi in ESTIMATED.items()
    }
    return Learned(modes, expectations)


def compare(data: Pairs, learned: Learned, best: Learned) -> Outcome:
    """The kernel, the strengths and the estimators beside theirs.

    The theory drawn is the pair of sinusoids nearest to the learned modes: its phase is arbitrary.
    """
    modes, expectations = learned.modes, learned.expectations
    errors = {name: root_mean_square(expectations[name] - true(GRID), MASS) for name, true in EXPECTATIONS.items()}
    numbers = [
        Number("kernel, relative error", kernel_error(modes, KERNEL, MASS, MASS), bound=0.04),
        *strengths(np.full(MODES, SIGMA), modes.sigma, [0.015] * MODES),
        *(Number(f"E[{name}|x], RMSE", float(error), bound=BOUNDS[name]) for name, error in errors.items()),
    ]
    left, _, right = np.linalg.svd(sinusoids(GRID).T @ (modes.f + modes.g))
    truth = sinusoids(GRID) @ (left @ right)
    density, _, _ = np.histogram2d(data.x, data.y, BINS, [[-1, 1], [-1, 1]], density=True)
    axes = ("$x$", "$y$")
    histogram = Map("Samples of $(x, y)$", density.tolist(), (-1, 1), (0, 0.55), diverging=False, labels=axes)
    titles = [f"Mode {i + 1}, $\\sigma_{i + 1}$ = {modes.sigma[i]:.3f}" for i in range(MODES)]
    panels = [
        curves(title, GRID, truth[:, i], {"$f$": modes.f[:, i], "$g$": modes.g[:, i]}, "$x$, $y$")
        for i, title in enumerate(titles)
    ]
    estimators = [
        curves(f"$E[{MATHEMATICS[name]}\\,|\\,X = x]$", GRID, EXPECTATIONS[name](GRID), {"learned": values})
        for name, values in expectations.items()
    ]
    return Outcome(numbers, [figure("cosine-modes", [histogram, *panels]), figure("cosine-estimators", estimators)])


EXPERIMENT = Experiment(about("cosine", samples=SAMPLES), draw, fast, published, optimum, compare)
