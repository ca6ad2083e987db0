"""The engine: from rows, spaces and a setting to features of each level.

Finite alphabets are solved exactly; given spans in closed form; spans that must be learned are learned first, by trees
or by gradients, and then solved in closed form as well. Every way ends in the same record, `Learned`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featgeo.features.blocks import PartSpace, in_reach
from featgeo.features.functions import FeatureFunction, SpanFunction, TableFunction
from featgeo.features.label_means import rows_of_some_labels
from featgeo.features.recipes import FREQUENT, MEANS, TABLE, Recipe, has_rows_for_each, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import TableSpace
from featgeo.features.trees import RegressorSpace
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.exact import learn_exact
from featgeo.learning.learned import (
    N_FOLDS,
    Component,
    Learned,
    Unseen,
    from_solution,
    some_rows,
)
from featgeo.learning.neural import learn_neural
from featgeo.learning.plan import Plan
from featgeo.learning.setting import ModeCount, Setting
from featgeo.learning.solve import MODE_COUNTS, Folds, Solution, solve, solve_levels
from featgeo.learning.targets import are_all_known, is_more_to_explain, targets, wanted
from featgeo.nesting import Nesting
from featgeo.nesting.nesting import MOST_DIMENSIONS
from featgeo.threads import bounded_threads
from featgeo.watch import is_time_left, tell

SELECTION_ROWS = 2048  # rows that choose between spaces; all rows then choose the ridge
SPACE_ROWS = 200_000  # rows that spaces are fitted to
TREE_ROWS = 500  # with fewer rows trees only memorise
PATIENT_ROWS = 20_000  # from here on slow spaces are tried only where there is more to explain, and on so many rows
ALL_MODES = MOST_DIMENSIONS
SCALE_ROWS = 1000  # rows that tell how large features are
ROWS_A_GIVEN = 10  # for each given function that features are orthogonal to
NO_RIDGE = (0.0,)  # all functions of a finite alphabet are equal: none is smoother than another


def learn(data: Pairs | Stream, setting: Setting, plan: Plan, judged: bool = True) -> Learned:
    """Learn the strongest modes of each level of a setting.

    Args:
        data: The rows.
        setting: The levels, with the functions that each may use.
        plan: How to learn.
        judged: Whether modes are left out that held-out rows call worse than no dependence; else they are to be judged
            later on, beside others.
    """
    with bounded_threads(data.cells):
        learned = _learned(data, setting, plan)
    return learned.without_harm(setting) if judged else learned


def _learned(data: Pairs | Stream, setting: Setting, plan: Plan) -> Learned:
    solver, sample = plan.solver, data.sample(SPACE_ROWS, plan.seed)
    choices = {name: block.recipes(getattr(sample, side)) for name, (side, block) in setting.blocks.items()}
    kinds = [recipe for side in choices.values() for recipe in side]
    _check_labels_repeat(data, setting, choices)
    every = data if isinstance(data, Pairs) else sample
    finite = _is_finite(setting, choices, every)
    if solver == "exact":
        _check_finite(setting, choices)
    if solver == "exact" or (solver == "auto" and finite and isinstance(data, Pairs)):
        if setting.is_bivariate and not any(block.of for _, block in setting.blocks.values()):
            return learn_exact(data, setting.steps[0].n_modes, plan.seed, solver == "auto" and _is_thin(choices, every))
        tables = {name: side if side[0].given else [TABLE] for name, side in choices.items()}
        return _closed(data, setting, tables, plan, exact=True)
    if solver == "neural" or any(recipe.learned == "network" for recipe in kinds):
        if solver == "closed":
            raise ValueError(
                "The closed form needs spaces that are given, and a network must be trained. Use solver='neural', or "
                "another space."
            )
        return learn_neural(data, setting, plan)
    return _closed(data, setting, choices, plan)


def _is_finite(setting: Setting, choices: Mapping[str, list[Recipe]], data: Pairs) -> bool:
    """Whether tables of counts are the best there is: of finite variables, all of whose values have rows enough.

    Of two columns of many labels only counts of pairs know all functions, however few they are.
    """
    if not all(side[0] in (TABLE, FREQUENT) or side[0].given for side in choices.values()):
        return False
    many = [_side(setting, name, data).of(*setting.blocks[name][1].of) for name in choices if FREQUENT in choices[name]]
    return len(many) == len(choices) or all(map(has_rows_for_each, many))


def _is_thin(choices: Mapping[str, list[Recipe]], data: Pairs) -> bool:
    """Whether both variables have many labels, and some too few rows for each."""
    rows = (data.x.of("x"), data.y.of("y"))
    return all(FREQUENT in side for side in choices.values()) and not all(map(has_rows_for_each, rows))


def _check_labels_repeat(data: Pairs | Stream, setting: Setting, choices: Mapping[str, list[Recipe]]) -> None:
    for name, (_, block) in setting.blocks.items():
        if isinstance(data, Pairs) and FREQUENT in choices[name]:
            variable = _side(setting, name, data).of(*block.of).variable
            if len(variable.columns[0].categories) == len(data):
                raise ValueError(
                    f"Every row of {variable.name} has a value of its own, so there is nothing to learn from it for "
                    "other rows. Pass labels that several rows share, or other columns."
                )


def _check_finite(setting: Setting, choices: Mapping[str, list[Recipe]]) -> None:
    for name, (_, block) in setting.blocks.items():
        named = isinstance(block.space, str) and block.space in ("auto", "table")
        if not named and not choices[name][0].given:
            raise ValueError(
                f"The exact solver allows all functions of finite variables, and `{name}_space` is {block.space!r}. "
                "Use 'table', or solver='closed'."
            )


def mode_counts(n_modes: ModeCount) -> list[int]:
    """The numbers of modes to choose from."""
    if n_modes == "auto":
        return list(MODE_COUNTS)
    return [ALL_MODES if n_modes == "all" else n_modes]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Fitted spaces of all blocks: several kinds of the richest of either side, one of each other.

    Attributes:
        x: Spaces of the richest block of x, by the name of their recipe.
        y: The same for y.
        others: The space of each other block.
        recipes: The recipes behind all of them, by block.
    """

    x: Mapping[str, Space]
    y: Mapping[str, Space]
    others: Mapping[str, Space]
    recipes: Mapping[str, list[Recipe]]

    def only(self, setting: Setting, names: tuple[str, str]) -> dict[str, list[Recipe]]:
        """The recipes of one pair of the richest spaces, and of all other blocks."""
        kept = {
            block: [recipe for recipe in self.recipes[block] if recipe.name == name]
            for block, name in zip(setting.richest, names, strict=True)
        }
        return {**self.recipes, **kept}


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A solution, and what it takes to find it again on more rows.

    Attributes:
        learned: The solution.
        candidates: The spaces that it chose from.
        pilot: For a regressor, the solution whose functions of y it learned to predict.
        regressors: The regressors, by block.
    """

    learned: Learned
    candidates: _Candidates
    pilot: Learned | None = None
    regressors: Mapping[str, Recipe] | None = None

    def on(self, data: Pairs, setting: Setting, plan: Plan) -> Learned:
        """The solution on other rows: in the same spaces, fitted to these rows."""
        first = self.learned if self.pilot is None else self.pilot
        candidates = _fitted_candidates(data, setting, self.candidates.only(setting, first.spaces), plan)
        if self.pilot is None or self.regressors is None:
            return _solved(data, setting, candidates, plan)
        return _grown(data, setting, candidates, self.pilot, self.regressors, plan)[0]


def _closed(
    data: Pairs | Stream,
    setting: Setting,
    choices: Mapping[str, list[Recipe]],
    plan: Plan,
    exact: bool = False,
) -> Learned:
    given = {name: [recipe for recipe in side if not recipe.learned] for name, side in choices.items()}
    only = {name: choices[name][0] for name, side in given.items() if not side}  # no given space is asked for
    _check_regressors(data, setting, only)
    for name, recipe in only.items():
        given[name] = [_pilot(recipe, _side(setting, name, data.sample(1, plan.seed)).of(*setting.blocks[name][1].of))]
    regressors = _regressors(setting, choices)
    if regressors and not only and isinstance(data, Pairs) and len(data) >= TREE_ROWS:
        return _chosen(data, setting, given, regressors, plan)
    candidates = _fitted_candidates(data, setting, given, plan)
    if exact:
        _check_repeats(data, candidates)
    learned = _solved(data, setting, candidates, plan, exact=exact)
    if exact and not any(recipe.given for side in choices.values() for recipe in side):
        return _as_tables(learned, data, setting)
    if only and isinstance(data, Pairs):
        return _grown(data, setting, candidates, learned, {**_means_of_y(setting, choices), **only}, plan)[0]
    return learned


def _regressors(setting: Setting, choices: Mapping[str, list[Recipe]]) -> list[dict[str, Recipe]]:
    """The regressors to try, by block: each of the richest of x, beside the means that many labels of y ask for."""
    of_y = _means_of_y(setting, choices)
    of_x = [{**of_y, setting.richest[0]: recipe} for recipe in choices[setting.richest[0]] if recipe.learned]
    return [of_y, *of_x] if of_y else of_x


def _means_of_y(setting: Setting, choices: Mapping[str, list[Recipe]]) -> dict[str, Recipe]:
    y_name = setting.richest[1]
    return {y_name: MEANS} if MEANS in choices[y_name] and setting.is_bivariate else {}


def _chosen(
    data: Pairs,
    setting: Setting,
    given: Mapping[str, list[Recipe]],
    regressors: list[dict[str, Recipe]],
    plan: Plan,
) -> Learned:
    """The best solution in given spaces and in those of regressors; some of many rows choose it, all then fit it."""
    kept = _choosing(data, setting, regressors, plan.seed)
    some = data if len(kept) == len(data) else data.take(kept)
    best = _best(_tried(some, setting, given, regressors, plan))
    if some is data:
        return best.learned
    if not is_time_left():
        warnings.warn(
            f"Time was up before all {len(data)} rows could be used: the model rests on {len(some)} of them, drawn at "
            "random. Allow more `time_limit`, or name a space.",
            stacklevel=2,
        )
        seen = best.learned.unseen
        return best.learned if seen is None else replace(best.learned, unseen=replace(seen, rows=kept[seen.rows]))
    return best.on(data, setting, plan)


def _choosing(data: Pairs, setting: Setting, regressors: list[dict[str, Recipe]], seed: int) -> np.ndarray:
    """Positions of the rows that choose among spaces: all of some labels, where there are too many for rows of each."""
    if all(recipe is MEANS for tried in regressors for recipe in tried.values()):
        return np.arange(len(data))
    x_name = setting.richest[0]
    rows = _side(setting, x_name, data).of(*setting.blocks[x_name][1].of)
    some = rows_of_some_labels(rows, PATIENT_ROWS, seed) if len(data) > PATIENT_ROWS else None
    return data.sampled(PATIENT_ROWS, seed) if some is None else some


def _tried(
    data: Pairs,
    setting: Setting,
    given: Mapping[str, list[Recipe]],
    regressors: list[dict[str, Recipe]],
    plan: Plan,
) -> Iterator[_Attempt]:
    """Solutions in given spaces and in those of regressors, until there is nothing left to explain or time is up.

    With many rows kernels and trees take long. Where no pilot is needed, the simplest spaces come first, alone.
    """
    x_name, y_name = setting.richest
    waiting, stages = list(regressors), [given]
    is_long = len(waiting) > 1 and len(data) >= PATIENT_ROWS
    if is_long and given[y_name] == [TABLE] and are_all_known(_fitted(setting, y_name, TABLE, data, plan.seed)):
        stages = [{**given, x_name: given[x_name][:1]}, given]
    for stage in stages:
        candidates = _fitted_candidates(data, setting, stage, plan)
        pilot = _solved(data, setting, candidates, plan)
        yield _Attempt(pilot, candidates)
        while waiting and is_time_left():
            tried = waiting.pop(0)
            learned, explains_all = _grown(data, setting, candidates, pilot, tried, plan)
            yield _Attempt(learned, candidates, pilot, tried)
            if is_long and waiting and explains_all():
                return
            if stage is not stages[-1]:
                break
        if not is_time_left():
            return


def _best(found: Iterable[_Attempt]) -> _Attempt:
    """The solution of the largest held-out score, the first where they are equal or unknown."""
    first, *others = found
    for attempt in others:
        first = attempt if attempt.learned.held_out_score > first.learned.held_out_score else first
    return first


def _check_regressors(data: Pairs | Stream, setting: Setting, only: Mapping[str, Recipe]) -> None:
    for name, recipe in only.items():
        if name != setting.richest[0] and not setting.is_bivariate:
            raise ValueError(
                f"A regressor learns functions of X from given functions of Y here, and `{name}_space` is "
                f"{recipe.name!r}. Use another `{name}_space`, such as 'kernel'."
            )
        if not isinstance(data, Pairs):
            raise ValueError(
                f"Regressors such as trees or an index need all rows in memory, and `{name}_space` is {recipe.name!r}. "
                f"Pass arrays or frames, or use another `{name}_space`."
            )


def _pilot(recipe: Recipe, rows: Any) -> Recipe:
    """The space that finds the functions worth predicting: what the regressor reads, or else a kernel."""
    return recipes("kernel", rows)[-1] if recipe.inputs is None else Recipe(recipe.name, recipe.inputs)


def _grown(
    data: Pairs,
    setting: Setting,
    candidates: _Candidates,
    pilot: Learned,
    regressors: Mapping[str, Recipe],
    plan: Plan,
) -> tuple[Learned, Callable[[], bool]]:
    """Solve in spaces that regressors learn from the pilot's functions of the other side.

    Returns:
        The solution, and a test of whether the regressors explain all that there is.
    """
    x_name, y_name = setting.richest
    names = dict(zip(setting.richest, pilot.spaces, strict=True))
    spaces = {x_name: candidates.x[names[x_name]], y_name: candidates.y[names[y_name]]}
    features: dict[str, Array] = {}
    grown, left = dict(spaces), []
    parts = data.folds(N_FOLDS, plan.seed)
    for name, recipe in regressors.items():
        block = setting.blocks[name][1]
        rows = _side(setting, name, data).of(*block.of)
        if name == x_name and y_name in features:  # functions of y that were just learned
            aims = targets(grown[y_name], data.y, [features[y_name]])
        elif name == x_name:
            found = [(part.sigma, part.g(data.y)) for part in pilot.components[::-1]]
            aims = wanted(rows, spaces[y_name], data.y.of("y"), found, recipe is MEANS)
        else:
            found = [(pilot.components[0].sigma, pilot.components[0].f(data.x))]
            aims = wanted(rows, spaces[x_name], data.x, found, recipe is MEANS)
        encoding = None if recipe.inputs is None else recipe.inputs(rows, plan.seed)
        space, features[name] = RegressorSpace.fit(rows, aims, parts, recipe.argument, plan.seed, encoding)
        grown[name], names[name] = block.seen_from_side(space), recipe.name
        left.append((rows, aims - features[name]))
    with_grown = replace(candidates, x={names[x_name]: grown[x_name]}, y={names[y_name]: grown[y_name]})
    learned = _solved(data, setting, with_grown, plan, features)
    return learned, lambda: not any(is_more_to_explain(rows, residuals, plan.seed) for rows, residuals in left)


def _check_repeats(data: Pairs | Stream, candidates: _Candidates) -> None:
    for space in (*candidates.x.values(), *candidates.y.values(), *candidates.others.values()):
        table = space.space if isinstance(space, PartSpace) else space
        if isinstance(data, Pairs) and isinstance(table, TableSpace) and len(table.shares) == len(data) > 2:
            raise ValueError(
                "Every row of a variable has a value of its own, so a table of counts says nothing. Use another solver."
            )


def _as_tables(learned: Learned, data: Pairs | Stream, setting: Setting) -> Learned:
    """Functions of finite alphabets by their values: a symbol that the fit never saw gets 0, it says nothing.

    The newest block of a level holds all functions of the blocks before it.
    """
    if not isinstance(data, Pairs):
        return learned
    components = []
    for component, reach in zip(learned.components, setting.reach, strict=True):
        sides = zip((data.x, data.y), (component.f, component.g), (setting.x, setting.y), reach, strict=True)
        f, g = (_as_table(function, rows, list(blocks.values())[n - 1].of) for rows, function, blocks, n in sides)
        components.append(replace(component, f=f, g=g))
    return replace(learned, components=tuple(components))


def _as_table(function: FeatureFunction, rows: Any, of: tuple[str, ...]) -> TableFunction:
    space = TableSpace.fit(rows.of(*of))
    first = np.empty(len(space.shares), dtype=np.int64)
    index = space.index(rows.of(*of))
    first[index[::-1]] = np.arange(len(index))[::-1]
    return TableFunction(space, function(rows.take(first)), of)


def _fitted_candidates(
    data: Pairs | Stream, setting: Setting, choices: Mapping[str, list[Recipe]], plan: Plan
) -> _Candidates:
    """Fit one space of each kind; a sample of the rows chooses among recipes of the same kind."""
    sample = data.sample(SELECTION_ROWS, plan.seed)
    n_modes = setting.steps[-1].n_modes
    nesting = Nesting([n_modes if isinstance(n_modes, int) else 8])
    features: dict[tuple[str, str], Array] = {}
    fold_of_row = sample.folds(3, plan.seed)
    tell("choosing spaces")
    for name, allowed in choices.items():
        if TABLE in allowed:
            _fitted(setting, name, TABLE, data, plan.seed)  # too many symbols are better refused before any work

    def values(name: str, recipe: Recipe) -> Array:
        if (name, recipe.name) not in features:
            space = _fitted(setting, name, recipe, sample, plan.seed)
            features[name, recipe.name] = space(_side(setting, name, sample))
        return features[name, recipe.name]

    def score(x_name: str, x: Recipe, y_name: str, y: Recipe) -> float:
        folds = Folds.from_chunks([{"x": values(x_name, x), "y": values(y_name, y)}], 3, plan.seed, fold_of_row)
        return solve(folds, nesting, plan.ridges()).held_out_score

    x_name, y_name = setting.richest
    x_recipes, y_recipes = choices[x_name], choices[y_name]
    chosen: list[list[Recipe]] = [[], []]
    x_kinds, y_kinds = _by_kind(x_recipes), _by_kind(y_recipes)
    for kind in dict.fromkeys([*x_kinds, *y_kinds]):
        xs, ys = x_kinds.get(kind, x_recipes[:1]), y_kinds.get(kind, y_recipes[:1])
        # Alike on both sides where that can be: a fine space on one side shows nothing while the other is coarse.
        pairs = list(zip(xs, ys, strict=True)) if len(xs) == len(ys) else [(x, y) for x in xs for y in ys]
        best = pairs[0] if len(pairs) == 1 else max(pairs, key=lambda pair: score(x_name, pair[0], y_name, pair[1]))
        for kept, recipe, kinds in zip(chosen, best, (x_kinds, y_kinds), strict=True):
            if kind in kinds:
                kept.append(recipe)
    others, kept_recipes = {}, dict(zip(setting.richest, chosen, strict=True))
    for name, (side, _) in setting.blocks.items():
        if name in setting.richest:
            continue
        # Each other block by what it captures together with the richest functions of the other side.
        opposite = (y_name, chosen[1]) if side == "x" else (x_name, chosen[0])

        def captured(recipe: Recipe, name: str = name, opposite: tuple[str, list[Recipe]] = opposite) -> float:
            return max(score(name, recipe, opposite[0], other) for other in opposite[1])

        recipe = choices[name][0] if len(choices[name]) == 1 else max(choices[name], key=captured)
        others[name], kept_recipes[name] = _fitted(setting, name, recipe, data, plan.seed), [recipe]
        if recipe.given and isinstance(data, Pairs):
            _check_given(others[name](_side(setting, name, data.sample(1, plan.seed))).shape[1], len(data))
    x_spaces, y_spaces = (
        {recipe.name: _fitted(setting, name, recipe, data, plan.seed) for recipe in kept}
        for name, kept in zip(setting.richest, chosen, strict=True)
    )
    return _Candidates(x_spaces, y_spaces, others, kept_recipes)


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


def _by_kind(side: list[Recipe]) -> dict[str, list[Recipe]]:
    kinds: dict[str, list[Recipe]] = {}
    for recipe in side:
        kinds.setdefault(recipe.kind, []).append(recipe)
    return kinds


def _side(setting: Setting, name: str, rows: Pairs) -> Any:
    return getattr(rows, setting.blocks[name][0])


def _fitted(setting: Setting, name: str, recipe: Recipe, data: Pairs | Stream, seed: int) -> Space:
    side, block = setting.blocks[name]
    # A rare symbol may miss among some rows, and then would have no function of its own.
    rows = data if recipe is TABLE and isinstance(data, Pairs) else data.sample(SPACE_ROWS, seed)
    space = block.fitted(recipe, _side(setting, name, rows), seed + (side == "y"))
    return in_reach(space, _side(setting, name, rows.take(slice(0, SCALE_ROWS))))


def _solved(
    data: Pairs | Stream,
    setting: Setting,
    candidates: _Candidates,
    plan: Plan,
    known: Mapping[str, Array] | None = None,
    exact: bool = False,
) -> Learned:
    """Solve in closed form on all rows, for every pair of spaces in one pass, and keep the pair that does best.

    Args:
        data: The rows.
        setting: The levels.
        candidates: Spaces of each block.
        plan: How to learn.
        known: Features of the only richest space of X or of Y, by block, where the rows of the fit have their own.
        exact: Whether all spaces are tables and the answer is to be that of the counts, without any ridge.
    """
    x_name, y_name = setting.richest
    known = known or {}

    def features(chunk: Pairs) -> dict[str, Array]:
        x = {f"x {name}": known[x_name] if x_name in known else space(chunk.x) for name, space in candidates.x.items()}
        y = {f"y {name}": known[y_name] if y_name in known else space(chunk.y) for name, space in candidates.y.items()}
        return x | y | {name: space(_side(setting, name, chunk)) for name, space in candidates.others.items()}

    tell(f"closed form, {' or '.join(candidates.x)} | {' or '.join(candidates.y)}")
    head = data if isinstance(data, Pairs) else data.head_of_next_pass
    fold_of_row = None if head is None else head.folds(N_FOLDS, plan.seed)
    chunks = [data] if isinstance(data, Pairs) and known else data.chunks()
    folds = Folds.from_chunks((features(chunk) for chunk in chunks), N_FOLDS, plan.seed, fold_of_row)

    counts = [mode_counts(step.n_modes) for step in setting.steps]
    everything = [step.n_modes == "all" for step in setting.steps]

    def solved(x: str, y: str) -> Solution:
        called = {x_name: f"x {x}", y_name: f"y {y}"}
        nesting = setting.nesting(tuple(choices[-1] for choices in counts), called)
        if exact:
            return solve_levels(folds, nesting, counts, NO_RIDGE, everything=everything)
        # Energies of several levels are those of all that their directions hold.
        steady = plan.steady if len(counts) == 1 else (False,)
        return solve_levels(folds, nesting, counts, plan.ridges(), everything=everything, steady=steady)

    names, solution = _best_pair(list(candidates.x), list(candidates.y), solved)
    spaces = dict(candidates.others) | {x_name: candidates.x[names[0]], y_name: candidates.y[names[1]]}
    held_out = None
    if solution.parts and head is not None and fold_of_row is not None:
        rows = some_rows(len(head), plan.seed)
        some = head.x.take(rows)
        values = [known[name][rows] if name in known else spaces[name](some) for name in setting.x]
        held_out = Unseen.of(solution, rows, np.hstack(values), fold_of_row[rows], setting, spaces)
    learned = from_solution(solution, setting, spaces, names, "exact" if exact else "closed", held_out)
    if not known or len(setting.x) == 1 or not isinstance(data, Pairs):
        return learned
    n_given = sum(folds.whole.dims[name] for name in list(setting.x)[:-1])
    return replace(learned, components=_orthogonal_as_deployed(learned.components, data, n_given))


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
        f = affine(values)
        left = np.linalg.lstsq(given, f - f.mean(axis=0), rcond=None)[0]
        weight = affine.weight.copy()
        weight[:n_given] -= left
        mended = AffineFeatures(affine.centre, weight, affine.offset, affine.removed)
        result.append(replace(component, f=SpanFunction(function.space, mended)))
    return tuple(result)


def _best_pair(
    x_names: list[str], y_names: list[str], solved: Callable[[str, str], Solution]
) -> tuple[tuple[str, str], Solution]:
    """The pair of spaces of the largest held-out score; mixed pairs are tried only where no kind is clearly ahead."""

    def score(pair: tuple[str, str]) -> float:
        return float(np.nan_to_num(solutions[pair].held_out_score, nan=0))

    alike = [(name, name) for name in x_names if name in y_names]
    solutions = {pair: solved(*pair) for pair in alike}
    if len(alike) == len(x_names) == len(y_names):
        best = max(alike, key=score)
        leads = [solutions[best].held_out_scores - solutions[pair].held_out_scores for pair in alike if pair != best]
        if all(len(lead) > 1 and lead.mean() > 2 * lead.std(ddof=1) / np.sqrt(len(lead)) for lead in leads):
            return best, solutions[best]
    solutions |= {(x, y): solved(x, y) for x in x_names for y in y_names if (x, y) not in solutions}
    best = max(solutions, key=score)
    return best, solutions[best]
