"""How much X tells of Y, and of Y beyond what S tells, in nats.

Given S it is what X and S tell of Y less what S alone does, row by row.

A density is that of one number. Where both X and Y have several columns, all that matters of them is in their modes,
I(X; Y) = I(f(X); g(Y)), and of g(Y) one function after another is told, by the chain rule:
I(F; g1, g2) = I(F; g1) + I(F; g2 | g1). Most modes are functions of those before them (of bell curves, powers), and
tell nothing more: they are not asked. Modes know their rows a little too well; by how much, held-out strengths say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from featgeo.evidence.shuffling import checked, read_rows
from featgeo.features.recipes import is_finite
from featgeo.features.regression import Condition
from featgeo.features.variables import Parts, Rows
from featgeo.geometry.validation import Array, seed_of
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import Component, Unseen
from featgeo.learning.setting import Plan, Setting
from featgeo.models.base import support_of
from featgeo.models.information import Information, Told, of_bells
from featgeo.tuning import in_force


def mutual_information(X: Any, Y: Any, *, random_state: Any = None, sample_weight: Any = None) -> Information:
    """The mutual information of X and Y, in nats, with its standard error and an interval.

    From counts where both are finite alphabets, with Miller and Madow's correction of their bias; elsewhere from the
    density ratio of a fit, on rows that its features have and have not seen.

    Args:
        X: Rows of X: an array, data frame, series or list.
        Y: Rows of Y, in the same order. Where X and Y both have several columns, what their modes tell is asked.
        random_state: Seed of folds and spaces.
        sample_weight: How often each row counts, whole numbers, (n,).
    """
    x, y = checked(*read_rows(sample_weight, X=X, Y=Y))
    whole = Told.by_counts(x, y)
    if whole is not None:
        return whole.information()
    return _told(x, y, seed_of(random_state)).information()


def conditional_mutual_information(
    X: Any, Y: Any, S: Any, *, random_state: Any = None, sample_weight: Any = None
) -> Information:
    """The mutual information of X and Y given S, in nats: what X tells of Y beyond what S does.

    Args:
        X: Rows of X: an array, data frame, series or list.
        Y: Rows of Y, in the same order.
        S: Rows of S.
        random_state: Seed of folds and spaces.
        sample_weight: How often each row counts, whole numbers, (n,).
    """
    x, y, s = checked(*read_rows(sample_weight, X=X, Y=Y, S=S))
    seed, both = seed_of(random_state), Parts({"x": x, "s": s}).of("x", "s")
    return _told(both, y, seed).beyond(_told(s, y, seed)).information()


def _told(x: Rows, y: Rows, seed: int) -> Told:
    """What rows are told of y by x, or of x by y, which is the same."""
    counted = Told.by_counts(x, y)
    if counted is not None:
        return counted
    # Modes of numbers are numbers: of these densities are told best.
    x, y = sorted((x, y), key=lambda side: (_width(side) == 1, _is_of_numbers(side), -_width(side)))
    if _width(y) > 1 and not _is_of_numbers(y):
        return _by_columns(x, y, seed)
    learned = learn(Pairs(x, y), Setting.bivariate("auto", "auto", "auto"), Plan(seed=seed))
    if learned.unseen is None or not len(learned.unseen.rows):
        raise ValueError(f"Information needs rows to hold out, and {len(x)} are too few. Pass more.")
    if _width(y) > 1:
        return _by_modes(learned.components[-1], learned.unseen, y, seed)
    support = support_of(y.variable, y, learned.components[-1].g, seed)
    return Told.by_features(support, learned.unseen, y, learned.components[-1].sigma)


def _width(rows: Rows) -> int:
    return len(rows.variable.columns)


def _is_of_numbers(rows: Rows) -> bool:
    """Whether each column is a number of many values."""
    kinds = {column.kind for column in rows.variable.columns}
    return kinds == {"number"} and not any(is_finite(rows.select([i])) for i in range(_width(rows)))


def _by_columns(x: Rows, y: Rows, seed: int) -> Told:
    """What x tells of one column of y after another."""
    told = _told(x, y.select([0]), seed)
    for i in range(1, _width(y)):
        before, column = y.select(range(i)), y.select([i])
        told += _told(Parts({"x": x, "y": before}).of("x", "y"), column, seed).beyond(_told(before, column, seed))
    return told


def _by_modes(component: Component, unseen: Unseen, y: Rows, seed: int) -> Told:
    """What modes tell of each other, by the chain rule; rows are those of which features by others are known."""
    options, held_out = in_force.get(), component.held_out_sigma.mean(axis=0)
    found = np.flatnonzero(held_out > options.told_sigma)
    f, g = unseen.final[:, found], component.g(y.take(unseen.rows))[:, found]
    known, told, asked = f[:, _new(f, seed)], Told.nothing(unseen.rows), list[int]()
    for i in _new(g, seed):
        may_add = of_bells(_partial(g[:, i], f, g[:, asked], seed))
        if may_add < options.told_share * told.above.mean():
            told = replace(told, missed=told.missed + may_add)
            continue
        term = _told(_as_rows(np.hstack([known, g[:, asked]])), _as_rows(g[:, [i]]), seed)
        if asked:
            term = term.beyond(_told(_as_rows(g[:, asked]), _as_rows(g[:, [i]]), seed))
        if term.information().estimate > 0:
            too_well = of_bells(np.corrcoef(f[:, i], g[:, i])[0, 1]) - of_bells(held_out[found[i]])
            told += replace(term, rows=unseen.rows[term.rows], below=term.below - too_well)
            asked.append(i)
    return told


def _as_rows(values: Array) -> Rows:
    return Rows.seen(values, "modes")


def _new(values: Array, seed: int) -> list[int]:
    """Which functions, (n, k), those before them do not determine."""
    new, left = [], np.arange(values.shape[1])
    while len(left):
        new.append(int(left[0]))
        left = left[1:]
        if len(left):
            rest, _ = Condition(_as_rows(values[:, new]), seed).regress(values[:, left])
            left = left[rest.values.var(axis=0) > in_force.get().told_new * values[:, left].var(axis=0)]
    return new


def _partial(target: Array, f: Array, known: Array, seed: int) -> float:
    """The correlation of a function, (n,), with the f, (n, k), once what is known, (n, j), is taken out of all."""
    left = np.column_stack([target, f])
    left = Condition(_as_rows(known), seed).regress(left)[0].values if known.shape[1] else left - left.mean(axis=0)
    weight, *_ = np.linalg.lstsq(left[:, 1:], left[:, 0])
    return float(np.corrcoef(left[:, 0], left[:, 1:] @ weight)[0, 1])
