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
from featgeo.nesting import Nesting, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import kernel_error, uniform
from featgeo.paper.record import Experiment, Number, Outcome, subscript
from featgeo.report.panels import Curves, Map, Plot

SAMPLES = 50_000
MODES = 2
SIGMA = 1 / 2
GRID = (np.arange(200) + 0.5) / 100 - 1
MASS = uniform(len(GRID))
KERNEL = np.cos(np.pi * (GRID[:, None] - GRID))
BINS = 40

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
class Sample:
    """Pairs of numbers, (n,) each."""

    x: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Learned:
    """Modes on `GRID`, and the expectation of each function in `ESTIMATED` given x there, (m,)."""

    modes: Modes
    expectations: dict[str, Array]


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n pairs."""
    rng = np.random.default_rng(seed)
    x, step = rng.uniform(-1, 1, n), np.empty(0)
    while len(step) < n:  # y - x has density (1 + cos(pi d)) / 2: accept uniform proposals by it
        proposal = rng.uniform(-1, 1, n)
        step = np.concatenate([step, proposal[rng.random(n) < (1 + np.cos(np.pi * proposal)) / 2]])
    return Sample(x, (x + step[:n] + 1) % 2 - 1)


def sinusoids(x: Array) -> Array:
    """The span of the true modes, (n, 2)."""
    return np.sqrt(2) * np.stack([np.cos(np.pi * x), np.sin(np.pi * x)], axis=1)


def fast(data: Sample, seed: int) -> Learned:
    """Space, bandwidth and ridge are chosen on held-out rows."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    given = model.given(GRID, calibrated=False)  # the formula of the paper
    return Learned(
        Modes(model.singular_values_, *model.transform(GRID, GRID)),
        {name: given.mean(psi) for name, psi in ESTIMATED.items()},
    )


def published(data: Sample, seed: int) -> Learned:
    """Softplus networks with two layers of 32."""
    x, y, grid = (recipe.column(values) for values in (data.x, data.y, GRID))
    with recipe.seeded(seed):
        f, g = (recipe.mlp(1, 32, 32, MODES) for _ in range(2))
    nesting = Nesting.modes(MODES)
    recipe.maximise((f, g), lambda rows: nested_h_score(f(x[rows]), g(y[rows]), nesting), len(x), seed)
    modes = recipe.modes(f, g, (x, y), (grid, grid))
    own = recipe.modes(f, g, (x, y), (x, y))
    return Learned(modes, _assembled(modes, own.g, data.y))


def exact_optimum(data: Sample) -> Learned:
    """The best modes of the sample among sinusoids of period 2, and what is assembled from them."""
    moments = Moments.from_features({"x": sinusoids(data.x), "y": sinusoids(data.y)})
    (best,) = decompose(moments, [("x", "y")])
    modes = best.at(sinusoids(GRID), sinusoids(GRID))
    return Learned(modes, _assembled(modes, best.g(sinusoids(data.y)), data.y))


def _assembled(modes: Modes, own_g: Array, y: Array) -> dict[str, Array]:
    """E[psi(Y)|x] = E[psi(Y)] + sum_i sigma_i f_i(x) E[psi(Y) g_i(Y)] (Prop. pred:est)."""
    return {
        name: psi(y).mean() + (modes.f * modes.sigma) @ (own_g.T @ psi(y)) / len(y) for name, psi in ESTIMATED.items()
    }


def measure(data: Sample, learned: Learned) -> Outcome:
    """The kernel, the strengths and the estimators beside theirs."""
    best = exact_optimum(data)
    numbers = [
        Number(
            "kernel, relative error",
            kernel_error(learned.modes, KERNEL, MASS, MASS),
            bound=0.04,
            floor=kernel_error(best.modes, KERNEL, MASS, MASS),
        )
    ]
    numbers += [
        Number.value(
            f"σ{subscript(i + 1)}", SIGMA, learned.modes.sigma[i], bound=0.015, optimum=float(best.modes.sigma[i])
        )
        for i in range(MODES)
    ]
    for name, expectation in EXPECTATIONS.items():
        error, floor = (
            float(np.sqrt(np.mean((found.expectations[name] - expectation(GRID)) ** 2))) for found in (learned, best)
        )
        numbers.append(Number(f"E[{name}|x], RMSE", error, bound=BOUNDS[name], floor=floor))
    return Outcome(numbers, [_modes_plot(data, learned), _estimators_plot(learned)])


def _modes_plot(data: Sample, learned: Learned) -> Plot:
    """The theory drawn is the pair of sinusoids nearest to the learned modes: its phase is arbitrary."""
    rotation = sinusoids(GRID).T @ (learned.modes.f + learned.modes.g)
    left, _, right = np.linalg.svd(rotation)
    truth = sinusoids(GRID) @ (left @ right)
    counts, _, _ = np.histogram2d(data.x, data.y, BINS, [[-1, 1], [-1, 1]])
    histogram = Map(
        "Samples of $(x, y)$",
        (counts / len(data.x) * (BINS / 2) ** 2).tolist(),
        (-1, 1),
        (0, 0.55),
        diverging=False,
        labels=("$x$", "$y$"),
    )
    panels = [
        Curves(
            f"Mode {i + 1}, $\\sigma_{i + 1}$ = {learned.modes.sigma[i]:.3f}",
            GRID.tolist(),
            truth[:, i].tolist(),
            {"$f$": learned.modes.f[:, i].tolist(), "$g$": learned.modes.g[:, i].tolist()},
            "$x$, $y$",
        )
        for i in range(MODES)
    ]
    return Plot(
        "cosine-modes",
        "The density of the samples, and the two modes over a pair of sinusoids of the same phase.",
        "A heat map of the samples, brightest along the diagonal, and for each mode a chart of learned f and g over a "
        "sinusoid of period 2; the second sinusoid is a quarter of a period behind the first.",
        [histogram, *panels],
        columns=1 + MODES,
    )


def _estimators_plot(learned: Learned) -> Plot:
    panels = [
        Curves(
            f"$E[{MATHEMATICS[name]}\\,|\\,X = x]$",
            GRID.tolist(),
            EXPECTATIONS[name](GRID).tolist(),
            {"learned": values.tolist()},
        )
        for name, values in learned.expectations.items()
    ]
    return Plot(
        "cosine-estimators",
        "Expectations of three functions of Y, assembled from the same two modes.",
        "Three charts of conditional expectations given x, of Y, of its square and of its exponential: learned curves "
        "over the true ones.",
        panels,
        columns=len(panels),
    )


EXPERIMENT = Experiment(
    name="cosine",
    title="Continuous data and estimators",
    source="Section 7.1.2",
    law=f"X and Y on [−1, 1] with density (1 + cos(π(x − y)))/4; {SAMPLES:,} samples, two modes of equal strength 1/2.",
    statement="Features that maximise the nested H-score give every conditional expectation, without another training.",
    formula=r"E[\psi(Y) \mid X = x] = E[\psi(Y)] + \sum_i \sigma_i\, f_i^*(x)\, E[\psi(Y)\, g_i^*(Y)]",
    code="""\
import featgeo as fg
from featgeo.paper import cosine

data = cosine.draw(seed=0)
given = fg.ModalDecomposition(2).fit(data.x, data.y).given([-0.5, 0.0, 0.5])
given.mean(), given.mean(lambda y: y**2), given.interval(0.9)""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
