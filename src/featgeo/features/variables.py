"""Variables as users hand them in, read once into columns of numbers and of labels, or into a tensor.

A variable is an array, a tensor, a data frame, a series or a list. Up to two dimensions it is a *table*: each column
holds numbers (NaN stands for a missing value), or labels, or dates, which become numbers. With three or more dimensions
it is a *tensor*: images or sequences, for networks.

What was seen in the fit is kept: the same columns in the same order are due later. A label that was not seen then has
code -1, and every space answers it with what is true on average: it says nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array

from featgeo.geometry.validation import Array

UNKNOWN = -1
_DATE_PARTS = ("month", "weekday", "hour")


@dataclass(frozen=True)
class Column:
    """What a column held in the fit.

    Attributes:
        name: Its name, or its position as text.
        kind: Numbers, labels or dates.
        categories: For labels, those seen, in order.
        missing: Whether some values were missing.
        parts: For dates, the recurring parts that vary (month, weekday, hour), each a number of its own.
    """

    name: str
    kind: Literal["number", "label", "date"]
    categories: tuple[Any, ...] = ()
    missing: bool = False
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers and of coded labels.

    Attributes:
        numbers: Shape (n, p), NaN where missing.
        codes: Shape (n, q), positions among the categories; -1 where unknown.
    """

    numbers: Array
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Variable:
    """How a variable was given in the fit, and is due afterwards.

    Attributes:
        name: What messages call it.
        columns: Its columns, for a table.
        shape: Shape of one row, for a tensor; () for a table.
        named: Whether the columns came with names.
    """

    name: str
    columns: tuple[Column, ...] = ()
    shape: tuple[int, ...] = ()
    named: bool = False

    @classmethod
    def seen(cls, values: Any, name: str) -> Variable:
        """Learn the columns, or the shape, of a variable."""
        values = plain(values)
        shape = np.shape(values) if not _is_frame(values) else ()
        if len(shape) > 2:
            _as_tensor(values, name)
            return cls(name, shape=tuple(shape[1:]))
        arrays, named = _arrays(values, name)
        declared = _categories(values)
        columns = tuple(_column(key, array, name, declared.get(key)) for key, array in arrays.items())
        return cls(name, columns, named=named)

    @property
    def is_tensor(self) -> bool:
        """Whether rows are tensors of one or more dimensions, and not columns."""
        return bool(self.shape)

    @property
    def numbers(self) -> list[Column]:
        """The columns of numbers and dates."""
        return [column for column in self.columns if column.kind != "label"]

    @property
    def labels(self) -> list[Column]:
        """The columns of labels."""
        return [column for column in self.columns if column.kind == "label"]

    def rows(self, values: Any) -> Rows:
        """Rows of this variable, checked against what the fit saw."""
        return Rows(self, plain(values))

    def read(self, values: Any) -> Table:
        """The columns of the given rows as numbers and codes."""
        arrays, named = _arrays(values, self.name)
        if self.named and named and set(arrays) != {column.name for column in self.columns}:
            raise ValueError(
                f"{self.name} must have the columns of the fit, {[column.name for column in self.columns]}, "
                f"got {list(arrays)}. Add the missing ones and drop the others."
            )
        if len(arrays) != len(self.columns):
            raise ValueError(
                f"{self.name} has {len(arrays)} features, but the fit had {len(self.columns)}. Pass the same columns. "
                "Reshape your data with .reshape(1, -1) if it is a single row."
            )
        in_order = [arrays[column.name] for column in self.columns] if self.named and named else list(arrays.values())
        numbers, codes = [], []
        for column, array in zip(self.columns, in_order, strict=True):
            if column.kind == "label":
                codes.append(_codes(column, array, self.name))
            else:
                numbers += _as_numbers(column, array, self.name)
        n = len(in_order[0])
        return Table(
            np.stack(numbers, axis=1) if numbers else np.empty((n, 0)),
            np.stack(codes, axis=1) if codes else np.empty((n, 0), dtype=np.int64),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a variable, as each space wants to see them.

    Attributes:
        variable: How the variable was given in the fit.
        raw: The rows as they came.
        memo: What was already computed of these rows and serves several spaces.
    """

    variable: Variable
    raw: Any
    memo: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tensor) if self.variable.is_tensor else len(self.table)

    @cached_property
    def table(self) -> Table:
        """Numbers and codes; for variables that are tables."""
        if self.variable.is_tensor:
            raise ValueError(
                f"{self.variable.name} has rows of shape {self.variable.shape}, which only networks read. Use the "
                "space 'image' or 'sequence', a torch module, or flatten the rows."
            )
        return self.variable.read(self.raw)

    @cached_property
    def tensor(self) -> torch.Tensor:
        """The values as they came, as a float tensor; for networks."""
        if not self.variable.is_tensor:
            table = self.table
            if table.codes.shape[1] or not np.isfinite(table.numbers).all():
                raise ValueError(
                    f"{self.variable.name} holds labels or missing values, which a torch module cannot read as they "
                    "are. Use the space 'network', which encodes them."
                )
            return torch.from_numpy(table.numbers)
        tensor = _as_tensor(self.raw, self.variable.name)
        if tuple(tensor.shape[1:]) != self.variable.shape:
            raise ValueError(
                f"{self.variable.name} must have rows of shape {self.variable.shape} as in the fit, got "
                f"{tuple(tensor.shape[1:])}."
            )
        return tensor

    def take(self, index: np.ndarray | slice) -> Rows:
        """Some of the rows."""
        if isinstance(self.raw, torch.Tensor | np.ndarray):
            part = Rows(self.variable, self.raw[torch.from_numpy(index) if _selects(self.raw, index) else index])
        else:
            where = np.arange(len(self))[index]
            part = Rows(self.variable, _safe_indexing(self.raw, where))
        if "table" in self.__dict__:  # already read: do not read twice
            part.__dict__["table"] = Table(self.table.numbers[index], self.table.codes[index])
        if "tensor" in self.__dict__:
            part.__dict__["tensor"] = self.tensor[torch.from_numpy(index) if isinstance(index, np.ndarray) else index]
        return part


def plain(values: Any) -> Any:
    """Things that can become arrays, such as those of other libraries, as arrays."""
    known = isinstance(values, np.ndarray | torch.Tensor) or sparse.issparse(values) or _is_frame(values)
    return np.asarray(values) if hasattr(values, "__array__") and not known else values


def dimensions(values: Any) -> int:
    """1 for a vector or series, 2 for a table or frame, more for tensors."""
    if nw.dependencies.is_into_dataframe(values):
        return 2
    return 1 if nw.dependencies.is_into_series(values) else np.ndim(plain(values))


def _selects(raw: Any, index: np.ndarray | slice) -> bool:
    return isinstance(raw, torch.Tensor) and isinstance(index, np.ndarray)


def _is_frame(values: Any) -> bool:
    return nw.dependencies.is_into_dataframe(values) or nw.dependencies.is_into_series(values)


def _arrays(values: Any, name: str) -> tuple[dict[str, np.ndarray], bool]:
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


def _categories(values: Any) -> dict[str, list[Any]]:
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
            array = np.array([np.nan if _is_missing(value) else float(value) for value in array])
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
    array = _dates(values if isinstance(values, np.ndarray) else _list_as_array(values))
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


def _list_as_array(values: Any) -> np.ndarray:
    array = np.asarray(values)
    # Left to itself numpy would turn numbers among texts, and a missing label, into text.
    return np.asarray(values, dtype=object) if array.dtype.kind in "US" else array


def _as_tensor(values: Any, name: str) -> torch.Tensor:
    tensor = values.detach() if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
    if tensor.is_complex():
        raise ValueError(f"{name} must hold real numbers, got {tensor.dtype}. Pass real and imaginary parts.")
    if tensor.is_floating_point() and not torch.isfinite(tensor).all():
        raise ValueError(f"{name} holds NaN or infinite values. Impute them first: networks read every value.")
    return tensor


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or value is getattr(nw, "NA", object())
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _column(key: str, array: np.ndarray, name: str, categories: list[Any] | None = None) -> Column:
    if array.dtype.kind == "M":
        days = array[~np.isnat(array)]
        parts = tuple(part for part in _DATE_PARTS if len(np.unique(_date_part(days, part))) > 1)
        return Column(key, "date", missing=bool(np.isnat(array).any()), parts=parts)
    if array.dtype.kind in "biuf":
        values = array.astype(np.float64)
        _check_finite(values, key, name)
        return Column(key, "number", missing=bool(np.isnan(values).any()))
    if array.dtype.kind in "US":
        return Column(key, "label", tuple(np.unique(array).tolist()))
    if array.dtype.kind == "m":
        return Column(key, "number", missing=bool(np.isnat(array).any()))
    present = [value for value in array.tolist() if not _is_missing(value)]
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present)
    if present and numeric and categories is None:
        return _column(key, _object_numbers(array), name)
    for value in present:
        if not isinstance(value, str | bytes | int | float | bool | np.generic):
            raise TypeError(
                f"Column {key!r} of {name} holds {value!r}: each argument must be a string or a number. "
                "Convert the values first."
            )
    seen = set(present)
    order = _sorted(seen) if categories is None else [label for label in categories if label in seen]
    return Column(key, "label", tuple(order), missing=len(present) < len(array))


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # texts and numbers together
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _object_numbers(array: np.ndarray) -> Array:
    return np.array([np.nan if _is_missing(value) else float(value) for value in array.tolist()])


def _check_finite(values: Array, key: str, name: str) -> None:
    if np.isinf(values).any():
        raise ValueError(
            f"Column {key!r} of {name} holds infinite values (inf). Replace them by NaN where they mean missing, or by "
            "the largest finite value."
        )


def _codes(column: Column, array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind in "iuf" and all(isinstance(label, str) for label in column.categories):
        raise ValueError(
            f"Column {column.name!r} of {name} held labels such as {column.categories[:1]} in the fit, got numbers. "
            "Convert them to the same labels."
        )
    position = {label: i for i, label in enumerate(column.categories)}
    unknown = len(position) if column.missing else UNKNOWN  # where values missed in the fit, missing is a label
    values = array.tolist()
    return np.array([unknown if _is_missing(v) else position.get(v, UNKNOWN) for v in values], dtype=np.int64)


def _as_numbers(column: Column, array: np.ndarray, name: str) -> list[Array]:
    if column.kind == "date":
        if array.dtype.kind != "M":
            raise ValueError(f"Column {column.name!r} of {name} held dates in the fit, got {array.dtype}. Pass dates.")
        whole = (array.astype("datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        return [whole, *(_date_part(array, part) for part in column.parts)]
    if array.dtype.kind == "m":
        array = array / np.timedelta64(1, "s")
    if array.dtype.kind == "O":
        try:
            array = _object_numbers(array)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {column.name!r} of {name} held numbers in the fit, got {error}. Convert it to numbers."
            ) from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"Column {column.name!r} of {name} held numbers in the fit, got dtype {array.dtype}. Convert it to numbers."
        )
    values = array.astype(np.float64)
    _check_finite(values, column.name, name)
    if np.isnan(values).any() and not column.missing:
        warnings.warn(
            f"Column {column.name!r} of {name} has missing values, and had none in the fit. They count as average.",
            stacklevel=2,
        )
    return [values]


def _date_part(array: np.ndarray, part: str) -> Array:
    missing = np.isnat(array)
    if part == "month":
        value = array.astype("datetime64[M]").astype(np.int64) % 12 + 1
    elif part == "weekday":  # 1 January 1970 was a Thursday; Monday is 0
        value = (array.astype("datetime64[D]").astype(np.int64) + 3) % 7
    else:
        value = array.astype("datetime64[h]").astype(np.int64) % 24
    return np.where(missing, np.nan, value.astype(np.float64))


def distinct(table: Table, at_most: int) -> np.ndarray | None:
    """The distinct rows of a table, sorted, (m, p + q) with NaN as inf; None where there are more than `at_most`."""
    keys = symbol_keys(table)
    head = np.unique(keys[:4096], axis=0)  # most tables that are too rich show it early
    if len(head) > at_most:
        return None
    symbols = np.unique(keys, axis=0)
    return symbols if len(symbols) <= at_most else None


def symbol_keys(table: Table) -> Array:
    """Each row as numbers that compare: NaN, which equals nothing, becomes infinity, which never comes otherwise."""
    return np.hstack([np.where(np.isnan(table.numbers), np.inf, table.numbers), table.codes])
