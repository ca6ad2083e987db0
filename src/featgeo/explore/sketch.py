"""The first pass: what kind each column is of, by all of its values, and what its cells are chosen from.

A column of text is one of numbers if all its values are, else one of dates if all are dates of one form, else one of
labels: a word in the last row counts as much as one in the first. Rows of a sample are those with the smallest hashed
row numbers: uniform, the same for all columns, whatever the order of the rows. Labels are counted exactly up to a bound
on how many there are; beyond, counts are lower bounds that are off by at most `labels_error` (Misra and Gries), so no
label that many rows share is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from featgeo.explore.arrow import pa, pc
from featgeo.explore.reading import Source
from featgeo.explore.tallies import LabelTally, NumberTally, Sampler
from featgeo.explore.values import (
    DATE_FORMS,
    ISO,
    ISO_ZONED,
    Missing,
    Numbers,
    Repeated,
    as_plain,
    codes_of,
    dates_of,
    joined,
    labels_of,
    may_be_dates,
    may_be_numbers,
    numbers_of,
)
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force
from featgeo.watch import tell

Kind = Literal["number", "label", "date"]
KINDS = ("number", "label", "date", "skip")
SAMPLE_ROWS = 65_536  # quantiles of so many rows are off by less than 0.2 % of the rows
SAMPLE_CELLS = 1 << 25  # bounds the memory of samples: tables of more than 512 columns have smaller ones
LEAST_SAMPLE = 4_096
KEPT_BYTES = 1 << 27  # values that are kept for the second pass, if all of them fit: 16 million numbers
ALL_EXACT = 2**53  # whole numbers below are floats, each its own
EXAMPLES = 3  # of words among numbers
LONGEST_EXAMPLE = 80  # characters


@dataclass(frozen=True)
class ColumnSketch:
    """What the first pass says of a column.

    Attributes:
        name: Of the column.
        kind: "number", "label" or "date".
        original: Its type as it was handed in, for reports.
        n_rows: Of the table.
        n_missing: Rows without a value, those that could not be read as asked included.
        sample: Its values in the rows of the sample, (m,): float64, or what NumPy takes for it (`Repeated`), NaN where
            missing, dates in microseconds since 1970; of labels places in the order of `labels`, -1 where missing, one
            beyond all of them for those that are too rare to be there.
        labels: Labels with their counts, the most frequent first; empty for numbers and dates.
        labels_exact: Whether all labels are there, with their exact counts.
        labels_error: By how much counts are too small, at most; 0 where they are exact.
        n_distinct: Distinct values; where `distinct_exact` is False, there are at least so many.
        distinct_exact: Whether that is their number.
        n_words: Values that are no numbers (or no dates), of a column that mostly holds them or was said to.
        examples: Some of them, with the number of their row (from 0).
        whole: Whether all numbers are whole.
        minimum: Of numbers and dates; NaN for labels.
        maximum: The same.
        mean: Of those that are finite.
        std: Of those that are finite, over n - 1.
        n_infinite: Infinite numbers: they are kept, as the largest or smallest.
        form: How dates are written, where they were text.
    """

    name: str
    kind: Kind
    original: str
    n_rows: int
    n_missing: int
    sample: Array | Repeated
    labels: Mapping[str, int] = field(default_factory=dict)
    labels_exact: bool = True
    labels_error: int = 0
    n_distinct: int = 0
    distinct_exact: bool = True
    n_words: int = 0
    examples: tuple[tuple[int, str], ...] = ()
    whole: bool = False
    minimum: float = np.nan
    maximum: float = np.nan
    mean: float = np.nan
    std: float = np.nan
    n_infinite: int = 0
    form: str = DATE_FORMS[0]


@dataclass(frozen=True)
class _Kept:
    """Batches of a source as the first pass read them: numbers (n,), or ids (n,) and the texts they refer to."""

    source: Source
    batches: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Sketch:
    """What the first pass says of a table.

    Attributes:
        columns: By name, in the order of the table; those that were skipped are not there.
        n_rows: Of the table.
        sample_rows: Numbers of the rows of the sample, int64 (m,), sorted; all rows where there are few.
        missing_values: What stands for a missing value, beside the usual markers.
    """

    columns: Mapping[str, ColumnSketch]
    n_rows: int
    sample_rows: np.ndarray
    missing_values: tuple[str, ...] = ()
    _kept: _Kept | None = field(default=None, repr=False)

    def typed_batches(self, source: Source, unread: Counter[str] | None = None) -> Iterator[dict[str, Any]]:
        """All rows as `typed` gives them: from memory where the first pass could keep those of this source.

        Args:
            source: The table that was sketched, or another with the same columns.
            unread: Counts, by column, of values that are no numbers or no dates; it is added to.

        Yields:
            What `typed` returns. From memory, the texts of a column are one and the same list in all batches.
        """
        if self._kept is not None and self._kept.source is source:
            for kept in self._kept.batches:
                yield dict(kept)
            if unread is not None:
                unread.update({name: column.n_words for name, column in self.columns.items() if column.kind != "label"})
            return
        numbers = [name for name, column in self.columns.items() if column.kind == "number"]
        for batch in source.batches(tuple(self.columns), numbers):
            yield typed(batch, self, unread)


def sketch(
    source: Source,
    types: Mapping[str, str] | None = None,
    missing_values: Sequence[str] = (),
    random_state: int = 0,
    keep: bool = True,
) -> Sketch:
    """Sketch a table in one pass; another one reads columns again that turned out to be labels late.

    Args:
        source: The table.
        types: Kinds of columns that are not to be inferred: "number", "label", "date", or "skip". What cannot be read
            so is missing, and counted.
        missing_values: Texts that stand for a missing value, beside empty fields, NA, NaN, null and the like.
        random_state: Of the sample of rows.
        keep: Whether to keep small tables in memory for the second pass.

    Returns:
        The sketch.

    Raises:
        ValueError: If `types` names no column or no kind, or a column in which nothing can be read as it says.
    """
    asked = _checked(types or {}, source)
    missing = _missing(tuple(missing_values))
    wanted = [name for name in source.names if asked.get(name) != "skip"]
    columns = {name: _Column(name, source.types[name], missing, asked.get(name)) for name in wanted}
    size = int(np.clip(SAMPLE_CELLS // len(wanted), LEAST_SAMPLE, SAMPLE_ROWS))
    first = _Pass(source, columns, Sampler(size, random_state), keep)
    late = {name: column.again() for name, column in columns.items() if column.is_stale()}
    if late:
        first.replace(_Pass(source, late, Sampler(size, random_state), keep))
    n_rows = first.sampler.n_rows
    sketches = {name: column.result(n_rows) for name, column in first.columns.items()}
    kept = first.kept_batches()
    return Sketch(
        sketches,
        n_rows,
        first.sampler.rows,
        tuple(missing_values),
        None if kept is None else _Kept(source, kept),
    )


def typed(batch: Any, sketch: Sketch, unread: Counter[str] | None = None) -> dict[str, Any]:
    """A batch as numbers and codes.

    Args:
        batch: A `pyarrow.RecordBatch` of a table with the columns of the sketch.
        sketch: It says which kind each column is of.
        unread: Counts, by column, of values that are no numbers or no dates; it is added to.

    Returns:
        By name: float64 (n,) of numbers and dates, or what NumPy takes for it (`Repeated`), NaN where missing; of
        labels whole codes (n,), -1 where missing, and the list of texts that they refer to, of this batch alone.
    """
    missing = _missing(sketch.missing_values)
    found: dict[str, Any] = {}
    for name, column in sketch.columns.items():
        array = as_plain(batch.column(name))
        if column.kind == "label":
            labels = labels_of(array)
            found[name] = missing.places_of(labels.dictionary)[codes_of(labels)], labels.dictionary.to_pylist()
            continue
        is_date = column.kind == "date"
        read = dates_of(array, column.form, missing) if is_date else numbers_of(array, missing)
        found[name] = read.values
        if unread is not None and read.unread is not None:
            unread[name] += int(read.unread.sum())
    return found


@lru_cache(maxsize=8)
def _missing(more: tuple[str, ...]) -> Missing:
    return Missing(more)


def _lengths(batches: list[dict[str, Any]]) -> list[int]:
    return [len(next(iter(parts.values()))) for parts in batches]


def _ids(part: Any) -> np.ndarray:
    """Ids of labels; numbers are from batches without a value, before anything was known of the column."""
    is_label = isinstance(part, np.ndarray) and part.dtype.kind == "i"
    return part if is_label else np.full(len(part), -1, np.int8)


def _checked(types: Mapping[str, str], source: Source) -> dict[str, str]:
    """What the user says of columns."""
    for name, kind in types.items():
        if name not in source.names:
            raise ValueError(
                f"`types` must name columns of the table, and {name!r} is none. It has {', '.join(source.names[:10])}"
                f"{' and others' if len(source.names) > 10 else ''}."
            )
        if kind not in KINDS:
            raise ValueError(f"`types` must be one of {', '.join(KINDS)} for each column, got {kind!r} for {name!r}.")
    if all(types.get(name) == "skip" for name in source.names):
        raise ValueError("A table needs columns, and `types` skips all of them. Leave some.")
    return dict(types)


class _Pass:
    """One pass over a table: columns fill up, and batches are kept as long as all of them fit."""

    def __init__(self, source: Source, columns: dict[str, _Column], sampler: Sampler, keep: bool) -> None:
        self.columns, self.sampler = columns, sampler
        self._kept: list[dict[str, Any]] | None = [] if keep else None
        held = 0
        numeric = [column.name for column in columns.values() if column.way == "number"]
        for batch in source.batches(tuple(columns), numeric):
            start = sampler.n_rows
            picked = sampler.pick(batch.num_rows)
            parts = {}
            for column, array in zip(columns.values(), batch.columns, strict=True):
                parts[column.name] = column.add(array, start, picked)
            self._thin(sampler.thin())
            tell(f"first pass, {sampler.n_rows:,} rows read")
            if self._kept is not None:
                self._kept.append(parts)
                held += sum(part.nbytes for part in parts.values())
                if held + sum(column.labels.nbytes for column in columns.values()) > KEPT_BYTES:
                    self._kept = None
        self._thin(sampler.thin(end=True))

    def _thin(self, stay: np.ndarray | None) -> None:
        if stay is not None:
            for column in self.columns.values():
                column.thin(stay)

    def replace(self, later: _Pass) -> None:
        """Take columns from a pass that read them again."""
        self.columns |= later.columns
        if self._kept is None or later._kept is None or _lengths(self._kept) != _lengths(later._kept):
            self._kept = None  # a row that no block held made later batches longer than those of the first pass
            return
        for parts, others in zip(self._kept, later._kept, strict=True):
            parts |= others

    def kept_batches(self) -> tuple[dict[str, Any], ...] | None:
        """Batches that were kept: numbers, and ids of labels with the list of all labels."""
        if self._kept is None or any(column.labels.error for column in self.columns.values()):
            return None
        texts = {
            name: column.labels.texts.to_pylist() for name, column in self.columns.items() if column.way == "label"
        }
        return tuple(
            {name: (_ids(part), texts[name]) if name in texts else part for name, part in parts.items()}
            for parts in self._kept
        )


class _Column:
    """A column while it is read: what it may still be, and what was seen of it.

    Args:
        name: Of the column.
        kind: Its Arrow type as handed in.
        missing: What stands for a missing value.
        asked: The kind that the user says it is of; None to infer it.
        forms: Ways in which its dates may be written.
    """

    def __init__(
        self,
        name: str,
        kind: Any,
        missing: Missing,
        asked: str | None = None,
        forms: tuple[str, ...] = DATE_FORMS,
    ) -> None:
        self.name, self._kind, self._missing, self._asked, self._forms = name, kind, missing, asked, forms
        self._is_text = pa.types.is_null(kind) or _is_text(kind)
        self.way: Kind = asked or _way(kind)  # type: ignore[assignment]
        self._inferred = self._is_text and asked is None
        self._turned: tuple[Kind, tuple[str, ...]] | None = None
        self._digits = _Digits() if self._inferred else None
        self._n_words = 0
        self._examples: list[tuple[int, str]] = []
        self._read_in: dict[str, int] = {}
        self.numbers, self.labels = NumberTally(), LabelTally(missing)
        self._sample: list[np.ndarray | Repeated] = []

    def add(self, array: Any, start: int, picked: np.ndarray | slice) -> np.ndarray | Repeated:
        """Add a batch whose first row has number `start`; returns what is kept of it: values, or ids of labels."""
        array = as_plain(array)
        if self.way == "number" and not may_be_numbers(array):
            array = labels_of(array)  # each text that is different is looked at once, whatever it turns out to be
        part = None
        if self.way == "number":
            part = self._add_numbers(array, start)
        if self.way == "date" and part is None:
            part = self._add_dates(array, start)
        if part is None:
            part = self._add_labels(array)
        self._sample.append(part[picked])
        if self.labels.is_full:
            renamed = self.labels.trim()
            self._sample = [renamed[np.asarray(ids)] for ids in self._sample]
        return part

    def thin(self, stay: np.ndarray) -> None:
        """Keep some of the rows of the sample."""
        self._sample = [joined(self._sample)[stay]]

    def _add_numbers(self, array: Any, start: int) -> Array | Repeated | None:
        values, unread = numbers_of(array, self._missing)
        if unread is not None:
            self._note(array, unread, start)
            if self._inferred:
                if self.numbers.count:
                    self._turned = ("label", DATE_FORMS)
                none = not self.numbers.count and np.isnan(values).all()
                self._turn_to("date" if none and may_be_dates(array, self._missing) else "label")
                return None
        if self._digits is not None:
            self._digits.add(array, self._missing)
        self.numbers.add(values)
        return values

    def _turn_to(self, way: Kind) -> None:
        """Read it as something else from now on; rows before this batch had no value, or it is read again."""
        self.way = way
        if way == "date":
            self._n_words, self._examples = 0, []  # no numbers, and so no words among them
        else:
            self._sample = [np.full(len(part), -1, np.int32) for part in self._sample]

    def _add_dates(self, array: Any, start: int) -> Array | Repeated | None:
        """Read dates in the form that fits; others that fit all values so far, too, are not forgotten."""
        read = self._readings(array)
        seen = {form: int((~np.isnan(values)).sum()) for form, (values, _) in read.items()}
        if self._inferred:
            fitting = tuple(form for form, (_, unread) in read.items() if unread is None)
            if not fitting or (self.numbers.count and fitting[0] != self._forms[0]):
                if self.numbers.count:
                    self._turned = ("date", fitting) if fitting else ("label", DATE_FORMS)
                self._turn_to("label")
                return None
            self._forms = fitting if any(seen.values()) else self._forms
        elif any(seen.values()) and not self.numbers.count:
            self._forms = tuple(sorted(read, key=lambda form: -seen[form]))
        for form, count in seen.items():
            self._read_in[form] = self._read_in.get(form, 0) + count
        values, unread = read[self._forms[0]]
        if unread is not None:
            self._note(array, unread, start)
        self.numbers.add(values)
        return values

    def _readings(self, array: Any) -> dict[str, Numbers]:
        """What a batch says in each form that is left; where one of ISO's reads all of it, no other reads any."""
        found: dict[str, Numbers] = {}
        for form in self._forms:
            found[form] = dates_of(array, form, self._missing)
            if found[form].unread is None and form in (ISO, ISO_ZONED):
                break
        return found

    def _add_labels(self, array: Any) -> np.ndarray:
        labels = labels_of(array)
        return self.labels.add(codes_of(labels), labels.dictionary)

    def _note(self, array: Any, unread: np.ndarray, start: int) -> None:
        """Count values that are no numbers, or no dates, and keep some as examples."""
        self._n_words += int(unread.sum())
        for row in np.flatnonzero(unread)[: EXAMPLES - len(self._examples)]:
            self._examples.append((start + int(row), str(array[int(row)].as_py())[:LONGEST_EXAMPLE]))

    def is_stale(self) -> bool:
        """Whether what was kept of it is not what it turned out to be."""
        if self.way == "number" and self._asked is None and (self._has_digits_of_names() or self._are_large_names()):
            self._turned = ("label", DATE_FORMS)
        if self.way == "date" and self._is_text:
            best = max(self._read_in, key=lambda form: self._read_in[form], default=self._forms[0])
            if self._inferred and len(self._forms) > 1 and self.numbers.count:
                self._turned = ("label", DATE_FORMS)  # 3/4 may be in March or in April, and no row tells
            elif self._read_in.get(best, 0) > self._read_in.get(self._forms[0], 0):
                self._turned = ("date", (best,))
        return self._turned is not None

    def _has_digits_of_names(self) -> bool:
        return self._digits is not None and self._digits.are_names()

    def _are_large_names(self) -> bool:
        """Whether few whole numbers are so large that floats may be the same for several: names, told apart as texts.

        Of many, as of times in nanoseconds, it is the order that counts, and floats have it.
        """
        tally = self.numbers
        if not tally.count or not tally.whole or pa.types.is_floating(self._kind):
            return False
        is_large = ALL_EXACT <= max(-tally.minimum, tally.maximum) < np.inf
        return is_large and tally.n_distinct <= in_force.get().finite_values

    def again(self) -> _Column:
        """The same column, to be read once more as what it turned out to be."""
        way, forms = self._turned or (self.way, self._forms)
        column = _Column(self.name, self._kind, self._missing, self._asked, forms)
        column.way, column._inferred, column._digits = way, False, None
        if way == "label":
            column._examples, column._n_words = self._examples, self._n_words
        return column

    def result(self, n_rows: int) -> ColumnSketch:
        """What was seen of it."""
        sample = joined(self._sample)
        common: dict[str, Any] = {
            "name": self.name,
            "original": "text" if self._is_text else str(self._kind),
            "n_rows": n_rows,
        }
        if self.way == "label":
            return ColumnSketch(
                kind="label", n_missing=n_rows - self.labels.count, **common, **self._labelled(np.asarray(sample))
            )
        tally = self.numbers
        if self._n_words and not tally.count:
            row, text = self._examples[0]
            raise ValueError(
                f"Column {self.name!r} was said to hold {self.way}s, and none of its {self._n_words:,} values is one: "
                f"row {row:,} holds {text!r}. Say 'label', or leave it out of `types`."
            )
        return ColumnSketch(
            kind=self.way,
            n_missing=n_rows - tally.count,
            sample=sample,
            n_distinct=tally.n_distinct,
            distinct_exact=tally.distinct_exact,
            n_words=self._n_words,
            examples=tuple(self._examples),
            whole=tally.whole and tally.count > 0,
            minimum=tally.minimum if tally.count else np.nan,
            maximum=tally.maximum if tally.count else np.nan,
            mean=tally.mean,
            std=tally.std,
            n_infinite=tally.n_infinite,
            form=self._forms[0],
            **common,
        )

    def _labelled(self, sample: np.ndarray) -> dict[str, Any]:
        """Labels, the most frequent first, and how many of them are words among numbers."""
        tally = self.labels
        order = np.argsort(-tally.counts, kind="stable")[: int((tally.counts > 0).sum())]
        texts = tally.texts.take(pa.array(order))
        # Ids -2 and -1 are those that were forgotten, and missing ones.
        ranks = np.full(len(tally.texts) + 2, len(order), dtype=np.min_scalar_type(-len(order) - 1))
        ranks[order], ranks[-1] = np.arange(len(order)), -1
        n_words = self._count_words(texts, tally.counts[order]) if self._examples else 0
        return {
            "sample": ranks.take(sample),
            "labels": dict(zip(texts.to_pylist(), tally.counts[order].tolist(), strict=True)),
            "labels_exact": tally.error == 0,
            "labels_error": tally.error,
            "n_distinct": tally.n_distinct,
            "distinct_exact": tally.error == 0,
            "n_words": n_words,
            "examples": tuple(self._examples) if n_words else (),
        }

    def _count_words(self, texts: Any, counts: np.ndarray) -> int:
        """Values that are no numbers, where most are; else 0: it is a column of labels, and some look like numbers."""
        unread = numbers_of(texts, self._missing).unread
        words = 0 if unread is None else int(counts[unread].sum())
        words = max(words, self._n_words)
        return words if 2 * words < counts.sum() else 0


class _Digits:
    """Texts of digits that are all of one length, some with a leading zero: names such as zip codes, no numbers."""

    def __init__(self) -> None:
        self._length: int | None = None
        self._may_be, self._has_zero = True, False

    def add(self, array: Any, missing: Missing) -> None:
        """Look at texts that are numbers, or missing."""
        if not self._may_be or pa.types.is_null(array.type):
            return
        if pa.types.is_floating(array.type):  # texts of several lengths came as numbers
            self._may_be = False
            return
        texts = array
        if pa.types.is_dictionary(array.type):
            texts = array.dictionary.filter(missing.out_of(array.dictionary).is_valid())
        lengths = pc.min_max(pc.binary_length(texts)).as_py()
        if lengths["min"] is None:
            return
        self._length = self._length or lengths["min"]
        self._may_be = lengths["min"] == lengths["max"] == self._length and self._length > 1
        if self._may_be and pc.any(pc.starts_with(texts, "0")).as_py():
            self._has_zero = True
            self._may_be = bool(pc.all(pc.utf8_is_digit(texts)).as_py())

    def are_names(self) -> bool:
        """Whether all texts are digits of one length, and some begin with 0."""
        return self._may_be and self._has_zero


def _is_text(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _way(kind: Any) -> Kind:
    """As what a column of a type is read; texts begin as numbers, and turn."""
    if pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
        return "label"
    return "date" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else "number"
