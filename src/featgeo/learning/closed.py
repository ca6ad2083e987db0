"""The closed form on spans that are given, or that regressors learn: candidates in order of cost, held-out rows choose.

Given spans of several kinds come first. What the best of them leaves over is looked at by small trees: as long as these
see something there, regressors are fitted to the functions of the other side that were found (`targets`), and the
closed form is solved in their span as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featgeo.features.functions import SpanFunction
from featgeo.features.label_means import columns_of_many_labels, rows_of_some_labels
from featgeo.features.recipes import MEANS, TABLE, Recipe, recipes
from featgeo.features.trees import RegressorSpace
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.bank import Bank, Names
from featgeo.learning.choice import Candidate, is_within_an_error, preferred
from featgeo.learning.data import Pairs
from featgeo.learning.learned import Component, Learned
from featgeo.learning.targets import are_all_known, is_more_to_explain, targets, wanted
from featgeo.learning.task import Task
from featgeo.watch import is_time_left, tell

SELECTION_ROWS = 2048  # rows that choose between spaces of one kind: bounds time
TREE_ROWS = 500  # with fewer rows trees only memorise
PATIENT_ROWS = 20_000  # rows that choose between spaces, at most: bounds time
ROWS_A_GIVEN = 10  # for each given function that features are orthogonal to

Given = dict[str, list[Recipe]]
Regressors = dict[str, Recipe]


@dataclass(frozen=True, eq=False)
class Attempt:
    """A solution, and what it takes to find it again on more rows.

    Attributes:
        names: The space of each block.
        pilot: For regressors, the spaces whose solution they learned to predict.
        regressors: The regressors, by block.
    """

    names: Names
    pilot: Names | None = None
    regressors: Regressors | None = None


def learn_closed(task: Task) -> Learned:
    """The best solution in given spaces and in those of regressors; some of many rows choose it, all then fit it."""
    given = {name: [recipe for recipe in side if not recipe.learned] for name, side in task.recipes.items()}
    only = {name: task.recipes[name][0] for name, side in given.items() if not side}  # no given space is asked for
    _check_regressors(task, only)
    for name, recipe in only.items():
        given[name] = [_pilot(recipe, task.rows(name, task.sample))]
    tried = [{**_means_of_y(task), **only}] if only else _regressors(task)
    if not tried or not isinstance(task.data, Pairs) or (len(task.data) < TREE_ROWS and not only):
        bank = Bank(task)
        return bank.learned(_best_given(bank, given))
    kept = np.arange(len(task.data)) if only else _choosing(task, tried)
    some = task if len(kept) == len(task.data) else task.on(task.data.take(kept))
    bank = Bank(some)
    best = _best(bank, given, tried, bool(only))
    if some is task:
        return _learned(bank, best.names)
    if not is_time_left():
        warnings.warn(
            f"Time was up before all {len(task.data)} rows could be used: the model rests on {len(kept)} of them, "
            "drawn at random. Allow more `time_limit`, or name a space.",
            stacklevel=2,
        )
        learned = _learned(bank, best.names)
        seen = learned.unseen
        return learned if seen is None else replace(learned, unseen=replace(seen, rows=kept[seen.rows]))
    return _again(task, best)


def _best(bank: Bank, given: Given, tried: list[Regressors], only: bool) -> Attempt:
    """Spaces in order of cost, until small trees see nothing left to explain or time is up.

    Given spaces come first, as they find the functions of the other side that regressors are to predict. Where these
    are known anyway and rows are many, the simplest of them and the first regressor come before all others.
    """
    task, (x_name, y_name) = bank.task, bank.task.setting.richest
    steps: list[tuple[Given, Regressors | None]] = [(given, None), *((given, regressors) for regressors in tried)]
    is_long = len(tried) > 1 and len(task.every) >= PATIENT_ROWS and given[y_name] == [TABLE]
    if is_long and are_all_known(task.fitted(y_name, TABLE)):
        simplest = {**given, x_name: given[x_name][:1]}
        steps = [(simplest, None), (simplest, tried[0]), (given, None), *((given, more) for more in tried[1:])]
    found: list[Candidate[Attempt]] = []
    pilot: Names = {}
    for cost, (spaces, regressors) in enumerate(steps, start=1):
        is_slow = regressors is None or any(recipe.argument is None for recipe in regressors.values())  # trees
        if found and not (is_time_left() and (not is_slow or _is_more(bank, preferred(found).what))):
            break
        if regressors is None:
            pilot = _best_given(bank, spaces)
            attempt = Attempt(pilot)
        else:
            attempt = Attempt(_grow(bank, pilot, regressors), pilot, regressors)
        if regressors is not None or not only:
            found.append(Candidate(attempt, cost, bank.solve(attempt.names).held_out_scores))
    return preferred(found).what


def _again(task: Task, attempt: Attempt) -> Learned:
    """The solution on other rows: in the same spaces, fitted to these rows."""
    first = attempt.names if attempt.pilot is None else attempt.pilot
    bank = Bank(task)
    bank.add({name: [recipe for recipe in task.recipes[name] if recipe.name == first[name]] for name in task.recipes})
    if attempt.regressors is None:
        return bank.learned(attempt.names)
    return _learned(bank, _grow(bank, first, attempt.regressors))


def _is_more(bank: Bank, attempt: Attempt) -> bool:
    """Whether small trees see something in what a solution leaves over."""
    task = bank.task
    learned, rows = bank.learned(attempt.names), task.rows(task.setting.richest[0])
    both = (rows, task.rows(task.setting.richest[1]))
    # Trees read no column of too many labels, and would have too many to predict.
    if learned.unseen is None or any(columns_of_many_labels(side.variable) for side in both):
        return True
    seen = learned.unseen.rows
    explained = np.hstack([component.g(task.every.y.take(seen)) for component in learned.components])
    return is_more_to_explain(rows.take(seen), explained - learned.unseen.f, task.plan.seed)


# --- given spaces


def _best_given(bank: Bank, given: Given) -> Names:
    """The best space of each block: a sample chooses among those of one kind, all rows then choose the kind.

    Mixed pairs of kinds of the richest blocks are tried only where no kind is clearly ahead on both sides.
    """
    tell("choosing spaces")
    task, kept = bank.task, _of_each_kind(bank.task, given)
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


def _of_each_kind(task: Task, given: Given) -> dict[str, list[Recipe]]:
    """One space of each kind of the richest blocks, and one of each other block, by what a sample says."""
    for name, allowed in given.items():
        if TABLE in allowed:
            task.fitted(name, TABLE)  # too many symbols are better refused before any work
    bank = Bank(task.on(task.data.sample(SELECTION_ROWS, task.plan.seed)), 3)

    def best(x_name: str, y_name: str, pairs: list[tuple[Recipe, Recipe]]) -> tuple[Recipe, Recipe]:
        if len(pairs) == 1:
            return pairs[0]
        found = []
        for x, y in pairs:
            bank.add({x_name: [x], y_name: [y]})
            found.append(Candidate((x, y), 1, bank.pair((x_name, x.name), (y_name, y.name)).held_out_scores))
        return preferred(found).what

    x_name, y_name = task.setting.richest
    kept: dict[str, list[Recipe]] = {name: [] for name in given}
    x_kinds, y_kinds = _by_kind(given[x_name]), _by_kind(given[y_name])
    for kind in dict.fromkeys([*x_kinds, *y_kinds]):
        xs, ys = x_kinds.get(kind, given[x_name][:1]), y_kinds.get(kind, given[y_name][:1])
        # Alike on both sides where that can be: a fine space on one side shows nothing while the other is coarse.
        pairs = list(zip(xs, ys, strict=True)) if len(xs) == len(ys) else [(x, y) for x in xs for y in ys]
        for name, recipe, kinds in zip((x_name, y_name), best(x_name, y_name, pairs), (x_kinds, y_kinds), strict=True):
            kept[name] += [recipe] if kind in kinds else []
    for name, (side, _) in task.setting.blocks.items():
        if name not in task.setting.richest:  # by what it captures together with the richest functions opposite
            opposite = y_name if side == "x" else x_name
            pairs = [(one, other) for one in given[name] for other in kept[opposite]]
            flipped = [(other, one) for one, other in pairs]
            alone = len(given[name]) == 1
            kept[name] = [
                given[name][0] if alone
                else best(name, opposite, pairs)[0] if side == "x"
                else best(opposite, name, flipped)[1]
            ]  # fmt: skip
    return kept


def _by_kind(side: list[Recipe]) -> dict[str, list[Recipe]]:
    kinds: dict[str, list[Recipe]] = {}
    for recipe in side:
        kinds.setdefault(recipe.kind, []).append(recipe)
    return kinds


def _check_given(n_functions: int, n_rows: int) -> None:
    """Features that are exactly orthogonal to many functions on few rows follow the noise of these rows."""
    if n_functions >= n_rows - 1:
        raise ValueError(
            f"Given features must be fewer than the rows: {n_functions} functions on {n_rows} rows leave nothing that "
            "is uncorrelated with all of them. Give fewer, such as a PCA of them, or fit to more rows."
        )
    if n_rows < ROWS_A_GIVEN * n_functions:
        warnings.warn(
            f"{n_functions} given functions on {n_rows} rows: with fewer than {ROWS_A_GIVEN} rows for each, features "
            "that are exactly uncorrelated with them on these rows need not be so on others, and may be large there. "
            "Give fewer, such as a PCA of them, or fit to more rows.",
            stacklevel=2,
        )


# --- spaces that regressors learn


def _regressors(task: Task) -> list[Regressors]:
    """The regressors to try, by block: each of the richest of x, beside the means that many labels of y ask for."""
    of_y, x_name = _means_of_y(task), task.setting.richest[0]
    of_x = [{**of_y, x_name: recipe} for recipe in task.recipes[x_name] if recipe.learned]
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
    return task.every.sampled(PATIENT_ROWS, seed) if some is None else some


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


def _pilot(recipe: Recipe, rows: Any) -> Recipe:
    """The space that finds the functions worth predicting: what the regressor reads, or else a kernel."""
    return recipes("kernel", rows)[-1] if recipe.inputs is None else Recipe(f"inputs of {recipe.name}", recipe.inputs)


def _grow(bank: Bank, pilot: Names, regressors: Regressors) -> Names:
    """Let regressors learn spaces from the pilot's functions of the other side."""
    task, names = bank.task, dict(pilot)
    data, (x_name, y_name), seed = task.every, task.setting.richest, task.plan.seed
    found = bank.learned(pilot).components
    parts = data.folds(bank.n_folds, seed)
    for name, recipe in regressors.items():
        rows, is_cheap = task.rows(name), recipe is MEANS
        key = (y_name, names[y_name])
        if name == x_name and key in bank.own:  # functions of y that were just learned
            aims = targets(bank.spaces[key], data.y, [bank.own[key]])
        elif name == x_name:
            of_y = [(part.sigma, part.g(data.y)) for part in found[::-1]]
            aims = wanted(rows, bank.spaces[y_name, pilot[y_name]], data.y.of("y"), of_y, is_cheap)
        else:
            of_x = [(found[0].sigma, found[0].f(data.x))]
            aims = wanted(rows, bank.spaces[x_name, pilot[x_name]], data.x, of_x, is_cheap)
        encoding = None if recipe.inputs is None else recipe.inputs(rows, seed)
        space, values = RegressorSpace.fit(rows, aims, parts, recipe.argument, seed, encoding)
        names[name] = recipe.name
        bank.add_own(name, names[name], task.block(name).seen_from_side(space).to(task.plan.device), values)
    return names


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
    function = components[-1].f
    if not isinstance(function, SpanFunction):
        return components
    values = function.space(data.x)
    given = values[:, :n_given] - values[:, :n_given].mean(axis=0)
    result = list(components[:1])
    for component in components[1:]:
        affine: Any = component.f.affine
        f: Array = affine(values)
        left = np.linalg.lstsq(given, f - f.mean(axis=0), rcond=None)[0]
        weight = affine.weight.copy()
        weight[:n_given] -= left
        mended = AffineFeatures(affine.centre, weight, affine.offset, affine.removed)
        result.append(replace(component, f=SpanFunction(function.space, mended)))
    return tuple(result)
