"""The engine: from rows of X and Y, spaces and a number of modes to features.

Finite alphabets are solved exactly; given spans in closed form; spans that must be learned are learned first, by trees
or by gradients, and then solved in closed form as well. Every way ends in the same record, `Learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from featgeo.features.recipes import Recipe, recipes
from featgeo.features.spaces import Space, TableSpace
from featgeo.features.trees import RegressorSpace
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.exact import learn_exact
from featgeo.learning.learned import N_FOLDS, Learned, Unseen, deal, from_solution, some_rows, unseen_features
from featgeo.learning.neural import learn_neural
from featgeo.learning.solve import MODE_COUNTS, Folds, Solution, solve
from featgeo.nesting import Nesting

Solver = Literal["auto", "exact", "closed", "neural"]

SELECTION_ROWS = 2048  # rows that choose between spaces; all rows then choose the ridge
SPACE_ROWS = 200_000  # rows that spaces are fitted to
MAX_TARGETS = 12  # functions of Y that trees learn to predict
TREE_ROWS = 500  # with fewer rows trees only memorise


def learn(
    data: Pairs | Stream,
    n_modes: int | Literal["auto"],
    solver: Solver,
    x_space: Any,
    y_space: Any,
    seed: int,
    training: Any = None,
    unseen: bool = False,
) -> Learned:
    """Learn the strongest modes between X and Y.

    Args:
        data: The rows.
        n_modes: How many modes at most, or "auto" for as many as raise the held-out H-score.
        solver: The way to learn; "auto" takes the most exact one that applies.
        x_space: The space of functions of X, as `recipes` reads it.
        y_space: The space of functions of Y.
        seed: Of everything random.
        training: Options of training, for networks.
        unseen: Whether held-out features of some rows are wanted, for calibration.
    """
    sample = data.sample(SPACE_ROWS, seed)
    x_recipes, y_recipes = recipes(x_space, sample.x), recipes(y_space, sample.y)
    names = [recipe.name for recipe in (*x_recipes, *y_recipes)]
    networks = any(recipe.learned == "network" for recipe in (*x_recipes, *y_recipes))
    if solver == "exact":
        for name, space in (("x_space", x_space), ("y_space", y_space)):
            if not isinstance(space, str) or space not in ("auto", "table"):
                raise ValueError(
                    f"The exact solver allows all functions of finite variables, and `{name}` is {space!r}. Use "
                    "'table', or solver='closed'."
                )
        return learn_exact(data, n_modes, seed)
    if solver == "auto" and set(names) == {"table"} and isinstance(data, Pairs):
        return learn_exact(data, n_modes, seed)
    if solver == "neural" or networks:
        if solver == "closed":
            raise ValueError(
                "The closed form needs spaces that are given, and a network must be trained. Use solver='neural', or "
                "another space."
            )
        return learn_neural(data, n_modes, x_space, y_space, seed, training, unseen)
    return _closed(data, n_modes, x_recipes, y_recipes, seed, unseen)


def mode_counts(n_modes: int | Literal["auto"]) -> list[int]:
    """The numbers of modes to choose from."""
    return list(MODE_COUNTS) if n_modes == "auto" else [n_modes]


def _closed(
    data: Pairs | Stream,
    n_modes: int | Literal["auto"],
    x_recipes: list[Recipe],
    y_recipes: list[Recipe],
    seed: int,
    unseen: bool,
) -> Learned:
    regressor = next((recipe for recipe in x_recipes if recipe.learned), None)
    given_x, given_y = ([recipe for recipe in side if not recipe.learned] for side in (x_recipes, y_recipes))
    if not given_y:
        raise ValueError("Trees learn functions of X for given functions of Y. Use another `y_space`.")
    only_regressor = not given_x
    if only_regressor and not isinstance(data, Pairs):
        raise ValueError("Trees need all rows in memory. Pass arrays or frames, or use another `x_space`.")
    if only_regressor:  # a pilot finds the functions of Y that are worth predicting
        given_x = recipes("kernel", data.sample(1, seed).x)[-1:]
    x_spaces, y_spaces = _fitted_kinds(data, given_x, given_y, n_modes, seed)
    learned = _solved(data, n_modes, x_spaces, y_spaces, seed, unseen)
    if regressor is None or not isinstance(data, Pairs) or (len(data) < TREE_ROWS and not only_regressor):
        return learned
    y_space = {learned.spaces[1]: y_spaces[learned.spaces[1]]}
    targets = _targets(data, y_space[learned.spaces[1]], learned)
    space, features = RegressorSpace.fit(data.x, targets, deal(len(data), seed), regressor.argument, seed)
    grown = _solved(data, n_modes, {regressor.name: space}, y_space, seed, unseen, features)
    return grown if only_regressor or grown.held_out_score > learned.held_out_score else learned


def _fitted_kinds(
    data: Pairs | Stream, x_recipes: list[Recipe], y_recipes: list[Recipe], n_modes: int | Literal["auto"], seed: int
) -> tuple[dict[str, Space], dict[str, Space]]:
    """One space of each kind for either side; a sample of the rows chooses among recipes of the same kind."""
    sample = data.sample(SELECTION_ROWS, seed)
    nesting = Nesting([8 if n_modes == "auto" else n_modes])
    features: dict[tuple[str, str], Array] = {}

    def score(x: Recipe, y: Recipe) -> float:
        for side, recipe in (("x", x), ("y", y)):
            if (side, recipe.name) not in features:
                features[side, recipe.name] = _fitted(recipe, sample, side, seed)(getattr(sample, side))
        folds = Folds.from_chunks([{"x": features["x", x.name], "y": features["y", y.name]}], 3, seed)
        return solve(folds, nesting).held_out_score

    chosen: list[list[Recipe]] = [[], []]
    x_kinds, y_kinds = _by_kind(x_recipes), _by_kind(y_recipes)
    for kind in dict.fromkeys([*x_kinds, *y_kinds]):
        xs, ys = x_kinds.get(kind, x_recipes[:1]), y_kinds.get(kind, y_recipes[:1])
        # Alike on both sides where that can be: a fine space on one side shows nothing while the other is coarse.
        pairs = list(zip(xs, ys, strict=True)) if len(xs) == len(ys) else [(x, y) for x in xs for y in ys]
        best = pairs[0] if len(pairs) == 1 else max(pairs, key=lambda pair: score(*pair))
        for side, recipe, kinds in zip(chosen, best, (x_kinds, y_kinds), strict=True):
            if kind in kinds:
                side.append(recipe)
    spaces = [
        {recipe.name: _fitted(recipe, data, side, seed) for recipe in kept}
        for kept, side in zip(chosen, ("x", "y"), strict=True)
    ]
    return spaces[0], spaces[1]


def _by_kind(side: list[Recipe]) -> dict[str, list[Recipe]]:
    kinds: dict[str, list[Recipe]] = {}
    for recipe in side:
        kinds.setdefault(recipe.kind, []).append(recipe)
    return kinds


def _fitted(recipe: Recipe, data: Pairs | Stream, side: str, seed: int) -> Space:
    if recipe.fit is None:
        raise ValueError(f"The space {recipe.name!r} must be learned together with the other variable.")
    rows: Rows = getattr(data.sample(SPACE_ROWS, seed), side)
    return recipe.fit(rows, seed + (side == "y"))


def _solved(
    data: Pairs | Stream,
    n_modes: int | Literal["auto"],
    x_spaces: Mapping[str, Space],
    y_spaces: Mapping[str, Space],
    seed: int,
    unseen: bool,
    x_features: Array | None = None,
) -> Learned:
    """Solve in closed form on all rows, for every pair of spaces in one pass, and keep the pair that does best.

    Args:
        data: The rows.
        n_modes: How many modes.
        x_spaces: Spaces of X by name.
        y_spaces: Spaces of Y by name.
        seed: Of the folds.
        unseen: Whether held-out features of some rows are wanted.
        x_features: Features of the only space of X, where the rows of the fit have their own.
    """

    def features(chunk: Pairs) -> dict[str, Array]:
        x = {f"x {name}": space(chunk.x) if x_features is None else x_features for name, space in x_spaces.items()}
        return x | {f"y {name}": space(chunk.y) for name, space in y_spaces.items()}

    fold_of_row = deal(len(data), seed) if isinstance(data, Pairs) else None
    chunks = [data] if isinstance(data, Pairs) and x_features is not None else data.chunks()
    folds = Folds.from_chunks((features(chunk) for chunk in chunks), N_FOLDS, seed, fold_of_row)
    counts = mode_counts(n_modes)

    def solved(x: str, y: str) -> Solution:
        return solve(folds, Nesting([counts[-1]], x=f"x {x}", y=f"y {y}"), mode_counts=counts)

    names, solution = _best_pair(list(x_spaces), list(y_spaces), solved)
    x_space, y_space = x_spaces[names[0]], y_spaces[names[1]]
    held_out = None
    if unseen and isinstance(data, Pairs) and fold_of_row is not None:
        rows = some_rows(len(data), seed)
        values = x_space(data.x.take(rows)) if x_features is None else x_features[rows]
        held_out = Unseen(rows, unseen_features(solution, values, fold_of_row[rows]))
    return from_solution(solution, x_space, y_space, names, "closed", held_out)


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


def _targets(data: Pairs, y_space: Space, pilot: Learned) -> Array:
    """All functions of Y where they are few, else the strongest of the pilot; (n, k), of unit variance."""
    if isinstance(y_space, TableSpace) and len(y_space.shares) - 1 <= MAX_TARGETS:
        share = y_space.shares
        basis = np.linalg.svd((np.eye(len(share)) - share) * np.sqrt(share)[:, None])[0][:, : len(share) - 1]
        return (basis / np.sqrt(share)[:, None])[y_space.index(data.y)]
    g = pilot.g(data.y)
    return g[:, :MAX_TARGETS]
