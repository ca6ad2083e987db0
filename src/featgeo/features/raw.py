"""What users hand in, as numpy columns or torch tensors: arrays, lists, tensors, frames and series of any library."""

from __future__ import annotations

from datetime import date
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch
from scipy import sparse
from sklearn.utils import check_array


def plain(values: Any) -> Any:
    """Things that can become arrays, such as those of other libraries, as arrays."""
    known = isinstance(values, np.ndarray | torch.Tensor) or sparse.issparse(values) or is_frame(values)
    return np.asarray(values) if hasattr(values, "__array__") and not known else values


def dimensions(values: Any) -> int:
    """1 for a vector or series, 2 for a table or frame, more for tensors."""
    if nw.dependencies.is_into_dataframe(values):
        return 2
    return 1 if nw.dependencies.is_into_series(values) else np.ndim(plain(values))


def is_frame(values: Any) -> bool:
    """Whether it is a data frame or a series of a library that narwhals knows."""
    return nw.dependencies.is_into_dataframe(values) or nw.dependencies.is_into_series(values)


def arrays_of(values: Any, name: str) -> tuple[dict[str, np.ndarray], bool]:
    """The columns of a table by name, and whether they came with names."""
    if nw.dependencies.is_into_dataframe(values):
        frame = nw.from_native(values, eager_only=True)
        columns = {str(key): _series_values(frame[:, i]) for i, key in enumerate(frame.columns)}
        if len(columns) != len(frame.columns):
            raise ValueError(f"{name} has columns of the same name, {list(frame.columns)}. Rename them.")
        named, n = True, len(frame)
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        columns, named, n = {str(series.name or name): _series_values(series)}, False, len(series)
    else:
        array = _as_array(values, name)
        array = array[:, None] if array.ndim == 1 else array
        columns, named, n = {str(j): array[:, j] for j in range(array.shape[1])}, False, len(array)
    if not columns:
        raise ValueError(f"{name} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n == 0:
        raise ValueError(f"{name} has 0 sample(s) while a minimum of 1 is required. Pass at least one row.")
    return columns, named


def declared_categories(values: Any) -> dict[str, list[Any]]:
    """Columns that are declared to hold categories, whatever these are, with the categories in the declared order."""
    if not nw.dependencies.is_into_dataframe(values):
        return {}
    frame = nw.from_native(values, eager_only=True)
    columns = {str(key): frame[:, i] for i, key in enumerate(frame.columns)}
    declared = {key: column for key, column in columns.items() if isinstance(column.dtype, nw.Categorical | nw.Enum)}
    return {key: column.cat.get_categories().to_list() for key, column in declared.items()}


def _series_values(series: Any) -> np.ndarray:
    if isinstance(series.dtype, nw.Datetime | nw.Date):
        return series.to_numpy().astype("datetime64[us]")
    if series.dtype.is_numeric() or isinstance(series.dtype, nw.Boolean):
        array = series.to_numpy()
        if array.dtype == object:  # whole numbers or truth values with missing ones among them
            array = np.array([np.nan if is_missing(value) else float(value) for value in array])
        return array
    if isinstance(series.dtype, nw.Duration):
        return series.to_numpy().astype("timedelta64[us]")
    return _dates(np.asarray(series.to_list(), dtype=object))


def _as_array(values: Any, name: str) -> np.ndarray:
    """An array of one or two dimensions; numbers, text, dates or objects."""
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix, and featgeo reads dense columns. Convert it with .toarray().")
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name} is a masked array. Fill the masked values with NaN first.")
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    array = _dates(values if isinstance(values, np.ndarray) else list_as_array(values))
    if array.dtype.kind in "mM":
        return array
    if array.ndim == 0:
        raise ValueError(f"{name} must have one row a sample, got a single value {values!r}. Pass an array or a frame.")
    return check_array(
        array,
        dtype=None,
        ensure_all_finite=False,
        ensure_2d=False,
        ensure_min_features=0,
        ensure_min_samples=0,
        input_name=name,
    )


def _dates(array: np.ndarray) -> np.ndarray:
    """Dates of Python as those of numpy; other things as they are."""
    if array.dtype != object:
        return array
    values = array.ravel().tolist()
    dates = any(isinstance(value, date) for value in values) and all(isinstance(value, date | None) for value in values)
    return array.astype("datetime64[us]") if dates else array


def list_as_array(values: Any) -> np.ndarray:
    """A list as an array that keeps what it held."""
    array = np.asarray(values)
    # Left to itself numpy would turn numbers among texts, and a missing label, into text.
    return np.asarray(values, dtype=object) if array.dtype.kind in "US" else array


def as_tensor(values: Any, name: str) -> torch.Tensor:
    """Images, sequences and the like, checked."""
    tensor = values.detach() if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
    if tensor.is_complex():
        raise ValueError(f"{name} must hold real numbers, got {tensor.dtype}. Pass real and imaginary parts.")
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        raise ValueError(f"{name} holds NaN or infinite values. Impute them first: networks read every value.")
    return tensor


def is_missing(value: Any) -> bool:
    """Whether a single value stands for nothing: None, NaN, and the like of pandas."""
    return (
        value is None
        or value is getattr(nw, "NA", object())
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )
