"""A Gaussian mixture (appendix A): the mode of a label and of what it shifts.

Y is 1 or -1 with equal chance and X given Y = y is normal in ten dimensions with mean y mu and covariance S. There is
one mode, g(y) = y and f proportional to E[Y|x] = tanh(mu' S^-1 x). The index z = mu' S^-1 X is normal given Y, with
mean and variance mu' S^-1 mu = 1 up to sign, so that sigma^2 = E[tanh(z)^2] is an integral over one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.nesting import h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import aligned, decorrelation, uniform
from featgeo.paper.record import Experiment, Number, Outcome
from featgeo.report.panels import Curves, Plot

SEED = 20_230_606  # for mu and the covariance
DIMENSIONS = 10
SAMPLES, FRESH = 50_000, 10_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from, X (n, 10) and labels (n,), and fresh rows to compare on, (m, 10)."""

    X: Array
    y: np.ndarray
    fresh: Array


@dataclass(frozen=True, eq=False)
class Learned:
    """The feature on the fresh rows, and its strength."""

    f: Array
    sigma: float


def law() -> tuple[Array, Array, Array]:
    """The mean mu (10,), a root of the covariance (10, 10) and the direction S^-1 mu (10,)."""
    rng = np.random.default_rng(SEED)
    root = rng.standard_normal((DIMENSIONS, DIMENSIONS)) / np.sqrt(DIMENSIONS) + np.eye(DIMENSIONS)
    mu = rng.standard_normal(DIMENSIONS)
    direction = np.linalg.solve(root @ root.T, mu)
    scale = np.sqrt(mu @ direction)
    return mu / scale, root, direction / scale


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n rows, and fresh ones."""
    rng = np.random.default_rng(seed)
    mu, root, _ = law()
    y = rng.choice([-1, 1], n + FRESH)
    X = y[:, None] * mu + rng.standard_normal((n + FRESH, DIMENSIONS)) @ root.T
    return Sample(X[:n], y[:n], X[n:])


def truth(X: Array) -> Array:
    """E[Y|x]."""
    return np.tanh(X @ law()[2])


def sigma(nodes: int = 200) -> float:
    """The strength of the mode, by Gauss's rule for the normal distribution around 1."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return float(np.sqrt(weights @ np.tanh(z + 1) ** 2 / weights.sum()))


def fast(data: Sample, seed: int) -> Learned:
    """Spaces are chosen on held-out rows."""
    model = ModalDecomposition(1, random_state=seed).fit(data.X, data.y)
    return Learned(model.transform(data.fresh)[:, 0], float(model.singular_values_[0]))


def published(data: Sample, seed: int) -> Learned:
    """The networks of appendix D: two layers of 32 for x, one linear layer for the label."""
    x, fresh = (recipe.rows(values) for values in (data.X, data.fresh))
    y = recipe.one_hot(data.y == 1, 2)
    with recipe.seeded(seed):
        f, g = recipe.mlp(DIMENSIONS, 32, 32, 1), nn.Linear(2, 1)
    recipe.maximise((f, g), lambda rows: h_score(f(x[rows]), g(y[rows])), len(x), seed)
    modes = recipe.modes(f, g, (x, y), (fresh, y[:1]))
    return Learned(modes.f[:, 0], float(modes.sigma[0]))


def exact_optimum(data: Sample) -> Learned:
    """The sample's own mean and covariance in place of the law's."""
    X = data.X * data.y[:, None]
    direction = np.linalg.solve(np.cov(X.T), X.mean(axis=0))
    of_sample = np.tanh(data.X @ direction)
    return Learned(np.tanh(data.fresh @ direction), float(np.corrcoef(of_sample, data.y)[0, 1]))


def measure(data: Sample, learned: Learned) -> Outcome:
    """The feature on fresh rows beside the true one."""
    true, mass, best = truth(data.fresh), uniform(FRESH), exact_optimum(data)
    error, floor = (float(decorrelation(found.f, true, mass)) for found in (learned, best))
    numbers = [
        Number("1 − corr(f, theory)", error, bound=0.002, floor=floor),
        Number.value("σ", sigma(), learned.sigma, bound=0.02, optimum=best.sigma),
    ]
    index = data.fresh @ law()[2]
    order = np.argsort(index)[:: FRESH // 400]
    normal = true / np.sqrt(np.mean(true**2))
    f = aligned(learned.f, normal, mass)
    plot = Plot(
        "mixture",
        "The learned feature at fresh rows of ten numbers, along the index μᵀΣ⁻¹x, over the true hyperbolic tangent.",
        "A chart of learned values along the index of each row, over a hyperbolic tangent.",
        [
            Curves(
                "$f(x)$",
                index[order].tolist(),
                normal[order].tolist(),
                {"learned": f[order].tolist()},
                "$\\mu^T \\Sigma^{-1} x$",
            )
        ],
        columns=1,
    )
    return Outcome(numbers, [plot])


EXPERIMENT = Experiment(
    name="mixture",
    title="A Gaussian mixture",
    source="Appendix A",
    law=f"Y = ±1 and X normal in ten dimensions with mean Yμ and covariance Σ, μᵀΣ⁻¹μ = 1; {SAMPLES:,} samples.",
    statement="The feature of a mixture is its posterior mean, whatever the dimension of the observation.",
    formula=r"f^*(x) \propto E[Y \mid X = x] = \tanh(\mu^{\mathrm T} \Sigma^{-1} x), \qquad g^*(y) = y",
    code="""\
import featgeo as fg
from featgeo.paper import mixture

data = mixture.draw(seed=0)
model = fg.ModalDecomposition(1).fit(data.X, data.y)
model.singular_values_, model.given(data.fresh[:3]).proba()""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
