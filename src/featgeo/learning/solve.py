"""The closed form on data: one streamed pass of moments, kept apart by fold, then small matrices only.

Rows are dealt into folds, and the moments of each fold are summed on their own. Moments merge by addition, so "all rows
but this fold" costs nothing more, and the H-score of a solution on the rows it has not seen is algebra on that fold's
moments. The ridge, the number of modes and the spectrum that is reported beside the fitted one all come from there.

Rows may miss blocks of x: a chunk of features names the blocks that its rows carry.

What rows that a solution has not seen say about it: H-scores, correlations and energies, by algebra on moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, product
from typing import Any

import numpy as np
import torch

from featgeo.features.variables import Candidate, preferred
from featgeo.geometry.incomplete import FilledIn, span_problem
from featgeo.geometry.moments import Moments, rows_of
from featgeo.geometry.spans import (
    Confirmed,
    Directions,
    Factors,
    Kind,
    LevelChoice,
    Patterns,
    Spaces,
    SpanModes,
    SpanProblem,
    factors_of,
    kinds,
    said,
)
from featgeo.geometry.validation import Array, as_features, as_names
from featgeo.learning.setting import ModeCount
from featgeo.ranks import ALONE, Ranks
from featgeo.tuning import in_force
from featgeo.watch import bounded_threads


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that a problem has not seen, in its coordinates.

    Rows that miss blocks judge what they see of a function, tau f; what is found is told for f itself, by the ratio of
    the energies of both. They see levels mixed, which are orthogonal only for complete rows: so what other levels say
    there is taken off first.

    Attributes:
        kinds: What the rows of each kind say.
        y_gram: Second moments of the basis of y on these rows, (r_y, r_y).
        y_step: Its means, (r_y,).
    """

    kinds: list[Kind]
    y_gram: Array
    y_step: Array

    @classmethod
    def of(cls, problem: SpanProblem, unseen: Patterns, tau_ridge: float | None = None) -> HeldOut:
        """See the rows of one fold."""
        y, basis = problem.y, problem.y.flag.basis
        moments = unseen.metric(y.names)
        step = (moments.joint_mean(y.names) - y.mean) @ basis
        gram = basis.T @ moments.joint_covariance(y.names, y.names) @ basis + np.outer(step, step)
        return cls(kinds(problem, unseen, tau_ridge, own_means=True), gram, step)

    def score(self, dependence: Factors) -> float:
        """H-score of a dependence f g^T: of each kind of row what it can see."""
        if not self.kinds:
            return 0.0
        gram, covariance, y_gram = self._along(*dependence)
        return float(np.trace(covariance) - np.vdot(gram, y_gram) / 2)

    def scores(self, problem: SpanProblem, settled: Sequence[LevelChoice], choices: Sequence[LevelChoice]) -> Array:
        """H-score of each choice for the next level after those settled, (choices,).

        The first modes under a ridge are some of all modes under it: rows are seen along these once, however many
        numbers of modes there are to choose from.
        """
        if not self.kinds or type(problem) is not SpanProblem or any(choice.n_modes is None for choice in choices):
            return np.array([self.score(problem.dependence([*settled, choice])) for choice in choices])
        most, seen, result = max(choice.n_modes or 0 for choice in choices), {}, []
        before = [problem.dependence(settled)] if settled else []
        start = before[0][0].shape[1] if before else 0
        for choice in choices:
            if choice.ridge not in seen:
                both = [*before, problem.chosen(len(settled), choice._replace(n_modes=most))]
                seen[choice.ridge] = self._along(*(np.hstack(side) for side in zip(*both, strict=True)))
            end = start + (choice.n_modes or 0)
            gram, covariance, y_gram = (part[:end, :end] for part in seen[choice.ridge])
            f = np.eye(len(gram))
            f[start:, start:] = problem.inside(len(settled), choice)
            result.append(np.vdot(f, covariance) - np.vdot(f.T @ gram @ f, y_gram) / 2)
        return np.array(result)

    def _along(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """Second moments of functions of x, their covariance with those of y, and second moments of these, (k, k)."""
        gram, covariance = self._together
        return left.T @ gram @ left, left.T @ covariance @ right, right.T @ self.y_gram @ right

    @cached_property
    def _together(self) -> tuple[Array, Array]:
        return said(self.kinds)

    def judged(self, levels: Sequence[Directions], i: int, k: int) -> Array:
        """What each mode of a level is on these rows, (3, k); 0 for modes that are not there.

        How much of their dependence it captures, <i, f g>; its own energy; and the correlation of f with g.
        """
        if not self.kinds:
            return np.zeros((3, k))
        left, sigma, right = levels[i]
        gram, covariance = self._together
        f_gram, g_gram = left.T @ gram @ left, right.T @ self.y_gram @ right
        captured = sigma * np.sum(left * (covariance @ right), axis=0)
        own = sigma * ((f_gram * g_gram) @ sigma)
        others = [level for j, level in enumerate(levels) if j != i % len(levels)]
        lacking = [kind for kind in self.kinds if kind.inside is not None]
        if others and lacking:
            f, g = factors_of(others)
            mixed = (left.T @ said(lacking)[0] @ f) * (right.T @ self.y_gram @ g)
            captured -= sigma * mixed.sum(axis=1)
        seen = [(kind, kind.seen(left)) for kind in self.kinds]
        visible = sigma**2 * sum(kind.share * np.sum(part**2, axis=0) for kind, part in seen)  # what `own` should be
        variance = np.diag(f_gram) - sum(kind.share * (kind.step @ part) ** 2 for kind, part in seen)
        y_variance = np.diag(g_gram) - (self.y_step @ right) ** 2
        # Rounding can push the variance of a feature that is constant on these rows below zero.
        size = np.sqrt(variance.clip(min=0) * y_variance.clip(min=0) * visible)
        correlation = np.divide(captured, size, out=np.zeros_like(captured), where=size > 0)
        most = 1 / max(in_force.get().least_seen, 1e-300)
        scale = min(float(np.sum(sigma**2)) / visible.sum(), most) if visible.sum() > 0 else 0.0
        told = np.stack([scale * captured, scale * own, correlation])[:, :k]
        return np.pad(told, ((0, 0), (0, k - told.shape[1])))


Features = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Folds:
    """Moments of disjoint parts of the rows.

    Attributes:
        parts: One a fold.
        memo: Moments of all rows but those of a fold, by fold, and of all: several levels and spaces ask for them.
    """

    parts: tuple[Patterns, ...]
    memo: dict[int | None, Patterns] = field(default_factory=dict, repr=False)

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[Features],
        n_folds: int,
        seed: int,
        fold_of_row: np.ndarray | None = None,
        ranks: Ranks = ALONE,
    ) -> Folds:
        """Those of `of_part` that rows fell into, where one part is all there is; of all ranks, each with its rows."""
        return cls.of_part(chunks, n_folds, seed, fold_of_row).over_ranks(ranks).filled()

    @classmethod
    def of_part(
        cls, chunks: Iterable[Features], n_folds: int, seed: Any, fold_of_row: np.ndarray | None = None
    ) -> Folds:
        """Deal the rows of a stream of feature chunks into folds, and sum the moments of each.

        Args:
            chunks: Features by block, some rows at a time.
            n_folds: How many folds.
            seed: Of the deal; each part of the rows needs one of its own.
            fold_of_row: The fold of each of the first rows of the stream; of others at random.

        Returns:
            All folds, in order; those that no row fell into are there, too, until they are `filled`.
        """
        rng = np.random.default_rng(seed)
        totals: list[list[Moments]] = [[] for _ in range(n_folds)]
        start = 0
        for features in chunks:
            n = len(next(iter(features.values())))
            known = np.empty(0, dtype=int) if fold_of_row is None else fold_of_row[start : start + n]
            dealt = np.concatenate([known, (start + rng.permutation(n - len(known))) % n_folds])
            start += n
            blocks = {name: as_features(z, name, finite=False) for name, z in features.items()}
            devices = [z.device for z in blocks.values() if z.device.type != "cpu"]
            few_bits = torch.from_numpy(dealt.astype(np.min_scalar_type(n_folds)))  # travel sooner
            fold_there = few_bits.to(devices[0] if devices else "cpu")
            for fold, total in enumerate(totals):
                index = (fold_there == fold).nonzero()[:, 0]
                if len(index):
                    total.append(Moments.from_features({name: rows_of(z, index) for name, z in blocks.items()}))
        return cls(tuple(map(Patterns.merged, totals)))

    def merged(self, other: Folds) -> Folds:
        """The same folds, of the rows of both."""
        return Folds(tuple(Patterns.merged(pair) for pair in zip(self.parts, other.parts, strict=True)))

    def filled(self) -> Folds:
        """Those folds that have rows."""
        return Folds(tuple(part for part in self.parts if part.parts))

    def over_ranks(self, ranks: Ranks) -> Folds:
        """The same folds, of the rows of all ranks, which are of one kind."""
        if ranks.size == 1:
            return self
        whole = Moments.over_ranks([part.all if part.parts else None for part in self.parts], ranks)
        return Folds(tuple(Patterns.merged([] if moments is None else [moments]) for moments in whole))

    def joined(self, more: Folds) -> Folds:
        """The same folds of complete rows with more blocks; what was whitened stays."""
        parts = tuple(own.joined(others) for own, others in zip(self.parts, more.parts, strict=True))
        return Folds(parts, {i: self.without(i).joined(more.without(i)) for i in (None, *range(len(parts)))})

    def reduced(self, confirmed: tuple[Confirmed, ...]) -> Folds:
        """The same rows, with only what is confirmed of dependences between blocks."""
        return Folds(tuple(replace(part, confirmed=confirmed, memo={}) for part in self.parts))

    @property
    def whole(self) -> Patterns:
        """Moments of all rows."""
        return self.without(None)

    def without(self, fold: int | None) -> Patterns:
        """Moments of all rows but those of one fold; of all when None."""
        if fold not in self.memo:
            self.memo[fold] = Patterns.merged(part for i, part in enumerate(self.parts) if i != fold)
        return self.memo[fold]


@dataclass(frozen=True)
class Search:
    """What held-out rows choose from at one level.

    Attributes:
        counts: Numbers of modes; 0 may be among those of any level but the first. (None,) keeps all modes.
        ridges: Ridges.
        steady: Whether modes stay what they are under the ridge (`LevelChoice`).
    """

    counts: Sequence[int | None]
    ridges: Sequence[float] = field(default_factory=lambda: in_force.get().ridges)
    steady: Sequence[bool] = (False,)

    @classmethod
    def of(cls, n_modes: ModeCount, *ways: Any) -> Search:
        """What a user's number of modes leaves open; with ridges and whether modes are steady, if these are settled."""
        counts = {"auto": in_force.get().mode_counts, "all": (None,)}
        return cls(counts[n_modes] if isinstance(n_modes, str) else (n_modes,), *ways)

    def choices(self, most: int) -> list[LevelChoice]:
        """All that may be chosen, where there are at most so many modes; of one ridge the fewest modes first."""
        counts: list[Any] = sorted({min(count, most) for count in self.counts if count is not None}) or [None]
        return [LevelChoice(count, *way) for way in product(self.ridges, self.steady) for count in counts]


@dataclass(frozen=True, eq=False)
class Solution:
    """The maximiser inside the spans, and how it fares on rows that it has not seen.

    Attributes:
        folds: The moments behind it.
        spaces: The blocks of either side that each level may use.
        choices: What was chosen for each level.
        held_out: Which folds were held out.
        problems: For each of them the rows of all others in orthonormal coordinates.
        views: For each of them its own rows in these coordinates.
        tau_ridge: The ridge of what filled in for missing blocks; None where none was asked for.
    """

    folds: Folds
    spaces: Sequence[Spaces]
    choices: tuple[LevelChoice, ...]
    held_out: tuple[int, ...]
    problems: tuple[SpanProblem, ...]
    views: tuple[HeldOut, ...]
    tau_ridge: float | None = None

    @property
    def size(self) -> int:
        """How many functions of x and y it is made of."""
        return sum(self.folds.whole.dims[name] for side in self.spaces[-1] for name in side)

    @property
    def ridge(self) -> float:
        """The ridge that chose the directions of the last level."""
        return self.choices[-1].ridge

    @cached_property
    def problem(self) -> SpanProblem:
        """All rows in orthonormal coordinates."""
        return _problem(self.folds.whole, self.spaces, self.tau_ridge)

    @cached_property
    def levels(self) -> tuple[SpanModes, ...]:
        """The modes of each level, from all rows."""
        return tuple(map(self.problem.span_modes, self.problem.best_directions(self.choices)))

    @cached_property
    def parts(self) -> tuple[tuple[SpanModes, ...], ...]:
        """For each fold the modes of each level from the other folds."""
        found = zip(self.problems, self._found, strict=True)
        return tuple(tuple(map(problem.span_modes, levels)) for problem, levels in found)

    @cached_property
    def held_out_scores(self) -> Array:
        """H-score on each fold that was held out, (folds,)."""
        return np.array([view.score(factors_of(levels)) for view, levels in zip(self.views, self._found, strict=True)])

    @property
    def held_out_score(self) -> float:
        """H-score on held-out rows, the mean over the folds; NaN where none was held out."""
        return float(np.mean(self.held_out_scores)) if len(self.held_out_scores) else float("nan")

    def judged(self, level: int) -> Array:
        """What each mode of a level is on held-out rows (`HeldOut.judged`), by fold, (folds, 3, k)."""
        k, folds = len(self.levels[level]), zip(self.views, self._found, strict=True)
        return np.array([view.judged(levels, level, k) for view, levels in folds]).reshape(len(self.views), 3, k)

    def held_out_energies(self, level: int) -> Array:
        """Energy of a level on held-out rows, (folds,): twice the H-score of its modes there.

        It estimates the energy of the dependence that the modes truly hold, from below: it is 0 on average, or less,
        where there is none.
        """
        captured, own, _ = self.judged(level).sum(axis=2).T
        return 2 * captured - own

    def amplitudes(self, level: int) -> Array:
        """How strong each mode of a level is on held-out rows, as a share of what it seems to be, (k,)."""
        captured, own, _ = self.judged(level).sum(axis=0)
        return np.divide(captured, own, out=np.ones_like(own), where=own > 0).clip(0, 1)

    def covariance(self, names: tuple[str, ...]) -> Array:
        """Of the features of some blocks of a side, in the metric of all rows."""
        return self.folds.whole.metric(names).joint_covariance(names, names)

    @cached_property
    def _found(self) -> list[list[Directions]]:
        return [problem.best_directions(self.choices) for problem in self.problems]


def solve(
    folds: Folds,
    levels: Sequence[Spaces],
    searches: Sequence[Search],
    held_out: Sequence[int] | None = None,
    tau_ridges: Sequence[float] = (),
) -> Solution:
    """The modes of each level inside the spans of its blocks; held-out rows choose, each level after those before it.

    Args:
        folds: Moments of the blocks that the nesting names, by fold. With a single fold nothing is held out, and the
            first of all choices is taken.
        levels: The blocks of x and of y that each may use.
        searches: What to choose from at each level.
        held_out: The folds to hold out, one after the other; all when None. Where features were learned from some of
            the folds, only the others can tell.
        tau_ridges: Ridges of what fills in for missing blocks to choose from, at the first level for all; none for the
            equation that takes the metric for known (`featgeo.geometry.incomplete`).
    """
    left_out = tuple(range(len(folds.parts)) if held_out is None else held_out) if len(folds.parts) > 1 else ()
    dims, spaces = folds.whole.dims, [(as_names(x), as_names(y)) for x, y in levels]
    with bounded_threads(sum(dims.values()) ** 2 / 2):
        ways = [_seen_without(folds, fold, spaces, tau_ridges) for fold in left_out]
        settled: tuple[LevelChoice, ...] = ()
        tau = list(range(max(1, len(tau_ridges))))
        for sides, search in zip(spaces, searches, strict=True):
            choices = search.choices(min(sum(dims[name] for name in side) for side in sides))
            options = list(product(tau, choices))
            way, choice = options[0] if len(options) == 1 else _chosen(ways, settled, options)
            tau, settled = [way], (*settled, choice)
    problems, views = zip(*(of_fold[way] for of_fold in ways), strict=True) if ways else ((), ())
    return Solution(folds, spaces, settled, left_out, problems, views, tau_ridges[way] if tau_ridges else None)


def _problem(rows: Patterns, spaces: Sequence[Spaces], tau_ridge: float | None = None) -> SpanProblem:
    return SpanProblem.of(rows, spaces) if rows.is_complete else span_problem(rows, spaces, tau_ridge)


Seen = list[tuple[SpanProblem, HeldOut]]  # for each tau ridge


def _seen_without(folds: Folds, fold: int, spaces: Sequence[Spaces], tau_ridges: Sequence[float]) -> Seen:
    """The problem of all rows but those of a fold, and the fold in it, for each tau ridge, or where there is none."""
    problem = _problem(folds.without(fold), spaces, *tau_ridges[:1])
    view = HeldOut.of(problem, folds.parts[fold], *tau_ridges[:1])
    seen = [(problem, view)]
    for ridge in tau_ridges[1:]:
        under = problem.under(ridge) if isinstance(problem, FilledIn) else problem
        seen.append((under, replace(view, kinds=[kind.under(problem, ridge) for kind in view.kinds])))
    return seen


def _chosen(
    ways: Sequence[Seen], settled: tuple[LevelChoice, ...], options: Sequence[tuple[int, LevelChoice]]
) -> tuple[int, LevelChoice]:
    """The tau ridge and the choice for the next level that rows which have not seen it prefer."""
    candidates = []
    for way, several in groupby(options, key=lambda option: option[0]):
        choices = [choice for _, choice in several]
        scores = np.stack([view.scores(problem, settled, choices) for problem, view in (seen[way] for seen in ways)])
        candidates += [Candidate((way, c), c.n_modes or 0, told) for c, told in zip(choices, scores.T, strict=True)]
    return preferred(candidates).what
