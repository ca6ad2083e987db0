"""Discrete data (section 7.1.1): the modes of a random 8 x 6 distribution from 30,000 samples.

The truth is the exact modal decomposition of the distribution; what a sample of finite alphabets can teach is the exact
decomposition of its counts. The distance between the two is sampling error alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from featgeo.geometry import FiniteJoint, Modes
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition
from featgeo.paper import SEED, record
from featgeo.paper import published as recipe
from featgeo.paper.record import Experiment, Number, Outcome, Pairs, about, bars, figure, subscript

SAMPLES = 30_000
SHAPE = (8, 6)
MODES = 3
MINIBATCH = 128


def random_law(shape: tuple[int, ...], names: Sequence[str]) -> FiniteJoint:
    """The paper's random distribution of symbols: uniform numbers, normalised."""
    return FiniteJoint(np.random.RandomState(SEED).rand(*shape), names=names)


def drawn(law: FiniteJoint, seed: int, n: int) -> tuple[np.ndarray, ...]:
    """Symbols of n rows, (n,) for each variable."""
    mass = law.probability()
    cells = np.random.default_rng(seed).choice(mass.size, n, p=mass.ravel())
    return np.unravel_index(cells, mass.shape)


def counted(symbols: Sequence[np.ndarray], shape: tuple[int, ...]) -> Array:
    """How many rows have each combination of symbols, as an array of this shape."""
    cells = np.ravel_multi_index(tuple(symbols), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)


LAW = random_law(SHAPE, ("x", "y"))


def draw(seed: int, n: int = SAMPLES) -> Pairs:
    """Draw n pairs."""
    return Pairs(*drawn(LAW, seed, n))


def fast(data: Pairs, seed: int) -> Modes:
    """Symbols are recognised as a finite alphabet, and solved exactly."""
    model = ModalDecomposition(MODES, random_state=seed).fit(data.x, data.y)
    return Modes(model.singular_values_, *model.transform(*map(np.arange, SHAPE)))


def published(data: Pairs, seed: int) -> Modes:
    """One linear layer on each side, of indicators."""
    sides = [(recipe.one_hot(own, size), torch.eye(size)) for own, size in zip(data, SHAPE, strict=True)]
    return recipe.trained_modes(
        lambda: [nn.Linear(size, MODES) for size in SHAPE], sides, MODES, seed, minibatch=MINIBATCH
    )


def optimum(data: Pairs) -> Modes:
    """The sample's own modes."""
    return FiniteJoint(counted(data, SHAPE)).modes(MODES)


def compare(data: Pairs, learned: Modes, best: Modes) -> Outcome:
    """Strengths and functions beside those of the distribution, and of the sample's own."""
    truth, masses = LAW.modes(MODES), (LAW.probability("x"), LAW.probability("y"))
    found = record.turned(learned, truth, *masses)
    sides = (("f", "x", found.f, truth.f, masses[0]), ("g", "y", found.g, truth.g, masses[1]))
    numbers = [
        Number("kernel of three modes, relative error", record.kernel_error(learned, truth.kernel(), *masses)),
        *record.strengths(truth.sigma, learned.sigma, [0.02] * MODES),
        *(
            Number(f"{side}{subscript(i + 1)}, relative error", float(error))
            for side, _, values, true, mass in sides
            for i, error in enumerate(record.relative_error(values, true, mass))
        ),
        Number("σ, from the sample's own", float(np.abs(learned.sigma - best.sigma).max()), bound=1e-10),
    ]
    f, g = (
        [bars(f"${side}_{i + 1}^*({of})$", true[:, i], {"learned": values[:, i]}, f"${of}$") for i in range(MODES)]
        for side, of, values, true, _ in sides
    )
    spectrum = bars("$\\sigma_i$", truth.sigma, {"learned": learned.sigma}, "$i$")
    return Outcome(numbers, [figure("discrete", [*f, spectrum, *g], samples=len(data.x))])


EXPERIMENT = Experiment(about("discrete", samples=SAMPLES), draw, fast, published, optimum, compare)
