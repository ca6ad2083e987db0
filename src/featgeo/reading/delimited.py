"""Text with delimiters (CSV, TSV) as record batches of texts: nothing is taken from the head of a file but its layout.

Fields come as strings, or as dictionaries of strings where values repeat: what they mean is for the whole file to say.
Markers of missing values are null, and stay as they are in dictionaries. Memory is set by the length of rows, never by
that of the file.
"""

from __future__ import annotations

import codecs
import csv as text_csv
import io
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from featgeo.reading.arrow import csv, pa, pc

# What both pandas and pyarrow read as missing by default.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
    "NaN", "n/a", "nan", "null", "None", "<NA>",
)  # fmt: skip
DELIMITERS = (",", ";", "\t", "|")
BLOCK = 1 << 20  # bytes that are parsed at a time, at least; the reader holds some thirty blocks
BLOCK_ROWS = 4_096  # that a block should hold, if four times its size does; more leave a processor's cache
GATHERED_ROWS = 1 << 16  # of blocks that are handed out together: each batch takes some time of its own
GATHERED_BYTES = 1 << 24  # of these, at most
FEWEST_ROWS = 512  # the same of wide tables, if sixteen times its size does
LONGEST_ROW = 1 << 28  # bytes; longer ones are a quote that was never closed, or no table
HEAD = 1 << 16  # bytes that the layout is read from, unless the header is longer
LONGEST_HEADER = 1 << 26
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
_MARKS |= {codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_BE: "utf-16"}
_MARKERS = pa.array(MISSING, pa.string())
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


class DelimitedFile:
    """A file of text with delimiters, compressed or not.

    Args:
        path: The file.
        encoding: Of its text; None for UTF-8, or what a byte order mark says.
        delimiter: Between fields; None for the one that the ending of the file's name or else its header shows.
        header: Whether its first row holds names.
        names: Names of the columns, in place of those of the header.

    Attributes:
        names: Of its columns; those without a name are called after their position, such as `column_1`.
    """

    def __init__(
        self,
        path: str,
        encoding: str | None = None,
        delimiter: str | None = None,
        header: bool = True,
        names: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.compression = compression_of(path)
        head = self._head()
        self.encoding = self._encoding(encoding, head)
        text = self._decoded(head)
        self.delimiter = self._delimiter(delimiter, text)
        fields, lines = _first_row(text, self.delimiter, path)
        self._header_lines = lines if header else 0
        self._is_header_only = header and "\n" not in text and "\r" not in text
        self.names = self._names(fields if header else [""] * len(fields), names)
        check_names(self.names, repr(path))
        self._block = _block_size(len(head) / max(1, head.count(b"\n")))
        self._parses_numbers = True

    @property
    def types(self) -> dict[str, Any]:
        """The Arrow type of each column: all of them are texts."""
        return dict.fromkeys(self.names, pa.string())

    def batches(self, wanted: Sequence[str], numeric: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`, in their order.

        A row that is longer than a block, or a word among numbers, stops the fast way of reading; it goes on from there
        in a more careful one.

        Args:
            wanted: Names of columns.
            numeric: Those among them that may come as float64 in batches where all values are numbers, and whose
                texts have no meaning beyond.
        """
        done = 0
        while not self._is_header_only:
            seen = 0
            try:
                for batch in self._stream(wanted, numeric):
                    fresh = batch.slice(max(0, done - seen))
                    seen += batch.num_rows
                    if fresh.num_rows:
                        done = max(done, seen)
                        yield fresh
                return
            except (pa.ArrowInvalid, UnicodeError, OSError) as error:
                if "conversion error to double" in str(error):
                    self._parses_numbers = False
                elif "straddl" in str(error):
                    self._read_longer_rows(error)
                else:
                    self._explain(error)

    def _read_longer_rows(self, error: Exception) -> None:
        if self._block >= LONGEST_ROW:
            raise ValueError(
                f"A row must end within {LONGEST_ROW:,} bytes, and one of {self.path!r} does not: a quote may never be "
                "closed, or the delimiter is another. Correct the file, or pass `delimiter`."
            ) from error
        self._block *= 8

    def _stream(self, wanted: Sequence[str], numeric: Collection[str]) -> Iterator[Any]:
        last = self.names[-1]  # shows whether a quote is never closed
        read = [*wanted, last] if last not in wanted else list(wanted)
        types = self._types(read, numeric)
        end = None
        for batch in _gathered(self._open(types)):
            _check_text(batch)
            end = batch.column(read.index(last))[-1].as_py()
            yield batch if len(read) == len(wanted) else batch.select(list(wanted))
        self._check_closed(end)

    def _open(self, types: dict[str, Any]) -> Any:
        """A stream of batches."""
        plain = self.encoding in ("utf-8", "utf-8-sig")
        stream = pa.input_stream(self.path, compression=self.compression)
        return csv.open_csv(
            pa.PythonFile(_WholeLineEnds(stream), mode="r") if plain else stream,
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=self._block,
                column_names=list(self.names),
                skip_rows_after_names=self._header_lines,
                encoding="utf8" if plain else self.encoding,
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,  # else blocks may end inside of quotes, and rows are cut without a word
                ignore_empty_lines=len(self.names) > 1,  # an empty line of one column is a missing value
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(MISSING),  # of numbers; looking for them among texts that repeat takes long
                check_utf8=False,  # `_check_text` is faster: it looks at whole columns
            ),
        )

    def _types(self, read: Sequence[str], numeric: Collection[str]) -> dict[str, Any]:
        """As what columns are read, by their first rows: choices of speed, which change no value.

        Texts that repeat, numbers too, are a dictionary, of which each is looked at once. Other numbers are parsed at
        once, unless their texts are all of one length: these may be names made of digits, such as zip codes, which only
        the whole file can tell.
        """
        types = dict.fromkeys(read, pa.string())
        first = self._first_rows(types)
        for name, texts in zip(read, first.columns if first is not None else [], strict=False):
            unique = _without_markers(pc.unique(texts))
            if len(unique) <= len(texts) / 4:
                types[name] = pa.dictionary(pa.int32(), pa.string())
            elif name in numeric and self._parses_numbers and _are_numbers(unique):
                may_be_names = len(pc.unique(pc.binary_length(unique).drop_null())) <= 1
                types[name] = pa.string() if may_be_names else pa.float64()
        return types

    def _first_rows(self, types: dict[str, Any]) -> Any:
        block, self._block = self._block, max(HEAD, self._block // 16)
        try:
            return next(iter(self._open(types)), None)
        except (pa.ArrowInvalid, UnicodeError, OSError):
            return None  # whatever is wrong is told by the reading itself
        finally:
            self._block = block

    def _head(self) -> bytes:
        """The first bytes, with all of the header."""
        head = b""
        try:
            with pa.input_stream(self.path, compression=self.compression) as stream:
                for size in itertools.chain([HEAD], itertools.repeat(HEAD * 16)):
                    more = stream.read(size)
                    head += more
                    if not more or b"\n" in more or b"\r" in more or len(head) > LONGEST_HEADER:
                        break
        except OSError as error:
            self._explain(error)
        if len(head) > LONGEST_HEADER:
            raise ValueError(
                f"The first row must end within {LONGEST_HEADER:,} bytes, and that of {self.path!r} does not. Check "
                "whether it is a table."
            )
        if not head.strip(b" \t\r\n\x00\xef\xbb\xbf\xff\xfe"):
            raise ValueError(f"A table needs a row of names and rows of values, and {self.path!r} is empty. Check it.")
        return head

    def _encoding(self, encoding: str | None, head: bytes) -> str:
        if encoding is not None:
            try:
                found = codecs.lookup(encoding).name
            except LookupError:
                raise ValueError(
                    f"`encoding` must be one that Python knows, such as 'latin-1' or 'utf-16', got {encoding!r}."
                ) from None
            return next((way for mark, way in _MARKS.items() if head.startswith(mark) and found in way), found)
        marked = next((way for mark, way in _MARKS.items() if head.startswith(mark)), "utf-8")
        if marked == "utf-8" and head[:400].count(0) > len(head[:400]) / 4:
            raise ValueError(
                f"{self.path!r} holds a zero byte in every other place: it may be UTF-16 without a byte order mark. "
                "Pass `encoding='utf-16-le'` or 'utf-16-be'."
            )
        return marked

    def _decoded(self, head: bytes) -> str:
        try:
            return codecs.getincrementaldecoder(self.encoding)().decode(head)
        except UnicodeError as error:
            self._explain(error)

    def _delimiter(self, delimiter: str | None, text: str) -> str:
        if delimiter is not None:
            if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
                raise ValueError(f"`delimiter` must be one ASCII character such as ';', got {delimiter!r}.")
            return delimiter
        stem = self.path.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
        expected = "\t" if stem.endswith((".tsv", ".tab")) else ","
        found = {way: len(_first_row(text, way, self.path)[0]) for way in DELIMITERS}
        return expected if found[expected] > 1 else max(found, key=lambda way: found[way])

    def _names(self, fields: list[str], names: Sequence[str] | None) -> tuple[str, ...]:
        if names is not None and len(names) != len(fields):
            raise ValueError(
                f"`names` must name all columns, and {self.path!r} has {len(fields)} by its first row (delimiter: "
                f"{_NAMES.get(self.delimiter, self.delimiter)}), got {len(names)} names."
            )
        found = [str(name) for name in (fields if names is None else names)]
        return tuple(name if name.strip() else f"column_{position}" for position, name in enumerate(found, 1))

    def _check_closed(self, last: Any) -> None:
        """Refuse a file whose last field began with a quote that its end does not close."""
        if not isinstance(last, str) or ("\n" not in last and "\r" not in last):
            return
        tail = b""
        with pa.input_stream(self.path, compression=self.compression) as stream:
            while more := stream.read(HEAD):
                tail = (tail + more)[-64:]
        if not tail.rstrip(b"\r\n\x00").endswith(b'"'):
            raise ValueError(
                f"A quote must be closed, and the last field of {self.path!r} is not: it holds the rest of the file, "
                f"from {last[:40]!r} on. Close it or remove the quote."
            )

    def _explain(self, error: Exception) -> NoReturn:
        """Raise an error that says where in the file, and what to do."""
        text = str(error)
        if isinstance(error, UnicodeError) or "UTF8" in text:
            raise ValueError(_bad_bytes(self.path, self.compression, self.encoding)) from error
        if isinstance(error, OSError):
            if self.compression is not None:
                raise OSError(
                    f"{self.path!r} is compressed by {self.compression} and damaged or cut short ({text}). Fetch it "
                    "again, or unpack what is left of it."
                ) from error
            raise error
        if "Expected" in text:
            row, _, rest = text.partition("Row #")[2].partition(": ")
            raise ValueError(
                f"All rows must have as many fields as the first, and row {row} of {self.path!r} has not (the header "
                f"is row 1): {rest[:200]!r} (delimiter: {_NAMES.get(self.delimiter, self.delimiter)}). Correct it, "
                "quote fields that hold the delimiter, or pass `delimiter`."
            ) from error
        raise ValueError(f"{self.path!r} cannot be read as text with delimiters: {text[:300]}") from error


class _WholeLineEnds:
    """Bytes of which no part that is read ends between the two of a Windows line end.

    PyArrow would drop the line feed of such a one where it stands in quotes, and the label would not equal its equals.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, b""

    def read_buffer(self, size: int) -> Any:
        """As many bytes as are asked for, or one less; none at the end."""
        found = self._stream.read_buffer(size - len(self._rest))
        if self._rest:
            found = pa.py_buffer(self._rest + found.to_pybytes())
        self._rest = b"\r" if found.size > 1 and found[found.size - 1] == ord("\r") else b""
        return found.slice(0, found.size - len(self._rest))

    def read(self, size: int) -> bytes:
        """The same, copied."""
        return bytes(self.read_buffer(size).to_pybytes())

    @property
    def closed(self) -> bool:
        """Whether nothing can be read any more."""
        return bool(self._stream.closed)

    def close(self) -> None:
        """Close what it reads from."""
        self._stream.close()


def _block_size(row: float) -> int:
    """Bytes to parse at a time, for rows of so many bytes."""
    return int(max(np.clip(BLOCK_ROWS * row, BLOCK, 4 * BLOCK), min(FEWEST_ROWS * row, 16 * BLOCK)))


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse names that two columns have."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if name in seen:
            raise ValueError(
                f"Columns must have names of their own, and columns {seen[name]} and {position} of {what} are both "
                f"called {name!r}. Rename one of them, or pass other `names` for all columns of a text file."
            )
        seen[name] = position


def compression_of(path: str) -> str | None:
    """How a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        start = file.read(4)
    return next((way for magic, way in _MAGIC.items() if start.startswith(magic)), None)


def _first_row(text: str, delimiter: str, path: str) -> tuple[list[str], int]:
    """Fields of the first row that is not empty, and how many lines it takes to get behind it."""
    limit = text_csv.field_size_limit(LONGEST_HEADER)
    try:
        reader = text_csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        for fields in reader:
            if fields:
                return fields, reader.line_num
    except text_csv.Error as error:
        raise ValueError(f"The first row of {path!r} cannot be read ({error}). Check the file.") from error
    finally:
        text_csv.field_size_limit(limit)
    return [""], 1


def _gathered(blocks: Iterable[Any]) -> Iterator[Any]:
    """Blocks of a stream, several together, as batches whose texts that repeat share a dictionary."""
    held: list[Any] = []
    rows = size = 0
    try:
        for block in blocks:
            held.append(block)
            rows += block.num_rows
            size += block.nbytes
            if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
                yield from _joined(held)
                held, rows, size = [], 0, 0
    except pa.ArrowInvalid:  # rows before it were read well
        yield from _joined(held)
        raise
    yield from _joined(held)


def _joined(blocks: list[Any]) -> Iterator[Any]:
    """Blocks as one batch, if they have rows; markers of missing values are null among texts that do not repeat."""
    if not sum(block.num_rows for block in blocks):
        return
    (batch,) = pa.Table.from_batches(blocks).unify_dictionaries().combine_chunks().to_batches()
    arrays = [_without_markers(own) if pa.types.is_string(own.type) else own for own in batch.columns]
    yield pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _without_markers(texts: Any) -> Any:
    return pc.if_else(pc.is_in(texts, _MARKERS), pa.scalar(None, pa.string()), texts)


def _are_numbers(texts: Any) -> bool:
    try:
        texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _check_text(batch: Any) -> None:
    """Refuse bytes that are no UTF-8; ASCII, which most columns are, is seen at a glance."""
    for column in batch.columns:
        if pa.types.is_floating(column.type):
            continue
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column
        data = texts.buffers()[2]
        if data is not None and data.size and np.frombuffer(data, np.uint8).max() > 127:
            texts.validate(full=True)


def _bad_bytes(path: str, compression: str | None, encoding: str) -> str:
    """What to say of the first bytes that are no text."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offset, line = 0, 1
    with pa.input_stream(path, compression=compression) as stream:
        while True:
            block = stream.read(HEAD)
            pending = len(decoder.getstate()[0])
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                offset += error.start - pending
                line += error.object[: error.start].count(b"\n")
                found = error.object[error.start : error.start + 1]
                break
            if not block:
                return f"{path!r} cannot be read as {encoding}. Pass its `encoding`, such as 'latin-1'."
            offset += len(block)
    return (
        f"Text must be {encoding}, and byte {offset:,} of {path!r} (line {line:,}) is not: {found!r}. Pass its "
        "`encoding`, such as 'latin-1' or 'cp1252'."
    )
