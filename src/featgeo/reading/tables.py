"""Tables by where they are: binary files, frames in memory; as Arrow record batches, as often as wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from featgeo.reading.arrow import ipc, pa, parquet
from featgeo.reading.delimited import check_names

TEXT = pa.string()
BATCH_ROWS = 65_536  # of frames and of binary files: memory of a batch, beside that of the text blocks of CSV


class Table(Protocol):
    """Something with columns that can be read again and again."""

    @property
    def types(self) -> Mapping[str, Any]:
        """The Arrow type of each column, in order."""

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`; texts of those that are `numeric` may come as numbers."""


class ParquetFile:
    """A Parquet file."""

    def __init__(self, path: str) -> None:
        self._path = path
        schema = self._open().schema_arrow
        self.types = by_name(schema, repr(path))

    def _open(self, texts: Sequence[str] = ()) -> Any:
        try:
            # A buffered stream of each column: a row group, which may be the whole file, is never in memory.
            return parquet.ParquetFile(self._path, read_dictionary=list(texts), pre_buffer=False, buffer_size=1 << 20)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(self._damaged(error)) from error

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        texts = [name for name in wanted if family_of(self.types[name]) == "text"]
        with self._open(texts) as file:
            try:
                yield from file.iter_batches(BATCH_ROWS, columns=list(wanted), use_threads=False)
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(self._damaged(error)) from error

    def _damaged(self, error: Exception) -> str:
        return f"{self._path!r} is no complete Parquet file: it may be cut short ({str(error)[:150]}). Fetch it again."


class ArrowFile:
    """An Arrow file, or a stream that was written to one."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._open() as file:
            self.types = by_name(file.schema, repr(path))

    def _open(self) -> Any:
        try:
            with open(self._path, "rb") as file:
                is_stream = not file.read(6).startswith(b"ARROW1")
            opened = pa.OSFile(self._path)
            return ipc.open_stream(opened) if is_stream else ipc.open_file(opened)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(
                f"{self._path!r} is no complete Arrow file ({str(error)[:150]}). Write it again."
            ) from error

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        with self._open() as file:
            count = getattr(file, "num_record_batches", None)
            try:
                batches = file if count is None else map(file.get_batch, range(count))
                yield from _gathered(batch.select(list(wanted)) for batch in batches)
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(
                    f"{self._path!r} is damaged or cut short ({str(error)[:150]}). Write it again."
                ) from error


class ArrowTable:
    """An Arrow table in memory."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.types = by_name(table.schema, "the table")

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        yield from _gathered(self._table.select(list(wanted)).to_batches(max_chunksize=BATCH_ROWS))


class Frame:
    """A frame that narwhals knows, such as one of polars: slices of it become Arrow tables."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.types = by_name(frame.head(1).to_arrow().schema, "the frame")

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        chosen = self._frame.select(list(wanted))
        for start in range(0, len(chosen), BATCH_ROWS):
            yield from chosen[start : start + BATCH_ROWS].to_arrow().combine_chunks().to_batches()


class PandasFrame:
    """A frame of pandas: slices of it become Arrow arrays, numbers without a copy.

    Columns of Python objects get one type from all of their values, not one in each slice: their own where all are of
    one kind, and text where they are not.

    Args:
        frame: The frame.
        promised: The types of its columns where it is a part of a larger one: in objects, texts are read as such.

    Attributes:
        types: Of the columns as they are read.
        found: Of the columns as this frame has them.
    """

    def __init__(self, frame: Any, promised: Mapping[str, Any] | None = None) -> None:
        self._frame = frame
        names = [str(name) for name in frame.columns]
        check_names(names, "the frame")
        self._places = {name: place for place, name in enumerate(names)}
        self.found = {name: self._type(name) for name in names}
        self.types = {**self.found}
        for name in promised or ():
            if promised and frame.iloc[:, self._places[name]].dtype == object:
                self.found[name] = self.types[name] = promised[name]

    def _type(self, name: str) -> Any:
        column = self._frame.iloc[:, self._places[name]]
        if column.dtype != object:
            return self._array(column.iloc[:1], None, name).type
        from pandas.api.types import infer_dtype  # type: ignore[import-untyped]

        kind = infer_dtype(column, skipna=True)
        known = {"integer": pa.float64(), "floating": pa.float64(), "mixed-integer-float": pa.float64()}
        known |= {"decimal": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "empty": pa.null()}
        known |= {"datetime": pa.timestamp("us"), "date": pa.date32()}
        if kind in known:
            return known[kind]
        first = next((value for value in column if isinstance(value, list | dict | tuple | set | bytes)), None)
        if first is not None or kind not in ("mixed", "mixed-integer"):
            refuse_nested(name, type(first).__name__ if first is not None else kind, "the frame")
        return pa.string()

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        columns = {name: _as_stored(self._frame.iloc[:, self._places[name]]) for name in wanted}
        for start in range(0, len(self._frame), BATCH_ROWS):
            rows = slice(start, start + BATCH_ROWS)
            arrays = [self._array(column[rows], self.types[name], name) for name, column in columns.items()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(wanted))

    @staticmethod
    def _array(column: Any, kind: Any, name: str) -> Any:
        if isinstance(column, pa.ChunkedArray):
            return _whole(column)
        asked = kind if column.dtype == object else None
        if asked == pa.string():
            column = column.map(str, na_action="ignore")
        elif asked == pa.float64():
            column = column.astype(float)  # whole numbers of any size, and decimals
        try:
            array = pa.array(column, type=asked, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise ValueError(
                f"Column {name!r} of the frame cannot be read ({str(error)[:150]}). Convert it, or leave it out by "
                "`columns`."
            ) from error
        return _whole(array)


def _as_stored(column: Any) -> Any:
    """What a column of pandas rests on, where slices of it cost nothing: NumPy's numbers, Arrow's texts; or itself."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column.to_numpy()
    if getattr(column.dtype, "storage", None) == "pyarrow":
        return column.array.__arrow_array__()
    return column.iloc


def _whole(array: Any) -> Any:
    """An array in one piece; one that is in one piece is not copied."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in batches of about one size: many small ones would take long, and large ones much memory."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= BATCH_ROWS:
            yield from _cut(held)
            held = []
    yield from _cut(held)


def _cut(held: list[Any]) -> Iterator[Any]:
    joined = held if len(held) < 2 else pa.Table.from_batches(held).combine_chunks().to_batches()
    for batch in joined:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def by_name(schema: Any, what: str) -> dict[str, Any]:
    """The types of a schema, whose names must be right."""
    check_names(schema.names, what)
    return dict(zip(schema.names, schema.types, strict=True))


def refuse_nested(name: str, kind: Any, what: str) -> None:
    """Refuse types that are no single value a row."""
    inner = kind.value_type if isinstance(kind, pa.DataType) and pa.types.is_dictionary(kind) else kind
    known = isinstance(inner, pa.DataType) and family_of(inner) != "other"
    if not known:
        raise ValueError(
            f"Columns must hold numbers, texts, booleans, dates or times, and {name!r} of {what} holds {kind}. Take "
            "what is wanted out of it into columns of their own, or choose others by `columns`."
        )


def family_of(kind: Any) -> str:
    """What types of several files of one table must share; "other" for those that cannot be explored."""
    types = pa.types
    if types.is_dictionary(kind):
        return family_of(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return family_of(kind.storage_type)
    families = {
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "date": (types.is_date, types.is_timestamp),
    }
    singles = {"boolean": (types.is_boolean,), "time": (types.is_time,), "duration": (types.is_duration,)}
    singles |= {"nothing": (types.is_null,)}
    for family, tests in (families | singles).items():
        if any(test(kind) for test in tests):
            return family
    return "other"
