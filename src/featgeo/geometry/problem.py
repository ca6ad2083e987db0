"""The one closed form: the dependence inside growing spans, decomposed level by level.

With A and B the Gram matrices of the features of x and of y and C their covariance, take bases T_x, T_y that are
orthonormal (T_x^T A T_x = I, T_y^T B T_y = I) and adapted to the levels, and decompose the blocks of T_x^T C T_y: it is
the maximiser of the nested H-score inside the spans wherever spans grow on one side (Theorems sspc:opt, sspc:opt:n).

Where both sides grow, the levels compete for the joint objective and no common maximiser need exist. Then each level is
the best addition to the levels before it, which is what the sequential objective maximises.

A ridge shrinks sigma and leaves f and g shorter than 1. `SpanProblem.best` uses it only to choose directions, and then
decomposes the dependence inside the few directions chosen without any (Rayleigh and Ritz): features of unit variance,
singular values that are correlations, f_i and g_j uncorrelated for i != j. The last has a price: modes of similar
strength turn towards each other until not even noise correlates f_i with g_j on the rows at hand. "Steady" modes do not
turn: they stay those under the ridge, only made orthonormal, from the strongest on. Then f_i and g_j may correlate a
little.

Both sides come whitened (`featgeo.geometry.observed`). Rows that miss blocks of x have problems of their own
(`featgeo.geometry.incomplete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from featgeo.geometry.modes import Modes, Spectrum, level_modes, sign_of_columns
from featgeo.geometry.observed import Metric
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array

Directions = tuple[Array, Array, Array]  # of a level, in coordinates of the flags: (r_x, k), sigma (k,), (r_y, k)


class LevelChoice(NamedTuple):
    """What is settled about a level.

    Attributes:
        n_modes: How many modes it keeps at most; None for all, and then there is nothing for a ridge to choose.
        ridge: By which directions are chosen, relative to features of unit variance.
        steady: Whether each mode stays what it is under the ridge, and is not turned inside the directions chosen.
            Rows that miss blocks are fitted anew in any case.
    """

    n_modes: int | None
    ridge: float = 0.0
    steady: bool = False


@dataclass(frozen=True, eq=False)
class SpanModes(Spectrum):
    """The modal decomposition inside spans of features.

    Attributes:
        sigma: Singular values, (k,), strongest first.
        f: The functions of x, as maps from the features of the blocks `x`, side by side.
        g: The functions of y, as maps from the features of the blocks `y`.
        x: Names of the blocks that f reads, in order.
        y: Names of the blocks that g reads, in order.

    The sign of a mode makes the largest coefficient of f, for features scaled to unit variance, positive.
    """

    f: AffineFeatures
    g: AffineFeatures
    x: tuple[str, ...]
    y: tuple[str, ...]

    def first(self, k: int) -> SpanModes:
        """The first k modes."""
        return replace(self, sigma=self.sigma[:k], f=self.f.first(k), g=self.g.first(k))

    @property
    def removed(self) -> float:
        """Share of energy by which moments of different rows did not fit together; 0 for complete rows."""
        return self.f.removed

    def at(self, x_features: Any, y_features: Any) -> Modes:
        """The same modes by their values at the given rows of features."""
        return Modes(self.sigma, self.f(x_features), self.g(y_features))


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """A dependence inside growing spans.

    Attributes:
        x: The features of x, whitened by levels.
        y: The same for y.
        core: The dependence in their orthonormal coordinates, (r_x, r_y).
        removed: Share of energy by which the moments did not fit together.
        memo: What several choices share.
    """

    x: Metric
    y: Metric
    core: Array
    removed: float
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    def modes(self, ridge: float = 0.0) -> tuple[SpanModes, ...]:
        """All modes of each level, under the Gram matrices plus ridge."""
        return tuple(map(self.span_modes, self.under_ridge(ridge)))

    def best(self, choices: Sequence[LevelChoice]) -> tuple[SpanModes, ...]:
        """The modes of the first levels: directions chosen with a ridge, decomposed inside them without it."""
        return tuple(map(self.span_modes, self.best_directions(choices)))

    def best_directions(self, choices: Sequence[LevelChoice]) -> list[Directions]:
        """The same in the coordinates of the flags."""
        result = []
        for i, choice in enumerate(choices):
            if choice.n_modes is None:
                result.append(self.under_ridge(0.0)[i])
                continue
            left, right = self.chosen(i, choice)
            if choice.steady:
                result.append(_paired(left, np.sum(left * (self.core @ right), axis=0), right))
            else:
                result.append(inside(left, left.T @ self.core @ right, right))
        return result

    def chosen(self, level: int, choice: LevelChoice) -> tuple[Array, Array]:
        """Orthonormal directions of a level: those of all modes, or of the few that are strongest under the ridge."""
        left, _, right = self.under_ridge(0.0 if choice.n_modes is None else choice.ridge)[level]
        return np.linalg.qr(left[:, : choice.n_modes])[0], np.linalg.qr(right[:, : choice.n_modes])[0]

    def under_ridge(self, ridge: float) -> list[Directions]:
        """All modes of each level under the Gram matrices plus ridge."""
        if ridge not in self.memo:
            x_length, y_length = self.x.flag.shrinkage(ridge), self.y.flag.shrinkage(ridge)
            levels = level_modes(x_length[:, None] * self.core * y_length, self.x.flag.ends, self.y.flag.ends)
            self.memo[ridge] = [
                (x_length[:, None] * left, sigma, y_length[:, None] * right) for left, sigma, right in levels
            ]
        directions: list[Directions] = self.memo[ridge]
        return directions

    def span_modes(self, directions: Directions) -> SpanModes:
        """Directions in the coordinates of the flags as functions of the features."""
        left, sigma, right = directions
        f, g = self.x.flag.basis @ left, self.y.flag.basis @ right
        sign = sign_of_columns(f * np.sqrt(np.diag(self.x.gram).clip(min=0))[:, None])
        zero = np.zeros(len(sigma))
        f_map = AffineFeatures(self.x.mean, f * sign, zero, self.removed)
        g_map = AffineFeatures(self.y.mean, g * sign, zero, self.removed)
        return SpanModes(sigma, f_map, g_map, self.x.names, self.y.names)


def inside(left: Array, core: Array, right: Array) -> Directions:
    """The modes of a dependence inside some directions, where it is `core`, (k_x, k_y); no correlation exceeds 1."""
    u, sigma, vt = np.linalg.svd(core, full_matrices=False)
    return left @ u, sigma.clip(max=1), right @ vt.T


def _paired(left: Array, correlation: Array, right: Array) -> Directions:
    """Pairs of directions as modes: of positive correlation, strongest first."""
    order = np.argsort(-np.abs(correlation), kind="stable")
    sign = np.where(correlation < 0, -1.0, 1.0)
    return left[:, order], np.abs(correlation)[order], (right * sign)[:, order]
