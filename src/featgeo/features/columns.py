"""Columns of a table as users hand them in: whether they hold numbers, labels or dates, and what they hold.

Tables are arrays, lists, tensors, frames and series of any library; a sparse matrix is a dense one while that fits, and
beyond stays as it is, for transformers that can read it. A row is missing where every one of its cells is:
NaN, None, NaT and the like. One that misses only some of its columns is there, and what it misses counts as average.

Numbers of any size are read as floats that tell them apart. A float has 53 binary digits, so that whole numbers beyond
2**53 can become one; and squares of numbers beyond about 1e154, or below 1e-154, are no floats at all. Both are mended
where a column is read: it is kept as (value - origin) / 2**exponent with a whole `origin` and `exponent`, both 0 for
ordinary numbers. Neither costs a digit.

What is learned about a label is learned from the rows that share it. Where next to none do, as of names, keys or
remarks, a column tells nothing of new rows, whose labels are new as well; all that it can do is to make every row its
own explanation. Such texts *identify* rows, and are set aside. Numbers and dates are not labels, and a column that is
declared to hold categories does so.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing

from featgeo.features.dates import DATE_PARTS, TIMES, as_times, date_part, in_microseconds, seconds
from featgeo.geometry.validation import Array, as_weights, check_same_rows, check_tensor, n_rows_in, shown
from featgeo.schema import saved
from featgeo.tuning import in_force

ALL_EXACT = 2**53  # whole numbers up to here are floats
# Sizes that are kept as they are: sums over many rows of products of four such numbers, which fourth moments are made
# of, stay within floats (2**-1074 to 2**1024).
LARGEST, SMALLEST = 2.0**200, 2.0**-200


DENSE_CELLS = 2**26  # of a sparse matrix that is read as a dense one, half a gigabyte: bounds memory
FAMILIES = {"text": str, "bytes": bytes, "truth value": bool | np.bool_, "number": Real | Decimal}


def family_of(value: Any) -> str | None:
    """What kind of number or label a single value is, the first that fits; None for what is none."""
    return next((family for family, kind in FAMILIES.items() if isinstance(value, kind)), None)


def is_missing(value: Any) -> bool:
    """Whether a single value stands for nothing: None, NaN, NaT and the like of pandas."""
    if isinstance(value, str):  # the usual case
        return False
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, Real | Decimal | date | np.generic) and bool(value != value)


def missing_in(values: np.ndarray) -> np.ndarray:
    """Which values of an array stand for nothing, (n,)."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    if values.dtype.kind == "f" and not math.isnan(_extremes(values)[1]):
        return np.zeros(values.shape, dtype=bool)
    return np.asarray(values != values)


def _extremes(numbers: Array) -> tuple[float, float]:
    """The least and the largest of some numbers and 0; both NaN where one is missing."""
    if numbers.size and numbers.dtype in (np.float32, np.float64) and _suits_torch(numbers):
        low, high = torch.from_numpy(numbers).aminmax()  # by all threads
        return min(float(low), 0.0), max(float(high), 0.0)
    return float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))


def _suits_torch(array: np.ndarray) -> bool:
    """Whether torch takes an array as it is."""
    forwards = all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
    return forwards and array.flags.writeable and array.dtype.isnative


def units_of(values: np.ndarray, what: str) -> tuple[int, int]:
    """The origin and the exponent that a column is read with.

    Args:
        values: Numbers of any numpy dtype, or objects that are numbers; none missing.
        what: What messages call the column.
    """
    origin = _origin_of(values, what)
    numbers = _shifted(values, origin)
    size = finite_size(numbers, what)
    if size == 0 or SMALLEST <= size <= LARGEST:
        return origin, 0
    exponent = math.frexp(size)[1]
    exponent -= int(math.copysign(math.log2(LARGEST), exponent))  # no further than needed: others may be far smaller
    if len(np.unique(in_units(values, origin, exponent))) < len(np.unique(numbers)):
        raise ValueError(
            f"{what} holds numbers of sizes too far apart, up to {size:g}, to be computed with together. Take their "
            "logarithms, or drop the rows at one end."
        )
    return origin, exponent


def finite_size(numbers: Array, what: str) -> float:
    """The size of the largest number, where all are finite; NaN, which stands for a missing one, where there is any."""
    low, high = _extremes(numbers)
    size = max(high, -low)
    if not math.isfinite(size) and np.isinf(numbers).any():
        raise ValueError(
            f"{what} holds infinite values (inf), or numbers beyond 1e308. Replace them by NaN where they mean "
            "missing, or by the largest finite value."
        )
    return size


def in_units(values: np.ndarray, origin: int, exponent: int) -> Array:
    """Numbers as floats in the units of their column; NaN where they miss, infinite ones stay infinite."""
    numbers = _shifted(values, origin)
    if exponent == 0:
        return numbers
    # A later value may be 1e300 times larger than all of the fit: it is beyond all of them, wherever it is put.
    with np.errstate(over="ignore"):
        return np.where(np.isinf(numbers), numbers, np.nan_to_num(np.ldexp(numbers, -exponent), nan=np.nan))


def _origin_of(values: np.ndarray, what: str) -> int:
    """0 where floats tell the values apart; else the smallest of them, if that helps."""
    if values.dtype.kind in "bf" and values.dtype.itemsize <= 8:
        return 0
    if values.dtype.kind in "iu" and (not len(values) or max(int(values.max()), -int(values.min())) <= ALL_EXACT):
        return 0
    # Objects of one value, such as Decimal("0.10") and Decimal("0.1"), are one number.
    distinct = np.unique(values).astype(object) if values.dtype.kind != "O" else _objects(list(set(values.tolist())))
    numbers = _shifted(distinct, 0)
    if _are_apart(numbers) or any(not isinstance(value, Integral) and math.isinf(value) for value in distinct):
        return 0
    if all(isinstance(value, Integral) for value in distinct) and _are_apart(_shifted(distinct, int(min(distinct)))):
        return int(min(distinct))
    finite_size(numbers, what)
    raise ValueError(
        f"{what} holds different numbers, from {_short(min(distinct))} to {_short(max(distinct))}, that are one and "
        "the same as floats. Subtract what they have in common, or turn them into text if they are labels."
    )


def _are_apart(numbers: Array) -> bool:
    return len(np.unique(numbers)) == len(numbers) and bool(np.isfinite(numbers).all())


def _shifted(values: np.ndarray, origin: int) -> Array:
    if values.dtype.kind != "O" and not origin:
        return values.astype(np.float64, copy=False)
    return np.array([_float(value, origin) for value in values.tolist()], dtype=np.float64)


def _float(value: Any, origin: int) -> float:
    if is_missing(value):
        return math.nan
    try:
        exact = int(value) if isinstance(value, Integral) else Fraction(value) if origin else value
        return float(exact - origin)
    except OverflowError:  # infinite ones, and whole numbers and fractions beyond 1e308
        return math.inf if value > 0 else -math.inf


def _short(value: Any) -> str:
    bits = int(value).bit_length()
    return str(value) if bits < 100 else f"{'-' if value < 0 else ''}2**{bits}"  # Python refuses to print the longest


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as it came.

    Attributes:
        values: Of a numpy dtype of numbers, texts, dates (in microseconds) or time spans; or objects.
        categories: Those that it is declared to hold, in order; None where it is not declared to hold any.
        zoned: For dates, whether they came with a time zone; they are then in universal time.
        block: All columns beside each other, (p, n), where this is a row of a copy of them; nobody else writes to it.
    """

    values: np.ndarray
    categories: tuple[Any, ...] | None = None
    zoned: bool = False
    block: Array | None = None


def is_frame(values: Any) -> bool:
    """Whether it is a data frame or a series of a library that narwhals knows."""
    return nw.dependencies.is_into_dataframe(values) or nw.dependencies.is_into_series(values)


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """The shape of an array, a tensor, a frame or nested lists, which must not be ragged."""
    if nw.dependencies.is_into_series(values):
        return (len(values),)
    return tuple((values if sparse.issparse(values) else rows_of(values, name)).shape)


def columns_of(values: Any, name: str) -> tuple[dict[str, RawColumn], bool]:
    """The columns of a table, as `rows_of` gives it, by name, and whether they came with names."""
    if sparse.issparse(values):
        raise TypeError(
            f"{name} is a sparse matrix of {values.shape[0]:,} x {values.shape[1]:,} cells, too many to be read as "
            "dense columns, as those of the fit were. Pass some rows at a time."
        )
    named = nw.dependencies.is_into_dataframe(values)
    if named:
        check_unique_names(values, name)
        frame = nw.from_native(values, eager_only=True)
        columns = {
            str(key): _of_series(frame[:, i], f"Column {key!r} of {name}") for i, key in enumerate(frame.columns)
        }
    elif nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        columns = {str(series.name or name): _of_series(series, name)}
    else:
        values = _as_array(values, name)
        table = values[:, None] if values.ndim == 1 else values
        columns = _by_column(table, name)
    if not columns:
        raise ValueError(f"{name} has 0 feature(s) (shape=({len(values)}, 0)) while a minimum of 1 is required.")
    if len(values) == 0:
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
        return RawColumn(_objects(series.to_list()), tuple(series.cat.get_categories().to_list()))
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    if zoned:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if isinstance(dtype, nw.Boolean) and series.null_count():
        series = series.cast(nw.Float64)
    # Numpy has no missing whole numbers, and no other types that libraries have.
    is_plain = dtype.is_float() or isinstance(dtype, nw.Boolean | nw.Datetime | nw.Date | nw.Duration)
    if is_plain or (dtype.is_numeric() and not series.null_count()):
        return replace(_of_array(np.asarray(series.to_numpy()), what), zoned=zoned)
    return _of_array(_objects(series.to_list()), what)


def _objects(values: list[Any]) -> np.ndarray:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _as_array(array: Any, name: str) -> np.ndarray:
    """Arrays and tensors as an array of numbers, text, dates or objects."""
    if isinstance(array, torch.Tensor):
        values = array.detach().cpu()
        plain_float = not values.is_floating_point() or values.dtype in (torch.float16, torch.float32, torch.float64)
        array = (values if plain_float else values.float()).numpy()  # numpy has no bfloat16
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} must hold real numbers, got {array.dtype}. Pass real and "
            "imaginary parts as columns of their own."
        )
    if array.dtype.kind == "V":
        raise ValueError(
            f"{name} is a structured array, of {array.dtype}. Pass a data frame, such as pandas.DataFrame(values), or "
            "a plain array of its columns."
        )
    return array if array.dtype.kind != "T" else array.astype(object)


def _by_column(table: np.ndarray, name: str) -> dict[str, RawColumn]:
    """The columns of an array, (n, p); numbers are copied, each beside each other in memory: they are read often."""
    if table.dtype not in (np.float64, np.float32, np.int64) or not _suits_torch(table):
        return {str(j): _of_array(column, f"Column '{j}' of {name}") for j, column in enumerate(table.T)}
    columns = torch.from_numpy(table).T
    block = torch.empty(columns.shape, dtype=columns.dtype)
    for place, column in zip(block, columns, strict=True):  # by all threads; torch transposes whole tables by one
        place.copy_(column)
    return {str(j): RawColumn(column, block=block.numpy()) for j, column in enumerate(block.numpy())}


def beside_each_other(columns: list[Array], block: Array | None = None) -> Array:
    """Columns of numbers, (n,) each, as those of a table, (n, p), that lie together in memory.

    Args:
        columns: The columns.
        block: Where they may lie together already, (p, n).
    """
    if block is not None and len(block) == len(columns) and all(map(_is_same, columns, block)):
        return block.T
    if not all(column.dtype == np.float64 and _suits_torch(column) for column in columns):
        return np.stack(columns).T
    return torch.stack([torch.from_numpy(column) for column in columns]).numpy().T  # by all threads


def _is_same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays are the same place in memory."""
    return array.__array_interface__ == other.__array_interface__


def check_kind(values: Any, name: str) -> None:
    """Refuse arrays whose values cannot be read as they are: masked, or on no device."""
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name} is a masked array. Fill the masked values with NaN first.")
    if isinstance(values, torch.Tensor):
        check_tensor(values, name)


def _of_array(array: np.ndarray, what: str) -> RawColumn:
    """Dates and time spans of Python as those of numpy; other things as they are."""
    if array.dtype.kind == "M":
        return RawColumn(in_microseconds(array, what))
    known = ~missing_in(array) if array.dtype == object else np.zeros(len(array), dtype=bool)
    present = array[known].tolist()
    if present and any(all(isinstance(value, kind) for value in present) for kind in TIMES):
        times, zoned = as_times(present, what)
        array = np.full(len(array), "NaT", times.dtype)
        array[known] = times
        return RawColumn(array, zoned=zoned)
    return RawColumn(array)


def taken(values: Any, index: np.ndarray | slice) -> Any:
    """Some of the rows, as they came."""
    if isinstance(values, torch.Tensor):
        return values[torch.from_numpy(index) if isinstance(index, np.ndarray) else index]
    return (
        values[index]
        if isinstance(values, np.ndarray) or sparse.issparse(values)
        else _safe_indexing(values, np.arange(len(values))[index])
    )


def list_as_array(values: Any, name: str) -> np.ndarray:
    """A list as an array that keeps what it held; things that say how they become arrays by their own way."""
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
    changed = not hasattr(values, "__array__") and (
        array.dtype.kind in "US"
        or (array.dtype.kind in "iuf" and array.ndim == 1 and array.size and _loses_types(values, array))
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
    if isinstance(values, torch.Tensor):
        return values.detach()
    array = _as_array(values, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} of shape {array.shape} must hold numbers, got {array.dtype}. Encode it as numbers.")
    array = array.astype(np.float64) if array.dtype.itemsize > 8 else array.astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(np.ascontiguousarray(array))


def rows_of(values: Any, name: str) -> Any:
    """What a user handed in as something whose rows can be counted and taken: a frame, a tensor or an array.

    Of sparse matrices those that are too large to be arrays stay sparse.
    """
    if sparse.issparse(values):
        fits = values.ndim != 2 or int(np.prod(values.shape, dtype=object)) <= DENSE_CELLS
        return values.toarray() if fits else sparse.csr_array(values)
    check_kind(values, name)
    if is_frame(values):
        return values
    rows = values if isinstance(values, torch.Tensor) else list_as_array(values, name)
    if rows.ndim == 0:
        raise ValueError(
            f"{name} must have one row a sample, got {type(values).__name__}. Pass an array, a tensor, a "
            "frame, a series or a list."
        )
    return rows


def present(values: Any, name: str) -> np.ndarray:
    """Which rows are there, (n,)."""
    if sparse.issparse(values):
        return np.ones(values.shape[0], dtype=bool)
    if len(shape_of(values, name)) > 2:
        return ~torch.isnan(tensor_of(values, name).flatten(1)).all(dim=1).numpy()
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
    index = repeats(sample_weight, n_rows_in(next(iter(there.values()))))
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
    if all(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    if all(nw.dependencies.is_into_series(part) for part in parts):
        frames = [nw.from_native(part, series_only=True).alias(name).to_frame().to_native() for part in parts]
        return nw.from_native(_one_frame(frames, name), eager_only=True)[name].to_native()
    if all(nw.dependencies.is_into_dataframe(part) for part in parts):
        return _one_frame(parts, name)
    in_torch = all(isinstance(part, torch.Tensor) for part in parts)
    arrays: list[Any] = [part.detach().cpu() if isinstance(part, torch.Tensor) else part for part in parts]
    arrays = arrays if in_torch else list(map(np.asarray, arrays))
    if len({(array.shape[1:], not in_torch and array.dtype.kind in "OUS") for array in arrays}) > 1:
        kinds = [f"{array.dtype} of shape {tuple(array.shape)}" for array in arrays]
        raise ValueError(f"{name} must be of one kind in all data sets or batches, got {kinds}. Convert them.")
    return torch.cat(arrays) if in_torch else np.concatenate(arrays)


def _one_frame(parts: list[Any], name: str) -> Any:
    """Frames of the same columns, one after the other; columns of categories keep all of them."""
    for part in parts:
        check_unique_names(part, name)
    frames = [nw.from_native(part, eager_only=True) for part in parts]
    columns = [list(frame.columns) for frame in frames]
    if any(set(names) != set(columns[0]) for names in columns):
        raise ValueError(
            f"{name} must have the same columns in all data sets or batches, got {columns}. Rename or drop some."
        )
    try:
        joined = nw.concat([frame.select(columns[0]) for frame in frames], how="vertical")
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


Label = None | bool | int | float | str | bytes | datetime

UNKNOWN = -1


@saved
@dataclass(frozen=True)
class Column:
    """What a column held in the fit.

    Attributes:
        name: Its name, or its position as text.
        kind: Numbers, labels or dates.
        categories: For labels, those seen, in order.
        missing: Whether some values were missing.
        parts: For dates, the recurring parts that vary (month, weekday, hour), each a number of its own.
        form: For numbers "span" where they are time spans, in seconds; for dates "zoned" where they had a time zone.
        origin: What is subtracted from numbers when they are read, see `featgeo.features.columns`.
        exponent: The power of two that they are divided by then.
    """

    name: str
    kind: Literal["number", "label", "date"]
    categories: tuple[Label, ...] = ()
    missing: bool = False
    parts: tuple[str, ...] = ()
    form: Literal["", "span", "zoned"] = ""
    origin: int = 0
    exponent: int = 0

    @property
    def n_labels(self) -> int:
        """How many labels it has; missing is one where some rows of the fit missed it."""
        return len(self.categories) + self.missing

    def as_came(self, numbers: Array) -> np.ndarray:
        """Numbers, once read, as they were before: floats, or whole numbers that floats would not tell apart."""
        values = np.ldexp(numbers, self.exponent) if self.exponent else numbers
        return np.array([self.origin + int(value) for value in values.tolist()]) if self.origin else values


def column_of(key: str, raw: RawColumn, name: str) -> Column:
    """What a column holds."""
    array, what = raw.values, f"Column {key!r} of {name}"
    is_missing_there = missing_in(array)
    missing = bool(is_missing_there.any())
    known = array[~is_missing_there] if missing else array
    if array.dtype.kind == "M":
        parts = tuple(part for part in DATE_PARTS if len(np.unique(date_part(known, part))) > 1)
        return Column(key, "date", (), missing, parts, "zoned" if raw.zoned else "")
    if array.dtype.kind == "m":
        return Column(key, "number", (), missing, (), "span", *units_of(seconds(known, what), what))
    are_numbers = array.dtype.kind in "biuf" or (len(known) and all(family_of(v) == "number" for v in known.tolist()))
    if raw.categories is None and are_numbers:
        return Column(key, "number", (), missing, (), "", *units_of(known, what))
    found = _labels(known.tolist(), what)
    order = found if raw.categories is None else [label for label in raw.categories if label in set(found)]
    return Column(key, "label", tuple(order), missing)


def _distinct(values: list[Any]) -> list[Any]:
    """The distinct values, of equal ones of different types each; all of them where some are no labels."""
    try:
        return [value for _, value in set(zip(map(type, values), values, strict=True))]
    except TypeError:  # what has no hash is no label
        return values


def _labels(values: list[Any], what: str) -> list[Any]:
    """The distinct labels, in order.

    What is no label is refused, and so are labels of different kinds that Python holds for one, such as True and 1.
    """
    first: dict[Any, Any] = {}
    for value in _distinct(values):
        if family_of(value) is None:
            raise TypeError(
                f"{what} holds {str(value)[:80]} of {type(value).__name__}: each argument must be a string or a "
                "number. Convert the values first."
            )
        other = first.setdefault(value, value)
        if (family_of(value), isinstance(value, Integral)) != (family_of(other), isinstance(other, Integral)):
            raise ValueError(
                f"{what} holds labels that are equal but of different types, such as {value!r} and {other!r}. Convert "
                "them to one type, or to text."
            )
    try:
        return sorted(first)
    except TypeError:  # texts and numbers together
        return sorted(first, key=lambda label: (type(label).__name__, str(label)))


def codes_of(column: Column, raw: RawColumn, name: str) -> np.ndarray:
    """Labels as positions among the categories, (n,); -1 where unknown."""
    values = raw.values.tolist()
    distinct = _distinct(values)
    families = {family_of(value) for value in distinct if not is_missing(value)} - {None}
    known = {family_of(label) for label in column.categories}
    strange = next((value for value in distinct if family_of(value) is None and not is_missing(value)), None)
    if strange is not None or (known and families and not known & families):
        got = f"{type(strange).__name__}s" if strange is not None else " and ".join(f"{family}s" for family in families)
        raise ValueError(
            f"Column {column.name!r} of {name} held labels such as {column.categories[:1]} in the fit, got {got}. "
            "Convert them to the same labels."
        )
    position = {(family_of(label), label): i for i, label in enumerate(column.categories)}
    missing = len(position) if column.missing else UNKNOWN  # where values missed in the fit, missing is a label
    code = {
        (type(value), value): missing if is_missing(value) else position.get((family_of(value), value), UNKNOWN)
        for value in distinct
    }
    return np.array([code[type(value), value] for value in values], dtype=np.int64)


def numbers_of(column: Column, raw: RawColumn, name: str) -> list[Array]:
    """A column of numbers, or a date as days since 1970 and its recurring parts, each (n,)."""
    array, what = raw.values, f"Column {column.name!r} of {name}"
    if column.kind == "date":
        if array.dtype.kind != "M":
            raise ValueError(f"{what} held dates in the fit, got {array.dtype}. Pass dates.")
        if raw.zoned != (column.form == "zoned"):
            had, has = ("with" if zoned else "without" for zoned in (column.form == "zoned", raw.zoned))
            raise ValueError(f"{what} held dates {had} a time zone in the fit, got dates {has} one. Convert them.")
        whole = (array - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return [whole, *(date_part(array, part) for part in column.parts)]
    nothing_there = array.dtype.kind in "fO" and missing_in(array).all()
    if (array.dtype.kind == "m") != (column.form == "span") and not nothing_there:
        had, has = ("time spans", "others") if column.form == "span" else ("numbers", "time spans")
        raise ValueError(f"{what} held {had} in the fit, got {has} ({array.dtype}). Convert them to {had}.")
    if array.dtype.kind == "m":
        array = seconds(array, what)
    _check_numbers(array, what)
    numbers = in_units(array, column.origin, column.exponent)
    if math.isnan(finite_size(numbers, what)) and not column.missing:
        warnings.warn(f"{what} has missing values, and had none in the fit. They count as average.", stacklevel=2)
    return [numbers]


def _check_numbers(array: np.ndarray, what: str) -> None:
    """Texts are never taken for numbers, even where they could be parsed."""
    values = array.tolist() if array.dtype.kind == "O" else []
    strange = next((v for v in values if family_of(v) not in ("number", "truth value") and not is_missing(v)), None)
    if strange is not None or array.dtype.kind not in "biufO":
        got = f"dtype {array.dtype}" if strange is None else f"{str(strange)[:80]!r} of {type(strange).__name__}"
        raise ValueError(f"{what} held numbers in the fit, got {got}. Convert it to numbers.")


def identifiers(columns: tuple[Column, ...], raw: Mapping[str, RawColumn], name: str) -> tuple[int, ...]:
    """Positions of the columns that identify rows, with a warning that names them.

    Where there is no other column, none is set aside: then it is all that the user asks about.

    Args:
        columns: What each column holds.
        raw: The columns as they came.
        name: What messages call the variable.
    """
    own = tuple(
        i
        for i, (column, came) in enumerate(zip(columns, raw.values(), strict=True))
        if column.kind == "label" and came.categories is None and _identifies(column, came, name)
    )
    if not own or len(own) == len(columns):
        return ()
    names = ", ".join(repr(columns[i].name) for i in own)
    warnings.warn(
        f"Nearly every row of {name} has a label of its own in {names}: there is nothing to learn from it for other "
        f"rows, and it is set aside. Drop it from {name}, or declare it categorical to keep it.",
        stacklevel=2,
    )
    return own


def _identifies(column: Column, came: RawColumn, name: str) -> bool:
    """Whether hardly any of the labels that are there is shared by several rows."""
    share = in_force.get().shared_labels
    if not column.missing and len(column.categories) <= (1 - share) * len(came.values):
        return False  # the same, sooner: labels of single rows alone cannot be as many
    codes = codes_of(column, came, name)
    counts = np.bincount(codes[codes < len(column.categories)])
    present = counts.sum()  # fewer than one over the share can all have their own by chance
    return bool(share * present >= 1 and present - np.sum(counts == 1) < share * present)
