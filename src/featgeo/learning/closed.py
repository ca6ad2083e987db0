"""The closed form on spans that are given, or that regressors learn: candidates in order of cost, held-out rows choose.

Given spans of several kinds come first. What the best of them leaves over is looked at by small trees: as long as these
see something there, regressors are fitted to the functions of the other side that were found (`wanted`), and the
closed form is solved in their span as well.

A `Task` is what is to be learned: rows, levels, how to, and the functions that each block may have. A `Bank` holds
functions that are tried beside each other on the same rows: a space is fitted once, and its features are whitened once
for each set of rows, however many others it is paired with.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np
import torch
from scipy.optimize import nnls

from featgeo.features.devices import rows_at_once
from featgeo.features.labels import rows_of_some_labels, told_apart
from featgeo.features.recipes import MEANS, TABLE, Recipe, is_finite, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import Encoding, SideBySide, SpanFunction, TableSpace, in_reach
from featgeo.features.trees import OF_ALL, IndexRegressor, MetricRegressor, RegressorSpace, as_matrix, trees
from featgeo.features.variables import Candidate, Parts, Rows, cross_fitted, is_within_an_error, preferred
from featgeo.geometry.spans import COLLINEAR, AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.data import CHUNK_ROWS, Pairs, Stream, some_rows
from featgeo.learning.learned import FEW_FOLDS, UNSEEN_ROWS, Component, Learned, Unseen, from_solution
from featgeo.learning.mean import ITSELF, mean_of
from featgeo.learning.setting import Plan, Setting
from featgeo.learning.solve import Folds, Search, Solution, solve
from featgeo.tuning import in_force
from featgeo.watch import is_time_left, tell

SPACE_ROWS = 200_000  # rows that spaces are fitted to, at most: bounds time
SCALE_ROWS = 1000  # rows that tell how large features are: bounds time


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Attributes:
        data: The rows.
        setting: The levels.
        plan: How to learn.
        recipes: The spaces that each block may have, the simplest first.
    """

    data: Pairs | Stream
    setting: Setting
    plan: Plan
    recipes: Mapping[str, list[Recipe]]

    @classmethod
    def of(cls, data: Pairs | Stream, setting: Setting, plan: Plan) -> Task:
        """Read what the user asks for."""
        task = cls(data, setting, plan, {})
        blocks = setting.blocks.items()
        return replace(
            task, recipes={name: recipes(block.space, task.rows(name, task.sample)) for name, block in blocks}
        )

    @cached_property
    def sample(self) -> Pairs:
        """Rows that spaces are fitted to."""
        return self.data.sample(SPACE_ROWS, self.plan.seed)

    @property
    def every(self) -> Pairs:
        """All rows where they are in memory, else the first."""
        return self.data if isinstance(self.data, Pairs) else self.sample

    def side(self, name: str, pairs: Pairs) -> Any:
        """Rows of the side of a block."""
        return pairs.x if name in self.setting.x else pairs.y

    def rows(self, name: str, pairs: Pairs | None = None) -> Any:
        """Rows of the variables that a block reads."""
        return self.side(name, self.every if pairs is None else pairs).of(*self.setting.blocks[name].of)

    def fitted(self, name: str, recipe: Recipe) -> Space:
        """The space of a block, as functions of the rows of its side."""
        # A rare symbol may miss among some rows, and then would have no function of its own.
        rows = self.every if recipe is TABLE else self.sample
        block, seed = self.setting.blocks[name], self.plan.seed + (name in self.setting.y)
        space = block.fitted(recipe, self.side(name, rows), seed).to(self.plan.device)
        return in_reach(space, self.side(name, rows.take(slice(0, SCALE_ROWS)))).to(self.plan.device)

    @cached_property
    def itself(self) -> Space | None:
        """A number Y itself, bounded, where its mean is to be told; none where tables tell it, or rows are streamed."""
        y = self.every.y
        if not (self.plan.mean and isinstance(self.data, Pairs) and self.setting.is_bivariate and isinstance(y, Rows)):
            return None
        return Encoding.fit(y, "bounded") if is_single_number(y) else None


Names = Mapping[str, str]  # for each block the name of its recipe
KEPT_CELLS = 10_000_000  # numbers of one block that are kept in memory; larger ones are evaluated again


class Bank:
    """Spaces of the blocks of a task.

    Attributes:
        task: The task.
        spaces: By block and name of the recipe.
        own: Features of the rows of the fit as seen by regressors that were not fitted to them, likewise.
        folds: Moments of the features of all spaces, by fold.
    """

    def __init__(self, task: Task, n_folds: int | None = None) -> None:
        self.task, self.n_folds, data = task, n_folds or in_force.get().folds, task.data
        self.head = data if isinstance(data, Pairs) else data.head_of_next_pass
        self.fold_of_row = None if self.head is None else self.head.folds(self.n_folds, task.plan.seed)
        self.spaces: dict[tuple[str, str], Space] = {}
        self.own: dict[tuple[str, str], Array] = {}
        self._kept: dict[tuple[str, str], Any] = {}
        self.folds = Folds(())
        self._solved: dict[tuple[tuple[str, str], ...], Solution] = {}
        self._pairs: dict[tuple[tuple[str, str], ...], Solution] = {}
        self._records: dict[tuple[tuple[str, str], ...], Learned] = {}
        if task.itself is not None:
            self.spaces[task.setting.richest[1], ITSELF] = task.itself

    def fit(self, recipes: Mapping[str, Iterable[Recipe]]) -> list[tuple[str, str]]:
        """Have spaces of some blocks; their keys."""
        asked = [(name, recipe) for name, several in recipes.items() for recipe in several]
        for name, recipe in asked:
            if (name, recipe.name) not in self.spaces:
                self.spaces[name, recipe.name] = self.task.fitted(name, recipe)
        return [(name, recipe.name) for name, recipe in asked]

    def add(self, recipes: Mapping[str, Iterable[Recipe]]) -> None:
        """Fit spaces of some blocks, and sum moments of their features in one pass over the rows."""
        self._sum(self.fit(recipes))

    def _sum(self, keys: Sequence[tuple[str, str]]) -> None:
        """Have the moments of all pairs of some blocks."""
        data, itself = self.task.data, (self.task.setting.richest[1], ITSELF)
        keys = [*keys, itself] if itself in self.spaces and itself not in keys else keys
        if self.folds.parts and self.folds.whole.all.knows([" ".join(key) for key in keys]):
            return
        if isinstance(data, Stream):
            spaces = {" ".join(key): (self.spaces[key], key[0] in self.task.setting.x) for key in keys}
            work = _Sum(spaces, self.n_folds, self.task.plan.seed, data.dealt(self.fold_of_row))
            more = data.reduced(work, Folds.merged).filled()
        else:
            device = torch.device(self.task.plan.device)
            at_once = CHUNK_ROWS if device.type == "cpu" else rows_at_once(device)
            chunks = data.there(device).chunks(len(data) if any(key in self.own for key in keys) else at_once)
            features = ({" ".join(key): self._values(key, chunk) for key in keys} for chunk in chunks)
            more = Folds.from_chunks(features, self.n_folds, self.task.plan.seed, self.fold_of_row)
        self.folds = self.folds.joined(more) if self.folds.parts else more

    def _values(self, key: tuple[str, str], chunk: Pairs) -> Any:
        """Features of a block on some rows, or on all; on a GPU where that is where the space is."""
        if key in self.own:
            return self.own[key]
        if key in self._kept:
            return self._kept[key]
        values = self.spaces[key].features(self.task.side(key[0], chunk))
        if isinstance(self.task.data, Pairs) and len(chunk) == len(self.task.data) and values.numel() <= KEPT_CELLS:
            self._kept[key] = values
        return values

    def pair(self, recipes: Mapping[str, Recipe], most_folds: int | None = None) -> Solution:
        """The modes of one block of either side alone, each with a recipe; judged by so many folds, all when None."""
        keys = tuple((name, recipe.name) for name, recipe in recipes.items())
        if keys not in self._pairs:
            self.add({name: [recipe] for name, recipe in recipes.items()})
            plan, n_modes = self.task.plan, self.task.setting.steps[-1].n_modes
            count = n_modes if isinstance(n_modes, int) else in_force.get().tried_modes
            x, y = (" ".join(key) for key in keys)
            self._pairs[keys] = solve(
                self.folds, [(x, y)], [Search((count,), plan.ridges())], range(len(self.folds.parts))[:most_folds]
            )
        return self._pairs[keys]

    def solve(self, names: Names) -> Solution:
        """All levels, with one space for each block."""
        keys = tuple(names.items())
        if keys not in self._solved:
            self._sum(keys)
            plan, steps = self.task.plan, self.task.setting.steps
            levels = self.task.setting.spaces({name: f"{name} {kind}" for name, kind in keys})
            # Modes may stay what they are under the ridge (`SpanProblem.best_directions`), where there is a choice; but
            # energies of several levels are those of all that their directions hold.
            steady = (False, True) if plan.ridge == "auto" and len(steps) == 1 else (False,)
            searches = [Search.of(step.n_modes, plan.ridges(), steady) for step in steps]
            self._solved[keys] = solve(self.folds, levels, searches)
        return self._solved[keys]

    def learned(self, names: Names) -> Learned:
        """The record of a solution, with all that held-out rows say about it."""
        keys = tuple(names.items())
        if keys in self._records:
            return self._records[keys]
        solution, setting = self.solve(names), self.task.setting
        spaces = {name: self.spaces[name, kind] for name, kind in names.items()}
        unseen = None
        if solution.held_out and self.head is not None and self.fold_of_row is not None:
            rows = some_rows(len(self.head), self.task.plan.seed, UNSEEN_ROWS)
            some = self.head.x.take(rows)
            of_x = ((name, names[name]) for name in setting.x)
            values = [self.own[key][rows] if key in self.own else self.spaces[key](some) for key in of_x]
            unseen = Unseen.of(solution, rows, np.hstack(values), self.fold_of_row[rows], setting, spaces)
        kinds = names[setting.richest[0]], names[setting.richest[1]]
        self._records[keys] = from_solution(solution, setting, spaces, kinds, "closed", unseen)
        return self._records[keys]

    def unseen(self, names: Names) -> Array:
        """sigma_i f_i of all rows by a solution without their fold, (n, k), as in `Unseen`."""
        task, key = self.task, (self.task.setting.richest[0], names[self.task.setting.richest[0]])
        features = self.own[key] if key in self.own else self.spaces[key](task.every.x)
        by_block = {name: self.spaces[name, kind] for name, kind in names.items()}
        folds, every = cast("np.ndarray", self.fold_of_row), np.arange(len(task.every))
        return Unseen.of(self.solve(names), every, features, folds, task.setting, by_block).f


@dataclass(frozen=True, eq=False)
class _Sum:
    """Moments of features by fold, of a part of a stream.

    Attributes:
        spaces: By the name of their block, and whether they read x.
        n_folds: How many folds.
        seed: Of the deal of rows into them.
        dealt: Folds of the first rows of some parts, by their places.
    """

    spaces: Mapping[str, tuple[Space, bool]]
    n_folds: int
    seed: int
    dealt: Mapping[int, np.ndarray]

    def __call__(self, place: int, chunks: Iterable[Pairs]) -> Folds:
        features: Iterable[Any] = (
            {name: space.features(rows.x if of_x else rows.y) for name, (space, of_x) in self.spaces.items()}
            for rows in chunks
        )
        seed = (self.seed, place) if place else self.seed
        return Folds.of_part(features, self.n_folds, seed, self.dealt.get(place))


PROBE_ROWS = 10_000  # that small trees are grown on, at most, and as many that judge them: bounds time
GLANCE = {"max_iter": 10, "learning_rate": 0.3, "max_leaf_nodes": 15}  # few trees, in large steps: bounds time


def are_all_known(space: Space) -> bool:
    """Whether a variable has so few values that all its functions can be targets."""
    return isinstance(space, TableSpace) and len(space.shares) - 1 <= in_force.get().targets


def targets(space: Space, rows: Any, found: Sequence[Array]) -> Array:
    """All functions of a variable where they are few, else the strongest that a pilot found.

    Args:
        space: The space of the variable.
        rows: Its rows.
        found: The pilot's functions at these rows, the most wanted first, (n, k_i) each.

    Returns:
        Targets of unit variance, (n, k).
    """
    if isinstance(space, TableSpace) and are_all_known(space):
        share = space.shares
        basis = np.linalg.svd((np.eye(len(share)) - share) * np.sqrt(share)[:, None])[0][:, : len(share) - 1]
        return (basis / np.sqrt(share)[:, None])[space.index(rows)]
    return np.hstack(list(found))[:, : in_force.get().targets]


def beyond(space: Space, rows: Any, found: Array) -> Array:
    """Functions of a space of unit variance, uncorrelated with those found: along which it varies most, first."""
    values = space(rows)
    values, known = values - values.mean(axis=0), found - found.mean(axis=0)
    values = values - known @ np.linalg.lstsq(known, values, rcond=None)[0]
    energies, axes = np.linalg.eigh(values.T @ values / len(values))
    kept = energies > COLLINEAR * max(float(energies[-1]), np.finfo(np.float64).tiny)
    return ((values @ axes[:, kept]) / np.sqrt(energies[kept]))[:, ::-1]


def wanted(rows: Any, space: Space, others: Any, pilot: Sequence[tuple[Array, Array]], cheap: bool) -> Array:
    """Targets of a regressor on some rows: functions of the other variable, with those that many labels tell apart.

    Args:
        rows: Rows that the regressor reads.
        space: The space of the other variable.
        others: Its rows.
        pilot: The pilot's sigma_i, (k,), and functions of the other variable, (n, k), the most wanted first.
        cheap: Whether more targets take hardly more time.

    Returns:
        Targets of unit variance, (n, k).
    """
    if not rows.variable.many_labels:
        return targets(space, others, [values for _, values in pilot])
    found = np.hstack([values * sigma for sigma, values in pilot])
    options = in_force.get()
    most = options.targets if cheap or are_all_known(space) else min(found.shape[1] + 1, options.targets)
    if are_all_known(space):
        found = np.hstack([found, options.least_strength * targets(space, others, [])])
    return told_apart(rows, space(others), found, most)


def left_over(rows: Rows, residuals: Array, seed: int) -> Iterator[tuple[float, float]]:
    """What small trees grown on one half of the rows know of what is left over on the other, target by target.

    Trees see interactions, bumps and jumps alike.

    Args:
        rows: Rows of the variable.
        residuals: What is left of each target, (n, k).
        seed: Of the halves.

    Yields:
        How clear it is: the correlation of what they predict with what is left, in standard errors. And how much: what
        the best multiple of the prediction would add to the H-score.
    """
    order = np.random.default_rng(seed).permutation(len(rows))[: 2 * PROBE_ROWS]
    inputs, left = as_matrix(rows).numpy()[order], (residuals - residuals.mean(axis=0))[order]
    if inputs.shape[1] == 0:  # labels only, too many to be split as sets
        return
    halves = np.arange(len(order)) >= len(order) // 2
    for target in left.T:

        def without(out: np.ndarray, target: Array = target) -> Any:
            grown = np.delete(np.arange(len(order)), out)
            return trees(rows, seed, **GLANCE).fit(inputs[grown], target[grown])

        _, told = cross_fitted(halves, without, lambda grown, at: grown.predict(inputs[at]))
        products, energy = told * target, float(np.square(told).mean())
        spread, known = float(products.std()) / np.sqrt(len(products)), max(float(products.mean()), 0.0)
        yield (known / spread if spread > 0 else 0.0), (known**2 / (2 * energy) if energy > 0 else 0.0)


def clearness(rows: Rows, residuals: Array, seed: int) -> float:
    """How clearly small trees know something of what is left over (`left_over`), however little it is."""
    return max((clear for clear, _ in left_over(rows, residuals, seed)), default=0.0)


SELECTION_ROWS = 2048  # rows that choose between spaces of one kind: bounds time
GLANCED_ROWS = 5000  # from which on small trees look first: bounds time
PATIENT_ROWS = 20_000  # rows that choose between spaces, at most: bounds time

Given = dict[str, list[Recipe]]
Regressors = dict[str, Recipe]


@dataclass(frozen=True)
class Attempt:
    """Spaces that were tried, and how to come to them again.

    Attributes:
        names: The space of each block.
        pilot: The given spaces that regressors started from.
        regressors: By block.
        of: The attempts whose mean it is, if any.
    """

    names: Names
    pilot: Names
    regressors: Regressors = field(default_factory=dict)
    of: tuple[Attempt, ...] = ()


def learn_closed(task: Task) -> Learned:
    """The best solution in given spaces and in those of regressors; some of many rows choose it, all then fit it."""
    given = {name: [recipe for recipe in side if not recipe.learned] for name, side in task.recipes.items()}
    only = {name: task.recipes[name][0] for name, side in given.items() if not side}  # no given space is asked for
    _check_regressors(task, only)
    for name, recipe in only.items():
        # What finds the functions worth predicting: what the regressor reads, or else a kernel.
        inputs = recipe.inputs and Recipe(f"inputs of {recipe.name}", recipe.inputs)
        given[name] = [inputs or recipes("kernel", task.rows(name, task.sample))[-1]]
    tried = [{**_means_of_y(task), **only}] if only else _regressors(task)
    kept = np.arange(len(task.every)) if only else _choosing(task, tried)
    some = task if len(kept) == len(task.every) else replace(task, data=task.every.take(kept))
    bank = Bank(some)
    best = _best(bank, given, tried, bool(only))
    if some is task:
        return _with_mean(bank, _learned(bank, best.names))
    if not is_time_left():
        warnings.warn(
            f"Time was up before all {len(task.every)} rows could be used: the model rests on {len(kept)} of them, "
            "drawn at random. Allow more `time_limit`, or name a space.",
            stacklevel=2,
        )
        learned = _with_mean(bank, _learned(bank, best.names))
        seen = learned.unseen
        return learned if seen is None else replace(learned, unseen=replace(seen, rows=kept[seen.rows]))
    return _on_all_rows(task, best, bank.learned(best.pilot).components, given)


def _on_all_rows(task: Task, best: Attempt, found: Sequence[Component], given: Given) -> Learned:
    """The spaces that some rows chose, fitted to all; functions that regressors replace are not evaluated there."""
    bank, several, y_name = Bank(task), best.of or (best,), task.setting.richest[1]
    looked_at = any(y_name in one.regressors for one in several)  # these look at functions of x
    for one in several:
        names = {name: kind for name, kind in one.pilot.items() if name not in one.regressors or looked_at}
        bank.fit({name: [recipe for recipe in given[name] if recipe.name == kind] for name, kind in names.items()})
    grown = [_grow(bank, one.pilot, found, one.regressors) for one in several]
    return _with_mean(bank, _learned(bank, _together(bank, grown)[0] if best.of else grown[0]))


def _best(bank: Bank, given: Given, tried: list[Regressors], only: bool) -> Attempt:
    """Spaces in order of cost, until small trees see nothing left to explain or time is up.

    Given spaces come first, as they find the functions of the other side that regressors are to predict. Where these
    are known anyway and rows are many, the simplest of them and the first regressor come before all others.
    """
    task, (x_name, y_name) = bank.task, bank.task.setting.richest
    steps: list[tuple[Given, Regressors]] = [(given, {}), *((given, regressors) for regressors in tried)]
    is_long = len(tried) > 1 and len(task.every) >= PATIENT_ROWS and given[y_name] == [TABLE]
    if is_long and are_all_known(task.fitted(y_name, TABLE)):
        simplest = {**given, x_name: given[x_name][:1]}
        steps = [(simplest, {}), (simplest, tried[0]), (given, {}), *((given, more) for more in tried[1:])]
    found: list[Candidate[Attempt]] = []
    pilot: Names = {}
    for cost, (spaces, regressors) in enumerate(steps, start=1):
        is_slow = not regressors or any(_takes_long(recipe, len(task.every)) for recipe in regressors.values())
        if found and not (is_time_left() and (not is_slow or _is_more(bank, preferred(found).what.names))):
            break
        pilot = pilot if regressors else _best_given(bank, spaces)
        if regressors or not only:
            names = _grow(bank, pilot, bank.learned(pilot).components if regressors else (), regressors)
            found.append(Candidate(Attempt(names, pilot, regressors), cost, bank.solve(names).held_out_scores))
    best = preferred(found)
    several = [one.what for one in found if one.score > 0]
    if len(several) < 2 or not task.setting.is_bivariate or any(y_name in more for more in tried):
        return best.what
    names, kept = _together(bank, [one.names for one in several])
    mean = Attempt(names, several[-1].pilot, of=tuple(several[c] for c in kept))
    return preferred([best, Candidate(mean, len(steps) + 1, bank.solve(names).held_out_scores)]).what


def _together(bank: Bank, several: Sequence[Names]) -> tuple[Names, list[int]]:
    """The mean of what several solutions say of x, with weights that rows left out prefer (Breiman's stacking).

    Solutions are i_c(x, y) = sum_i sigma_i f_i(x) g_i(y). For an orthonormal basis t_j of all their g, each says
    E_c[t_j | x]; least squares on rows left out finds weights that are not negative, as differences between solutions
    are mostly noise. First one for each solution, to see which are needed; these then have one for each t_j, since what
    tells best of one function of y need not of another. The features are these means, one for each t_j.

    Returns:
        The spaces, and which of the solutions have any weight.
    """
    x_name, every = bank.task.setting.richest[0], bank.task.every
    parts, values = [bank.learned(names).components[-1] for names in several], [bank.unseen(n) for n in several]
    of_y = [part.g(every.y) for part in parts]
    best_first = np.argsort([-bank.solve(names).held_out_score for names in several], kind="stable")
    aims = orthonormal([of_y[c] for c in best_first])[:, : in_force.get().targets]
    turns = [g.T @ aims / len(aims) for g in of_y]
    told = np.stack([f @ turn for f, turn in zip(values, turns, strict=True)], axis=2)
    kept = np.flatnonzero(nnls(told.reshape(-1, len(several)), aims.ravel())[0]).tolist() or [0]
    if len(kept) == 1:
        return several[kept[0]], kept
    weights = np.array([nnls(each[:, kept], aim)[0] for each, aim in zip(told.swapaxes(0, 1), aims.T, strict=True)])
    key = (x_name, " and ".join(several[c][x_name] for c in kept))
    bank.own[key] = np.einsum("njc,jc->nj", told[:, :, kept], weights)
    turned = np.vstack([parts[c].sigma[:, None] * turns[c] * weights[:, i] for i, c in enumerate(kept)])
    affine = AffineFeatures(np.zeros(len(turned)), turned, np.zeros(len(weights)))
    bank.spaces[key] = SpanFunction(SideBySide(tuple(parts[c].f for c in kept)), affine)
    return {**several[0], x_name: key[1]}, kept


def _with_mean(bank: Bank, learned: Learned) -> Learned:
    """The same with what is told of Y itself, where that is asked for."""
    if bank.task.itself is None or learned.unseen is None:
        return learned
    return replace(learned, mean=mean_of(bank, learned.unseen.rows))


def orthonormal(functions: Sequence[Array]) -> Array:
    """Functions of unit variance, uncorrelated on these rows, in the span of those given, the first first, (n, k)."""
    given = np.hstack(list(functions))
    own = np.abs(np.diag(np.linalg.qr(given, mode="r"))) / np.linalg.norm(given, axis=0)
    return np.linalg.qr(given[:, own > np.sqrt(COLLINEAR)])[0] * np.sqrt(len(given))


def _takes_long(recipe: Recipe, n_rows: int) -> bool:
    """Whether it, and what comes after it, takes longer than to look whether anything is left to explain."""
    return recipe.argument is None or (recipe.argument is MetricRegressor and n_rows >= GLANCED_ROWS)


def _is_more(bank: Bank, names: Names) -> bool:
    """Whether small trees see something in what a solution leaves over, enough to look further."""
    task, y = bank.task, bank.task.every.y
    learned, rows = bank.learned(names), task.rows(task.setting.richest[0])
    both = (rows, *(y.rows.values() if isinstance(y, Parts) else (y,)))
    # Trees read no column of too many labels, and would have too many to predict.
    if learned.unseen is None or any(part.variable.many_labels for part in both):
        return True
    seen = learned.unseen.rows
    of_level, told = [component.g(y.take(seen)) for component in learned.components], learned.unseen.f
    # Of a level whose functions of x are given, nothing more is to be learned.
    free = [not task.recipes[x[-1]][0].given for x, _ in task.setting.spaces()]
    sought = np.hstack([g for g, is_free in zip(of_level, free, strict=True) if is_free])
    if len(of_level) > 1:  # of a function of one level, modes of the others tell as well
        told = told @ (np.hstack(of_level).T @ sought) / len(seen)
    options, clear, added = in_force.get(), 0.0, 0.0
    for more_clear, more in left_over(rows.take(seen), sought - told, task.plan.seed):
        clear, added = max(clear, more_clear), added + more
        if clear > options.doubt_errors and added > options.worth_more * bank.solve(names).held_out_score:
            return True
    return False


# --- given spaces


def _best_given(bank: Bank, given: Given) -> Names:
    """The best space of each block: a sample chooses among those of one kind, all rows then choose the kind.

    Mixed pairs of kinds of the richest blocks are tried only where no kind is clearly ahead on both sides.
    """
    tell("choosing spaces")
    task, kept = bank.task, _of_each_kind(bank, given)
    x_name, y_name = task.setting.richest
    others = {name: side[0].name for name, side in kept.items() if name not in task.setting.richest}
    tell(f"closed form, {' or '.join(r.name for r in kept[x_name])} | {' or '.join(r.name for r in kept[y_name])}")
    bank.add(kept)
    for name in others:
        if kept[name][0].given and isinstance(task.data, Pairs):
            _check_given(bank.folds.whole.dims[f"{name} {others[name]}"], len(task.data))
    pairs = [(x.name, y.name) for x in kept[x_name] for y in kept[y_name]]
    alike = [pair for pair in pairs if pair[0] == pair[1]]

    def candidates(some: list[tuple[str, str]]) -> list[Candidate[Names]]:
        found: list[Candidate[Names]] = []
        for x, y in some:
            names = {name: {**others, x_name: x, y_name: y}[name] for name in task.recipes}
            solution = bank.solve(names)
            found.append(Candidate(names, solution.size, solution.held_out_scores))
        return found

    if len(alike) == len(kept[x_name]) == len(kept[y_name]):
        found = candidates(alike)
        best = max(found, key=lambda one: one.score)
        if not any(is_within_an_error(best, one) for one in found if one is not best):
            return best.what
    return preferred(candidates(pairs)).what


def _of_each_kind(bank: Bank, given: Given) -> dict[str, list[Recipe]]:
    """One space of each kind of the richest blocks, and one of each other block, by what a sample says."""
    task, sample = bank.task, bank.task.data.sample(SELECTION_ROWS, bank.task.plan.seed)
    for name, allowed in given.items():
        if TABLE in allowed:
            task.fitted(name, TABLE)  # too many symbols are better refused before any work
    bank = bank if sample is task.data else Bank(replace(task, data=sample), FEW_FOLDS)

    def best(x_name: str, y_name: str, pairs: list[tuple[Recipe, Recipe]]) -> tuple[Recipe, Recipe]:
        if len(pairs) == 1:
            return pairs[0]
        solved = [(pair, bank.pair(dict(zip((x_name, y_name), pair, strict=True)), FEW_FOLDS)) for pair in pairs]
        return preferred([Candidate(pair, 1, solution.held_out_scores) for pair, solution in solved]).what

    x_name, y_name = task.setting.richest
    kept: dict[str, list[Recipe]] = {name: [] for name in given}
    x_kinds, y_kinds = _by_kind(given[x_name]), _by_kind(given[y_name])
    for kind in dict.fromkeys([*x_kinds, *y_kinds]):
        xs, ys = x_kinds.get(kind, given[x_name][:1]), y_kinds.get(kind, given[y_name][:1])
        # Alike on both sides where that can be: a fine space on one side shows nothing while the other is coarse.
        pairs = list(zip(xs, ys, strict=True)) if len(xs) == len(ys) else list(product(xs, ys))
        for name, recipe, kinds in zip((x_name, y_name), best(x_name, y_name, pairs), (x_kinds, y_kinds), strict=True):
            kept[name] += [recipe] if kind in kinds else []
    for name in [name for name in task.setting.blocks if name not in task.setting.richest]:
        # By what it captures together with the richest functions opposite.
        opposite = y_name if name in task.setting.x else x_name
        pairs = list(product(given[name], kept[opposite]))
        kept[name] = given[name] if len(given[name]) == 1 else [best(name, opposite, pairs)[0]]
    return kept


def _by_kind(side: list[Recipe]) -> dict[str, list[Recipe]]:
    return {one.kind: [recipe for recipe in side if recipe.kind == one.kind] for one in side}


def _check_given(n_functions: int, n_rows: int) -> None:
    """Features that are exactly orthogonal to many functions on few rows follow the noise of these rows."""
    if n_functions >= n_rows - 1:
        raise ValueError(
            f"Given features must be fewer than the rows: {n_functions} functions on {n_rows} rows leave nothing that "
            "is uncorrelated with all of them. Give fewer, such as a PCA of them, or fit to more rows."
        )
    if n_rows < (fewest := in_force.get().rows_a_function) * n_functions:
        warnings.warn(
            f"{n_functions} given functions on {n_rows} rows: with fewer than {fewest} rows for each, features "
            "that are exactly uncorrelated with them on these rows need not be so on others, and may be large there. "
            "Give fewer, such as a PCA of them, or fit to more rows.",
            stacklevel=2,
        )


# --- spaces that regressors learn


def _regressors(task: Task) -> list[Regressors]:
    """The regressors to try, by block: each of the richest of x, beside the means that many labels of y ask for."""
    options, n_rows = in_force.get(), len(task.data) if isinstance(task.data, Pairs) else 0
    x_name, y_name = task.setting.richest
    of_y = _means_of_y(task) if n_rows >= options.tree_rows else {}

    def is_tried(recipe: Recipe) -> bool:
        if recipe.argument in OF_ALL:
            return n_rows >= options.few_rows
        # One index tells few labels apart; functions of numbers have one each, and rarely follow any.
        follows = recipe.argument is not IndexRegressor or are_all_known(task.fitted(y_name, task.recipes[y_name][0]))
        return n_rows >= options.tree_rows and follows

    of_x = [{**of_y, x_name: recipe} for recipe in task.recipes[x_name] if recipe.learned and is_tried(recipe)]
    return [of_y, *of_x] if of_y else of_x


def _means_of_y(task: Task) -> dict[str, Recipe]:
    y_name = task.setting.richest[1]
    return {y_name: MEANS} if MEANS in task.recipes[y_name] and task.setting.is_bivariate else {}


def _choosing(task: Task, tried: list[Regressors]) -> np.ndarray:
    """Positions of the rows that choose among spaces: all of some labels, where there are too many for rows of each."""
    if all(recipe is MEANS for regressors in tried for recipe in regressors.values()):
        return np.arange(len(task.every))
    rows, seed = task.rows(task.setting.richest[0]), task.plan.seed
    some = rows_of_some_labels(rows, PATIENT_ROWS, seed) if len(task.every) > PATIENT_ROWS else None
    return some_rows(len(task.every), seed, PATIENT_ROWS) if some is None else some


def _check_regressors(task: Task, only: Regressors) -> None:
    for name, recipe in only.items():
        if name != task.setting.richest[0] and not task.setting.is_bivariate:
            raise ValueError(
                f"A regressor learns functions of X from given functions of Y here, and `{name}_space` is "
                f"{recipe.name!r}. Use another `{name}_space`, such as 'kernel'."
            )
        if not isinstance(task.data, Pairs):
            raise ValueError(
                f"Regressors such as trees or an index need all rows in memory, and `{name}_space` is {recipe.name!r}. "
                f"Pass arrays or frames, or use another `{name}_space`."
            )


def _grow(bank: Bank, pilot: Names, found: Sequence[Component], regressors: Regressors) -> Names:
    """Let regressors, if any, learn spaces from the functions of the other side that the pilot found."""
    task, names = bank.task, dict(pilot)
    data, (x_name, y_name), seed = task.every, task.setting.richest, task.plan.seed
    for name, recipe in regressors.items():
        parts = cast("np.ndarray", bank.fold_of_row)  # there, as all rows are
        rows, is_cheap = task.rows(name), recipe is MEANS
        key = (y_name, names[y_name])
        if name == x_name and key in bank.own:  # functions of y that were just learned
            aims = targets(bank.spaces[key], data.y, [bank.own[key]])
        elif name == x_name:
            of_y = [(part.sigma, part.g(data.y)) for part in found[::-1]]
            y_space, y = bank.spaces[y_name, pilot[y_name]], data.y.of("y")
            if recipe.argument in OF_ALL and not are_all_known(y_space):  # more targets take no more time
                others = beyond(y_space, data.y, np.hstack([values for _, values in of_y]))
                of_y.append((np.full(others.shape[1], in_force.get().least_strength), others))
            aims = np.hstack([_itself(y, recipe), wanted(rows, y_space, y, of_y, is_cheap)])
        else:
            of_x = [(found[0].sigma, found[0].f(data.x))]
            aims = wanted(rows, bank.spaces[x_name, pilot[x_name]], data.x, of_x, is_cheap)
        encoding = None if recipe.inputs is None else recipe.inputs(rows, seed)
        names[name], key = recipe.name, (name, recipe.name)
        space, bank.own[key] = RegressorSpace.fit(rows, aims, parts, recipe.argument, seed, encoding)
        bank.spaces[key] = task.setting.blocks[name].seen_from_side(space).to(task.plan.device)
    return names


def _itself(y: Rows, recipe: Recipe) -> Array:
    """A number y, bounded, (n, 1), as its mean is asked for most, where trees learn it as well; else none, (n, 0)."""
    by_trees = recipe.argument is None or recipe.argument in OF_ALL
    return Encoding.fit(y, "bounded")(y)[:, : int(by_trees and is_single_number(y))]


def is_single_number(y: Rows) -> bool:
    """Whether a variable is a number of many values."""
    is_number = len(y.variable.columns) == len(y.variable.numbers) == 1 and not y.variable.is_tensor
    return is_number and not is_finite(y)


def _learned(bank: Bank, names: Names) -> Learned:
    """The record of a solution; where regressors were fitted beside given features, orthogonal to these as deployed."""
    learned, task = bank.learned(names), bank.task
    if len(task.setting.x) == 1 or (task.setting.richest[0], names[task.setting.richest[0]]) not in bank.own:
        return learned
    n_given = sum(bank.folds.whole.dims[f"{name} {names[name]}"] for name in list(task.setting.x)[:-1])
    return replace(learned, components=_orthogonal_as_deployed(learned.components, task.every, n_given))


def _orthogonal_as_deployed(components: tuple[Component, ...], data: Pairs, n_given: int) -> tuple[Component, ...]:
    """Make later levels exactly orthogonal to the given features as new rows will see both.

    Rows of the fit were judged by trees that never saw them, new rows are by the average of all trees: what is
    orthogonal in the first sense is only nearly so in the second.
    """
    values = components[-1].f.space(data.x)
    given = values[:, :n_given] - values[:, :n_given].mean(axis=0)
    result = list(components[:1])
    for component in components[1:]:
        function = component.f
        f = function.affine(values)
        weight = function.affine.weight.copy()
        weight[:n_given] -= np.linalg.lstsq(given, f - f.mean(axis=0), rcond=None)[0]
        result.append(replace(component, f=replace(function, affine=replace(function.affine, weight=weight))))
    return tuple(result)
