"""Orthogonality constraints (section 7.2): the best feature of the cosine data that is uncorrelated with a given one.

X is uniform on [-1, 1] and p(y|x) = (1 + cos(pi (x - y))) / 2. Without constraint the top feature is any sinusoid of
period 2. Orthogonal to phi(x) = x, an odd function, it is the even one, sqrt(2) cos(pi x); orthogonal to phi(x) = x^2,
an even function, it is the odd one, sqrt(2) sin(pi x). (The paper's text swaps the words even and odd.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition

SAMPLES = 50_000
GRID = np.linspace(-1, 1, 2001)

GIVEN: dict[str, Callable[[Array], Array]] = {"x": lambda x: x, "x^2": lambda x: x**2}
TRUTH: dict[str, Callable[[Array], Array]] = {
    "x": lambda x: np.sqrt(2) * np.cos(np.pi * x),
    "x^2": lambda x: np.sqrt(2) * np.sin(np.pi * x),
}
# The aligned energy is |E[phi cos(pi X)]|^2 + |E[phi sin(pi X)]|^2 over var(phi), times 2 sigma^2 = 1/2.
ALIGNED_ENERGY = {"x": 1.5 / np.pi**2, "x^2": (2 / np.pi**2) ** 2 / 2 / (4 / 45)}


@dataclass(frozen=True, eq=False)
class OrthogonalityResult:
    """A learned feature beside the true one.

    Attributes:
        given: Name of the given feature phi.
        f: The learned feature on `GRID`, with the sign of the true one.
        correlation: Of both, for X uniform.
        relative_error: Root mean squared difference over the root mean square of the truth.
        residual: Correlation of the learned feature with phi on the rows of the fit.
        sigma: Strength of the learned mode; 1/2 in truth.
        aligned_energy: What phi itself knows.
    """

    given: str
    f: Array
    correlation: float
    relative_error: float
    residual: float
    sigma: float
    aligned_energy: float


def samples(n: int, seed: int) -> tuple[Array, Array]:
    """Draw n pairs from the cosine density."""
    rng = np.random.default_rng(seed)
    x, step = rng.uniform(-1, 1, n), np.empty(0)
    while len(step) < n:  # y - x has density (1 + cos(pi d)) / 2: accept uniform proposals by it
        proposal = rng.uniform(-1, 1, n)
        step = np.concatenate([step, proposal[rng.random(n) < (1 + np.cos(np.pi * proposal)) / 2]])
    return x, (x + step[:n] + 1) % 2 - 1


def run(given: str, n: int = SAMPLES, seed: int = 0) -> OrthogonalityResult:
    """Learn one feature orthogonal to phi, "x" or "x^2", from n pairs."""
    x, y = samples(n, seed)
    model = ModalDecomposition(1, orthogonal_to=GIVEN[given], random_state=seed).fit(x, y)
    f, truth = model.transform(GRID)[:, 0], TRUTH[given](GRID)
    correlation = float(np.corrcoef(f, truth)[0, 1])
    f = f * np.sign(correlation)
    return OrthogonalityResult(
        given,
        f,
        abs(correlation),
        float(np.sqrt(np.mean((f - truth) ** 2) / np.mean(truth**2))),
        float(np.corrcoef(model.transform(x)[:, 0], GIVEN[given](x))[0, 1]),
        float(model.singular_values_[0]),
        model.aligned_.energy_,
    )
