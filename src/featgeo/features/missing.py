"""Which rows of a variable are there at all.

A row is missing where every one of its cells is: NaN, None, NaT and the like. One that misses only some of its columns
is there, and what it misses counts as average.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch
from sklearn.utils import _safe_indexing

from featgeo.features.raw import arrays_of, is_frame, is_missing, list_as_array, plain


def rows_of(values: Any) -> Any:
    """What a user handed in as something whose rows can be counted and taken."""
    values = plain(values)
    known = isinstance(values, np.ndarray | torch.Tensor) or is_frame(values)
    return values if known else list_as_array(values)


def present(values: Any, name: str) -> np.ndarray:
    """Which rows are there, (n,)."""
    if not is_frame(values) and np.ndim(values) > 2:
        tensor = torch.as_tensor(values)
        if not tensor.is_floating_point():
            return np.ones(len(tensor), dtype=bool)
        return ~torch.isnan(tensor.flatten(1)).all(dim=1).numpy()
    columns, _ = arrays_of(values, name)
    return ~np.all([_missing(column) for column in columns.values()], axis=0)


def _missing(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "O":
        return np.array([is_missing(value) for value in column.tolist()], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def taken(values: Any, index: np.ndarray) -> Any:
    """Some of the rows, as they came."""
    if isinstance(values, torch.Tensor):
        return values[torch.from_numpy(index)]
    return values[index] if isinstance(values, np.ndarray) else _safe_indexing(values, index)


def stacked(parts: list[Any]) -> Any:
    """Rows of several pieces of the same kind, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, torch.Tensor) for part in parts):
        return torch.cat(parts)
    if all(is_frame(part) for part in parts):
        series = all(nw.dependencies.is_into_series(part) for part in parts)
        frames = [nw.from_native(part, allow_series=True) for part in parts]
        return nw.concat([part.to_frame() for part in frames] if series else frames).to_native()
    return np.concatenate([np.asarray(part) for part in parts])
