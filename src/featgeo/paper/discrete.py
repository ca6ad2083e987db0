"""Discrete data (section 7.1): the modes of a random 8 x 6 distribution from 30,000 samples.

The truth is the exact modal decomposition of the distribution; what a sample of finite alphabets can teach is the exact
decomposition of its counts, which this run computes. The distance between the two is sampling error alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.geometry import FiniteJoint, Modes
from featgeo.geometry.validation import Array

SEED = 20_230_606  # the paper's, for the distribution
SAMPLES = 30_000
MODES = 3


@dataclass(frozen=True, eq=False)
class DiscreteResult:
    """Modes of the distribution and of a sample from it.

    Attributes:
        truth: Top modes of the distribution.
        learned: Top modes of the sample, each with the sign of its true counterpart.
        f_correlation: Correlation of each learned f with the true one under the true distribution, (k,).
        g_correlation: The same for g.
    """

    truth: Modes
    learned: Modes
    f_correlation: Array
    g_correlation: Array

    @property
    def sigma_error(self) -> float:
        """Largest difference between a learned and a true singular value."""
        return float(np.abs(self.learned.sigma - self.truth.sigma).max())


def distribution() -> FiniteJoint:
    """The paper's random distribution: uniform numbers, normalised."""
    return FiniteJoint(np.random.RandomState(SEED).rand(8, 6))


def run(n: int = SAMPLES, k: int = MODES, seed: int = 0) -> DiscreteResult:
    """Draw n pairs and compare the modes of their counts with those of the distribution."""
    joint = distribution()
    probability = joint.probability()
    counts = np.random.default_rng(seed).multinomial(n, probability.ravel()).reshape(probability.shape)
    truth, learned = joint.modes(k), FiniteJoint(counts).modes(k)
    sign = np.sign(np.einsum("xk,x,xk->k", learned.f, joint.probability("x"), truth.f))
    learned = Modes(learned.sigma, learned.f * sign, learned.g * sign)
    return DiscreteResult(
        truth,
        learned,
        _correlation(learned.f, truth.f, joint.probability("x")),
        _correlation(learned.g, truth.g, joint.probability("y")),
    )


def _correlation(a: Array, b: Array, mass: Array) -> Array:
    """Correlation of matching columns under a distribution."""
    a, b = a - mass @ a, b - mass @ b
    return (mass @ (a * b)) / np.sqrt((mass @ a**2) * (mass @ b**2))
