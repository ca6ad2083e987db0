"""What the engine hands on: features of each level, and what is known of them on rows they have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from featgeo.features.combined import SideBySide
from featgeo.features.space import Space
from featgeo.features.spaces import SpanFunction
from featgeo.geometry.spans import AffineFeatures, SpanModes
from featgeo.geometry.validation import Array
from featgeo.learning.setting import Setting
from featgeo.learning.solve import Solution
from featgeo.schema import NOT_SAVED, saved

N_FOLDS = 5
UNSEEN_ROWS = 10_000


@saved
@dataclass(frozen=True, eq=False)
class Component:
    """The part of the dependence that one level holds.

    Attributes:
        sigma: Singular values on the rows of the fit, (k,).
        f: Functions of X.
        g: Functions of Y.
        held_out_sigma: Correlations of f_i and g_i on held-out rows, (folds, k).
        held_out_energies: Energy of the component on held-out rows, twice its H-score there, (folds,).
        rotations: Inner products of the f_i of each fold with those of all rows, (folds, k, k).
        held_out_scores: What each mode adds to the H-score on held-out rows, (folds, k); empty where none judge it.
    """

    sigma: Array
    f: SpanFunction
    g: SpanFunction
    held_out_sigma: Array
    held_out_energies: Array
    rotations: Array
    held_out_scores: Array = field(default_factory=lambda: np.empty((0, 0)))

    def __len__(self) -> int:
        return len(self.sigma)

    def first(self, k: int) -> Component:
        """The first k modes."""
        scores = self.held_out_scores[:, :k]
        return Component(
            self.sigma[:k],
            self.f.first(k),
            self.g.first(k),
            self.held_out_sigma[:, :k],
            2 * scores.sum(axis=1),
            self.rotations[:, :k, :k],
            scores,
        )

    def sound(self) -> int:
        """How many modes to keep: all, unless held-out rows find less in them than in no dependence.

        Then as many of the first as do best there, which may be none.
        """
        if not self.held_out_scores.size or self.held_out_scores.sum(axis=1).mean() >= 0:
            return len(self)
        return int(np.argmax(np.concatenate([[0.0], np.cumsum(self.held_out_scores.mean(axis=0))])))


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows of one fold, and what was learned without them.

    Attributes:
        index: Positions of the rows among those of `Unseen`.
        f: sigma_i f_i of all levels side by side, (len(index), k), by the solution without the fold.
        components: That solution, level by level.
    """

    index: np.ndarray
    f: Array
    components: tuple[Component, ...]

    def first(self, kept: Sequence[int]) -> LeftOut:
        """The same with only the first modes of each level."""
        components = tuple(
            replace(part, sigma=part.sigma[:k], f=part.f.first(k), g=part.g.first(k))
            for part, k in zip(self.components, kept, strict=True)
        )
        return replace(
            self, f=self.f[:, _columns([len(part) for part in self.components], kept)], components=components
        )


@dataclass(frozen=True, eq=False)
class Unseen:
    """Features of some rows of the fit as solutions see them that were learned without those rows.

    Attributes:
        rows: Positions of the rows.
        f: sigma_i f_i in the coordinates of the final g, (len(rows), k), of all levels side by side. The final g have
            seen the rows: to judge what few of them say, see `left_out`.
        left_out: The rows by fold, each with the solution that has not seen them, g as well; none for the modes of a
            single table.
        without_first: sigma_i f_i of the last level by the solution without the first fold, (len(rows), k').
        final: The same by the solution of all rows, (len(rows), k); only the spaces have not seen the row.
    """

    rows: np.ndarray
    f: Array
    left_out: tuple[LeftOut, ...] = ()
    without_first: Array = field(default_factory=lambda: np.empty((0, 0)))
    final: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of(
        cls,
        solution: Solution,
        rows: np.ndarray,
        x_features: Array,
        fold_of_row: np.ndarray,
        setting: Setting,
        spaces: Mapping[str, Space],
    ) -> Unseen:
        """See some rows, by their features of x and their folds; spaces by block."""
        first, final = solution.parts[0][-1], solution.levels[-1]
        left_out = []
        for fold, levels in zip(solution.held_out, solution.parts, strict=True):
            index = np.flatnonzero(fold_of_row == fold)
            f = np.hstack([modes.f(x_features[index]) * modes.sigma for modes in levels])
            left_out.append(LeftOut(index, f, _components(levels, setting, spaces, solution.folds.whole.dims)))
        return cls(
            rows,
            unseen_features(solution, x_features, fold_of_row),
            tuple(left_out),
            first.f(x_features) * first.sigma,
            final.f(x_features) * final.sigma,
        )

    def first(self, sizes: Sequence[int], kept: Sequence[int]) -> Unseen:
        """The same with only the first modes of each level.

        Args:
            sizes: How many modes each level has.
            kept: How many it keeps.
        """
        return replace(
            self,
            f=self.f[:, _columns(sizes, kept)],
            left_out=tuple(fold.first(kept) for fold in self.left_out),
            without_first=self.without_first[:, : kept[-1]],
            final=self.final[:, : kept[-1]],
        )


@saved
@dataclass(frozen=True, eq=False)
class Learned:
    """The components of a dependence, and what they rest on.

    Attributes:
        components: One a level.
        held_out_score: H-score of all together on held-out rows.
        solver: "exact", "closed" or "neural".
        spaces: What the richest spaces of X and of Y are.
        ridge: The ridge that was chosen.
        residual: Largest deviation of E[f f^T] and E[g g^T] from the identity, over all rows and levels.
        unseen: Held-out features of some rows, for calibration.
        dropped: What held-out rows called worse than no dependence, and is therefore not there; a sentence each.
    """

    components: tuple[Component, ...]
    held_out_score: float
    solver: str
    spaces: tuple[str, str]
    ridge: float
    residual: float
    unseen: Unseen | None = field(default=None, metadata=NOT_SAVED)
    dropped: tuple[str, ...] = ()

    def without_harm(self, setting: Setting) -> Learned:
        """The same without modes that held-out rows call worse than no dependence; every way of learning ends here.

        Modes that were asked for by number stay, and counts of finite alphabets that are to be solved exactly are what
        they are: what held-out rows have against them, models warn of and report.
        """
        kept = [
            len(part) if self.solver == "exact" or isinstance(step.n_modes, int) else part.sound()
            for part, step in zip(self.components, setting.steps, strict=True)
        ]
        if kept == [len(component) for component in self.components]:
            return self
        dropped = [
            _dropped(i, component, k, len(self.components))
            for i, (component, k) in enumerate(zip(self.components, kept, strict=True))
            if k < len(component)
        ]
        unseen = None if self.unseen is None else self.unseen.first([len(c) for c in self.components], kept)
        components = tuple(component.first(k) for component, k in zip(self.components, kept, strict=True))
        score = float(sum(component.held_out_energies.mean() for component in components) / 2)
        return replace(self, components=components, held_out_score=score, unseen=unseen, dropped=tuple(dropped))


def from_solution(
    solution: Solution,
    setting: Setting,
    spaces: Mapping[str, Space],
    names: tuple[str, str],
    solver: str,
    unseen: Unseen | None,
) -> Learned:
    """The record of a closed-form solution.

    Args:
        solution: The modes of each level.
        setting: The levels.
        spaces: The space of each block.
        names: What the richest spaces are called.
        solver: How they were found.
        unseen: Held-out features of some rows.
    """
    components = tuple(
        replace(
            component,
            held_out_sigma=solution.held_out_sigma(level),
            held_out_energies=solution.held_out_energies(level),
            rotations=_rotations(solution, level),
            held_out_scores=solution.captured(level)[:, 0] - solution.captured(level)[:, 1] / 2,
        )
        for level, component in enumerate(_components(solution.levels, setting, spaces, solution.folds.whole.dims))
    )
    residual = max(_residual(solution, modes) for modes in solution.levels)
    return Learned(components, solution.held_out_score, solver, names, solution.ridge, residual, unseen)


def _components(
    levels: Sequence[SpanModes], setting: Setting, spaces: Mapping[str, Space], dims: Mapping[str, int]
) -> tuple[Component, ...]:
    """The functions of each level; nothing is known of them on held-out rows yet."""
    nothing = np.empty(0)
    return tuple(
        Component(
            modes.sigma,
            _function(modes.f, [spaces[name] for name in setting.x], modes.x[: reach[0]], dims),
            _function(modes.g, [spaces[name] for name in setting.y], modes.y[: reach[1]], dims),
            *(nothing, nothing, nothing),
        )
        for modes, reach in zip(levels, setting.reach, strict=True)
    )


def _columns(sizes: Sequence[int], kept: Sequence[int]) -> np.ndarray:
    """Positions of the first modes of each level among all, side by side."""
    starts = np.cumsum([0, *sizes])
    return np.concatenate([np.arange(a, min(a + k, b)) for a, b, k in zip(starts, starts[1:], kept, strict=False)])


def _dropped(level: int, component: Component, k: int, n_levels: int) -> str:
    """A sentence on modes that are left out."""
    where = f" of level {level + 1}" if n_levels > 1 else ""
    energy, held_out = float(np.sum(component.sigma**2)), float(component.held_out_energies.mean())
    return (
        f"Held-out rows find less in the {len(component)} mode(s){where} than in no dependence at all (energy "
        f"{held_out:.4g} there, {energy:.4g} on the rows of the fit): {k or 'none'} of them kept. There is little or "
        "nothing to learn here; use more rows, smoother spaces or fewer modes."
    )


def _function(
    affine: AffineFeatures, spaces: list[Space], names: tuple[str, ...], dims: Mapping[str, int]
) -> SpanFunction:
    """Features that read no more than the blocks of their level: weights of later blocks are zero."""
    d = sum(dims[name] for name in names)
    kept = spaces[: len(names)]
    own = AffineFeatures(affine.centre[:d], affine.weight[:d], affine.offset, affine.removed)
    return SpanFunction(kept[0] if len(kept) == 1 else SideBySide(tuple(kept)), own)


def unseen_features(solution: Solution, x_features: Array, fold_of_row: np.ndarray) -> Array:
    """Values of sigma f at each row by the solution of the folds without it, in the coordinates of the final g.

    Args:
        solution: The modes of each level.
        x_features: Of all blocks of x, side by side, (n, d).
        fold_of_row: (n,).

    Returns:
        Those of all levels side by side, (n, k).
    """
    levels = []
    for final, *parts in zip(solution.levels, *solution.parts, strict=True):
        values = np.zeros((len(x_features), len(final)))
        covariance = solution.covariance(final.y)
        for fold, part in zip(solution.held_out, parts, strict=True):
            rows = fold_of_row == fold
            turn = part.g.weight.T @ covariance @ final.g.weight  # inner products of both sets of g
            values[rows] = (part.f(x_features[rows]) * part.sigma) @ turn
        levels.append(values)
    return np.hstack(levels)


def _rotations(solution: Solution, level: int) -> Array:
    """Inner products of the features of each fold with the final ones, (folds, k, k)."""
    final = solution.levels[level]
    covariance = solution.covariance(final.x)
    result = np.zeros((len(solution.parts), len(final), len(final)))
    for fold, parts in enumerate(solution.parts):
        weight = parts[level].f.weight
        turn = weight.T @ covariance @ final.f.weight
        turn = turn / np.sqrt(np.diag(weight.T @ covariance @ weight))[:, None]
        result[fold, : len(turn)] = turn[: len(final)]
    return result


def _residual(solution: Solution, modes: SpanModes) -> float:
    sides = ((modes.f.weight, modes.x), (modes.g.weight, modes.y))
    grams = [weight.T @ solution.covariance(names) @ weight for weight, names in sides]
    return max(float(np.abs(gram - np.eye(len(gram))).max(initial=0)) for gram in grams)


def some_rows(n_rows: int, seed: int) -> np.ndarray:
    """Positions of the rows whose held-out features are kept."""
    if n_rows <= UNSEEN_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, UNSEEN_ROWS, replace=False))
