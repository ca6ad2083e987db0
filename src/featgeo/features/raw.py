"""What users hand in, as numpy columns or torch tensors: arrays, lists, tensors, frames and series of any library."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing

from featgeo.features.exact_numbers import ALL_EXACT, is_missing
from featgeo.geometry.validation import check_tensor

REAL = "Pass real and imaginary parts as columns of their own."


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as it came.

    Attributes:
        values: Of a numpy dtype of numbers, texts, dates (in microseconds) or time spans; or objects.
        categories: Those that it is declared to hold, in order; None where it is not declared to hold any.
        zoned: For dates, whether they came with a time zone; they are then in universal time.
    """

    values: np.ndarray
    categories: tuple[Any, ...] | None = None
    zoned: bool = False


def plain(values: Any) -> Any:
    """Things that can become arrays, such as those of other libraries, as arrays."""
    known = isinstance(values, np.ndarray | torch.Tensor) or sparse.issparse(values) or is_frame(values)
    return np.asarray(values) if hasattr(values, "__array__") and not known else values


def dimensions(values: Any) -> int:
    """1 for a vector or series, 2 for a table or frame, more for tensors."""
    if nw.dependencies.is_into_dataframe(values):
        return 2
    if nw.dependencies.is_into_series(values):
        return 1
    return len(shape_of(plain(values), "X"))


def is_frame(values: Any) -> bool:
    """Whether it is a data frame or a series of a library that narwhals knows."""
    return nw.dependencies.is_into_dataframe(values) or nw.dependencies.is_into_series(values)


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """The shape of an array, a tensor or nested lists, which must not be ragged."""
    if nw.dependencies.is_into_series(values):
        return (len(values),)
    return tuple(values.shape if hasattr(values, "shape") else np.shape(list_as_array(values, name)))


def columns_of(values: Any, name: str) -> tuple[dict[str, RawColumn], bool]:
    """The columns of a table by name, and whether they came with names."""
    if nw.dependencies.is_into_dataframe(values):
        check_unique_names(values, name)
        frame = nw.from_native(values, eager_only=True)
        columns = {
            str(key): _of_series(frame[:, i], f"Column {key!r} of {name}") for i, key in enumerate(frame.columns)
        }
        named, n = True, len(frame)
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        columns, named, n = {str(series.name or name): _of_series(series, name)}, False, len(series)
    else:
        array = _as_array(values, name)
        array = array[:, None] if array.ndim == 1 else array
        columns = {str(j): _of_array(array[:, j], f"Column '{j}' of {name}") for j in range(array.shape[1])}
        named, n = False, len(array)
    if not columns:
        raise ValueError(f"{name} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n == 0:
        raise ValueError(f"{name} has 0 sample(s) while a minimum of 1 is required. Pass at least one row.")
    return columns, named


def check_unique_names(frame: Any, name: str) -> None:
    """Refuse a frame in which two columns have the same name as text."""
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns  # pyarrow's columns are values
    repeated = [key for key, count in Counter(map(str, names)).items() if count > 1]
    if repeated:
        raise ValueError(f"{name} has more than one column named {repeated[0]!r}. Rename them, or drop all but one.")


def _of_series(series: Any, what: str) -> RawColumn:
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        categories = tuple(series.cat.get_categories().to_list())
        return RawColumn(_objects(series.to_list()), categories)
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return RawColumn(_in_microseconds(utc.to_numpy(), what), zoned=True)
    if isinstance(dtype, nw.Datetime | nw.Date):
        return RawColumn(_in_microseconds(series.to_numpy(), what))
    if isinstance(dtype, nw.Duration):
        return RawColumn(series.to_numpy().astype("timedelta64[us]"))
    if dtype.is_integer() and series.null_count():  # numpy has no missing whole numbers
        return RawColumn(_objects(series.to_list()))
    if isinstance(dtype, nw.Boolean) and series.null_count():
        return RawColumn(np.array([np.nan if is_missing(value) else float(value) for value in series.to_list()]))
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
        return RawColumn(np.asarray(series.to_numpy()))
    return _of_array(_objects(series.to_list()), what)


def _objects(values: list[Any]) -> np.ndarray:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _as_array(values: Any, name: str) -> np.ndarray:
    """An array of one or two dimensions; numbers, text, dates or objects."""
    check_kind(values, name)
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        plain_float = not values.is_floating_point() or values.dtype in (torch.float16, torch.float32, torch.float64)
        values = (values if plain_float else values.float()).numpy()  # numpy has no bfloat16
    array = np.asarray(values) if isinstance(values, np.ndarray) else list_as_array(values, name)
    if array.ndim == 0:
        raise ValueError(
            f"{name} must have one row a sample, got a single {type(values).__name__}. Pass an array or a frame."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is an array of {array.dtype}. {REAL}")
    if array.dtype.kind == "V":
        raise ValueError(
            f"{name} is a structured array, of {array.dtype}. Pass a data frame, such as pandas.DataFrame(values), or "
            "a plain array of its columns."
        )
    return array if array.dtype.kind != "T" else array.astype(object)


def check_kind(values: Any, name: str) -> None:
    """Refuse arrays whose values cannot be read as they are: sparse, masked, or on no device."""
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix, and featgeo reads dense columns. Convert it with .toarray().")
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name} is a masked array. Fill the masked values with NaN first.")
    if isinstance(values, torch.Tensor):
        check_tensor(values, name)


def _of_array(array: np.ndarray, what: str) -> RawColumn:
    """Dates and time spans of Python as those of numpy; other things as they are."""
    if array.dtype.kind == "M":
        return RawColumn(_in_microseconds(array, what))
    if array.dtype != object:
        return RawColumn(array)
    present = [value for value in array.tolist() if not is_missing(value)]
    if present and all(isinstance(value, date | np.datetime64) for value in present):
        zones = {getattr(value, "tzinfo", None) is not None for value in present}
        if len(zones) > 1:
            raise ValueError(f"{what} holds dates with and without a time zone. Give all of them one, or none.")
        dates = np.array(
            [np.datetime64("NaT") if is_missing(v) else _date(v) for v in array.tolist()], "datetime64[us]"
        )
        return RawColumn(dates, zoned=zones == {True})
    if present and all(isinstance(value, timedelta | np.timedelta64) for value in present):
        spans = [np.timedelta64("NaT") if is_missing(value) else value for value in array.tolist()]
        return RawColumn(np.array(spans, "timedelta64[us]"))
    return RawColumn(array)


def _date(value: Any) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None) if getattr(value, "tzinfo", None) else value


def _in_microseconds(array: np.ndarray, what: str) -> np.ndarray:
    """Dates in the unit that they are computed with, which must hold them and tell them apart."""
    dates = array.astype("datetime64[us]")
    if array.dtype.kind != "M":
        return dates
    known = ~np.isnat(array)
    if (dates[known].astype(array.dtype) != array[known]).any() and (
        np.datetime_data(array.dtype)[0] not in ("ns", "ps", "fs", "as")
        or len(np.unique(dates[known])) < len(np.unique(array[known]))
    ):
        raise ValueError(
            f"{what} holds dates that microseconds cannot tell apart, or beyond the year 290,000. Pass the time since "
            "the first of them, as a time span or a number."
        )
    return dates


def taken(values: Any, index: np.ndarray | slice) -> Any:
    """Some of the rows, as they came."""
    if isinstance(values, torch.Tensor):
        return values[torch.from_numpy(index) if isinstance(index, np.ndarray) else index]
    return values[index] if isinstance(values, np.ndarray) else _safe_indexing(values, np.arange(len(values))[index])


def list_as_array(values: Any, name: str) -> np.ndarray:
    """A list as an array that keeps what it held."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.VisibleDeprecationWarning)
            array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must have rows of the same length, or one value a row, got a list that is no table ({error}). "
            "Make all rows equally long, or pass a data frame."
        ) from error
    # Left to itself numpy would turn numbers among texts, and a missing label, into text; True among numbers into 1;
    # and large whole numbers of either sign into floats.
    changed = array.dtype.kind in "US" or (
        array.dtype.kind in "iuf" and array.ndim == 1 and array.size and _loses_types(values, array)
    )
    return np.asarray(values, dtype=object) if changed else array


def _loses_types(values: Sequence[Any], array: np.ndarray) -> bool:
    types = set(map(type, values))
    if types & {bool, np.bool_}:
        return True
    with np.errstate(invalid="ignore"):
        return array.dtype.kind == "f" and int in types and bool((np.abs(array) >= ALL_EXACT).any())


def as_tensor(values: Any, name: str) -> torch.Tensor:
    """Images, sequences and the like, checked."""
    tensor = tensor_of(values, name)
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        raise ValueError(f"{name} holds NaN or infinite values. Impute them first: networks read every value.")
    return tensor


def tensor_of(values: Any, name: str) -> torch.Tensor:
    """Real numbers of three or more dimensions as a tensor."""
    check_kind(values, name)
    if isinstance(values, torch.Tensor):
        return values.detach()
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}. {REAL}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} of shape {array.shape} must hold numbers, got {array.dtype}. Encode it as numbers.")
    array = array.astype(np.float64) if array.dtype.itemsize > 8 else array.astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(np.ascontiguousarray(array))
