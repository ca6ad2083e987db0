"""Which rows of a variable are there at all.

A row is missing where every one of its cells is: NaN, None, NaT and the like. One that misses only some of its columns
is there, and what it misses counts as average.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing

from featgeo.features.raw import arrays_of, is_frame, is_missing, list_as_array, plain


def rows_of(values: Any, name: str) -> Any:
    """What a user handed in as something whose rows can be counted and taken."""
    values = plain(values)
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix, and featgeo reads dense columns. Convert it with .toarray().")
    if (isinstance(values, np.ndarray | torch.Tensor) and values.ndim) or is_frame(values):
        return values
    if isinstance(values, list | tuple):
        return list_as_array(values)
    raise ValueError(
        f"{name} must have one row a sample, got {type(values).__name__}. Pass an array, a tensor, a frame, a series "
        "or a list."
    )


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


def stacked(parts: list[Any], name: str) -> Any:
    """Rows of several pieces of the same kind, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if all(nw.dependencies.is_into_dataframe(part) for part in parts):
        frames = [nw.from_native(part, eager_only=True) for part in parts]
        first = list(frames[0].columns)
        if any(set(frame.columns) != set(first) for frame in frames):
            raise ValueError(
                f"{name} must have the same columns in all data sets, got {[list(f.columns) for f in frames]}."
            )
        return nw.concat([frame.select(first) for frame in frames], how="vertical").to_native()
    arrays = [np.asarray(part.cpu() if isinstance(part, torch.Tensor) else part) for part in parts]
    shapes = {array.shape[1:] for array in arrays}
    texts = {array.dtype.kind in "OUS" for array in arrays}
    if len(shapes) > 1 or len(texts) > 1:
        kinds = [f"{array.dtype} of shape {array.shape}" for array in arrays]
        raise ValueError(f"{name} must be of one kind in all data sets, got {kinds}. Convert them.")
    return np.concatenate(arrays)
