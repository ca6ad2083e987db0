"""The one closed form: the dependence inside growing spans, decomposed level by level.

With A and B the Gram matrices of the features of x and of y and C their covariance, take bases T_x, T_y that are
orthonormal (T_x^T A T_x = I, T_y^T B T_y = I) and adapted to the levels, and decompose the blocks of T_x^T C T_y: it is
the maximiser of the nested H-score inside the spans wherever spans grow on one side (Theorems sspc:opt, sspc:opt:n).

Where both sides grow, the levels compete for the joint objective and no common maximiser need exist. Then each level is
the best addition to the levels before it, which is what the sequential objective maximises.

A ridge shrinks sigma and leaves f and g shorter than 1. `SpanProblem.best` uses it only to choose directions, and then
decomposes the dependence inside the few directions chosen without any (Rayleigh and Ritz): features of unit variance,
singular values that are correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from featgeo.geometry.modes import Modes, equal_blocks, level_modes, sign_of_columns
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, Flag, consistent_covariance, flag_from_gram
from featgeo.geometry.validation import Array, as_names, check_growth


@dataclass(frozen=True, eq=False)
class SpanModes:
    """The modal decomposition inside spans of features.

    Attributes:
        sigma: Singular values, (k,), strongest first.
        f: The functions of x, as maps from the features of the blocks `x`, side by side.
        g: The functions of y, as maps from the features of the blocks `y`.
        x: Names of the blocks that f reads, in order.
        y: Names of the blocks that g reads, in order.

    The sign of a mode makes the largest coefficient of f, for features scaled to unit variance, positive.
    """

    sigma: Array
    f: AffineFeatures
    g: AffineFeatures
    x: tuple[str, ...]
    y: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sigma)

    @property
    def energy(self) -> float:
        """Squared norm of the component of dependence inside the spans, sum_i sigma_i^2."""
        return float(np.sum(self.sigma**2))

    @property
    def removed(self) -> float:
        """Share of energy by which moments of different rows did not fit together; 0 for complete rows."""
        return self.f.removed

    def at(self, x_features: Any, y_features: Any) -> Modes:
        """The same modes by their values at the given rows of features."""
        return Modes(self.sigma, self.f(x_features), self.g(y_features))

    def blocks(self, tolerance: float = 1e-8) -> tuple[range, ...]:
        """Groups of modes whose singular values are equal up to `tolerance`, relative to the largest."""
        return equal_blocks(self.sigma, tolerance)


def decompose(
    moments: Moments,
    levels: Sequence[tuple[str | Sequence[str], str | Sequence[str]]],
    ridge: float = 0.0,
) -> tuple[SpanModes, ...]:
    """The dependence inside growing spans, level by level, in closed form.

    Level i may use functions in the span of its blocks of x and of its blocks of y (and constants, which belong to
    every span). The component of a level is the dependence that its spans capture and the spans before it do not; each
    is returned as its modal decomposition (Prop. md:constraint, Theorem sspc:opt:n). One level with one block a side is
    the plain modal decomposition inside spans; over features linear in the data it is canonical correlation analysis.

    With a ridge the features have unit norm under the Gram matrix plus ridge, and sigma is shrunk accordingly. Blocks
    that miss in some rows may not fit together; their moments are mended, and `SpanModes.removed` says by how much.

    Args:
        moments: Moments of all blocks named in the levels.
        levels: (names of x blocks, names of y blocks) for each level, each containing the names of the level before.
        ridge: Shrinkage, relative to features of unit variance.

    Returns:
        One `SpanModes` a level, with all modes of non-zero singular value.
    """
    return SpanProblem.from_moments(moments, levels).modes(ridge)


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """Growing spans in orthonormal coordinates: what is left to do is one small SVD for each level and ridge.

    Attributes:
        x_flag: Orthonormal basis of the features of x, adapted to the levels.
        y_flag: The same for y.
        core: The dependence in these coordinates, (r_x, r_y).
        moments: The moments that it was made from.
        x: Names of the blocks of x, in order.
        y: Names of the blocks of y.
        removed: Share of energy by which the moments did not fit together.
        memo: The modes for each ridge that was asked for: several numbers of modes share them.
    """

    x_flag: Flag
    y_flag: Flag
    core: Array
    moments: Moments
    x: tuple[str, ...]
    y: tuple[str, ...]
    removed: float
    memo: dict[float, list[tuple[Array, Array, Array]]] = field(default_factory=dict)

    @classmethod
    def from_moments(
        cls, moments: Moments, levels: Sequence[tuple[str | Sequence[str], str | Sequence[str]]]
    ) -> SpanProblem:
        """Whiten both sides; the levels are those of `decompose`."""
        x_steps = _growth([as_names(x) for x, _ in levels], "x")
        y_steps = _growth([as_names(y) for _, y in levels], "y")
        x, y = (tuple(name for step in steps for name in step) for steps in (x_steps, y_steps))
        covariance, removed = consistent_covariance(moments, (*x, *y))
        x_sizes, y_sizes = (
            [sum(moments.dims[name] for name in step) for step in steps] for steps in (x_steps, y_steps)
        )
        d = sum(x_sizes)
        x_flag = flag_from_gram(covariance[:d, :d], x_sizes)
        y_flag = flag_from_gram(covariance[d:, d:], y_sizes)
        core = x_flag.basis.T @ covariance[:d, d:] @ y_flag.basis
        return cls(x_flag, y_flag, core, moments, x, y, removed)

    def modes(self, ridge: float = 0.0) -> tuple[SpanModes, ...]:
        """All modes of each level, under the Gram matrices plus ridge."""
        x_length, y_length = self.x_flag.shrinkage(ridge), self.y_flag.shrinkage(ridge)
        return tuple(
            self._span_modes(x_length[:, None] * left, sigma, y_length[:, None] * right)
            for left, sigma, right in self._level_modes(ridge)
        )

    def best(self, dims: Sequence[int | None], ridge: float) -> tuple[SpanModes, ...]:
        """At most `dims[i]` modes of level i: directions chosen with the ridge, decomposed inside them without it.

        Where `dims[i]` is None all modes are kept, and there is nothing for a ridge to choose.
        """
        return tuple(self._span_modes(*level) for level in self.best_directions(dims, ridge))

    def best_directions(self, dims: Sequence[int | None], ridge: float) -> list[tuple[Array, Array, Array]]:
        """The same in the coordinates of the flags: (r_x, k), (k,) and (r_y, k) for each level."""
        x_length, y_length = self.x_flag.shrinkage(ridge), self.y_flag.shrinkage(ridge)
        result = []
        for i, k in enumerate(dims):
            left, sigma, right = self._level_modes(0.0 if k is None else ridge)[i]
            if k is None:
                result.append((left, sigma, right))
                continue
            left, right = (np.linalg.qr(z[:, :k])[0] for z in (x_length[:, None] * left, y_length[:, None] * right))
            u, sigma, vt = np.linalg.svd(left.T @ self.core @ right)
            result.append((left @ u, sigma, right @ vt.T))
        return result

    def seen_by(self, other: Moments) -> tuple[Array, Array, Array]:
        """The second moments of both bases and their covariance on other rows, (r_x, r_x), (r_y, r_y), (r_x, r_y)."""
        x, y = self.x_flag.basis, self.y_flag.basis
        grams = []
        for names, basis in ((self.x, x), (self.y, y)):
            step = (other.joint_mean(names) - self.moments.joint_mean(names)) @ basis
            grams.append(basis.T @ other.joint_covariance(names, names) @ basis + np.outer(step, step))
        return grams[0], grams[1], x.T @ other.joint_covariance(self.x, self.y) @ y

    def _level_modes(self, ridge: float) -> list[tuple[Array, Array, Array]]:
        if ridge not in self.memo:
            x_length, y_length = self.x_flag.shrinkage(ridge), self.y_flag.shrinkage(ridge)
            shrunk = x_length[:, None] * self.core * y_length
            self.memo[ridge] = level_modes(shrunk, self.x_flag.ends, self.y_flag.ends)
        return self.memo[ridge]

    def _span_modes(self, left: Array, sigma: Array, right: Array) -> SpanModes:
        f, g = self.x_flag.basis @ left, self.y_flag.basis @ right
        x_mean, y_mean = self.moments.joint_mean(self.x), self.moments.joint_mean(self.y)
        variances = [np.diag(self.moments.covariance(name)) for name in self.x]
        spread = np.sqrt(np.concatenate([np.empty(0), *variances]))
        sign = sign_of_columns(f * spread[:, None])
        zero = np.zeros(len(sigma))
        f_map, g_map = (AffineFeatures(*part, zero, self.removed) for part in ((x_mean, f * sign), (y_mean, g * sign)))
        return SpanModes(sigma, f_map, g_map, self.x, self.y)


def _growth(spaces: Sequence[tuple[str, ...]], side: str) -> list[tuple[str, ...]]:
    """What each level adds to the level before."""
    if not spaces:
        raise ValueError("A decomposition needs at least one level, got none. Pass [(x blocks, y blocks)].")
    check_growth(spaces, side)
    return [tuple(name for name in after if name not in before) for before, after in pairwise([(), *spaces])]
