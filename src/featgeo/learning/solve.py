"""The closed form on data: one streamed pass of moments, kept apart by fold, then small matrices only.

Rows are dealt into folds, and the moments of each fold are summed on their own. Moments merge by addition, so "all rows
but this fold" costs nothing more, and the H-score of a solution on the rows it has not seen is algebra on that fold's
moments. The ridge, the number of modes and the spectrum that is reported beside the fitted one all come from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from featgeo.geometry.decomposition import SpanModes, SpanProblem
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.nesting import Level, Nesting

# Relative to features of unit variance. Few: the held-out H-score is flat around its maximum.
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Candidates for `n_modes="auto"`.
MODE_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32)

Features = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Folds:
    """Moments of disjoint parts of the rows."""

    parts: tuple[Moments, ...]

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Features], n_folds: int, seed: int, fold_of_row: np.ndarray | None = None
    ) -> Folds:
        """Deal the rows of a stream of feature chunks into folds, and sum the moments of each.

        Args:
            chunks: Features by block, some rows at a time.
            n_folds: How many folds.
            seed: Of the deal.
            fold_of_row: The fold of each row of the stream, (n,); at random when None.
        """
        rng = np.random.default_rng(seed)
        totals: list[list[Moments]] = [[] for _ in range(n_folds)]
        start = 0
        for features in chunks:
            n = len(next(iter(features.values())))
            dealt = (start + rng.permutation(n)) % n_folds if fold_of_row is None else fold_of_row[start : start + n]
            start += n
            for fold, total in enumerate(totals):
                index = np.flatnonzero(dealt == fold)
                if len(index):
                    total.append(Moments.from_features({name: z[index] for name, z in features.items()}))
        return cls(tuple(Moments.from_chunks(total) for total in totals if total))

    @cached_property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return Moments.from_chunks(self.parts)

    def without(self, fold: int) -> Moments:
        """Moments of all rows but those of one fold."""
        return Moments.from_chunks(part for i, part in enumerate(self.parts) if i != fold)

    def through(self, maps: Mapping[str, AffineFeatures]) -> Folds:
        """The same folds with some blocks seen through affine maps."""
        all_maps = {
            name: (name, maps[name] if name in maps else identity(dim)) for name, dim in self.parts[0].dims.items()
        }
        return Folds(tuple(part.through(all_maps) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Solution:
    """The maximiser inside the spans, and how it fares on rows that it has not seen.

    Attributes:
        levels: The modes of each level, from all rows.
        ridge: The ridge that chose their directions.
        held_out_scores: H-score on each fold that was held out, (folds,).
        held_out_sigma: For each level the correlation of f_i and g_i on held-out rows, (folds, k).
        parts: For each fold the modes of each level from the other folds.
        held_out: Which folds were held out, in the order of `parts`.
        folds: The moments behind all this.
    """

    levels: tuple[SpanModes, ...]
    ridge: float
    held_out_scores: Array
    held_out_sigma: tuple[Array, ...]
    parts: tuple[tuple[SpanModes, ...], ...]
    held_out: tuple[int, ...]
    folds: Folds

    @property
    def held_out_score(self) -> float:
        """H-score on held-out rows, the mean over the folds; NaN where none was held out."""
        return float(np.mean(self.held_out_scores)) if len(self.held_out_scores) else float("nan")

    def before(self, maps: Mapping[str, AffineFeatures], folds: Folds) -> Solution:
        """The same solution as functions of the features before affine maps were applied to single blocks.

        Args:
            maps: The maps, by block.
            folds: The moments before them.
        """
        dims = folds.parts[0].dims

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
    """
    kept_whole = [False] * len(nesting.dims) if everything is None else everything
    counts = [nesting.dims[-1]] if mode_counts is None else list(mode_counts)
    choices = [
        (
            tuple(None if whole else dim for dim, whole in zip((*nesting.dims[:-1], count), kept_whole, strict=True)),
            ridge,
        )
        for ridge in ridges
        for count in counts
    ]
    left_out = tuple(range(len(folds.parts)) if held_out is None else held_out)
    if len(folds.parts) < 2:
        left_out = ()
    problems = [SpanProblem.from_moments(folds.without(i), nesting.spaces) for i in left_out]
    scores = np.array(
        [_held_out_scores(problem, folds.parts[i], choices) for problem, i in zip(problems, left_out, strict=True)]
    )
    best = simplest(scores.reshape(-1, len(ridges), len(counts))) if left_out else 0
    dims, ridge = choices[best]
    levels = SpanProblem.from_moments(folds.whole, nesting.spaces).best(dims, ridge)
    parts = tuple(problem.best(dims, ridge) for problem in problems)
    sigma = tuple(
        np.array(
            [_correlations(part[level], folds.parts[i], len(modes)) for part, i in zip(parts, left_out, strict=True)]
        )
        for level, modes in enumerate(levels)
    )
    return Solution(levels, ridge, scores[:, best] if left_out else np.empty(0), sigma, parts, left_out, folds)


def solve_levels(
    folds: Folds,
    nesting: Nesting,
    counts: Sequence[Sequence[int]],
    ridges: Sequence[float] = RIDGES,
    held_out: Sequence[int] | None = None,
    everything: Sequence[bool] | None = None,
) -> Solution:
    """Solve where several levels have numbers of modes to choose from: each choice rests on the levels before it.

    Args:
        folds: As in `solve`.
        nesting: The levels; their dimensions are replaced.
        counts: For each level the numbers of modes to choose from.
        ridges: As in `solve`.
        held_out: As in `solve`.
        everything: As in `solve`.
    """
    levels: list[Level] = []
    for i, (level, choices) in enumerate(zip(nesting.levels, counts, strict=True)):
        levels.append(replace(level, dim=choices[-1]))
        if len(choices) > 1 or i == len(counts) - 1:
            whole = None if everything is None else everything[: i + 1]
            solution = solve(folds, Nesting(levels), ridges, choices, held_out, whole)
            levels[-1] = replace(level, dim=max(1, len(solution.levels[-1])))
    return solution


def simplest(scores: Array) -> int:
    """The choice with the largest mean score, or with fewer modes where the gain is within one standard error of none.

    Args:
        scores: By fold, ridge and number of modes, the latter in ascending order.

    Returns:
        Its position among all pairs of ridge and number of modes.
    """
    n_folds, _, n_counts = scores.shape
    ridge, most = divmod(int(np.argmax(scores.mean(axis=0))), n_counts)
    for fewer in range(most):
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


def _held_out_scores(
    problem: SpanProblem, unseen: Moments, choices: Sequence[tuple[tuple[int | None, ...], float]]
) -> list[float]:
    """H-score of all modes together, f and g each carrying sqrt(sigma), on rows that the problem has not seen."""
    x_gram, y_gram, covariance = problem.seen_by(unseen)

    def score(dims: tuple[int | None, ...], ridge: float) -> float:
        parts = zip(*problem.best_directions(dims, ridge), strict=True)
        left, sigma, right = (np.concatenate(part, axis=-1) for part in parts)
        f, g = left * np.sqrt(sigma), right * np.sqrt(sigma)
        captured = np.sum(f * (covariance @ g))
        return float(captured - np.sum((f.T @ x_gram @ f) * (g.T @ y_gram @ g)) / 2)

    return [score(*choice) for choice in choices]


def held_out_energy(modes: SpanModes, moments: Moments) -> float:
    """Twice the H-score of a level's modes on the rows of the moments, f and g each carrying sqrt(sigma).

    On rows that the modes have not seen this estimates the energy of the dependence that they truly hold, from below:
    it is 0 on average, or less, where there is none.
    """
    if len(modes) == 0:
        return 0.0
    seen = moments.through({"f": (modes.x, modes.f), "g": (modes.y, modes.g)})
    grams = [seen.covariance(side) + np.outer(seen.mean(side), seen.mean(side)) for side in ("f", "g")]
    captured = modes.sigma @ np.diag(seen.covariance("f", "g"))
    return float(2 * captured - modes.sigma @ (grams[0] * grams[1]) @ modes.sigma)


def _correlations(modes: SpanModes, moments: Moments, k: int) -> Array:
    """Correlation of f_i with g_i on the rows of the moments, (k,); 0 for modes that are not there."""
    result = np.zeros(k)
    if len(modes) == 0:
        return result
    seen = moments.through({"f": (modes.x, modes.f), "g": (modes.y, modes.g)})
    # Rounding can push the variance of a feature that is constant on these rows below zero.
    variances = np.diag(seen.covariance("f")).clip(min=0) * np.diag(seen.covariance("g")).clip(min=0)
    covariance = np.diag(seen.covariance("f", "g"))
    correlation = np.divide(covariance, np.sqrt(variances), out=np.zeros_like(covariance), where=variances > 0)
    result[: min(k, len(correlation))] = correlation[:k]
    return result
