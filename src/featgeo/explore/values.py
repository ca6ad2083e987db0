"""One column of a record batch as numbers, as dates or as labels: no loop over rows, and nothing lost without a mask.

What a text means is the same everywhere: spaces around it do not count, "+7", "1e5" and "inf" are numbers, and what
stands for a missing value is one. Dates are microseconds since 1970, in universal time where they have a zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.reading.arrow import pa, pc
from featgeo.reading.delimited import MISSING

ISO, ISO_ZONED = "ISO 8601", "ISO 8601 with a zone"
DATE_FORMS = (ISO, ISO_ZONED, "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")  # any of them fits all dates of a column
ALL_EXACT = 2**53  # whole numbers below are floats, each its own
PROBE = 32  # values that are tried before all of them are
PROBE_REPEATED = 1_024  # numbers that show whether they repeat, so that each that is different is looked at once
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))$"
_DATE = r"^[+-]?\d{4,}-\d{2}-\d{2}"
_ANY_DATE = r"^\s*[+-]?\d{1,5}[-/.]\d{1,2}[-/.]\d"


@dataclass(frozen=True, eq=False)
class Repeated:
    """Numbers that repeat: to NumPy an array of all rows, (n,), whose different values are there once.

    Attributes:
        codes: Which value each row has, (n,); -1 is the last.
        values: Those that are different, float64 (d,); the last is NaN, that of missing rows.
    """

    codes: np.ndarray
    values: Array

    @classmethod
    def at(cls, codes: np.ndarray, values: Array) -> Repeated:
        """From places of values; -1 is missing."""
        return cls(codes.astype(np.min_scalar_type(-len(values) - 1)), np.append(values, np.nan))

    @classmethod
    def joined(cls, parts: Sequence[Repeated]) -> Repeated:
        """The rows of all of them, with each value once."""
        values, place = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
        place[place == len(values) - 1] = -1  # there is a NaN in all of them, and it is the last
        place = place.astype(np.min_scalar_type(-len(values)))
        ends = np.cumsum([len(part.values) for part in parts])
        places = (place[end - len(part.values) : end] for part, end in zip(parts, ends.tolist(), strict=True))
        return cls(np.concatenate([own.take(part.codes) for own, part in zip(places, parts, strict=True)]), values)

    @property
    def nbytes(self) -> int:
        """Of both."""
        return self.codes.nbytes + self.values.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray | slice) -> Repeated:
        return Repeated(self.codes[rows], self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values.take(self.codes)

    def counts(self) -> np.ndarray:
        """Rows of each value, (d,)."""
        return rows_of(self.codes, len(self.values))


def rows_of(codes: np.ndarray, n: int) -> np.ndarray:
    """Rows of each of n codes, (n,); -1 is the last. Torch counts codes of few bits as they are, NumPy copies them."""
    import torch  # late: files are opened without it

    rows = torch.bincount(torch.from_numpy(codes + 1), minlength=n).numpy()
    return np.append(rows[1:], rows[:1])


def joined(parts: Sequence[np.ndarray | Repeated]) -> np.ndarray | Repeated:
    """All rows of several parts of a column, one after the other."""
    repeated = [part for part in parts if isinstance(part, Repeated)]
    return Repeated.joined(repeated) if len(repeated) == len(parts) else np.concatenate(parts)


def distinct(values: Array | Repeated) -> tuple[Array, np.ndarray]:
    """Values that are different, rising, and rows of each; NaN is none."""
    if not isinstance(values, Repeated):
        return np.unique(values[~np.isnan(values)], return_counts=True)
    rows = values.counts()
    there = (rows > 0) & ~np.isnan(values.values)
    different, place = np.unique(values.values[there], return_inverse=True)
    return different, np.bincount(place, rows[there], len(different)).astype(np.int64)


class Numbers(NamedTuple):
    """Values of a column, float64 (n,), NaN where missing or not read; and which were not read, bool (n,), or None."""

    values: Array | Repeated
    unread: np.ndarray | None


class Missing:
    """What texts and numbers stand for a missing value.

    Args:
        more: Texts beside the usual ones.
    """

    def __init__(self, more: tuple[str, ...] = ()) -> None:
        self.texts = pa.array(sorted({text.strip() for text in (*MISSING, *more)}), pa.string())
        numbers = _read_where_possible(pa.array([text.strip() for text in more], pa.string()), pa.float64(), _NUMBER)
        self.numbers = numbers.drop_null().to_numpy(zero_copy_only=False)

    def out_of(self, texts: Any) -> Any:
        """Texts without the spaces around them, null where they stand for a missing value."""
        trimmed = pc.utf8_trim_whitespace(texts)
        return pc.if_else(pc.is_in(trimmed, self.texts), pa.scalar(None, trimmed.type), trimmed)

    def places_of(self, texts: Any) -> np.ndarray:
        """Places of texts that are no missing ones, int64 (n,), and -1 for the others and at the end."""
        there = self.out_of(texts).is_valid().to_numpy(zero_copy_only=False)
        return np.append(np.where(there, np.arange(len(there)), -1), -1)


def as_plain(array: Any) -> Any:
    """The same values in a type that all kernels know."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        if not _repeat(array):
            return array.cast(pa.string())
        array = array.dictionary_encode()
    if pa.types.is_dictionary(array.type) and not pa.types.is_string(array.type.value_type):
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.string()))
    return array


def numbers_of(array: Any, missing: Missing) -> Numbers:
    """A column as numbers; time spans and times of a day are seconds."""
    if pa.types.is_dictionary(array.type):
        return _spread(array, numbers_of(array.dictionary, missing))
    if _repeat(array):
        repeated = _from_least(array) if pa.types.is_integer(array.type) else None
        if repeated is None:
            return numbers_of(array.dictionary_encode(), missing)
        read = Numbers(repeated, None)
    elif pa.types.is_string(array.type):
        read = _parsed(array, lambda texts: texts.cast(pa.float64()), missing, pa.float64(), _NUMBER)
    else:
        read = Numbers(_floats(array), None)
    if len(missing.numbers):
        return Numbers(np.where(np.isin(read.values, missing.numbers), np.nan, read.values), read.unread)
    return read


def _from_least(array: Any) -> Repeated | None:
    """Whole numbers by how far they are from the least of them, where fewer numbers are between than there are rows."""
    low, high = pc.min_max(array).as_py().values()
    if low is None or high - low >= len(array) or max(high, -low) > ALL_EXACT:
        return None
    rows = array.fill_null(low).to_numpy(zero_copy_only=False) if array.null_count else array.to_numpy()
    codes = (rows.astype(np.int64, copy=False) - low).astype(np.min_scalar_type(-(high - low) - 2))
    if array.null_count:
        codes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return Repeated.at(codes, np.arange(low, high + 1).astype(np.float64))


def _repeat(array: Any) -> bool:
    """Whether most numbers, or texts, are there several times, judged by the first: then each is read once."""
    tests = pa.types.is_integer, pa.types.is_float64, pa.types.is_string, pa.types.is_large_string
    is_known = any(test(array.type) for test in tests)
    return is_known and len(array) > PROBE_REPEATED and len(array[:PROBE_REPEATED].unique()) <= PROBE_REPEATED / 4


def dates_of(array: Any, form: str, missing: Missing) -> Numbers:
    """A column as dates, of one of `DATE_FORMS` where it is text."""
    if pa.types.is_dictionary(array.type):
        return _spread(array, dates_of(array.dictionary, form, missing))
    if not pa.types.is_string(array.type):
        return Numbers(_floats(array.cast(pa.timestamp("us", getattr(array.type, "tz", None)), safe=False)), None)
    if form in (ISO, ISO_ZONED):
        kind = pa.timestamp("us", "UTC" if form == ISO_ZONED else None)
        return _parsed(array, lambda texts: texts.cast(kind), missing, kind, _DATE)
    encoded = array.dictionary_encode()
    texts = missing.out_of(encoded.dictionary)
    found = pc.strptime(texts, form, "us", error_is_null=True)
    return _spread(encoded, Numbers(_floats(found), _unread(texts, found)))


def may_be_numbers(array: Any) -> bool:
    """Whether the first values are numbers, or need not be read: words are refused one by one, slowly."""
    if not pa.types.is_string(array.type):
        return True
    try:
        array[:PROBE].cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def may_be_dates(array: Any, missing: Missing) -> bool:
    """Whether all texts look like dates of any form: a quick way to see that they are not."""
    texts = missing.out_of(array.dictionary if pa.types.is_dictionary(array.type) else array)
    return pc.all(pc.match_substring_regex(texts, _ANY_DATE)).as_py() is not False


def labels_of(array: Any) -> Any:
    """A column as a dictionary of texts; they stay as they are, spaces and what stands for a missing value included."""
    if pa.types.is_dictionary(array.type):
        # A dictionary may be that of a whole file: what this batch does not use is left out.
        return array.dictionary_decode().dictionary_encode() if len(array.dictionary) > len(array) else array
    return (array if pa.types.is_string(array.type) else _texts(array)).dictionary_encode()


def codes_of(labels: Any) -> np.ndarray:
    """Places in the dictionary, whole numbers (n,), -1 where missing."""
    indices = labels.indices.cast(pa.int64()).fill_null(-1) if labels.null_count else labels.indices
    return indices.to_numpy(zero_copy_only=False)


def _texts(array: Any) -> Any:
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array.cast(pa.string())


def _spread(array: Any, read: Numbers) -> Numbers:
    """What was read of a dictionary, at all rows."""
    codes = codes_of(array)
    values = Repeated.at(codes, np.asarray(read.values))
    return Numbers(values, None if read.unread is None else np.append(read.unread, False)[codes])


def _parsed(array: Any, parse: Callable[[Any], Any], missing: Missing, kind: Any, pattern: str) -> Numbers:
    """Texts as numbers or dates: all at once, and only where that fails by looking at each that is different."""
    try:
        parse(array[:PROBE])  # words are refused one by one, slowly: a few of them show that it is not worth it
        return Numbers(_floats(parse(array)), None)
    except pa.ArrowInvalid:
        encoded = array.dictionary_encode()
    texts = missing.out_of(encoded.dictionary)
    found = _read_where_possible(texts, kind, pattern)
    return _spread(encoded, Numbers(_floats(found), _unread(texts, found)))


def _read_where_possible(texts: Any, kind: Any, pattern: str) -> Any:
    """Texts cast to a type, null where they cannot be."""
    looks = pc.match_substring_regex(texts, pattern)
    likely = pc.if_else(looks, texts, pa.scalar(None, texts.type))
    try:
        return likely.cast(kind)
    except pa.ArrowInvalid:  # such as 30 February: rare, so they are looked for by halves
        if len(texts) == 1:
            return pa.nulls(1, kind)
        half = len(texts) // 2
        halves = [_read_where_possible(part, kind, pattern) for part in (texts[:half], texts[half:])]
        return pa.concat_arrays(halves)


def _floats(array: Any) -> Array:
    """An Arrow array as float64 (n,), NaN where null."""
    kind = array.type
    if pa.types.is_temporal(kind) and not pa.types.is_date(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        scale = 1.0 if pa.types.is_timestamp(kind) else unit
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _floats(array.cast(width)) / scale
    floats = array if kind == pa.float64() else array.cast(pa.float64(), safe=False)
    return floats.to_numpy(zero_copy_only=False)


def _unread(texts: Any, found: Any) -> np.ndarray | None:
    """Which texts are there but were not read, bool (n,); None for none."""
    unread = pc.and_(texts.is_valid(), found.is_null()).to_numpy(zero_copy_only=False)
    return unread if unread.any() else None
