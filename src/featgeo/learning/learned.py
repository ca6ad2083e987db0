"""What the engine hands on: features of each level, and what is known of them on rows they have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from featgeo.features.space import Space
from featgeo.features.spaces import SharedSpaces, SideBySide, SpanFunction
from featgeo.features.variables import Candidate, preferred
from featgeo.geometry.spans import AffineFeatures, SpanModes
from featgeo.geometry.validation import Array
from featgeo.learning.setting import Setting
from featgeo.learning.solve import Solution
from featgeo.schema import NOT_SAVED, saved

FEW_FOLDS = 3  # parts of the rows that are held out in turn where much is tried beside each other: bounds time
UNSEEN_ROWS = 10_000  # whose held-out features are kept: bounds memory and time


@saved
@dataclass(frozen=True, eq=False)
class Component:
    """The part of the dependence that one level holds; what held-out rows say is empty where none judge it.

    Attributes:
        sigma: Singular values on the rows of the fit, (k,).
        f: Functions of X.
        g: Functions of Y.
        held_out_sigma: Correlations of f_i and g_i on held-out rows, (folds, k).
        held_out_energies: Energy of the component on held-out rows, twice its H-score there, (folds,).
        rotations: Inner products of the f_i of each fold with those of all rows, (folds, k, k).
        held_out_scores: What each mode adds to the H-score on held-out rows, (folds, k).
    """

    sigma: Array
    f: SpanFunction
    g: SpanFunction
    held_out_sigma: Array = field(default_factory=lambda: np.empty((0, 0)))
    held_out_energies: Array = field(default_factory=lambda: np.empty(0))
    rotations: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
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

    def turned(self, sign: Array) -> Component:
        """The same modes, each with the sign of both functions changed where it is -1, (k,)."""
        f, g = (
            replace(
                side, affine=replace(side.affine, weight=side.affine.weight * sign, offset=side.affine.offset * sign)
            )
            for side in (self.f, self.g)
        )
        return replace(self, f=f, g=g, rotations=self.rotations * sign)

    def sound(self) -> int:
        """How many modes to keep: all, unless held-out rows find less in them than in no dependence.

        Then as many of the first as do best there, which may be none.
        """
        if not self.held_out_scores.size or self.held_out_scores.sum(axis=1).mean() >= 0:
            return len(self)
        return preferred([Candidate(k, 1, self.held_out_scores[:, :k].sum(axis=1)) for k in range(len(self) + 1)]).what


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
        columns = _columns([len(part) for part in self.components], kept)
        components = tuple(part.first(k) for part, k in zip(self.components, kept, strict=True))
        return replace(self, f=self.f[:, columns], components=components)


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
        f, left_out = np.zeros((len(rows), sum(map(len, solution.levels)))), []
        for fold, levels in zip(solution.held_out, solution.parts, strict=True):
            index = np.flatnonzero(fold_of_row == fold)
            own = [modes.f(x_features[index]) * modes.sigma for modes in levels]
            turns = [  # inner products of both sets of g
                modes.g.weight.T @ solution.covariance(end.y) @ end.g.weight
                for modes, end in zip(levels, solution.levels, strict=True)
            ]
            f[index] = np.hstack([values @ turn for values, turn in zip(own, turns, strict=True)])
            components = _components(levels, setting, spaces, solution.folds.whole.dims)
            left_out.append(LeftOut(index, np.hstack(own), components))
        return cls(rows, f, tuple(left_out), first.f(x_features) * first.sigma, final.f(x_features) * final.sigma)

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
class Mean:
    """What is told of a number Y itself: E[t(Y)|x] for t of mean 0 and unit variance, linear but for outermost numbers.

    Attributes:
        f: E[t(Y)|x], (n, 1).
        t: Functions of Y, (n, 1).
        unseen: E[t(Y)|x] of the rows of `Unseen`, as told without them, (rows, 1).
    """

    f: SpanFunction
    t: Space
    unseen: Array = field(default_factory=lambda: np.empty((0, 1)), metadata=NOT_SAVED)

    def beside(self, f: SpanFunction) -> Space:
        """E[t(Y)|x] first, then other functions of x, (n, 1 + k)."""
        return SharedSpaces.of(self.f, f)


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
        mean: What is told of Y itself, where that was asked for.
    """

    components: tuple[Component, ...]
    held_out_score: float
    solver: str
    spaces: tuple[str, str]
    ridge: float
    residual: float
    unseen: Unseen | None = field(default=None, metadata=NOT_SAVED)
    dropped: tuple[str, ...] = ()
    mean: Mean | None = None

    def turned(self, sign: Array) -> Learned:
        """The same with other signs of the last component, (k,)."""
        *others, last = self.components
        unseen = self.unseen
        if unseen is not None:
            every = np.append(np.ones(unseen.f.shape[1] - len(sign)), sign)
            final = unseen.final * sign if unseen.final.shape[1:] == sign.shape else unseen.final
            unseen = replace(unseen, f=unseen.f * every, final=final)
        return replace(self, components=(*others, last.turned(sign)), unseen=unseen)

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
    components = []
    for level, component in enumerate(_components(solution.levels, setting, spaces, solution.folds.whole.dims)):
        captured, own, sigma = solution.judged(level).swapaxes(0, 1)
        scores = captured - own / 2
        told = (sigma, 2 * scores.sum(axis=1), _rotations(solution, level), scores)
        components.append(Component(component.sigma, component.f, component.g, *told))
    sides = [side for modes in solution.levels for side in ((modes.f.weight, modes.x), (modes.g.weight, modes.y))]
    residual = deviation([weight.T @ solution.covariance(blocks) @ weight for weight, blocks in sides])
    return Learned(tuple(components), solution.held_out_score, solver, names, solution.ridge, residual, unseen)


def _components(
    levels: Sequence[SpanModes], setting: Setting, spaces: Mapping[str, Space], dims: Mapping[str, int]
) -> tuple[Component, ...]:
    """The functions of each level; nothing is known of them on held-out rows yet."""
    return tuple(
        Component(
            modes.sigma,
            _function(modes.f, [spaces[name] for name in setting.x], modes.x[: len(x)], dims),
            _function(modes.g, [spaces[name] for name in setting.y], modes.y[: len(y)], dims),
        )
        for modes, (x, y) in zip(levels, setting.spaces(), strict=True)
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


def deviation(grams: Sequence[Array]) -> float:
    """Largest deviation of Gram matrices from the identity."""
    return max(float(np.abs(gram - np.eye(len(gram))).max(initial=0)) for gram in grams)
