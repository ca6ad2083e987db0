"""Functions that are tried beside each other on the same rows: spaces, moments of their features, and what they solve.

A space is fitted once, and its features are whitened once for each set of rows, however many others it is paired with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from featgeo.features.recipes import Recipe
from featgeo.features.space import Space
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs
from featgeo.learning.learned import N_FOLDS, Learned, Unseen, from_solution, some_rows
from featgeo.learning.solve import Folds, Search, Solution, solve
from featgeo.learning.task import Task

Names = Mapping[str, str]  # for each block the name of its recipe
KEPT_CELLS = 10_000_000  # numbers of one block that are kept in memory; larger ones are evaluated again


class Bank:
    """Spaces of the blocks of a task.

    Attributes:
        task: The task.
        spaces: By block and name of the recipe.
        own: Features of the rows of the fit as seen by regressors that were not fitted to them, likewise.
    """

    def __init__(self, task: Task, n_folds: int = N_FOLDS) -> None:
        self.task, self.n_folds, data = task, n_folds, task.data
        self.head = data if isinstance(data, Pairs) else data.head_of_next_pass
        self.fold_of_row = None if self.head is None else self.head.folds(n_folds, task.plan.seed)
        self.spaces: dict[tuple[str, str], Space] = {}
        self.own: dict[tuple[str, str], Array] = {}
        self._kept: dict[tuple[str, str], Any] = {}
        self._folds: Folds | None = None
        self._solved: dict[tuple[tuple[str, str], ...], Solution] = {}
        self._records: dict[tuple[tuple[str, str], ...], Learned] = {}

    def add(self, recipes: Mapping[str, Iterable[Recipe]]) -> None:
        """Fit spaces of some blocks, and sum moments of their features in one pass over the rows."""
        asked = [(name, recipe) for name, several in recipes.items() for recipe in several]
        for name, recipe in asked:
            if (name, recipe.name) not in self.spaces:
                self.spaces[name, recipe.name] = self.task.fitted(name, recipe)
        self._sum([(name, recipe.name) for name, recipe in asked])

    def add_own(self, name: str, kind: str, space: Space, values: Array) -> None:
        """Take a space that was learned, with features of the rows of the fit by what has not seen them."""
        self.spaces[name, kind], self.own[name, kind] = space, values

    def _sum(self, keys: Sequence[tuple[str, str]]) -> None:
        """Have the moments of all pairs of some blocks."""
        data = self.task.data
        if self._folds is not None and self._folds.whole.all.knows([" ".join(key) for key in keys]):
            return
        chunks = [data] if isinstance(data, Pairs) and any(key in self.own for key in keys) else data.chunks()
        features = ({" ".join(key): self._values(key, chunk) for key in keys} for chunk in chunks)
        more = Folds.from_chunks(features, self.n_folds, self.task.plan.seed, self.fold_of_row)
        self._folds = more if self._folds is None else self._folds.joined(more)

    def _values(self, key: tuple[str, str], chunk: Pairs) -> Any:
        """Features of a block on some rows, or on all; on a GPU where that is where the space is."""
        if key in self.own:
            return self.own[key]
        if key in self._kept:
            return self._kept[key]
        values = self.spaces[key].features(self.task.side(key[0], chunk))
        if chunk is self.task.data and values.numel() <= KEPT_CELLS:
            self._kept[key] = values
        return values

    def pair(self, x: tuple[str, str], y: tuple[str, str]) -> Solution:
        """The modes of one block of x and one of y, by names of block and recipe, on their own."""
        plan, n_modes = self.task.plan, self.task.setting.steps[-1].n_modes
        if (x, y) not in self._solved:
            count = n_modes if isinstance(n_modes, int) else TRIED_MODES
            self._solved[x, y] = solve(self.folds, [(" ".join(x), " ".join(y))], [Search((count,), plan.ridges())])
        return self._solved[x, y]

    @property
    def folds(self) -> Folds:
        """Moments of the features of all spaces, by fold."""
        if self._folds is None:
            raise ValueError("There are no spaces yet. Add some.")
        return self._folds

    def solve(self, names: Names, exact: bool = False) -> Solution:
        """All levels, with one space for each block; exactly for tables, without any ridge."""
        keys = tuple(names.items())
        if keys not in self._solved:
            self._sum(keys)
            plan, steps = self.task.plan, self.task.setting.steps
            levels = self.task.setting.spaces({name: f"{name} {kind}" for name, kind in keys})
            # Energies of several levels are those of all that their directions hold.
            steady = plan.steady if len(steps) == 1 and not exact else (False,)
            searches = [Search.of(step.n_modes, NO_RIDGE if exact else plan.ridges(), steady) for step in steps]
            self._solved[keys] = solve(self.folds, levels, searches)
        return self._solved[keys]

    def learned(self, names: Names, exact: bool = False) -> Learned:
        """The record of a solution, with all that held-out rows say about it."""
        keys = tuple(names.items())
        if keys not in self._records:
            self._records[keys] = self._recorded(names, exact)
        return self._records[keys]

    def _recorded(self, names: Names, exact: bool) -> Learned:
        solution, setting = self.solve(names, exact), self.task.setting
        spaces = {name: self.spaces[name, kind] for name, kind in names.items()}
        unseen = None
        if solution.held_out and self.head is not None and self.fold_of_row is not None:
            rows = some_rows(len(self.head), self.task.plan.seed)
            some = self.head.x.take(rows)
            own = {name: self.own[name, names[name]] for name in setting.x if (name, names[name]) in self.own}
            values = [own[name][rows] if name in own else spaces[name](some) for name in setting.x]
            unseen = Unseen.of(solution, rows, np.hstack(values), self.fold_of_row[rows], setting, spaces)
        kinds = names[setting.richest[0]], names[setting.richest[1]]
        return from_solution(solution, setting, spaces, kinds, "exact" if exact else "closed", unseen)


NO_RIDGE = (0.0,)  # all functions of a finite alphabet are equal: none is smoother than another
TRIED_MODES = 8  # of a pair of spaces, where the number of modes is to be chosen later
