"""The values of Y that a fitted model spreads probability over."""

from __future__ import annotations

import numpy as np

from featgeo.assembly.support import MAX_ROWS, Support
from featgeo.features.functions import FeatureFunction
from featgeo.features.recipes import is_finite
from featgeo.features.variables import Rows, Variable, symbol_keys


def support_of(variable: Variable, rows: Rows, g: FeatureFunction, seed: int, finite: bool | None = None) -> Support:
    """Labels, neighbourhoods of numbers, or rows of vectors, with g at each.

    Args:
        variable: How Y is given.
        rows: Rows of the fit.
        g: Features of Y.
        seed: Of the choice of rows.
        finite: Whether each number stands for itself only; decided by how many there are when None.
    """
    if len(variable.columns) == 1 and variable.labels:
        return _labels(variable, rows, g)
    if len(variable.columns) == 1 and variable.columns[0].kind == "number":
        numbers = rows.single_numbers
        if is_finite(rows) if finite is None else finite:
            values, first, counts = np.unique(numbers, return_index=True, return_counts=True)
            return Support("numbers", _as_came(values, rows), counts / counts.sum(), g(rows.take(first)))
        return Support.of_numbers(numbers, lambda positions: g(rows.take(positions)))
    kept = rows
    if not variable.is_tensor and is_finite(rows):
        _, first, counts = np.unique(symbol_keys(rows.table), axis=0, return_index=True, return_counts=True)
        kept = rows.take(first)
        return Support("rows", np.asarray(kept.raw), counts / counts.sum(), g(kept))
    if len(rows) > MAX_ROWS:
        kept = rows.take(np.sort(np.random.default_rng(seed).choice(len(rows), MAX_ROWS, replace=False)))
    features = g(kept)
    n = len(features)
    return Support("rows", np.asarray(kept.raw), np.full(n, 1 / n), features - features.mean(axis=0))


def happened(y: Rows, support: Support) -> np.ndarray:
    """What Y was, (n,): for continuous numbers itself, for other single values its position in the support.

    The position of values that are not there is -1.
    """
    if support.kind == "rows":
        return np.zeros(len(y), dtype=int)  # nobody asks
    if support.continuous:
        return y.single_numbers
    position = {value: i for i, value in enumerate(support.values.tolist())}
    if not y.variable.labels:
        return np.array([position.get(number, -1) for number in y.single_numbers.tolist()])
    (column,) = y.variable.columns
    of_code = np.array([position.get(label, -1) for label in (*column.categories, None)] + [-1])  # the last: UNKNOWN
    return of_code[y.table.codes[:, 0]]


def _as_came(values: np.ndarray, rows: Rows) -> np.ndarray:
    """Whole numbers and truth values as such."""
    kind = getattr(rows.raw, "dtype", None)
    return values.astype(kind) if isinstance(kind, np.dtype) and kind.kind in "biu" else values


def _labels(variable: Variable, rows: Rows, g: FeatureFunction) -> Support:
    (column,) = variable.columns
    codes, first, counts = np.unique(rows.table.codes[:, 0], return_index=True, return_counts=True)
    every = [*column.categories, None]
    labels = [every[code] for code in codes]  # those that occur
    values = np.array(labels)
    if values.dtype.kind not in "biufUS" or column.missing:
        values = np.empty(len(labels), dtype=object)
        values[:] = labels
    return Support("labels", values, counts / counts.sum(), g(rows.take(first)))
