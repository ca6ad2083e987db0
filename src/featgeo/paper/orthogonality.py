"""Orthogonality constraints (section 7.2): the best feature of the cosine data that is uncorrelated with a given one.

Without constraint the top feature is any sinusoid of period 2. Orthogonal to phi(x) = x, an odd function, it is the
even one, sqrt(2) cos(pi x); orthogonal to phi(x) = x^2, an even function, it is the odd one, sqrt(2) sin(pi x). (The
paper's text swaps the words even and odd.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from featgeo.geometry import Moments, decompose
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.nesting import Nesting
from featgeo.paper import cosine
from featgeo.paper import published as recipe
from featgeo.paper.cosine import GRID, MASS, SAMPLES, SIGMA, Function, sinusoids
from featgeo.paper.record import (
    Experiment,
    Number,
    Outcome,
    Pairs,
    about,
    aligned,
    curves,
    decorrelation,
    figure,
    of_each,
    relative_error,
)

GIVEN: dict[str, Function] = {"x": lambda x: x, "x²": lambda x: x**2}
TRUTH: dict[str, Function] = {
    "x": lambda x: np.sqrt(2) * np.cos(np.pi * x),
    "x²": lambda x: np.sqrt(2) * np.sin(np.pi * x),
}
# The aligned energy is |E[phi cos(pi X)]|^2 + |E[phi sin(pi X)]|^2 over var(phi), times 2 sigma^2 = 1/2.
ALIGNED_ENERGY = {"x": 1.5 / np.pi**2, "x²": (2 / np.pi**2) ** 2 / 2 / (4 / 45)}


@dataclass(frozen=True, eq=False)
class Feature:
    """A feature orthogonal to a given one.

    Attributes:
        f: Its values on `GRID`.
        residual: Its correlation with phi on the rows of the fit.
        sigma: Its strength.
        aligned_energy: What phi itself knows.
    """

    f: Array
    residual: float
    sigma: float
    aligned_energy: float


Samples = dict[str, Pairs]  # by the given feature
Learned = dict[str, Feature]


def draw(seed: int, n: int = SAMPLES) -> Samples:
    """The same n pairs for each given feature."""
    return dict.fromkeys(GIVEN, cosine.draw(seed, n))


@of_each
def fast(name: str, data: Pairs, seed: int) -> Feature:
    """The given feature is the first level; what is learned is orthogonal to it on the sample, exactly."""
    given = GIVEN[name]
    model = ModalDecomposition(1, orthogonal_to=given, random_state=seed).fit(data.x, data.y)
    residual = _correlation(model.transform(data.x), given(data.x))
    return Feature(model.transform(GRID)[:, 0], residual, float(model.singular_values_[0]), model.aligned_.energy_)


@of_each
def published(name: str, data: Pairs, seed: int) -> Feature:
    """Three softplus networks with two layers of 32, the nested H-score restricted to the given feature."""
    # Centred: with its mean, phi would stand for another span, one without the constant.
    centred = GIVEN[name](data.x) - GIVEN[name](data.x).mean()
    x, y, grid, phi = (recipe.column(values) for values in (data.x, data.y, GRID, centred))
    with recipe.seeded(seed):
        f, g_aligned, g = (recipe.mlp(1, 32, 32, 1) for _ in range(3))
    recipe.maximise_nested([(nn.Identity(), phi), (f, x)], [(g_aligned, y), (g, y)], Nesting([1, 1]), seed)
    modes = recipe.modes((f, x), (g, y), (grid, grid))
    energy = float(centred.var() * recipe.values(g_aligned, y).var())
    return Feature(modes.f[:, 0], _correlation(recipe.values(f, x), centred), float(modes.sigma[0]), energy)


@of_each
def optimum(name: str, data: Pairs) -> Feature:
    """The best feature of the sample among sums of a sinusoid of period 2 and the given feature."""
    phi, x = GIVEN[name](data.x)[:, None], sinusoids(data.x)
    moments = Moments.from_features({"phi": phi, "x": x, "y": sinusoids(data.y)})
    first, rest = decompose(moments, [("phi", "y"), (("phi", "x"), "y")])
    f = rest.f(np.hstack([GIVEN[name](GRID)[:, None], sinusoids(GRID)]))[:, 0]
    return Feature(f, _correlation(rest.f(np.hstack([phi, x])), phi[:, 0]), float(rest.sigma[0]), first.energy)


def _correlation(features: Array, phi: Array) -> float:
    """Of the first feature and phi, on the rows of the fit."""
    return float(np.corrcoef(features[:, 0], phi)[0, 1])


def compare(data: Samples, learned: Learned, best: Learned) -> Outcome:
    """Each feature beside the true one."""
    numbers: list[Number] = []
    panels = []
    for name, feature in learned.items():
        truth, mark = TRUTH[name](GRID), f"f ⊥ {name}"
        f = aligned(feature.f, truth, MASS)
        numbers += [
            Number(f"{mark}, 1 − corr(f, theory)", float(decorrelation(f, truth, MASS)), bound=0.001),
            Number(f"{mark}, relative error", float(relative_error(f, truth, MASS)), bound=0.05),
            Number(f"{mark}, corr(f, {name}) on the sample", abs(feature.residual), bound=1e-6),
            Number.value(f"{mark}, σ", SIGMA, feature.sigma, bound=0.015),
            Number.value(f"energy of {name}", ALIGNED_ENERGY[name], feature.aligned_energy, bound=0.015),
        ]
        panels.append(curves(f"$\\phi(x) = {name.replace('²', '^2')}$", GRID, truth, {"learned": f}))
    return Outcome(numbers, [figure("orthogonality", panels)])


EXPERIMENT = Experiment(about("orthogonality", samples=SAMPLES), draw, fast, published, optimum, compare)
