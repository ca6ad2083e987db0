"""A column while it is read: what it may still be, what was seen of it, and the same of two parts together."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from featgeo.explore.tallies import LabelTally, NumberTally
from featgeo.explore.values import (
    ALL_EXACT,
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
from featgeo.reading.arrow import pa, pc
from featgeo.tuning import in_force

Kind = Literal["number", "label", "date"]
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


class SeenColumn:
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

    def emptied(self) -> SeenColumn:
        """The same column, of which nothing was seen."""
        column = copy(self)
        column._digits = None if self._digits is None else _Digits()
        column._examples, column._read_in, column._sample = [], {}, []
        column.numbers, column.labels = NumberTally(), LabelTally(self._missing)
        return column

    def add(self, array: Any, start: int, picked: np.ndarray | slice) -> np.ndarray | Repeated:
        """Add a batch whose first row has number `start`; returns what is kept of it: values, or ids of labels."""
        part: Array | Repeated | None = self.labels.add_known(array) if self.way == "label" else None
        if part is None:
            array = as_plain(array)
        if self.way == "number" and not may_be_numbers(array):
            array = labels_of(array)  # each text that is different is looked at once, whatever it turns out to be
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
                different = values.values if isinstance(values, Repeated) else values
                none = not self.numbers.count and np.isnan(different).all()
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
            self._sample = _no_labels(self._sample)

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

    def again(self) -> SeenColumn:
        """The same column, to be read once more as what it turned out to be."""
        way, forms = self._reading
        column = SeenColumn(self.name, self._kind, self._missing, self._asked, forms)
        column.way, column._inferred, column._digits = way, False, None
        return column

    def recall(self, earlier: SeenColumn) -> None:
        """Know, of labels, what was seen when they were taken for something else."""
        if self.way == "label":
            self._examples, self._n_words = earlier._examples, earlier._n_words

    def merged(self, other: SeenColumn, n_rows: int) -> SeenColumn:
        """The same of the rows of two parts; where they were not read in one way, all are to be read again.

        Args:
            other: What was seen of the rows after these.
            n_rows: How many rows these are: the others are numbered from there.
        """
        both = copy(self)
        both._n_words = self._n_words + other._n_words
        both._examples = [*self._examples, *((n_rows + row, text) for row, text in other._examples)][:EXAMPLES]
        both._read_in = {
            form: self._read_in.get(form, 0) + other._read_in.get(form, 0)
            for form in DATE_FORMS
            if form in self._read_in or form in other._read_in
        }
        if self._digits is not None and other._digits is not None:
            both._digits = self._digits.merged(other._digits)
        way, forms, is_one = both._agreed(self, other)
        if not is_one:
            both.way, both._turned = "label", (way, forms)
            both.numbers, both.labels = NumberTally(), LabelTally(self._missing)
            both._sample = _no_labels([*self._sample, *other._sample])
            return both
        both.way, both._forms = way, forms
        both.numbers = self.numbers.merged(other.numbers)
        both._sample = [*self._sample, *other._sample]
        if way == "label":
            both._join_labels(self, other)
        return both

    @property
    def _reading(self) -> tuple[Kind, tuple[str, ...]]:
        """As what it is to be read, and in which forms of dates."""
        return self._turned or (self.way, self._forms)

    @property
    def _is_blank(self) -> bool:
        """Whether it has shown no value yet."""
        return not (self._turned or self.numbers.count or self.labels.count or self._n_words)

    def _agreed(self, a: SeenColumn, b: SeenColumn) -> tuple[Kind, tuple[str, ...], bool]:
        """As what two parts of it are to be read, and whether both were read so; it knows the words of both."""
        was_so = a._turned is None and b._turned is None
        if a._is_blank or b._is_blank:
            return (*(b if a._is_blank else a)._reading, was_so)
        (way, forms), (others_way, others_forms) = a._reading, b._reading
        if way != others_way or way != "date":
            same = way == others_way
            return way if same else "label", forms if same else DATE_FORMS, was_so and same
        common = tuple(form for form in forms if form in others_forms)
        if not self._inferred and common:
            best = max(common, key=lambda form: self._read_in.get(form, 0))
            common = (best, *(form for form in common if form != best))
        if not common:
            return "label", DATE_FORMS, False
        return "date", common, was_so and common[0] == forms[0] == others_forms[0]

    def _join_labels(self, a: SeenColumn, b: SeenColumn) -> None:
        """Count the labels of two parts together, and name those of the samples alike."""
        mine, theirs = (one._sample if one.way == "label" else _no_labels(one._sample) for one in (a, b))
        self.labels, renamed = a.labels.merged(b.labels)
        self._sample = [*mine, *(renamed[np.asarray(ids)] for ids in theirs)]
        if self.labels.is_full:
            shorter = self.labels.trim()
            self._sample = [shorter[np.asarray(ids)] for ids in self._sample]

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


def _no_labels(parts: list[np.ndarray | Repeated]) -> list[np.ndarray | Repeated]:
    """Ids of labels, of rows that have none."""
    return [np.full(len(part), -1, np.int32) for part in parts]


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

    def merged(self, other: _Digits) -> _Digits:
        """Of the texts of both."""
        both = _Digits()
        both._length = self._length or other._length
        alike = self._length is None or other._length is None or self._length == other._length
        both._may_be = self._may_be and other._may_be and alike
        both._has_zero = self._has_zero or other._has_zero
        return both

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
