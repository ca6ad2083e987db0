"""A Gaussian mixture (appendix A): the mode of a label and of what it shifts.

Y is 1 or -1 with equal chance and X given Y = y is normal in ten dimensions with mean y mu and covariance S. There is
one mode, g(y) = y and f proportional to E[Y|x] = tanh(mu' S^-1 x). The index z = mu' S^-1 X is normal given Y, with
mean and variance mu' S^-1 mu = 1 up to sign, so that sigma^2 = E[tanh(z)^2] is an integral over one number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import nn

from featgeo.geometry import Modes
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.paper import SEED
from featgeo.paper import published as recipe
from featgeo.paper.record import Experiment, Number, Outcome, about, aligned, curves, decorrelation, figure, uniform

DIMENSIONS = 10
SAMPLES, FRESH = 50_000, 10_000
LABELS = np.array([-1, 1])
MASS = uniform(FRESH)


class Sample(NamedTuple):
    """Rows to learn from, X (n, 10) and labels (n,), and fresh rows to compare on, (m, 10)."""

    X: Array
    y: np.ndarray
    fresh: Array


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
    y = rng.choice(LABELS, n + FRESH)
    X = y[:, None] * mu + rng.standard_normal((n + FRESH, DIMENSIONS)) @ root.T
    return Sample(X[:n], y[:n], X[n:])


def truth(X: Array) -> Array:
    """E[Y|x]."""
    return np.tanh(X @ law()[2])


def sigma(nodes: int = 200) -> float:
    """The strength of the mode, by Gauss's rule for the normal distribution around 1."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return float(np.sqrt(weights @ np.tanh(z + 1) ** 2 / weights.sum()))


def fast(data: Sample, seed: int) -> Modes:
    """Spaces are chosen on held-out rows."""
    model = ModalDecomposition(1, random_state=seed).fit(data.X, data.y)
    return Modes(model.singular_values_, *model.transform(data.fresh, LABELS))


def published(data: Sample, seed: int) -> Modes:
    """The networks of appendix D: two layers of 32 for x, one linear layer for the label."""
    x, fresh = (recipe.rows(values) for values in (data.X, data.fresh))
    y, labels = (recipe.one_hot(values == 1, 2) for values in (data.y, LABELS))
    sides = (x, fresh), (y, labels)
    return recipe.trained_modes(lambda: (recipe.mlp(DIMENSIONS, 32, 32, 1), nn.Linear(2, 1)), sides, 1, seed)


def optimum(data: Sample) -> Modes:
    """The sample's own mean and covariance in place of the law's."""
    X = data.X * data.y[:, None]
    direction = np.linalg.solve(np.cov(X.T), X.mean(axis=0))
    strength = np.corrcoef(np.tanh(data.X @ direction), data.y)[:1, 1]
    return Modes(strength, np.tanh(data.fresh @ direction)[:, None], LABELS[:, None])


def compare(data: Sample, learned: Modes, best: Modes) -> Outcome:
    """The feature on fresh rows beside the true one, along the index."""
    index, true = data.fresh @ law()[2], truth(data.fresh)
    true = true / np.sqrt(np.mean(true**2))
    f = aligned(learned.f[:, 0], true, MASS)
    numbers = [
        Number("1 − corr(f, theory)", float(decorrelation(f, true, MASS)), bound=0.002),
        Number.value("σ", sigma(), learned.sigma[0], bound=0.02),
    ]
    order = np.argsort(index)[:: FRESH // 400]
    panel = curves("$f(x)$", index[order], true[order], {"learned": f[order]}, "$\\mu^T \\Sigma^{-1} x$")
    return Outcome(numbers, [figure("mixture", [panel])])


EXPERIMENT = Experiment(about("mixture", samples=SAMPLES), draw, fast, published, optimum, compare)
