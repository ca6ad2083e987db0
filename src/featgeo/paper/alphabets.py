"""Samples of finite alphabets: the paper's random laws, rows drawn from them, and their counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.paper.record import SEED


def random_law(shape: tuple[int, ...], names: Sequence[str]) -> FiniteJoint:
    """The paper's random distribution: uniform numbers, normalised."""
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
