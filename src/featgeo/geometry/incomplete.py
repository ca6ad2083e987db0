"""Rows that may miss blocks of x: what each kind of row sees of a dependence, and the problems that all of them pose.

Each kind of row says what it sees of the dependence, and how well: in orthonormal coordinates L of the density ratio,
the rows give  (sum_D eta_D P_D) L = sum_D eta_D P_D C_D,  with P_D the projection onto what rows of kind D carry
(`featgeo.geometry.spans`). Complete rows have P = 1, and L is their covariance.

That equation takes the metric, and conditional expectations in it, for known. Where they rest on few rows, small errors
of a metric that is nearly singular become large ones of L. With a "tau ridge" the rows themselves are fitted instead,
by least squares: what a row misses is filled in by conditional expectations under that ridge, from what is confirmed of
how blocks depend on each other (`featgeo.geometry.spans.Confirmed`), as it will be for new rows,

    (sum_D eta_D T_D G_D T_D^T) L = sum_D eta_D T_D C_D,

with G_D the second moments of what these rows carry and T_D what they see. Functions of a level are filled in from
functions of that level and of those before it, and levels are fitted one after the other, each to what is left over: so
none depends on those that come after it. They are orthogonal to the levels before, and so is what is seen of them: a
row that carries none of the blocks that a level adds sees nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import block_diag

from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import (
    COLLINEAR,
    Directions,
    Factors,
    Kind,
    LevelChoice,
    Patterns,
    Spaces,
    SpanProblem,
    factors_of,
    inside,
    kinds,
    level_modes,
    said,
)
from featgeo.geometry.validation import Array


def span_problem(moments: Moments | Patterns, levels: Sequence[Spaces], tau_ridge: float | None = None) -> SpanProblem:
    """The dependence inside growing spans, both sides whitened, whatever blocks of x rows carry.

    Args:
        moments: Moments of all blocks named in the levels.
        levels: (names of x blocks, names of y blocks) for each level.
        tau_ridge: Where rows miss blocks of x, the ridge of what fills in for them; None for the equation that takes
            the metric for known.
    """
    patterns = moments if isinstance(moments, Patterns) else Patterns.merged([moments])
    problem = SpanProblem.of(patterns, levels)
    if patterns.is_complete:
        return problem
    if len(patterns.parts) == 1:
        covariance = patterns.all.joint_covariance(problem.x.names, problem.y.names)
        core, beyond = _possible(problem.x.flag.basis.T @ covariance @ problem.y.flag.basis)
        return replace(problem, core=core, removed=max(problem.removed, beyond))
    rows = tuple(kinds(problem, patterns, tau_ridge))
    if not rows:
        return problem
    return KnownMetric.solved(problem, rows) if tau_ridge is None else FilledIn.summed(problem, rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownMetric(SpanProblem):
    """The dependence that fits all kinds of rows best, the metric taken for known.

    Attributes:
        precision: Sum of eta_D P_D, (r_x, r_x): how much the rows see of each direction.
    """

    precision: Array

    @classmethod
    def solved(cls, empty: SpanProblem, rows: Sequence[Kind]) -> KnownMetric:
        """Solve for the dependence."""
        precision, right = said([replace(kind, gram=np.eye(len(kind.gram))) for kind in rows])
        core, beyond = _possible(_solved(precision, right))
        return cls(empty.x, empty.y, core, max(empty.removed, beyond), precision=precision)

    def best_directions(self, choices: Sequence[LevelChoice]) -> list[Directions]:
        """The best fit among functions of the chosen directions, all levels together."""
        chosen = [self.chosen(i, choice) for i, choice in enumerate(choices)]
        every = np.hstack([left for left, _ in chosen])
        fitted = _solved(every.T @ self.precision @ every, every.T @ self.precision @ self.core)
        ends = np.cumsum([left.shape[1] for left, _ in chosen])
        by_level = zip(chosen, np.split(fitted, ends[:-1]), strict=True)
        return [inside(left, rows @ right, right) for (left, right), rows in by_level]

    def dependence(self, choices: Sequence[LevelChoice]) -> Factors:
        """What the best directions tell, all levels together."""
        return factors_of(self.best_directions(choices))

    def under_ridge(self, ridge: float) -> list[Directions]:
        """The modes of each level of the solution L; there is no other ridge than 0, for the metric is known.

        With G^T G the matrix of a level, G L has the modes that a rank-limited maximiser takes; G^-1 leads back.
        """
        if ridge not in self.memo:
            seen = [self.precision[start:end, start:end] for start, end in pairwise((0, *self.x.flag.ends))]
            inverses = [_inverse_root(part) for part in seen]
            ends, back = np.cumsum([inverse.shape[1] for inverse in inverses]), block_diag(*inverses)
            modes = level_modes(back.T @ block_diag(*seen) @ self.core, ends.tolist(), self.y.flag.ends)
            self.memo[ridge] = [(back @ left, sigma, right) for left, sigma, right in modes]
        return self.memo[ridge]


@dataclass(frozen=True, eq=False, kw_only=True)
class FilledIn(SpanProblem):
    """The rows themselves fitted, what they miss filled in under a ridge.

    Attributes:
        precision: The left side of their equation, (r_x, r_x).
        right: The right side, (r_x, r_y).
        rows: What they say.
    """

    precision: Array
    right: Array
    rows: tuple[Kind, ...]

    @classmethod
    def summed(cls, empty: SpanProblem, rows: Sequence[Kind]) -> FilledIn:
        """Add up what all kinds of rows say."""
        precision, right = said(rows)
        return cls(empty.x, empty.y, empty.core, empty.removed, precision=precision, right=right, rows=tuple(rows))

    def under(self, tau_ridge: float) -> FilledIn:
        """The same rows filled in under another ridge."""
        return FilledIn.summed(self, [kind.under(self, tau_ridge) for kind in self.rows])

    def best_directions(self, choices: Sequence[LevelChoice]) -> list[Directions]:
        """Levels fitted one after the other, each to what those before it left over."""
        plain = tuple(LevelChoice(None) if choice.n_modes is None else choice for choice in choices)
        return [self._after(plain[:i], plain[i])[0] for i in range(len(plain))]

    def dependence(self, choices: Sequence[LevelChoice]) -> Factors:
        """What the best directions tell, all levels together."""
        return factors_of(self.best_directions(choices))

    def _after(self, before: tuple[LevelChoice, ...], choice: LevelChoice) -> tuple[Directions, Array]:
        """The directions of the next level, and the right side that it leaves over."""
        key = (*before, choice)
        if key not in self.memo:
            start = (0, *self.x.flag.ends)[len(before)]
            part = slice(start, self.x.flag.ends[len(before)])
            strongest, left_over = self._strongest(before, choice.ridge, part)
            left, right = (np.linalg.qr(side[:, : choice.n_modes])[0] for side in strongest)
            seen = self.precision[part, part]
            placed = np.zeros((len(self.core), left.shape[1]))
            placed[part] = left
            core = _solved(left.T @ seen @ left, left.T @ left_over[part]) @ right
            placed, sigma, right = inside(placed, core, right)
            self.memo[key] = (placed, sigma, right), left_over - self.precision @ (placed * sigma) @ right.T
        return self.memo[key]

    def _strongest(
        self, before: tuple[LevelChoice, ...], ridge: float, part: slice
    ) -> tuple[tuple[Array, Array], Array]:
        """Directions of all modes of the next level under a ridge, strongest first, and the right side before it."""
        key = (before, ridge)
        if key not in self.memo:
            left_over = self._after(before[:-1], before[-1])[1] if before else self.right
            seen = self.precision[part, part]
            # Rows see at most all of a direction: more is noise of directions that hardly vary in the metric.
            typical = np.minimum(np.diag(seen), 1).sum() / max(len(seen), 1)
            y_length = self.y.flag.shrinkage(ridge)
            back = _inverse_root(seen + np.diag((1 / self.x.flag.shrinkage(ridge)[part] ** 2 - 1) * typical))
            u, _, vt = np.linalg.svd(back.T @ left_over[part] * y_length, full_matrices=False)
            self.memo[key] = (back @ u, y_length[:, None] * vt.T), left_over
        return self.memo[key]


def _possible(core: Array) -> tuple[Array, float]:
    """No correlation exceeds 1; estimates from rows of different kinds may, where these do not fit together.

    Returns:
        The core without what is beyond, and the share of energy that this is.
    """
    u, sigma, vt = np.linalg.svd(core, full_matrices=False)
    beyond = float((sigma**2 - 1).clip(min=0).sum() / max(np.sum(sigma**2), 1e-300))
    return (u * sigma.clip(max=1)) @ vt, beyond


def _solved(system: Array, right: Array) -> Array:
    """The solution of a positive semidefinite system; 0 in directions that it does not reach."""
    back = _inverse_root(system)
    return back @ (back.T @ right)


def _inverse_root(system: Array) -> Array:
    """B with B B^T the inverse of a positive semidefinite system, in the directions that it reaches."""
    size = np.sqrt(np.diag(system).clip(min=COLLINEAR))  # a ridge can make some rows huge
    energies, turn = np.linalg.eigh(system / size / size[:, None])
    kept = energies > COLLINEAR
    return turn[:, kept] / size[:, None] / np.sqrt(energies[kept])
