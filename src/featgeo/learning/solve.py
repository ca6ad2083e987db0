"""The closed form on data: one streamed pass of moments, kept apart by fold, then small matrices only.

Rows are dealt into folds, and the moments of each fold are summed on their own. Moments merge by addition, so "all rows
but this fold" costs nothing more, and the H-score of a solution on the rows it has not seen is algebra on that fold's
moments. The ridge, the number of modes and the spectrum that is reported beside the fitted one all come from there.

Rows may miss blocks of x: a chunk of features names the blocks that its rows carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np

from featgeo.geometry.moments import Moments
from featgeo.geometry.observed import Patterns
from featgeo.geometry.problem import SpanModes, SpanProblem
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array, as_names
from featgeo.learning.held_out import HeldOut
from featgeo.learning.plan import RIDGES
from featgeo.nesting import Nesting
from featgeo.threads import bounded_threads

# Candidates for `n_modes="auto"`.
MODE_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32)

Features = Mapping[str, Array]
Choice = tuple[int, float | None]  # how many modes of a level, and its ridge


@dataclass(frozen=True, eq=False)
class Folds:
    """Moments of disjoint parts of the rows.

    Attributes:
        parts: One a fold.
        memo: Moments of all rows but those of a fold, by fold: several levels and spaces ask for them.
    """

    parts: tuple[Patterns, ...]
    memo: dict[int, Patterns] = field(default_factory=dict, repr=False)

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Features], n_folds: int, seed: int, fold_of_row: np.ndarray | None = None
    ) -> Folds:
        """Deal the rows of a stream of feature chunks into folds, and sum the moments of each.

        Args:
            chunks: Features by block, some rows at a time.
            n_folds: How many folds.
            seed: Of the deal.
            fold_of_row: The fold of each of the first rows of the stream; of others at random.
        """
        rng = np.random.default_rng(seed)
        totals: list[list[Moments]] = [[] for _ in range(n_folds)]
        start = 0
        for features in chunks:
            n = len(next(iter(features.values())))
            known = np.empty(0, dtype=int) if fold_of_row is None else fold_of_row[start : start + n]
            dealt = np.concatenate([known, (start + rng.permutation(n - len(known))) % n_folds])
            start += n
            for fold, total in enumerate(totals):
                index = np.flatnonzero(dealt == fold)
                if len(index):
                    total.append(Moments.from_features({name: z[index] for name, z in features.items()}))
        return cls(tuple(Patterns.merged(total) for total in totals if total))

    @cached_property
    def whole(self) -> Patterns:
        """Moments of all rows."""
        return Patterns.merged(self.parts)

    def without(self, fold: int) -> Patterns:
        """Moments of all rows but those of one fold."""
        if fold not in self.memo:
            self.memo[fold] = Patterns.merged(part for i, part in enumerate(self.parts) if i != fold)
        return self.memo[fold]

    def through(self, maps: Mapping[str, AffineFeatures]) -> Folds:
        """The same folds with some blocks seen through affine maps."""

        def mapped(moments: Moments) -> Moments:
            dims = moments.dims.items()
            return moments.through({name: (name, maps[name] if name in maps else identity(dim)) for name, dim in dims})

        return Folds(
            tuple(Patterns({names: mapped(moments) for names, moments in part.parts.items()}) for part in self.parts)
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The maximiser inside the spans, and how it fares on rows that it has not seen.

    Attributes:
        levels: The modes of each level, from all rows.
        ridge: The ridge that chose their directions.
        held_out_scores: H-score on each fold that was held out, (folds,).
        held_out_sigma: For each level the correlation of f_i and g_i on held-out rows, (folds, k).
        captured: For each level and fold how much of the dependence of the held-out rows each mode captures, and its
            own energy there, (folds, 2, k).
        parts: For each fold the modes of each level from the other folds.
        held_out: Which folds were held out, in the order of `parts`.
        folds: The moments behind all this.
        problem: All rows in orthonormal coordinates.
        problems: The same for each of `parts`.
        tau_ridge: The ridge of what filled in for missing blocks; None where none was asked for.
    """

    levels: tuple[SpanModes, ...]
    ridge: float
    held_out_scores: Array
    held_out_sigma: tuple[Array, ...]
    captured: tuple[Array, ...]
    parts: tuple[tuple[SpanModes, ...], ...]
    held_out: tuple[int, ...]
    folds: Folds
    problem: SpanProblem
    problems: tuple[SpanProblem, ...]
    tau_ridge: float | None = None

    @property
    def held_out_score(self) -> float:
        """H-score on held-out rows, the mean over the folds; NaN where none was held out."""
        return float(np.mean(self.held_out_scores)) if len(self.held_out_scores) else float("nan")

    def held_out_energies(self, level: int) -> Array:
        """Energy of a level on held-out rows, (folds,): twice the H-score of its modes there.

        It estimates the energy of the dependence that the modes truly hold, from below: it is 0 on average, or less,
        where there is none.
        """
        captured, own = self.captured[level].sum(axis=2).T
        return 2 * captured - own

    def amplitudes(self, level: int) -> Array:
        """How strong each mode of a level is on held-out rows, as a share of what it seems to be, (k,)."""
        captured, own = self.captured[level].sum(axis=0)
        return np.divide(captured, own, out=np.ones_like(own), where=own > 0).clip(0, 1)

    def covariance(self, names: tuple[str, ...]) -> Array:
        """Of the features of some blocks of a side, in the metric of all rows."""
        return self.folds.whole.metric(names).joint_covariance(names, names)

    def before(self, maps: Mapping[str, AffineFeatures], folds: Folds) -> Solution:
        """The same solution as functions of the features before affine maps were applied to single blocks.

        Args:
            maps: The maps, by block.
            folds: The moments before them.
        """
        dims = folds.whole.dims

        def undone(levels: tuple[SpanModes, ...]) -> tuple[SpanModes, ...]:
            return tuple(
                replace(modes, f=_after(maps, modes.x, dims, modes.f), g=_after(maps, modes.y, dims, modes.g))
                for modes in levels
            )

        return replace(self, levels=undone(self.levels), parts=tuple(map(undone, self.parts)), folds=folds)


def solve(
    folds: Folds,
    nesting: Nesting,
    ridges: Sequence[float] = RIDGES,
    mode_counts: Sequence[int] | None = None,
    held_out: Sequence[int] | None = None,
    everything: Sequence[bool] | None = None,
    before: Sequence[Choice] = (),
    steady: Sequence[bool] = (False,),
    tau_ridges: Sequence[float | None] = (None,),
) -> Solution:
    """The modes of each level inside the spans of its blocks; ridge and number of modes chosen on held-out rows.

    Args:
        folds: Moments of the blocks that the nesting names, by fold. With a single fold nothing is held out, and the
            first ridge is taken.
        nesting: The levels; each keeps at most as many modes as it has dimensions.
        ridges: Ridges to choose from.
        mode_counts: Numbers of modes of the last level to choose from; its dimension when None.
        held_out: The folds to hold out, one after the other; all when None. Where features were learned from some of
            the folds, only the others can tell.
        everything: For each level whether all its modes are kept: then no ridge chooses among its directions.
        before: The number of modes and the ridge of each level but the last, where they are settled; else the levels
            have their dimensions, and the ridge of the last.
        steady: Whether modes stay what they are under the ridge (`SpanProblem.best_directions`): what to choose from.
        tau_ridges: Ridges of what fills in for missing blocks to choose from; None among them for the equation that
            takes the metric for known (`SpanProblem`).
    """
    with bounded_threads(sum(folds.whole.dims.values()) ** 2 / 2):
        return _solve(folds, nesting, ridges, mode_counts, held_out, everything, before, steady, tau_ridges)


def _solve(
    folds: Folds,
    nesting: Nesting,
    ridges: Sequence[float],
    mode_counts: Sequence[int] | None,
    held_out: Sequence[int] | None,
    everything: Sequence[bool] | None,
    before: Sequence[Choice],
    steady: Sequence[bool],
    tau_ridges: Sequence[float | None],
) -> Solution:
    kept_whole = [False] * len(nesting.dims) if everything is None else everything
    dims = folds.whole.dims
    most = min(sum(dims[name] for name in as_names(side)) for side in nesting.spaces[-1])
    counts = sorted({min(count, most) for count in ([nesting.dims[-1]] if mode_counts is None else mode_counts)})
    earlier = list(before) or [(dim, None) for dim in nesting.dims[:-1]]
    choices = []
    for ridge, stays in product(ridges, steady):
        for count in counts:
            levels = [*earlier, (count, ridge)]
            n_modes = [None if whole else k for (k, _), whole in zip(levels, kept_whole, strict=True)]
            choices.append((n_modes, [ridge if own is None else own for _, own in levels], stays))
    left_out = tuple(range(len(folds.parts)) if held_out is None else held_out)
    if len(folds.parts) < 2:
        left_out = ()
    seen = [_seen_without(folds, fold, nesting, tau_ridges) for fold in left_out]
    scores = np.array(
        [
            [view.score(problem.best_directions(*choice)) for problem, view in ways for choice in choices]
            for ways in seen
        ]
    )
    best = (
        simplest(scores.reshape(len(left_out), -1, len(counts)), counts.index(0) + 1 if 0 in counts else 0)
        if left_out
        else 0
    )
    way, choice = divmod(best, len(choices))
    chosen = choices[choice]
    whole_problem = SpanProblem.from_moments(folds.whole, nesting.spaces, tau_ridges[way])
    modes = whole_problem.best(*chosen)
    problems, views = [ways[way][0] for ways in seen], [ways[way][1] for ways in seen]
    directions = [problem.best_directions(*chosen) for problem in problems]
    parts = tuple(tuple(map(problem.span_modes, levels)) for problem, levels in zip(problems, directions, strict=True))
    judged = list(zip(views, directions, strict=True))
    sigma = tuple(
        np.array([view.correlations(levels, i, len(level)) for view, levels in judged]) for i, level in enumerate(modes)
    )
    captured = tuple(
        np.array([view.captured(levels, i, len(level)) for view, levels in judged]).reshape(len(judged), 2, len(level))
        for i, level in enumerate(modes)
    )
    held_out_scores = scores[:, best] if left_out else np.empty(0)
    return Solution(
        modes,
        chosen[1][-1],
        held_out_scores,
        sigma,
        captured,
        parts,
        left_out,
        folds,
        whole_problem,
        tuple(problems),
        tau_ridges[way],
    )


def _seen_without(
    folds: Folds, fold: int, nesting: Nesting, tau_ridges: Sequence[float | None]
) -> list[tuple[SpanProblem, HeldOut]]:
    """The problem of all rows but those of a fold, and the fold in it, for each tau ridge."""
    problem = SpanProblem.from_moments(folds.without(fold), nesting.spaces, tau_ridges[0])
    view = HeldOut.of(problem, folds.parts[fold])
    others = [problem.filled_in(problem.rows, ridge) for ridge in tau_ridges[1:] if ridge is not None]
    return [(problem, view), *((other, view.seen_in(other)) for other in others)]


def solve_levels(
    folds: Folds,
    nesting: Nesting,
    counts: Sequence[Sequence[int]],
    ridges: Sequence[float] = RIDGES,
    held_out: Sequence[int] | None = None,
    everything: Sequence[bool] | None = None,
    own_ridges: bool = False,
    steady: Sequence[bool] = (False,),
    tau_ridges: Sequence[float | None] = (None,),
) -> Solution:
    """Solve where several levels have numbers of modes to choose from: each choice rests on the levels before it.

    Args:
        folds: As in `solve`.
        nesting: The levels; their dimensions are replaced.
        counts: For each level the numbers of modes to choose from; 0 may be among those of any but the first.
        ridges: As in `solve`.
        held_out: As in `solve`.
        everything: As in `solve`.
        own_ridges: Whether each level keeps the ridge that was chosen with it; else the last choice is that of all.
        steady: As in `solve`.
        tau_ridges: As in `solve`; the first level chooses for all.
    """
    settled: list[Choice] = []
    for i, choices in enumerate(counts):
        levels = Nesting([replace(level, dim=1) for level in nesting.levels[: i + 1]])
        settled.append((choices[-1], None))
        if len(choices) > 1 or own_ridges or i == len(counts) - 1:
            whole = None if everything is None else everything[: i + 1]
            solution = solve(folds, levels, ridges, choices, held_out, whole, settled[:-1], steady, tau_ridges)
            tau_ridges = (solution.tau_ridge,)
            settled[-1] = (len(solution.levels[-1]), solution.ridge if own_ridges else None)
    return solution


def simplest(scores: Array, fewest: int = 0) -> int:
    """The choice with the largest mean score, or with fewer modes where the gain is within one standard error of none.

    Args:
        scores: By fold, ridge (or other choice) and number of modes, the latter in ascending order.
        fewest: Position of the smallest number of modes that may do instead. Whether there is any mode at all is for
            the mean score to say: a weak component is no reason to have none.

    Returns:
        Its position among all pairs of ridge (or other choice) and number of modes.
    """
    n_folds, _, n_counts = scores.shape
    ridge, most = divmod(int(np.argmax(scores.mean(axis=0))), n_counts)
    for fewer in range(fewest, most):
        loss = scores[:, ridge, most] - scores[:, ridge, fewer]
        error = loss.std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
        if loss.mean() <= error:
            return ridge * n_counts + fewer
    return ridge * n_counts + most


def identity(dim: int) -> AffineFeatures:
    """The map that changes nothing."""
    return AffineFeatures(np.zeros(dim), np.eye(dim), np.zeros(dim))


def _after(
    maps: Mapping[str, AffineFeatures], names: tuple[str, ...], dims: Mapping[str, int], outer: AffineFeatures
) -> AffineFeatures:
    """The composition of a map of several blocks with the maps of single ones."""
    centres, weights = [], []
    offset, start = outer.offset.copy(), 0
    for name in names:
        inner = maps[name] if name in maps else identity(dims[name])
        rows = slice(start, start + inner.weight.shape[1])
        start = rows.stop
        offset += (inner.offset - outer.centre[rows]) @ outer.weight[rows]
        centres.append(inner.centre)
        weights.append(inner.weight @ outer.weight[rows])
    return AffineFeatures(np.concatenate(centres), np.vstack(weights), offset, outer.removed)
