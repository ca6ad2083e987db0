"""What users hand in, as Arrow record batches, as often as they are wanted: frames, files of any size, streams.

Memory is set by a batch, never by the file. Nothing is decided here about what columns mean: text stays text, and
`sketch` decides from all of it. What can be read only once (standard input, Arrow streams) is written to a temporary
file first, which is gone with the `Source`.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import narwhals.stable.v1 as nw

from featgeo.explore.arrow import ipc, pa, parquet
from featgeo.explore.delimited import DelimitedFile, check_names

BATCH_ROWS = 65_536  # of frames and of binary files: memory of a batch, beside that of the text blocks of CSV
MOST_COLUMNS = 5_000  # beyond, the tables of all pairs of columns would take hours and tens of gigabytes
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.bz2", ".csv.zst", ".tsv.zst")
BINARY_ENDINGS = (".parquet", ".pq", ".arrow", ".feather")

Columns = Sequence[str] | Callable[[tuple[str, ...]], Sequence[str]] | None


class Table(Protocol):
    """Something with columns that can be read again and again."""

    @property
    def types(self) -> Mapping[str, Any]:
        """The Arrow type of each column, in order."""

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`; texts of those that are `numeric` may come as numbers."""


class Source:
    """A table to be read as often as wanted.

    Args:
        tables: Its parts, one below the other, each with what it is called in messages.
        columns: Which columns to read; None for all; or a function that chooses among the names of all.
        spool: A temporary file that it rests on, removed with it.

    Attributes:
        names: Of the columns that are read, in the order of the table.
        types: Their Arrow types as handed in, by name.
        starts: Numbers of the rows that its parts begin with, once all of it was read.
    """

    def __init__(self, tables: Sequence[tuple[str, Table]], columns: Columns = None, spool: Any = None) -> None:
        self._tables, self._spool, self._all = list(tables), spool, columns is None
        self.starts: tuple[int, ...] = ()
        what, first = self._tables[0]
        self.names = _chosen(tuple(first.types), columns, what)
        self.types = {name: first.types[name] for name in self.names}
        for name, kind in self.types.items():
            _refuse_nested(name, kind, what)
        for other, table in self._tables[1:]:
            self._check_same_columns(other, table)

    def batches(self, columns: Collection[str] | None = None, numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of about 65,536 rows, or of as many as a block of text holds.

        Args:
            columns: Which of `names` to read, in their order; None for all of them.
            numeric: Columns of text that may come as float64 where they hold nothing but numbers: it is faster.

        Yields:
            `pyarrow.RecordBatch`, the same ones in each pass.

        Raises:
            ValueError: If the table has no rows, or what is read is damaged.
            OSError: If a file changed since the source was opened, or cannot be read.
        """
        wanted = [name for name in self.names if columns is None or name in columns]
        rows, starts = 0, []
        for _, table in self._tables:
            starts.append(rows)
            for batch in table.batches(wanted, numeric):
                rows += batch.num_rows
                yield batch
        if not rows:
            raise ValueError(
                f"A table needs rows, and {self._tables[0][0]} has {len(self.names)} columns and none. Check it."
            )
        self.starts = tuple(starts)

    def close(self) -> None:
        """Remove the temporary file, if there is one; nothing can be read any more."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_same_columns(self, what: str, table: Table) -> None:
        first = self._tables[0][0]
        missing = [name for name in self.names if name not in table.types]
        added = [name for name in table.types if name not in self._tables[0][1].types] if self._all else []
        if missing or added:
            raise ValueError(
                f"Files that are read as one table must have the same columns, and {what} lacks {missing[:5]} and adds "
                f"{added[:5]} to those of {first}. Choose the columns that all files have by `columns`, or read them "
                "apart."
            )
        for name in self.names:
            _refuse_nested(name, table.types[name], what)
            if len({_family(table.types[name]), _family(self.types[name])} - {"nothing"}) > 1:
                raise ValueError(
                    f"Files that are read as one table must have the same types: column {name!r} is "
                    f"{self.types[name]} in {first} and {table.types[name]} in {what}. Convert one of them, or leave "
                    "it out by `columns`."
                )


def open_source(
    data: Any,
    *,
    columns: Columns = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    names: Sequence[str] | None = None,
) -> Source:
    """Open what a user hands in as a table.

    Args:
        data: A pandas, polars or Arrow frame, an Arrow reader, a path (CSV, TSV, compressed or not, Parquet, Arrow, a
            folder of such files), a list of paths, "-" for standard input, or a binary file that is open.
        columns: Names of the columns to read; None for all; or a function that chooses among the names of all.
        encoding: Of text files; None for UTF-8, or what a byte order mark says.
        delimiter: Of text files; None for the one that the name or the header shows.
        header: Whether the first row of text files holds the names.
        names: Of all columns of text files, in place of those of the header.

    Returns:
        The source. Text columns of files are strings, whatever they hold.

    Raises:
        ValueError: If it is no table, or one that cannot be explored: the message says why, and what to do.
        OSError: If a file is not there or cannot be read.
        TypeError: If nothing is known that reads such an object.
    """
    text = {"encoding": encoding, "delimiter": delimiter, "header": header, "names": names}
    if isinstance(data, str) and data == "-":
        data = sys.stdin.buffer
    if isinstance(data, str | os.PathLike):
        return _from_path(os.fspath(data), columns, text)
    if isinstance(data, list | tuple) and data and all(isinstance(path, str | os.PathLike) for path in data):
        return Source([_opened(os.fspath(path), text) for path in data], columns)
    if hasattr(data, "read"):
        return _from_bytes(data, columns, text)
    return _from_frame(data, columns)


def _from_frame(data: Any, columns: Columns) -> Source:
    """A source of what is in memory, or of an Arrow stream."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return Source([("the table", _ArrowTable(data))], columns)
    if nw.dependencies.is_pandas_dataframe(data):
        return Source([("the frame", _PandasFrame(data))], columns)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Source([("the frame", _Frame(frame))], columns)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_stream(pa.RecordBatchReader.from_stream(data), columns)
    way_out = "Collect it first (`.collect()`)" if hasattr(data, "collect") else "Make it one of these"
    raise TypeError(
        "A table must be a pandas, polars or Arrow frame, an Arrow reader, a path, a list of paths, or a binary file, "
        f"got {type(data).__name__}. {way_out}."
    )


def _from_path(path: str, columns: Columns, text: dict[str, Any]) -> Source:
    kind = status_of(path).st_mode
    if stat.S_ISDIR(kind):
        return Source([_opened(each, text) for each in _files_of(path)], columns)
    if stat.S_ISFIFO(kind):
        with open(path, "rb") as pipe:
            return _from_bytes(pipe, columns, text)
    return Source([_opened(path, text)], columns)


def _from_bytes(stream: Any, columns: Columns, text: dict[str, Any]) -> Source:
    """A source of bytes that can be read once: copied to a temporary file."""
    spool = tempfile.NamedTemporaryFile(prefix="featgeo-")  # noqa: SIM115 - it lives as long as the source
    try:
        while block := stream.read(1 << 20):
            spool.write(block.encode() if isinstance(block, str) else block)
        spool.flush()
    except OSError as error:
        raise OSError(_full(error)) from error
    return Source([_opened(spool.name, text, "the input")], columns, spool)


def _from_stream(reader: Any, columns: Columns) -> Source:
    """A source of an Arrow stream, which can be read once: written to a temporary file."""
    types = _by_name(reader.schema, "the stream")  # what cannot be read is refused before it is written
    for name in _chosen(tuple(types), columns, "the stream"):
        _refuse_nested(name, types[name], "the stream")
    spool = tempfile.NamedTemporaryFile(prefix="featgeo-", suffix=".arrow")  # noqa: SIM115 - as above
    try:
        with ipc.new_stream(spool.name, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    except OSError as error:
        raise OSError(_full(error)) from error
    return Source([("the stream", _ArrowFile(spool.name))], columns, spool)


def _full(error: OSError) -> str:
    return (
        f"What can be read once is copied to the folder {tempfile.gettempdir()!r}, and that failed: {error}. Name "
        "another folder by the environment variable TMPDIR, or pass a file."
    )


def _opened(path: str, text: dict[str, Any], what: str | None = None) -> tuple[str, Table]:
    """A file as a table, by its first bytes, and what it is called in messages."""
    status = status_of(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(
            f"The path must be that of a regular file, a pipe or a folder, and {path!r} is a device, a socket or a "
            "folder in a list. Choose another."
        )
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"PK\x03\x04"):
        raise ValueError(
            f"A table must be CSV, TSV, Parquet or Arrow, and {path!r} is an archive (zip) or a spreadsheet. Unpack "
            "it, or export it as CSV."
        )
    table: Table
    if start.startswith(b"PAR1") or path.endswith((".parquet", ".pq")):
        table = _ParquetFile(path)
    elif start.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or path.endswith((".arrow", ".feather")):
        table = _ArrowFile(path)
    else:
        table = DelimitedFile(path, **text)
    return what or repr(path), _Unchanged(path, table, status)


def status_of(path: str) -> os.stat_result:
    """What the system says of a file, which must be there."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"A table must be there to be read, and {path!r} is not. Check the path; the working folder is "
            f"{os.getcwd()!r}."
        ) from None


def _files_of(folder: str) -> list[str]:
    """Files of a folder and of those in it that hold tables, of one kind, in order; hidden ones are left out."""
    shown = [path for path in sorted(Path(folder).rglob("*")) if not path.name.startswith((".", "_"))]
    kinds = {
        "Parquet or Arrow": [str(path) for path in shown if path.name.lower().endswith(BINARY_ENDINGS)],
        "text": [str(path) for path in shown if path.name.lower().endswith(TEXT_ENDINGS)],
    }
    found = [files for files in kinds.values() if files]
    if len(found) != 1:
        held = "both" if found else f"none of them ({len(shown)} other files)"
        raise ValueError(
            f"A folder must hold files of one table, either {' or '.join(BINARY_ENDINGS)}, or "
            f"{', '.join(TEXT_ENDINGS[:3])} and the like, and {folder!r} holds {held}. Pass a list of the files."
        )
    if any("=" in part for path in found[0] for part in Path(path).relative_to(folder).parts[:-1]):
        raise ValueError(
            f"{folder!r} keeps columns in the names of its folders (such as year=2020), which would be lost. Read it "
            "by `pyarrow.dataset.dataset(folder, partitioning='hive').scanner().to_reader()` and pass that."
        )
    return found[0]


class _Unchanged:
    """A file that must be the same in all passes, and that it was read in."""

    def __init__(self, path: str, table: Table, status: os.stat_result) -> None:
        self._path, self._table, self._status = path, table, status

    @property
    def types(self) -> Mapping[str, Any]:
        return self._table.types

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        self._check()
        try:
            yield from self._table.batches(wanted, numeric)
        except (ValueError, OSError):
            self._check()  # a file that is written to while it is read looks damaged
            raise
        self._check()

    def _check(self) -> None:
        now = status_of(self._path)
        if (now.st_size, now.st_mtime_ns) != (self._status.st_size, self._status.st_mtime_ns):
            raise OSError(
                f"A file must stay as it is while it is read, and {self._path!r} changed: it had "
                f"{self._status.st_size:,} bytes and has {now.st_size:,}. Wait until it is complete, or copy it."
            )


class _ParquetFile:
    def __init__(self, path: str) -> None:
        self._path = path
        schema = self._open().schema_arrow
        self.types = _by_name(schema, repr(path))

    def _open(self, texts: Sequence[str] = ()) -> Any:
        try:
            # A buffered stream of each column: a row group, which may be the whole file, is never in memory.
            return parquet.ParquetFile(self._path, read_dictionary=list(texts), pre_buffer=False, buffer_size=1 << 20)
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(self._damaged(error)) from error

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        texts = [name for name in wanted if _family(self.types[name]) == "text"]
        with self._open(texts) as file:
            try:
                yield from file.iter_batches(BATCH_ROWS, columns=list(wanted), use_threads=False)
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(self._damaged(error)) from error

    def _damaged(self, error: Exception) -> str:
        return f"{self._path!r} is no complete Parquet file: it may be cut short ({str(error)[:150]}). Fetch it again."


class _ArrowFile:
    """An Arrow file, or a stream that was written to one."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._open() as file:
            self.types = _by_name(file.schema, repr(path))

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
        with self._open() as file:
            count = getattr(file, "num_record_batches", None)
            try:
                batches = file if count is None else map(file.get_batch, range(count))
                yield from _gathered(batch.select(list(wanted)) for batch in batches)
            except (pa.ArrowInvalid, OSError) as error:
                raise ValueError(
                    f"{self._path!r} is damaged or cut short ({str(error)[:150]}). Write it again."
                ) from error


class _ArrowTable:
    def __init__(self, table: Any) -> None:
        self._table = table
        self.types = _by_name(table.schema, "the table")

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        yield from _gathered(self._table.select(list(wanted)).to_batches(max_chunksize=BATCH_ROWS))


class _Frame:
    """A frame that narwhals knows, such as one of polars: slices of it become Arrow tables."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.types = _by_name(frame.head(1).to_arrow().schema, "the frame")

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        chosen = self._frame.select(list(wanted))
        for start in range(0, len(chosen), BATCH_ROWS):
            yield from chosen[start : start + BATCH_ROWS].to_arrow().combine_chunks().to_batches()


class _PandasFrame:
    """A frame of pandas: slices of it become Arrow arrays, numbers without a copy.

    Columns of Python objects get one type from all of their values, not one in each slice: their own where all are of
    one kind, and text where they are not.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        names = [str(name) for name in frame.columns]
        check_names(names, "the frame")
        self._places = {name: place for place, name in enumerate(names)}
        self.types = {name: self._type(name) for name in names}

    def _type(self, name: str) -> Any:
        column = self._frame.iloc[:, self._places[name]]
        if column.dtype != object:
            return self._array(column.iloc[:1], None, name).type
        from pandas.api.types import infer_dtype  # type: ignore[import-untyped]

        kind = infer_dtype(column, skipna=True)
        known = {"integer": pa.float64(), "floating": pa.float64(), "mixed-integer-float": pa.float64()}
        known |= {"decimal": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "empty": pa.null()}
        known |= {"datetime": pa.timestamp("us"), "date": pa.timestamp("us")}
        if kind in known:
            return known[kind]
        first = next((value for value in column if isinstance(value, list | dict | tuple | set | bytes)), None)
        if first is not None or kind not in ("mixed", "mixed-integer"):
            _refuse_nested(name, type(first).__name__ if first is not None else kind, "the frame")
        return pa.string()

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        columns = {name: self._frame.iloc[:, self._places[name]] for name in wanted}
        for start in range(0, len(self._frame), BATCH_ROWS):
            rows = slice(start, start + BATCH_ROWS)
            arrays = [self._array(column.iloc[rows], self.types[name], name) for name, column in columns.items()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(wanted))

    @staticmethod
    def _array(column: Any, kind: Any, name: str) -> Any:
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
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


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


def _by_name(schema: Any, what: str) -> dict[str, Any]:
    check_names(schema.names, what)
    return dict(zip(schema.names, schema.types, strict=True))


def _chosen(names: tuple[str, ...], columns: Columns, what: str) -> tuple[str, ...]:
    """The columns that are read, in the order of the table."""
    if callable(columns):
        columns = columns(names)
    if isinstance(columns, str):
        raise ValueError(f"`columns` must be a list of names, got the text {columns!r}. Put it in a list.")
    unknown = [name for name in columns or () if name not in names]
    if unknown:
        raise ValueError(f"`columns` must be columns of {what}, and {unknown[:5]} are not. It has {_some(names)}.")
    wanted = frozenset(names if columns is None else columns)
    chosen = tuple(name for name in names if name in wanted)
    if not chosen:
        raise ValueError(f"A table needs columns, and {what} has none to read. Check it, and `columns`.")
    if len(chosen) > MOST_COLUMNS:
        raise ValueError(
            f"At most {MOST_COLUMNS:,} columns can be explored together, and {what} has {len(chosen):,}. Choose some "
            "by `columns`, or check the delimiter."
        )
    return chosen


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:10])
    return shown + (f" and {len(names) - 10:,} others" if len(names) > 10 else "")


def _refuse_nested(name: str, kind: Any, what: str) -> None:
    """Refuse types that are no single value a row."""
    inner = kind.value_type if isinstance(kind, pa.DataType) and pa.types.is_dictionary(kind) else kind
    known = isinstance(inner, pa.DataType) and _family(inner) != "other"
    if not known:
        raise ValueError(
            f"Columns must hold numbers, texts, booleans, dates or times, and {name!r} of {what} holds {kind}. Take "
            "what is wanted out of it into columns of their own, or choose others by `columns`."
        )


def _family(kind: Any) -> str:
    """What types of several files of one table must share; "other" for those that cannot be explored."""
    types = pa.types
    if types.is_dictionary(kind):
        return _family(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _family(kind.storage_type)
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
