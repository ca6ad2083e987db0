"""Modes: a function of two variables as a sum of products, gamma = sum_i sigma_i f_i (x) g_i, strongest first.

Conventions, fixed for the whole library:

- sigma_1 >= sigma_2 >= ... > 0, and f_i, g_i are orthonormal under the metric distributions of x and y.
- A product does not change when f_i and g_i both change sign. We take the sign that makes the largest entry of the
  information vector sqrt(p(x)) f_i(x) positive; among entries that tie to six digits, the first decides.
- Functions are defined up to sets of probability zero; at symbols that never occur they are set to 0, so that
  1 + sum_i sigma_i f_i(x) g_i(y) answers "no change from the prior" there.
- Where singular values coincide, single modes are arbitrary rotations of each other: `Modes.blocks` groups them, and
  only sums over a block mean anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array, check_mode_count


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values, strongest first.

    Attributes:
        sigma: Shape (k,).
    """

    sigma: Array

    def __len__(self) -> int:
        return len(self.sigma)

    @property
    def energy(self) -> float:
        """Squared norm of what was decomposed, sum_i sigma_i^2."""
        return float(np.sum(self.sigma**2))

    def blocks(self, tolerance: float = 1e-8) -> tuple[range, ...]:
        """Groups of modes whose singular values are equal up to `tolerance`, relative to the largest."""
        breaks = np.flatnonzero(-np.diff(self.sigma) > tolerance * self.sigma.max(initial=0)) + 1
        edges = [0, *breaks.tolist(), len(self.sigma)]
        return tuple(range(start, stop) for start, stop in pairwise(edges) if stop > start)


@dataclass(frozen=True, eq=False)
class Modes(Spectrum):
    """The modal decomposition of a function on X x Y, by its values.

    Attributes:
        sigma: Singular values, (k,), strongest first.
        f: Values of f_1, ..., f_k at each symbol of x, (*shape of x, k).
        g: Values of g_1, ..., g_k at each symbol of y, (*shape of y, k).
    """

    f: Array
    g: Array

    def kernel(self) -> Array:
        """The function itself, sum_i sigma_i f_i(x) g_i(y), shape (*shape of x, *shape of y)."""
        return np.tensordot(self.f * self.sigma, self.g, axes=(-1, -1))

    def top(self, k: int | None) -> Modes:
        """The k strongest modes, the best approximation of rank k; all of them when None."""
        return self.first(check_mode_count(k, len(self)))

    def first(self, k: int) -> Modes:
        """The first k modes, or fewer where there are fewer."""
        return Modes(self.sigma[:k], self.f[..., :k], self.g[..., :k])


def sign_of_columns(vectors: Array) -> Array:
    """The signs, (k,), that make the largest entry of each column positive."""
    if vectors.size == 0:
        return np.ones(vectors.shape[1])
    size = np.abs(vectors)
    decisive = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(np.take_along_axis(vectors, decisive[None], axis=0)[0] < 0, -1.0, 1.0)


def level_modes(core: Array, x_ends: Sequence[int], y_ends: Sequence[int]) -> list[tuple[Array, Array, Array]]:
    """Split a matrix in flag coordinates into the components of its levels and decompose each.

    Level i may use the first `x_ends[i]` rows and `y_ends[i]` columns. Its component is what it adds to the level
    before, the border of a growing rectangle: where only the rows grow, the new rows (Theorem sspc:opt); where only
    the columns grow, the new columns. The components are orthogonal and add up to the whole.

    Returns:
        For each level its left vectors (r_x, k), non-zero singular values (k,), and right vectors (r_y, k), in
        coordinates of the whole flags.
    """
    components = []
    last_x = last_y = 0
    for end_x, end_y in zip(x_ends, y_ends, strict=True):
        border = core[:end_x, :end_y].copy()
        border[:last_x, :last_y] = 0
        # Rows (or columns) that only repeat the level before hold zeros: leave them out, so orthogonality is exact.
        first_row = last_x if end_y == last_y else 0
        first_column = last_y if end_x == last_x else 0
        u, sigma, vt = np.linalg.svd(border[first_row:, first_column:], full_matrices=False)
        k = int(np.sum(sigma > COLLINEAR))
        left, right = np.zeros((core.shape[0], k)), np.zeros((core.shape[1], k))
        left[first_row:end_x], right[first_column:end_y] = u[:, :k], vt[:k].T
        components.append((left, sigma[:k], right))
        last_x, last_y = end_x, end_y
    return components


def correlations(f: Array, g: Array) -> Array:
    """Of f_i and g_i, (k,); 0 where one of them is constant."""
    f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    spread = np.sqrt((f * f).sum(axis=0) * (g * g).sum(axis=0))
    return np.divide((f * g).sum(axis=0), spread, out=np.zeros(f.shape[1]), where=spread > 0)
