"""Side information (section 7.3): the conditional mode of a random 8 x 3 x 3 distribution, and a multihead network.

What a sample can teach about finite alphabets is the exact decomposition of its counts: the learned mode is compared
with that. The multihead network is trained on the same sample; both features are normalised as in the paper's figure:
f has mean 0 and variance 1 under the uniform distribution of x, and each g(s, .) under that of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.models import ConditionalDecomposition
from featgeo.paper.multihead import MultiheadNetwork

SEED = 20_230_606  # the paper's, for the distribution
SAMPLES = 50_000
SHAPE = (8, 3, 3)
MARKOV_MODES, MODES = 2, 1


@dataclass(frozen=True, eq=False)
class SideInformationResult:
    """The learned conditional mode beside the exact one of the sample and beside the multihead network.

    Attributes:
        f: Learned feature of x, normalised, (|X|,).
        g: Learned feature of (s, y), normalised, (|S|, |Y|).
        multihead_f: The network's, likewise.
        multihead_g: The network's, likewise.
        f_correlation: Of the learned f with the exact one of the sample, under its distribution.
        g_correlation: The same for g.
        sigma_error: Difference of the learned singular value from the exact one of the sample.
        multihead_f_correlation: Of the learned f with the network's, x uniform.
        multihead_g_correlation: Of the learned g with the network's, (s, y) uniform.
        posterior_error: Largest difference between P(y|x, s) assembled at full rank and the sample's own.
    """

    f: Array
    g: Array
    multihead_f: Array
    multihead_g: Array
    f_correlation: float
    g_correlation: float
    sigma_error: float
    multihead_f_correlation: float
    multihead_g_correlation: float
    posterior_error: float


def distribution() -> FiniteJoint:
    """The paper's random distribution: uniform numbers, normalised."""
    return FiniteJoint(np.random.RandomState(SEED).rand(*SHAPE), names=("x", "s", "y"))


def samples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n triples (x, s, y)."""
    mass = distribution().probability()
    drawn = np.random.default_rng(seed).choice(mass.size, size=n, p=mass.ravel())
    x, s, y = np.unravel_index(drawn, mass.shape)
    return x, s, y


def run(n: int = SAMPLES, seed: int = 0) -> SideInformationResult:
    """Learn one conditional mode from n triples, and compare."""
    x, s, y = samples(n, seed)
    counts = np.zeros(SHAPE)
    np.add.at(counts, (x, s, y), 1)
    joint = FiniteJoint(counts, names=("x", "s", "y"))
    exact = joint.conditional("x", "y", "s").conditional
    model = ConditionalDecomposition(MODES, MARKOV_MODES, random_state=seed).fit(x, y, s)
    f = model.transform(np.arange(SHAPE[0]))[:, -1]
    every_s, every_y = (grid.ravel() for grid in np.indices(SHAPE[1:]))
    g = model.conditional_values(every_s, every_y)[:, 0].reshape(SHAPE[1:])
    network = MultiheadNetwork(SHAPE, MODES, seed)
    network.fit(counts)
    net_f, net_g = network.f.detach().numpy()[:, 0], network.g.detach().numpy()[..., 0]
    sign = np.sign(np.corrcoef(f, net_f)[0, 1])
    f, g, net_f, net_g = (_normalised(part) for part in (f, g, sign * net_f, sign * net_g))
    return SideInformationResult(
        f,
        g,
        net_f,
        net_g,
        _correlation(f, exact.f[:, 0], joint.probability("x")),
        _correlation(
            model.conditional_values(every_s, every_y)[:, 0],
            exact.g[..., 0].ravel(),
            joint.probability("s", "y").ravel(),
        ),
        float(abs(model.conditional_.singular_values_[0] - exact.sigma[0])),
        float(np.corrcoef(f, net_f)[0, 1]),
        float(np.corrcoef(g.ravel(), net_g.ravel())[0, 1]),
        _posterior_error(x, s, y, counts),
    )


def _posterior_error(x: np.ndarray, s: np.ndarray, y: np.ndarray, counts: Array) -> float:
    full = ConditionalDecomposition(n_modes=SHAPE[0], n_markov_modes=SHAPE[1]).fit(x, y, s)
    every_x, every_s = (grid.ravel() for grid in np.indices(SHAPE[:2]))
    truth = (counts / counts.sum(axis=2, keepdims=True)).reshape(-1, SHAPE[2])
    return float(np.abs(full.given(every_x, every_s).proba() - truth).max())


def _normalised(values: Array) -> Array:
    """Mean 0 and variance 1 along the last axis."""
    return (values - values.mean(axis=-1, keepdims=True)) / values.std(axis=-1, keepdims=True)


def _correlation(a: Array, b: Array, mass: Array) -> float:
    """Up to sign, under a distribution."""
    a, b = a - mass @ a, b - mass @ b
    return float(abs(mass @ (a * b)) / np.sqrt((mass @ a**2) * (mass @ b**2)))
