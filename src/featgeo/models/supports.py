"""The values of Y that a fitted model spreads probability over."""

from __future__ import annotations

from typing import Literal

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
    single = len(variable.columns) == 1
    kind: Literal["labels", "numbers", "rows"] = "rows"
    if single and variable.columns[0].kind in ("label", "number"):
        kind = "labels" if variable.labels else "numbers"
    if kind == "numbers" and not (is_finite(rows) if finite is None else finite):
        return Support.of_numbers(rows.single_numbers, lambda positions: g(rows.take(positions)))
    if kind != "rows" or (not variable.is_tensor and is_finite(rows)):
        _, first, counts = np.unique(symbol_keys(rows.table), axis=0, return_index=True, return_counts=True)
        kept = rows.take(first)
        return Support(kind, _values(kept, kind), counts / counts.sum(), g(kept))
    if len(rows) > MAX_ROWS:
        rows = rows.take(np.sort(np.random.default_rng(seed).choice(len(rows), MAX_ROWS, replace=False)))
    features, n = g(rows), len(rows)
    return Support("rows", np.asarray(rows.raw), np.full(n, 1 / n), features - features.mean(axis=0))


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


def _values(kept: Rows, kind: str) -> np.ndarray:
    """What the rows of a support are, as they came: whole numbers and truth values are such."""
    if kind == "numbers":
        numbers, came = kept.single_numbers, getattr(kept.raw, "dtype", None)
        return numbers.astype(came) if isinstance(came, np.dtype) and came.kind in "biu" else numbers
    if kind == "rows":
        return np.asarray(kept.raw)
    (column,) = kept.variable.columns
    every = [*column.categories, None]
    labels = [every[code] for code in kept.table.codes[:, 0]]
    values = np.array(labels)
    return values if values.dtype.kind in "biufUS" and not column.missing else np.array(labels, dtype=object)
