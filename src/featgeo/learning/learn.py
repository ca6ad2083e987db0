"""The engine: from rows, spaces and a setting to features of each level.

Finite alphabets are solved exactly; given spans in closed form; spans that must be learned are learned first, by trees
or by gradients, and then solved in closed form as well. Every way ends in the same record, `Learned`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from featgeo.features.recipes import FREQUENT, TABLE, has_rows_for_each
from featgeo.features.spaces import FeatureFunction, SpanFunction, TableSpace, table_function
from featgeo.learning.closed import Bank, Task, learn_closed
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.exact import check_repeats, learn_exact, table_of
from featgeo.learning.learned import Learned
from featgeo.learning.neural import learn_neural
from featgeo.learning.setting import Plan, Setting
from featgeo.watch import bounded_threads


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
        task = Task.of(data, setting, plan)
        _check_labels_repeat(task)
        learned = next(solved for takes, solved in WAYS if takes(task))(task)
    return learned.without_harm(setting) if judged else learned


def _are_two_tables(task: Task) -> bool:
    return (
        task.setting.is_bivariate and not any(block.of for block in task.setting.blocks.values()) and _are_tables(task)
    )


def _tables(task: Task) -> Learned:
    """The closed form on indicators, without any ridge, and functions told by their values."""
    chosen = {name: side[0] if side[0].given else TABLE for name, side in task.recipes.items()}
    bank = Bank(replace(task, plan=replace(task.plan, ridge=0.0)))
    bank.add({name: [recipe] for name, recipe in chosen.items()})
    for table in map(table_of, bank.spaces.values()):
        if table is not None and isinstance(task.data, Pairs):
            check_repeats("a variable", table, len(task.data))
    learned = replace(bank.learned({name: recipe.name for name, recipe in chosen.items()}), solver="exact")
    return learned if any(recipe.given for recipe in chosen.values()) else _as_tables(learned, task)


def _are_networks(task: Task) -> bool:
    learned = any(recipe.learned == "network" for side in task.recipes.values() for recipe in side)
    if learned and task.plan.solver == "closed":
        raise ValueError(
            "The closed form needs spaces that are given, and a network must be trained. Use solver='neural', or "
            "another space."
        )
    return learned or task.plan.solver == "neural"


def _are_tables(task: Task) -> bool:
    """Whether tables of counts are asked for, or the best there is: of finite variables, with rows for all values.

    Of two columns of many labels only counts of pairs know all functions, however few they are.
    """
    if task.plan.solver == "exact":
        _check_finite(task)
        return True
    finite = all(side[0] in (TABLE, FREQUENT) or side[0].given for side in task.recipes.values())
    if task.plan.solver != "auto" or not isinstance(task.data, Pairs) or not finite:
        return False
    many = [task.rows(name) for name, side in task.recipes.items() if FREQUENT in side]
    return len(many) == len(task.recipes) or all(map(has_rows_for_each, many))


def _check_labels_repeat(task: Task) -> None:
    for name, side in task.recipes.items():
        if isinstance(task.data, Pairs) and FREQUENT in side:
            variable = task.rows(name).variable
            if len(variable.columns[0].categories) == len(task.data):
                raise ValueError(
                    f"Every row of {variable.name} has a value of its own, so there is nothing to learn from it for "
                    "other rows. Pass labels that several rows share, or other columns."
                )


def _check_finite(task: Task) -> None:
    for name, block in task.setting.blocks.items():
        named = isinstance(block.space, str) and block.space in ("auto", "table")
        if not named and not task.recipes[name][0].given:
            raise ValueError(
                f"The exact solver allows all functions of finite variables, and `{name}_space` is {block.space!r}. "
                "Use 'table', or solver='closed'."
            )


def _as_tables(learned: Learned, task: Task) -> Learned:
    """Functions of finite alphabets by their values: a symbol that the fit never saw gets 0, it says nothing.

    The newest block of a level holds all functions of the blocks before it.
    """
    if not isinstance(task.data, Pairs):
        return learned
    components = []
    for component, (x, y) in zip(learned.components, task.setting.spaces(), strict=True):
        f = _as_table(component.f, task.data.x, task.setting.x[x[-1]].of)
        components.append(replace(component, f=f, g=_as_table(component.g, task.data.y, task.setting.y[y[-1]].of)))
    return replace(learned, components=tuple(components))


def _as_table(function: FeatureFunction, rows: Any, of: tuple[str, ...]) -> SpanFunction:
    space = TableSpace.fit(rows.of(*of))
    _, first = np.unique(space.index(rows.of(*of)), return_index=True)
    return table_function(space, function(rows.take(first)), of)


# Ways to solve, the most exact first: whether it is asked for, or the best of those that apply; and how.
WAYS: tuple[tuple[Callable[[Task], bool], Callable[[Task], Learned]], ...] = (
    (_are_two_tables, learn_exact),
    (_are_tables, _tables),
    (_are_networks, learn_neural),
    (lambda task: True, learn_closed),
)
