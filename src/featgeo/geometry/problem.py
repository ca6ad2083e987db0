"""Growing spans in orthonormal coordinates: a small singular value decomposition for each level is all that is left.

A ridge shrinks sigma and leaves f and g shorter than 1. `SpanProblem.best` uses it only to choose directions, and then
decomposes the dependence inside the few directions chosen without any (Rayleigh and Ritz): features of unit variance,
singular values that are correlations, f_i and g_j uncorrelated for i != j. The last has a price: modes of similar
strength turn towards each other until not even noise correlates f_i with g_j on the rows at hand. "Steady" modes do not
turn: they stay those under the ridge, only made orthonormal, from the strongest on. Then f_i and g_j may correlate a
little.

Rows may miss blocks of x. Each kind of row then says what it sees of the dependence, and how well: in orthonormal
coordinates L of the density ratio, the rows give  (sum_D eta_D P_D) L = sum_D eta_D P_D C_D,  with P_D the projection
onto what rows of kind D carry (`featgeo.geometry.observed`). Complete rows have P = 1, and L is their covariance.

That equation takes the metric, and conditional expectations in it, for known. Where they rest on few rows, small errors
of a metric that is nearly singular become large ones of L. With a "tau ridge" the rows themselves are fitted instead,
by least squares: what a row misses is filled in by conditional expectations under that ridge, as it will be for new
rows,

    (sum_D eta_D T_D G_D T_D^T) L = sum_D eta_D T_D C_D,

with G_D the second moments of what these rows carry and T_D what they see. Functions of a level are filled in from
functions of that level and of those before it, and levels are fitted one after the other, each to what is left over: so
none depends on those that come after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from featgeo.geometry.modes import Modes, equal_blocks, level_modes, sign_of_columns
from featgeo.geometry.moments import Moments
from featgeo.geometry.observed import Metric, Patterns
from featgeo.geometry.spans import AffineFeatures, Flag, consistent_covariance, flag_from_gram
from featgeo.geometry.validation import Array, as_names, check_growth

LevelChoice = tuple[float, int | None]  # the ridge of a level, and how many modes it keeps at most
Directions = tuple[Array, Array, Array]  # of a level, in coordinates of the flags: (r_x, k), sigma (k,), (r_y, k)


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

    def first(self, k: int) -> SpanModes:
        """The first k modes."""
        return replace(self, sigma=self.sigma[:k], f=self.f.first(k), g=self.g.first(k))

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


@dataclass(frozen=True, eq=False)
class Kind:
    """What the rows of one kind say, in the coordinates of the flags.

    Attributes:
        names: The blocks of x that they carry.
        share: Their share of all rows with y.
        inside: What they see of each direction of x, (r_x, r); None for all of it.
        covariance: Of these with the y side, (r, r_y).
        gram: Second moments of these on the rows, (r, r).
        step: Their means on the rows, (r,).
    """

    names: tuple[str, ...]
    share: float
    inside: Array | None
    covariance: Array
    gram: Array
    step: Array

    def seen(self, left: Array) -> Array:
        """Functions of x as these rows see them, (r, k)."""
        return left if self.inside is None else self.inside.T @ left

    def placed(self, seen: Array) -> Array:
        """The way back: what these rows see, among all of x, (r_x, k)."""
        return seen if self.inside is None else self.inside @ seen


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """A dependence inside growing spans.

    Attributes:
        x_flag: Orthonormal basis of the features of x, adapted to the levels.
        y_flag: The same for y.
        x: Means and Gram matrix of the features of x.
        y: The same for y.
        core: The dependence in the coordinates of the flags, (r_x, r_y).
        precision: Sum of eta_D P_D, (r_x, r_x): how much the rows see of each direction; None where all see all.
        removed: Share of energy by which the moments did not fit together.
        tau_ridge: The ridge of what fills in for missing blocks, where the rows themselves are fitted; else None.
        right: The right side of their equation, (r_x, r_y).
        rows: What they say.
        memo: What several numbers of modes share, for each ridge that was asked for.
        insides: What rows see that carry some blocks only.
        strongest: The same where levels are fitted one by one, by what was chosen before.
        fitted: Levels that were fitted so.
    """

    x_flag: Flag
    y_flag: Flag
    x: Metric
    y: Metric
    core: Array
    precision: Array | None
    removed: float
    tau_ridge: float | None = None
    right: Array | None = None
    rows: tuple[Kind, ...] = ()
    memo: dict[float, tuple[Array, list[Directions]]] = field(default_factory=dict)
    insides: dict[tuple[str, ...], Array] = field(default_factory=dict)
    strongest: dict[tuple[Any, ...], tuple[tuple[Array, Array], Array]] = field(default_factory=dict)
    fitted: dict[tuple[LevelChoice, ...], tuple[Directions, Array]] = field(default_factory=dict)

    @classmethod
    def from_moments(
        cls,
        moments: Moments | Patterns,
        levels: Sequence[tuple[str | Sequence[str], str | Sequence[str]]],
        tau_ridge: float | None = None,
    ) -> SpanProblem:
        """Whiten both sides; the levels are those of `decompose`.

        Args:
            moments: Moments of all blocks named in the levels.
            levels: (names of x blocks, names of y blocks) for each level.
            tau_ridge: Where rows miss blocks of x, the ridge of what fills in for them; None for the equation that
                takes the metric for known.
        """
        x_steps = _growth([as_names(x) for x, _ in levels], "x")
        y_steps = _growth([as_names(y) for _, y in levels], "y")
        x, y = (tuple(name for step in steps for name in step) for steps in (x_steps, y_steps))
        patterns = moments if isinstance(moments, Patterns) else Patterns.merged([moments])
        x_sizes, y_sizes = ([len(patterns.all.joint_mean(step)) for step in steps] for steps in (x_steps, y_steps))
        if len(patterns.parts) > 1:
            level = tuple(i for i, step in enumerate(x_steps) for _ in step)
            return cls._from_kinds(patterns, (x, y), (x_sizes, y_sizes), level, tau_ridge)
        (whole,) = patterns.parts.values()
        covariance, removed = consistent_covariance(whole, (*x, *y))
        d = sum(x_sizes)
        sides = (slice(None, d), slice(d, None))
        x_metric, y_metric = (
            Metric(names, tuple(whole.dims[n] for n in names), whole.joint_mean(names), covariance[side, side], removed)
            for names, side in zip((x, y), sides, strict=True)
        )
        x_flag, y_flag = flag_from_gram(x_metric.gram, x_sizes), flag_from_gram(y_metric.gram, y_sizes)
        core = x_flag.basis.T @ covariance[:d, d:] @ y_flag.basis
        return cls(x_flag, y_flag, x_metric, y_metric, core, None, removed)

    @classmethod
    def _from_kinds(
        cls,
        patterns: Patterns,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        sizes: tuple[list[int], list[int]],
        level: tuple[int, ...],
        tau_ridge: float | None,
    ) -> SpanProblem:
        """Rows that carry different blocks: their joint estimate."""
        first = [name for name, i in zip(names[0], level, strict=True) if i == 0]
        x = Metric.of(patterns.metric(names[0], first), names[0], level)
        y = Metric.of(patterns.metric(names[1]), names[1])
        x_flag, y_flag = flag_from_gram(x.gram, sizes[0]), flag_from_gram(y.gram, sizes[1])
        removed = max(x.removed, y.removed)
        empty = cls(x_flag, y_flag, x, y, np.zeros((x_flag.ends[-1], y_flag.ends[-1])), None, removed)
        if tau_ridge is not None:
            return empty.filled_in(empty.kinds(patterns), tau_ridge)
        precision, right = combined(empty.kinds(patterns), empty.core.shape)
        u, sigma, vt = np.linalg.svd(_solved(precision, right), full_matrices=False)
        # No correlation exceeds 1; estimates from rows of different kinds may, where these do not fit together.
        core = (u * sigma.clip(max=1)) @ vt
        beyond = float((sigma**2 - 1).clip(min=0).sum() / max(np.sum(sigma**2), 1e-300))
        return replace(empty, core=core, precision=precision, removed=max(removed, beyond))

    def filled_in(self, kinds: Sequence[Kind], tau_ridge: float) -> SpanProblem:
        """The same problem with the rows themselves fitted, what they miss filled in under a ridge.

        Args:
            kinds: What the rows say (`kinds`).
            tau_ridge: Relative to features of unit variance.
        """
        empty = replace(self, tau_ridge=tau_ridge, memo={}, insides={}, strongest={}, fitted={})
        precision, right = np.zeros((len(self.core), len(self.core))), np.zeros(self.core.shape)
        for kind in empty.seen_by(kinds):
            gram = kind.placed(kind.gram)
            precision += kind.share * (gram if kind.inside is None else gram @ kind.inside.T)
            right += kind.share * kind.placed(kind.covariance)
        return replace(empty, precision=precision, right=right, rows=tuple(kinds))

    def seen_by(self, kinds: Sequence[Kind]) -> list[Kind]:
        """The same kinds of rows, as they see functions of x under the tau ridge of this problem."""
        return [kind if kind.inside is None else replace(kind, inside=self._inside(kind.names)) for kind in kinds]

    def kinds(self, patterns: Patterns, own_means: bool = False) -> list[Kind]:
        """What rows say that may miss blocks of x, each kind apart; rows without y say nothing here.

        Args:
            patterns: Moments of the rows.
            own_means: Whether covariances are about the means of these very rows, and not about those of the metric.
        """
        carrying = patterns.carrying(self.y.names, self.x.names)
        total = sum(moments.weight(self.y.names[0]) for _, moments in carrying)
        result = []
        for seen, moments in carrying:
            complete = seen == self.x.names
            columns, flag = (self.x.columns(seen), self.x_flag) if complete else self.x.seen(seen)
            x_step = moments.joint_mean(seen) - self.x.mean[columns]
            y_step = moments.joint_mean(self.y.names) - self.y.mean
            covariance = moments.joint_covariance(seen, self.y.names)
            if not own_means:
                covariance = covariance + np.outer(x_step, y_step)
            gram = moments.joint_covariance(seen, seen) + np.outer(x_step, x_step)
            inside = None if complete else self._inside(seen)
            result.append(
                Kind(
                    seen,
                    moments.weight(self.y.names[0]) / total,
                    inside,
                    flag.basis.T @ covariance @ self.y_flag.basis,
                    flag.basis.T @ gram @ flag.basis,
                    x_step @ flag.basis,
                )
            )
        return result

    def _inside(self, names: tuple[str, ...]) -> Array:
        """What rows that carry only some blocks see of each direction, (r_x, r): tau, in orthonormal coordinates.

        Functions of what is there are seen as they are, of others conditional expectations.
        """
        if names in self.insides:
            return self.insides[names]
        columns, flag = self.x.seen(names)
        basis = self.x_flag.basis
        inside: Array = basis.T @ self.x.gram[:, columns] @ flag.basis
        if self.tau_ridge is not None:
            own = basis[columns].T @ self.x.gram[np.ix_(columns, columns)] @ flag.basis
            inside = own + (inside - own) * flag.shrinkage(self.tau_ridge) ** 2
            for start, end, reach in zip((0, *self.x_flag.ends), self.x_flag.ends, flag.ends, strict=False):
                inside[start:end, reach:] = 0
        self.insides[names] = inside
        return inside

    def modes(self, ridge: float = 0.0) -> tuple[SpanModes, ...]:
        """All modes of each level, under the Gram matrices plus ridge."""
        x_scale, levels = self._levels(ridge)
        y_length = self.y_flag.shrinkage(ridge)
        return tuple(
            self.span_modes((_scaled(x_scale, left), sigma, y_length[:, None] * right)) for left, sigma, right in levels
        )

    def best(
        self, dims: Sequence[int | None], ridge: float | Sequence[float], steady: bool = False
    ) -> tuple[SpanModes, ...]:
        """At most `dims[i]` modes of level i: directions chosen with the ridge, decomposed inside them without it.

        Where `dims[i]` is None all modes are kept, and there is nothing for a ridge to choose.
        """
        return tuple(self.span_modes(level) for level in self.best_directions(dims, ridge, steady))

    def best_directions(
        self, dims: Sequence[int | None], ridge: float | Sequence[float], steady: bool = False
    ) -> list[Directions]:
        """The same in the coordinates of the flags.

        Args:
            dims: The most modes of each level; None for all.
            ridge: One for all levels, or one for each.
            steady: Whether each mode stays what it is under the ridge, and is not turned inside the directions chosen.
                Rows that miss blocks are fitted anew in any case.
        """
        ridges = [float(ridge)] * len(dims) if isinstance(ridge, int | float) else list(ridge)
        choices = list(enumerate(zip(dims, ridges, strict=True)))
        if self.right is not None:
            return self._one_by_one(tuple((0.0 if k is None else own, k) for _, (k, own) in choices))
        if self.precision is not None:
            return self._fitted(self.precision, [self._chosen(i, k, level_ridge) for i, (k, level_ridge) in choices])
        result = []
        for i, (k, level_ridge) in choices:
            if k is None:
                result.append(self._levels(0.0)[1][i])
                continue
            left, right = self._chosen(i, k, level_ridge)
            if steady:
                result.append(_paired(left, np.sum(left * (self.core @ right), axis=0), right))
                continue
            u, sigma, vt = np.linalg.svd(left.T @ self.core @ right)
            result.append((left @ u, sigma, right @ vt.T))
        return result

    def _chosen(self, level: int, k: int | None, ridge: float) -> tuple[Array, Array]:
        """Orthonormal directions of a level: those of all modes, or of the k that are strongest under a ridge."""
        ridge = 0.0 if k is None else ridge
        x_scale, levels = self._levels(ridge)
        left, _, right = levels[level]
        y_length = self.y_flag.shrinkage(ridge)
        return np.linalg.qr(_scaled(x_scale, left[:, :k]))[0], np.linalg.qr(y_length[:, None] * right[:, :k])[0]

    def _fitted(self, precision: Array, chosen: list[tuple[Array, Array]]) -> list[Directions]:
        """The best fit among functions of the chosen directions, all levels together, where rows miss blocks."""
        every = np.hstack([left for left, _ in chosen])
        fitted = _solved(every.T @ precision @ every, every.T @ precision @ self.core)
        ends = np.cumsum([left.shape[1] for left, _ in chosen])
        result = []
        for (left, right), rows in zip(chosen, np.split(fitted, ends[:-1]), strict=True):
            u, sigma, vt = np.linalg.svd(rows @ right, full_matrices=False)
            result.append((left @ u, sigma.clip(max=1), right @ vt.T))
        return result

    def _one_by_one(self, choices: tuple[LevelChoice, ...]) -> list[Directions]:
        """Levels fitted one after the other, each to what those before it left over, where rows were filled in.

        Args:
            choices: The ridge of each level, and how many modes it keeps at most.
        """
        return [self._after(choices[:i], choices[i])[0] for i in range(len(choices))]

    def _after(self, before: tuple[LevelChoice, ...], choice: LevelChoice) -> tuple[Directions, Array]:
        """The directions of the next level, and the right side that it leaves over."""
        key = (*before, choice)
        if key not in self.fitted:
            (ridge, k), start = choice, (0, *self.x_flag.ends)[len(before)]
            part = slice(start, self.x_flag.ends[len(before)])
            strongest, left_over = self._under_ridge(before, ridge, part)
            left, right = (np.linalg.qr(side[:, :k])[0] for side in strongest)
            seen = self._precision[part, part]
            fitted = _solved(left.T @ seen @ left, left.T @ left_over[part]) @ right
            u, sigma, vt = np.linalg.svd(fitted, full_matrices=False)
            sigma, right = sigma.clip(max=1), right @ vt.T
            placed = np.zeros((len(self.core), len(sigma)))
            placed[part] = left @ u
            self.fitted[key] = (placed, sigma, right), left_over - self._precision @ (placed * sigma) @ right.T
        return self.fitted[key]

    def _under_ridge(
        self, before: tuple[LevelChoice, ...], ridge: float, part: slice
    ) -> tuple[tuple[Array, Array], Array]:
        """Directions of all modes of the next level under a ridge, strongest first, and the right side before it."""
        key = (*before, ridge)
        if key not in self.strongest:
            left_over = self._after(before[:-1], before[-1])[1] if before else self._right
            seen = self._precision[part, part]
            # Rows see at most all of a direction: more is noise of directions that hardly vary in the metric.
            typical = np.minimum(np.diag(seen), 1).sum() / max(len(seen), 1)
            shrinkage, y_length = self.x_flag.shrinkage(ridge)[part], self.y_flag.shrinkage(ridge)
            back = _inverse_root(seen + np.diag((1 / shrinkage**2 - 1) * typical))
            u, _, vt = np.linalg.svd(back.T @ left_over[part] * y_length, full_matrices=False)
            self.strongest[key] = (back @ u, y_length[:, None] * vt.T), left_over
        return self.strongest[key]

    @property
    def _precision(self) -> Array:
        return np.eye(len(self.core)) if self.precision is None else self.precision

    @property
    def _right(self) -> Array:
        return self.core if self.right is None else self.right

    def span_modes(self, directions: Directions) -> SpanModes:
        """Directions in the coordinates of the flags as functions of the features."""
        left, sigma, right = directions
        f, g = self.x_flag.basis @ left, self.y_flag.basis @ right
        sign = sign_of_columns(f * np.sqrt(np.diag(self.x.gram).clip(min=0))[:, None])
        zero = np.zeros(len(sigma))
        f_map = AffineFeatures(self.x.mean, f * sign, zero, self.removed)
        g_map = AffineFeatures(self.y.mean, g * sign, zero, self.removed)
        return SpanModes(sigma, f_map, g_map, self.x.names, self.y.names)

    def _levels(self, ridge: float) -> tuple[Array, list[Directions]]:
        """The modes of each level under a ridge, and what turns their left vectors into directions."""
        if ridge not in self.memo:
            y_length = self.y_flag.shrinkage(ridge)
            if self.precision is None:
                x_scale = self.x_flag.shrinkage(ridge)
                shrunk = x_scale[:, None] * self.core * y_length
            else:
                x_scale, shrunk = self._shrunk(self.precision, ridge)
                shrunk = shrunk * y_length
            self.memo[ridge] = x_scale, level_modes(shrunk, self.x_flag.ends, self.y_flag.ends)
        return self.memo[ridge]

    def _shrunk(self, precision: Array, ridge: float) -> tuple[Array, Array]:
        """The ridge solution L of (precision + ridge / energies) L = right, each level in its own metric.

        With G^T G the matrix of a level, G L has the modes that a rank-limited maximiser takes; G^-1 leads back.
        """
        # A length of sqrt(e / (e + ridge)) says 1 + ridge / e. Where rows see little of a level, so much less is 1.
        levels = [slice(start, end) for start, end in pairwise((0, *self.x_flag.ends))]
        seen = np.diag(precision)
        typical = [
            np.full(part.stop - part.start, seen[part].sum() / max(part.stop - part.start, 1)) for part in levels
        ]
        shrinking = (1 / self.x_flag.shrinkage(ridge) ** 2 - 1) * np.concatenate(typical)
        system = precision + np.diag(shrinking)
        solution = _solved(system, precision @ self.core)
        back, shrunk = np.zeros_like(system), np.zeros_like(solution)
        for part in levels:
            energies, turn = np.linalg.eigh(system[part, part])
            root = np.sqrt(energies.clip(min=SMALLEST_PRECISION))
            shrunk[part] = (turn * root) @ turn.T @ solution[part]
            back[part, part] = (turn / root) @ turn.T
        return back, shrunk


SMALLEST_PRECISION = 1e-10  # of a direction: rows that hardly see it say nothing about it


def combined(kinds: Sequence[Kind], shape: tuple[int, int]) -> tuple[Array, Array]:
    """Both sides of the equation that all kinds of rows together give: precision (r_x, r_x) and right (r_x, r_y)."""
    precision, right = np.zeros((shape[0], shape[0])), np.zeros(shape)
    for kind in kinds:
        precision += kind.share * (np.eye(shape[0]) if kind.inside is None else kind.inside @ kind.inside.T)
        right += kind.share * kind.placed(kind.covariance)
    return precision, right


def _solved(system: Array, right: Array) -> Array:
    """The solution of a positive semidefinite system; 0 in directions that it does not reach."""
    back = _inverse_root(system)
    return back @ (back.T @ right)


def _inverse_root(system: Array) -> Array:
    """B with B B^T the inverse of a positive semidefinite system, in the directions that it reaches."""
    size = np.sqrt(np.diag(system).clip(min=SMALLEST_PRECISION))  # a ridge can make some rows huge
    energies, turn = np.linalg.eigh(system / size / size[:, None])
    kept = energies > SMALLEST_PRECISION
    return turn[:, kept] / size[:, None] / np.sqrt(energies[kept])


def _paired(left: Array, correlation: Array, right: Array) -> Directions:
    """Pairs of directions as modes: of positive correlation, strongest first."""
    order = np.argsort(-np.abs(correlation), kind="stable")
    sign = np.where(correlation < 0, -1.0, 1.0)
    return left[:, order], np.abs(correlation)[order], (right * sign)[:, order]


def _scaled(scale: Array, left: Array) -> Array:
    return scale[:, None] * left if scale.ndim == 1 else scale @ left


def _growth(spaces: Sequence[tuple[str, ...]], side: str) -> list[tuple[str, ...]]:
    """What each level adds to the level before."""
    if not spaces:
        raise ValueError("A decomposition needs at least one level, got none. Pass [(x blocks, y blocks)].")
    check_growth(spaces, side)
    return [tuple(name for name in after if name not in before) for before, after in pairwise([(), *spaces])]
