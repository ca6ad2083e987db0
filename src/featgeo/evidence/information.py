"""How much X tells of Y, and of Y beyond what S tells, in nats.

Of several columns of Y the chain rule tells: I(X; Y1, Y2) = I(X; Y1) + I(X; Y2 | Y1), where I(X; Y | S) is what X and S
tell of Y less what S alone does, row by row. Each term needs the density of one column.
"""

from __future__ import annotations

from typing import Any

from featgeo.evidence.shuffling import checked, read_rows
from featgeo.features.variables import Parts, Rows
from featgeo.geometry.validation import seed_of
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.setting import Plan, Setting
from featgeo.models.base import support_of
from featgeo.models.information import Information, Told


def mutual_information(X: Any, Y: Any, *, random_state: Any = None, sample_weight: Any = None) -> Information:
    """The mutual information of X and Y, in nats, with its standard error and an interval.

    From counts where both are finite alphabets, with Miller and Madow's correction of their bias; elsewhere from the
    density ratio of a fit, on rows that its features have and have not seen.

    Args:
        X: Rows of X: an array, data frame, series or list.
        Y: Rows of Y, in the same order. Of several columns one after another is told; where X has fewer, those of X.
        random_state: Seed of folds and spaces.
        sample_weight: How often each row counts, whole numbers, (n,).
    """
    x, y = checked(*read_rows(sample_weight, X=X, Y=Y))
    whole = Told.by_counts(x, y)
    if whole is not None:
        return whole.information()
    if len(x.variable.columns) < len(y.variable.columns):
        x, y = y, x
    return _told(x, y, None, seed_of(random_state)).information()


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
    if len(x.variable.columns) < len(y.variable.columns):
        x, y = y, x
    return _told(x, y, s, seed_of(random_state)).information()


def _told(x: Rows, y: Rows, s: Rows | None, seed: int) -> Told:
    """What rows are told of all columns of y by x, beyond s."""
    terms = []
    for i in range(len(y.variable.columns)):
        known = {"x": x} | ({} if s is None else {"s": s}) | ({"y": y.select(range(i))} if i else {})
        column = y.select([i])
        whole = _by_a_fit(_beside(known), column, seed)
        less = {name: rows for name, rows in known.items() if name != "x"}
        terms.append(whole.beyond(_by_a_fit(_beside(less), column, seed)) if less else whole)
    first, *others = terms
    return sum(others, start=first)


def _beside(parts: dict[str, Rows]) -> Rows:
    """All that is known, side by side."""
    return Parts(parts).of(*parts)


def _by_a_fit(x: Rows, y: Rows, seed: int) -> Told:
    """What x tells of a single column."""
    counted = Told.by_counts(x, y)
    if counted is not None:
        return counted
    learned = learn(Pairs(x, y), Setting.bivariate("auto", "auto", "auto"), Plan(seed=seed))
    if learned.unseen is None or not len(learned.unseen.rows):
        raise ValueError(f"Information needs rows to hold out, and {len(x)} are too few. Pass more.")
    support = support_of(y.variable, y, learned.components[-1].g, seed)
    return Told.by_features(support, learned.unseen, y, learned.components[-1].sigma)
