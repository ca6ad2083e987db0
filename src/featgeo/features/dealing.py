"""Rows dealt into folds, copies of a row into the same one.

A row that was copied is known to whoever has seen one of its copies: were they dealt apart, held-out rows would praise
whatever memorises. But rows may also be equal by right, where columns take few values or have favourite ones. So equal
rows count as copies only where some column is continuous, x never comes with another y, and chance would hardly make
two such rows: with columns that were independent of each other, there would be none. Labels repeat by right, and so
does a number that they determine, such as the size of the firm that a row is about.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.geometry.validation import Array

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, with irregular bits: products with it spread over all 64
BY_CHANCE = 0.1  # rows that would equal a given one: with fewer, equal rows have a common origin
HEAD_ROWS = 4096  # most columns that are continuous show it early
FEWEST_A_FOLD = 2  # distinct rows; with fewer, equal rows are all that there is


def deal(n_rows: int, n_folds: int, seed: int, copies: np.ndarray | None = None) -> np.ndarray:
    """A fold for each row, (n,), at random and of nearly equal size.

    Args:
        n_rows: How many rows.
        n_folds: How many folds; no more than there are rows.
        seed: Of the deal.
        copies: For each row the group of equal rows that it belongs to, (n,), numbered by first appearance; each row
            for itself when None.
    """
    n_folds = min(n_folds, n_rows)
    if copies is None or copies.max(initial=-1) + 1 < FEWEST_A_FOLD * n_folds:
        copies = np.arange(n_rows)
    fold_of_group = np.random.default_rng(seed).permutation(int(copies.max()) + 1) % n_folds
    return np.asarray(fold_of_group[copies])


def equal_beside(tables: Sequence[Array]) -> np.ndarray | None:
    """Positions of rows, (n,), by the first of those that equal them; None where no two are equal.

    Args:
        tables: Numbers and codes of each row, (n, d_i).
    """
    _, first, place = np.unique(_keys(np.hstack(tables)), return_index=True, return_inverse=True)
    return None if len(first) == len(place) else np.argsort(first[place], kind="stable")


def copies_of(x: Array, y: Array, codes: np.ndarray | None = None) -> np.ndarray:
    """Groups of copied rows, (n,), numbered by first appearance.

    Args:
        x: Numbers that are known of each row, (n, d); missing values equal each other.
        y: What is to be told from them, (n, e).
        codes: Labels that are known besides, (n, c): however many there are, they repeat by right.
    """
    continuous = [column for column in x.T if _is_continuous(column)]
    if not continuous:
        return np.arange(len(x))
    known = x if codes is None else np.hstack([x, codes])
    x_key = _keys(known)
    row_key = _mixed(x_key ^ _mixed(_keys(y)))
    _, x_place, x_count = np.unique(x_key, return_inverse=True, return_counts=True)
    if len(x_count) == len(x):
        return np.arange(len(x))
    _, first, place = np.unique(row_key, return_index=True, return_inverse=True)
    if codes is not None and codes.shape[1] and _are_determined(continuous, codes, len(first)):
        return np.arange(len(x))
    y_count = np.bincount(x_place[first], minlength=len(x_count))  # how many different y come with each x
    expected = np.exp(np.log(len(x)) + sum(_log_share(column) for column in np.hstack([known, y]).T))
    copied = (y_count[x_place] == 1) & (expected < BY_CHANCE)
    leader = np.where(copied, first[place], np.arange(len(x)))
    return np.unique(leader, return_inverse=True)[1]


def _is_continuous(column: Array) -> bool:
    """Whether a number takes more values than the square root of the rows: counts of few values grow much faster."""
    most = np.sqrt(len(column))
    return any(len(np.unique(part)) > most for part in (column[:HEAD_ROWS], column))


def _are_determined(numbers: list[Array], codes: np.ndarray, n_distinct: int) -> bool:
    """Whether numbers take hardly a value that the labels of a row do not tell, of labels that different rows share."""
    n_labels = len(np.unique(_keys(codes)))
    values = (len(np.unique(_keys(np.column_stack([codes, column])))) for column in numbers)
    return 2 * n_labels < n_distinct and all(n - n_labels < np.sqrt(len(codes)) for n in values)


def _log_share(column: Array) -> Array:
    """The logarithm of the share of rows that have the value of each, (n,)."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return np.asarray(np.log(counts / len(column))[place])


def _keys(values: Array) -> np.ndarray:
    """A number of 64 bits for each row, (n,), equal for equal rows and else different but for a chance of 2^-64."""
    result = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)  # one NaN, and no -0
        result = _mixed(result ^ bits)
    return result


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(32))) * _MIX
    return bits ^ (bits >> np.uint64(29))
