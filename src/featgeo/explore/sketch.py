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
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from featgeo.explore.seen import ColumnSketch, SeenColumn
from featgeo.explore.tallies import Sampler
from featgeo.explore.values import Missing, as_plain, codes_of, dates_of, labels_of, numbers_of
from featgeo.reading.source import Part, Source
from featgeo.watch import tell

KINDS = ("number", "label", "date", "skip")
SAMPLE_ROWS = 65_536  # quantiles of so many rows are off by less than 0.2 % of the rows
SAMPLE_CELLS = 1 << 25  # bounds the memory of samples: tables of more than 512 columns have smaller ones
LEAST_SAMPLE = 4_096
KEPT_BYTES = 1 << 27  # values that are kept for the second pass, if all of them fit: 16 million numbers


Batches = list[tuple[int, dict[str, Any]]]  # with the number of the first row in its table


class _Kept:
    """Batches of a source as the first pass read them, part by part, as long as all of them fit.

    Attributes:
        source: The table.
        parts: Of each part, by its place: numbers (n,), or ids (n,) and the texts they refer to; None if too many.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parts: dict[int, Batches] | None = {}
        self._n_bytes = 0

    def hold(self, part: Part, row: int, values: dict[str, Any], n_label_bytes: int) -> None:
        """Keep what was read of a batch; texts of its part, of so many bytes, are held beside it."""
        self._n_bytes += sum(value.nbytes for value in values.values())
        if self.parts is None or self._n_bytes + n_label_bytes > KEPT_BYTES:
            self.parts = None
            return
        self.parts.setdefault(part.place, []).append((row, values))

    def name(self, part: Part, columns: Mapping[str, SeenColumn]) -> None:
        """Put the texts of a part beside its ids, now that all of it was read."""
        if self.parts is None or any(column.labels.error for column in columns.values()):
            self.parts = None
            return
        texts = {name: column.labels.texts.to_pylist() for name, column in columns.items() if column.way == "label"}
        self._n_bytes += sum(columns[name].labels.nbytes for name in texts)
        for _, values in self.parts.get(part.place, []):
            values |= {name: (_ids(values[name]), own) for name, own in texts.items()}

    def replace(self, later: _Kept) -> None:
        """Take columns from a pass that read them again."""
        if self.parts is None or later.parts is None:
            self.parts = None
            return
        for place, batches in self.parts.items():
            others = later.parts[place]
            if [_length(values) for _, values in batches] != [_length(values) for _, values in others]:
                self.parts = None  # a row that no block held made later batches longer than those of the first pass
                return
            for (_, values), (_, more) in zip(batches, others, strict=True):
                values |= more

    def settle(self, columns: Mapping[str, ColumnSketch]) -> None:
        """Say of parts without a value of a column that they hold none of its labels."""
        labels = [name for name, column in columns.items() if column.kind == "label"]
        for _, values in (batch for batches in (self.parts or {}).values() for batch in batches):
            values |= {name: (_ids(values[name]), []) for name in labels if not isinstance(values[name], tuple)}


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

    @property
    def bare(self) -> Sketch:
        """What is needed to read the table again, and nothing else."""
        bare = {name: replace(column, sample=np.empty(0), labels={}) for name, column in self.columns.items()}
        return Sketch(bare, self.n_rows, np.empty(0, np.int64), self.missing_values)

    def typed_batches(self, source: Source, unread: Counter[str] | None = None) -> Iterator[dict[str, Any]]:
        """All rows as `typed` gives them: from memory where the first pass could keep those of this source.

        Args:
            source: The table that was sketched, or another with the same columns.
            unread: Counts, by column, of values that are no numbers or no dates; it is added to.

        Yields:
            What `typed` returns. From memory, the texts of a column are one and the same list in a part.
        """
        for part in source.parts:
            for _, batch in self.typed_part(part, unread):
                yield batch
        if self._is_kept(source.parts[0]) and unread is not None:
            unread.update({name: column.n_words for name, column in self.columns.items() if column.kind != "label"})

    def typed_part(self, part: Part, unread: Counter[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of one part of a source, and the number of the first row of each batch in its table."""
        if self._is_kept(part):
            for row, kept in self._kept.parts.get(part.place, []):  # type: ignore[union-attr]
                yield row, dict(kept)
            return
        numbers = [name for name, column in self.columns.items() if column.kind == "number"]
        for row, batch in part.batches(tuple(self.columns), numbers):
            yield row, typed(batch, self, unread)

    def _is_kept(self, part: Part) -> bool:
        kept = self._kept
        return kept is not None and kept.parts is not None and any(part is own for own in kept.source.parts)


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
    columns = {name: SeenColumn(name, source.types[name], missing, asked.get(name)) for name in wanted}
    size = int(np.clip(SAMPLE_CELLS // len(wanted), LEAST_SAMPLE, SAMPLE_ROWS))
    kept, again = (_Kept(source) if keep and source.is_read_here else None for _ in range(2))
    first = source.reduced(_FirstPass(columns, size, random_state, kept), _Seen.merged)
    source.check_rows(first.sampler.n_rows)
    late = {name: column.again() for name, column in first.columns.items() if column.is_stale()}
    if late:
        later = source.reduced(_FirstPass(late, size, random_state, again), _Seen.merged)
        for name, column in later.columns.items():
            column.recall(first.columns[name])
        first.columns |= later.columns
        if kept is not None and again is not None:
            kept.replace(again)
    n_rows = first.sampler.n_rows
    sketches = {name: column.result(n_rows) for name, column in first.columns.items()}
    if kept is not None:
        kept.settle(sketches)
    return Sketch(sketches, n_rows, first.sampler.rows, tuple(missing_values), kept)


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


def _length(values: dict[str, Any]) -> int:
    first = next(iter(values.values()))
    return len(first[0] if isinstance(first, tuple) else first)


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


@dataclass(eq=False)
class _Seen:
    """What one pass says of some rows."""

    columns: dict[str, SeenColumn]
    sampler: Sampler

    def merged(self, other: _Seen) -> _Seen:
        """The same of these rows and of those after them."""
        n_rows = self.sampler.n_rows
        columns = {name: column.merged(other.columns[name], n_rows) for name, column in self.columns.items()}
        both = _Seen(columns, self.sampler.merged(other.sampler))
        both.thin(end=True)
        return both

    def thin(self, end: bool = False) -> None:
        """Keep as many rows of the sample as it may have, now and then or in the end."""
        stay = self.sampler.thin(end)
        if stay is not None:
            for column in self.columns.values():
                column.thin(stay)


@dataclass(frozen=True, eq=False)
class _FirstPass:
    """One pass over a part of a table: columns fill up, and batches are kept.

    Attributes:
        columns: That have seen nothing yet.
        size: Rows of the sample, at most.
        seed: Of the sample.
        kept: Where batches are kept; None for nowhere.
    """

    columns: dict[str, SeenColumn]
    size: int
    seed: int
    kept: _Kept | None

    def __call__(self, part: Part) -> _Seen:
        columns = {name: column.emptied() for name, column in self.columns.items()}
        sampler = Sampler(self.size, self.seed, part.place)
        seen = _Seen(columns, sampler)
        numeric = [column.name for column in columns.values() if column.way == "number"]
        for row, batch in part.batches(tuple(columns), numeric):
            start = sampler.n_rows
            picked = sampler.pick(batch.num_rows)
            values = {}
            for column, array in zip(columns.values(), batch.columns, strict=True):
                values[column.name] = column.add(array, start, picked)
            seen.thin()
            tell(f"first pass, {sampler.n_rows:,} rows{part.called} read")
            if self.kept is not None:
                self.kept.hold(part, row, values, sum(column.labels.nbytes for column in columns.values()))
        seen.thin(end=True)
        if self.kept is not None:
            self.kept.name(part, columns)
        return seen
