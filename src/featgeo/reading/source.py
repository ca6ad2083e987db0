"""What users hand in, as Arrow record batches, as often as they are wanted: frames, files of any size, streams.

Memory is set by a batch, never by the file. Nothing is decided here about what columns mean: text stays text, and
who reads decides from all of it. What can be read only once (standard input, Arrow streams) is written to a temporary
file first, which is gone with the `Source`.

A source has parts, files of a folder or partitions of a Dask frame, that are read apart and merged by a fixed tree:
here one after the other, or by the workers of a Dask cluster where there is one. It is the same code, to the same bits.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import narwhals.stable.v1 as nw

from featgeo.reading import cluster
from featgeo.reading.arrow import ipc, pa
from featgeo.reading.delimited import DelimitedFile
from featgeo.reading.tables import (
    ArrowFile,
    ArrowTable,
    Frame,
    PandasFrame,
    ParquetFile,
    Table,
    by_name,
    family_of,
    refuse_nested,
)
from featgeo.reading.tree import folded
from featgeo.watch import bounded_threads

PART_BYTES = 1 << 22  # of small files that are one part together: to merge what is told of parts takes some time
MOST_COLUMNS = 5_000  # beyond, the tables of all pairs of columns would take hours and tens of gigabytes
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.bz2", ".csv.zst", ".tsv.zst")
BINARY_ENDINGS = (".parquet", ".pq", ".arrow", ".feather")

T = TypeVar("T")
Columns = Sequence[str] | Callable[[tuple[str, ...]], Sequence[str]] | None


class Part:
    """Some tables of a source that are read by one, one after the other.

    Args:
        place: Of the part among all of them.
        tables: Each with what it is called in messages.
    """

    def __init__(self, place: int, tables: Sequence[tuple[str, Table]]) -> None:
        self.place, self.tables = place, tuple(tables)

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[tuple[int, Any]]:
        """Record batches of the columns `wanted`, each with the number of its first row in its table."""
        for _, table in self.tables:
            rows = 0
            for batch in table.batches(wanted, numeric):
                yield rows, batch
                rows += batch.num_rows

    @property
    def called(self) -> str:
        """How it is told from the first part, in progress that is shown."""
        return f" of part {self.place + 1:,}" if self.place else ""

    def apart(self) -> tuple[Part, Any]:
        """The part without its rows, and what brings them, if it is a partition of a Dask frame."""
        ((what, table),) = self.tables if len(self.tables) == 1 else ((None, None),)
        if not isinstance(table, cluster.Partition):
            return self, None
        return Part(self.place, [(str(what), cluster.Partition(table.place, table.types, None))]), table.frame

    def with_frame(self, frame: Any) -> Part:
        """The part with its rows again."""
        if frame is None:
            return self
        ((what, table),) = self.tables
        return Part(self.place, [(what, cluster.Partition(table.place, table.types, frame))])  # type: ignore[attr-defined]


class Source:
    """A table to be read as often as wanted.

    Args:
        tables: Its tables, one below the other, each with what it is called in messages.
        columns: Which columns to read; None for all; or a function that chooses among the names of all.
        spool: A temporary file that it rests on, removed with it.
        apart: Whether others can read its parts: they are files, or partitions of a Dask frame.

    Attributes:
        names: Of the columns that are read, in the order of the table.
        types: Their Arrow types as handed in, by name.
        parts: What is read apart.
    """

    def __init__(
        self, tables: Sequence[tuple[str, Table]], columns: Columns = None, spool: Any = None, apart: bool = False
    ) -> None:
        self._tables, self._spool, self._all, self._apart = list(tables), spool, columns is None, apart
        what, first = self._tables[0]
        self.names = _chosen(tuple(first.types), columns, what)
        self.types = {name: first.types[name] for name in self.names}
        for name, kind in self.types.items():
            refuse_nested(name, kind, what)
        for other, table in self._tables[1:]:
            self._check_same_columns(other, table)
        self.parts = tuple(Part(place, tables) for place, tables in enumerate(_together(self._tables)))

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
        rows = 0
        for part in self.parts:
            for _, batch in part.batches(wanted, numeric):
                rows += batch.num_rows
                yield batch
        self.check_rows(rows)

    def reduced(self, of_part: Callable[[Part], T], merged: Callable[[T, T], T]) -> T:
        """What is told of the whole table, by a fixed binary tree over its parts.

        On a cluster where `distributed` has a client and others can read the parts; here, one part after the other,
        else. The results are the same, to the last bit, on processors of one kind.

        Args:
            of_part: What is told of one part.
            merged: What is told of both, from what is told of some parts and of those after them; it changes neither.
        """
        if not self.is_read_here:
            return cluster.reduced(cluster.client(), self.parts, of_part, merged)
        with bounded_threads():
            return folded(self.parts, of_part, merged)

    @property
    def is_read_here(self) -> bool:
        """Whether this process reads it by itself."""
        alone = len(self.parts) == 1 and not isinstance(self._tables[0][1], cluster.Partition)
        return not self._apart or alone or cluster.client() is None

    def check_rows(self, n_rows: int) -> None:
        """Refuse a table that had no rows."""
        if not n_rows:
            raise ValueError(
                f"A table needs rows, and {self._tables[0][0]} has {len(self.names)} columns and none. Check it."
            )

    def check_typed(self) -> None:
        """Refuse files of text, which do not say what their columns are."""
        for what, table in self._tables:
            if isinstance(table, _Unchanged) and not table.is_typed:
                raise ValueError(
                    f"Columns must say what they hold, and {what} is a file of text. Write it as Parquet, read it by "
                    "`pandas.read_csv`, or explore it by `fg.explore`, which decides from all rows."
                )

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
            refuse_nested(name, table.types[name], what)
            if len({family_of(table.types[name]), family_of(self.types[name])} - {"nothing"}) > 1:
                raise ValueError(
                    f"Files that are read as one table must have the same types: column {name!r} is "
                    f"{self.types[name]} in {first} and {table.types[name]} in {what}. Convert one of them, or leave "
                    "it out by `columns`."
                )


def _together(tables: Sequence[tuple[str, Table]]) -> Iterator[list[tuple[str, Table]]]:
    """Neighbours that are read as one part: files that are small, by what they weigh."""
    held: list[tuple[str, Table]] = []
    weight = 0
    for what, table in tables:
        own = table.n_bytes if isinstance(table, _Unchanged) else PART_BYTES
        if held and weight + own > PART_BYTES:
            yield held
            held, weight = [], 0
        held.append((what, table))
        weight += own
    yield held


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
        data: A pandas, polars, Arrow or Dask frame, an Arrow reader, a path (CSV, TSV, compressed or not, Parquet,
            Arrow, a folder of such files), a list of paths, "-" for standard input, or a binary file that is open.
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
        return Source([_opened(os.fspath(path), text) for path in data], columns, apart=True)
    if hasattr(data, "read"):
        return _from_bytes(data, columns, text)
    return _from_frame(data, columns)


def _from_frame(data: Any, columns: Columns) -> Source:
    """A source of what is in memory, or of an Arrow stream."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return Source([("the table", ArrowTable(data))], columns)
    if nw.dependencies.is_pandas_dataframe(data):
        return Source([("the frame", PandasFrame(data))], columns)
    if nw.dependencies.is_dask_dataframe(data):
        return Source(cluster.partitions_of(data, lambda names: _chosen(names, columns, "the Dask frame")), apart=True)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Source([("the frame", Frame(frame))], columns)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_stream(pa.RecordBatchReader.from_stream(data), columns)
    way_out = "Collect it first (`.collect()`)" if hasattr(data, "collect") else "Make it one of these"
    raise TypeError(
        "A table must be a pandas, polars, Arrow or Dask frame, an Arrow reader, a path, a list of paths, or a binary "
        f"file, got {type(data).__name__}. {way_out}."
    )


def _from_path(path: str, columns: Columns, text: dict[str, Any]) -> Source:
    kind = status_of(path).st_mode
    if stat.S_ISDIR(kind):
        return Source([_opened(each, text) for each in _files_of(path)], columns, apart=True)
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
    types = by_name(reader.schema, "the stream")  # what cannot be read is refused before it is written
    for name in _chosen(tuple(types), columns, "the stream"):
        refuse_nested(name, types[name], "the stream")
    spool = tempfile.NamedTemporaryFile(prefix="featgeo-", suffix=".arrow")  # noqa: SIM115 - as above
    try:
        with ipc.new_stream(spool.name, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    except OSError as error:
        raise OSError(_full(error)) from error
    return Source([("the stream", ArrowFile(spool.name))], columns, spool)


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
        table = ParquetFile(path)
    elif start.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or path.endswith((".arrow", ".feather")):
        table = ArrowFile(path)
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
    def is_typed(self) -> bool:
        """Whether the file says what its columns are."""
        return not isinstance(self._table, DelimitedFile)

    @property
    def n_bytes(self) -> int:
        """How large the file is."""
        return self._status.st_size

    @property
    def types(self) -> Mapping[str, Any]:
        return self._table.types

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        self._check()
        try:
            yield from copy(self._table).batches(wanted, numeric)  # what it learns of a file lasts for one pass
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
