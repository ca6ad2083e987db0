"""Which rows of a variable are there at all.

A row is missing where every one of its cells is: NaN, None, NaT and the like. One that misses only some of its columns
is there, and what it misses counts as average.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch

from featgeo.features.exact_numbers import missing_in
from featgeo.features.raw import (
    check_kind,
    check_unique_names,
    columns_of,
    is_frame,
    list_as_array,
    plain,
    shape_of,
    taken,
    tensor_of,
)
from featgeo.geometry.validation import as_weights, check_same_rows, shown


def rows_of(values: Any, name: str) -> Any:
    """What a user handed in as something whose rows can be counted and taken."""
    values = plain(values)
    check_kind(values, name)
    if (isinstance(values, np.ndarray | torch.Tensor) and values.ndim) or is_frame(values):
        return values
    if isinstance(values, list | tuple | range):
        return list_as_array(values, name)
    raise ValueError(
        f"{name} must have one row a sample, got {type(values).__name__}. Pass an array, a tensor, a frame, a series "
        "or a list."
    )


def present(values: Any, name: str) -> np.ndarray:
    """Which rows are there, (n,)."""
    if not is_frame(values) and len(shape_of(values, name)) > 2:
        tensor = tensor_of(values, name)
        if not tensor.is_floating_point():
            return np.ones(len(tensor), dtype=bool)
        return ~torch.isnan(tensor.flatten(1)).all(dim=1).numpy()
    columns, _ = columns_of(values, name)
    return ~np.all([missing_in(column.values) for column in columns.values()], axis=0)


def counted(sample_weight: Any, **variables: Any) -> list[Any]:
    """Rows of variables, each as often as its weight says; None stays None.

    Args:
        sample_weight: A whole number for each row, (n,); None for 1.
        variables: Rows by name, or None.
    """
    if sample_weight is None:
        return list(variables.values())
    rows = {name: None if values is None else rows_of(values, name) for name, values in variables.items()}
    there = {name: part for name, part in rows.items() if part is not None}
    check_same_rows(**there)
    index = repeats(sample_weight, len(next(iter(there.values()))))
    return [None if part is None else taken(part, index) for part in rows.values()]


def repeats(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Positions of rows, each as often as it counts: a weight of 2 is the row twice, of 0 no row at all."""
    weights = as_weights(sample_weight, n_rows, "sample_weight")
    if (weights % 1).any() or not weights.any():
        raise ValueError(
            f"`sample_weight` must count rows: whole numbers, not all zero, got {shown(weights.tolist())}. What is "
            "known of a dependence grows with the rows, and half a row is none. Pass counts, or leave it out."
        )
    return np.repeat(np.arange(n_rows), weights.astype(np.int64))


def stacked(parts: list[Any], name: str) -> Any:
    """Rows of several pieces of the same kind, one after the other: of data sets, or of batches."""
    if len(parts) == 1:
        return parts[0]
    if all(nw.dependencies.is_into_series(part) for part in parts):
        frames = [nw.from_native(part, series_only=True).alias(name).to_frame().to_native() for part in parts]
        return nw.from_native(stacked(frames, name), eager_only=True)[name].to_native()
    if all(nw.dependencies.is_into_dataframe(part) for part in parts):
        for part in parts:
            check_unique_names(part, name)
        frames = [nw.from_native(part, eager_only=True) for part in parts]
        first = list(frames[0].columns)
        if any(set(frame.columns) != set(first) for frame in frames):
            columns = [list(frame.columns) for frame in frames]
            raise ValueError(
                f"{name} must have the same columns in all data sets or batches, got {columns}. Rename or drop some."
            )
        return _one_frame([frame.select(first) for frame in frames], name)
    if all(isinstance(part, torch.Tensor) for part in parts) and len({part.shape[1:] for part in parts}) == 1:
        return torch.cat([part.detach().cpu() for part in parts])
    arrays = [np.asarray(part.cpu() if isinstance(part, torch.Tensor) else part) for part in parts]
    shapes = {array.shape[1:] for array in arrays}
    texts = {array.dtype.kind in "OUS" for array in arrays}
    if len(shapes) > 1 or len(texts) > 1:
        kinds = [f"{array.dtype} of shape {array.shape}" for array in arrays]
        raise ValueError(f"{name} must be of one kind in all data sets or batches, got {kinds}. Convert them.")
    return np.concatenate(arrays)


def _one_frame(frames: list[Any], name: str) -> Any:
    """Frames of the same columns, one after the other; columns of categories keep all of them."""
    try:
        joined = nw.concat(frames, how="vertical")
    except Exception as error:  # each library has its own for columns of types that do not fit
        types = [dict(frame.schema) for frame in frames]
        raise ValueError(
            f"{name} must have columns of the same types in all data sets or batches, got {types}."
        ) from error
    declared = [key for key, dtype in frames[0].schema.items() if isinstance(dtype, nw.Categorical | nw.Enum)]
    lost = [key for key in declared if not isinstance(joined.schema[key], nw.Categorical | nw.Enum)]
    return (
        joined.with_columns(nw.col(key).cast(nw.Categorical) for key in lost).to_native()
        if lost
        else joined.to_native()
    )
