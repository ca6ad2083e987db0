"""Columns of files as frames: those of a fit from all that the file holds, later ones as the model knows them.

A column is of the kind that all of its values show (`featgeo.explore.sketch`), or that the user says. The model keeps
it: in files that come later the same column is read as the same kind, and dates as they were written then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from featgeo.explore.seen import ColumnSketch
from featgeo.explore.sketch import Sketch, sketch
from featgeo.explore.values import ISO, ISO_ZONED, Missing, as_plain, codes_of, dates_of, labels_of, numbers_of
from featgeo.reading.arrow import pa
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.features.columns import Column
    from featgeo.reading.source import Source

MOST_CELLS = 200_000_000  # bounds memory: 1.6 GB as they are read, and a fit takes several times that


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file in memory.

    Attributes:
        frame: Its rows, or some of them.
        sketch: What all of its rows showed.
        notes: What about the columns the user should know.
    """

    frame: pd.DataFrame
    sketch: Sketch
    notes: tuple[str, ...]

    @property
    def kinds(self) -> dict[str, str]:
        """Of the columns, by name."""
        return {name: column.kind for name, column in self.sketch.columns.items()}

    @property
    def date_forms(self) -> dict[str, str]:
        """How the dates are written, by the name of their column."""
        return {name: column.form for name, column in self.sketch.columns.items() if column.kind == "date"}


def loaded(source: Source, types: Mapping[str, str], rows: int | None = None, seed: int = 0) -> Loaded:
    """Read a file into memory.

    Args:
        source: The file.
        types: Kinds of columns that the user says; of others than those of the source, too.
        rows: How many rows to draw at random; None for all.
        seed: Of the draw.
    """
    types = {name: kind for name, kind in types.items() if name in source.names}
    found = sketch(source, types)
    if min(rows or found.n_rows, found.n_rows) * len(found.columns) > MOST_CELLS:
        raise ValueError(
            f"The rows must fit in memory, and {found.n_rows:,} rows of {len(found.columns)} columns do not. Take some "
            f"of them, such as by --rows {MOST_CELLS // len(found.columns) // 2}, or fewer columns."
        )
    chosen = None
    if rows is not None and rows < found.n_rows:
        chosen = np.sort(np.random.default_rng(seed).choice(found.n_rows, rows, replace=False))
    parts: dict[str, list[Any]] = {name: [] for name in found.columns}
    for batch in _chosen_rows(found.typed_batches(source), chosen):
        for name, part in batch.items():
            parts[name].append(part)
    zoned = {name for name, kind in source.types.items() if getattr(kind, "tz", None) is not None}
    frame = pd.DataFrame(
        {name: _series(parts.pop(name), column, name in zoned) for name, column in found.columns.items()}
    )
    for name, kind in types.items():
        if kind == "label" and name in frame:
            frame[name] = frame[name].astype("category")  # said to be labels, it is kept even if each row has its own
    return Loaded(frame, found, tuple(_remarks(found.columns.values())))


def _chosen_rows(batches: Iterator[dict[str, Any]], chosen: np.ndarray | None) -> Iterator[dict[str, Any]]:
    """Values of each column, labels as texts, at all rows or at those with the given numbers, sorted."""
    start = 0
    for batch in batches:
        plain = {name: _texts(*part) if isinstance(part, tuple) else np.asarray(part) for name, part in batch.items()}
        end = start + len(next(iter(plain.values())))
        if chosen is not None:
            here = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, end)] - start
            plain = {name: values[here] for name, values in plain.items()}
        tell(f"second pass, {end:,} rows read")
        yield plain
        start = end


def _texts(codes: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    every = np.empty(len(texts) + 1, dtype=object)  # the last one, at -1, is missing
    every[:-1] = texts
    return every[codes]


def _series(parts: list[np.ndarray], column: ColumnSketch, zoned: bool) -> pd.Series:
    values = np.concatenate(parts)
    parts.clear()
    if column.kind == "date":
        return _dates(values, zoned or column.form == ISO_ZONED)
    return pd.Series(values, dtype=object if column.kind == "label" else np.float64)


def _dates(microseconds: np.ndarray, zoned: bool) -> pd.Series:
    times = np.full(len(microseconds), "NaT", dtype="datetime64[us]")
    known = ~np.isnan(microseconds)
    times[known] = microseconds[known].astype(np.int64).astype("datetime64[us]")
    series = pd.Series(times)
    return series.dt.tz_localize("UTC") if zoned else series


def _remarks(columns: Iterable[ColumnSketch]) -> Iterator[str]:
    """What was seen in columns that are not what they seem to be."""
    for column in columns:
        if not column.n_words:
            continue
        row, example = column.examples[0]
        where = f"such as {example[:40]!r} in row {row + 1:,}"
        if column.kind == "label":
            yield (
                f"Column {column.name!r} is read as labels: {column.n_words:,} of its values are no numbers or dates, "
                f"{where}. To count these as missing, say --types {column.name}=number or {column.name}=date."
            )
        else:
            yield (
                f"Column {column.name!r} is read as {column.kind}s: {column.n_words:,} of its values are none, {where}"
                ", and count as missing."
            )


@dataclass(eq=False)
class AsTheModelKnows:
    """Columns of later files, batch by batch, as the columns of a fit.

    Args:
        columns: Of the fit.
        date_forms: How dates were written in the file of the fit, by column.
        types: Arrow types of the file's columns, by name.

    Attributes:
        read: How many values each column had so far.
        unread: How many could not be read as the kind of the fit, and count as missing.
        unknown: How many labels there were that the fit never saw.
    """

    columns: Sequence[Column]
    date_forms: Mapping[str, str]
    types: Mapping[str, Any]
    read: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for column in self.columns:
            kind = self.types[column.name]
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
            plain = text or pa.types.is_null(kind) or pa.types.is_dictionary(kind)
            is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
            if not plain and column.kind != "label" and is_date != (column.kind == "date"):
                raise ValueError(
                    f"Column {column.name!r} held {column.kind}s in the fit, and holds {kind} here. Convert it."
                )

    def frame(self, batch: Any) -> pd.DataFrame:
        """The columns of the fit in a record batch."""
        return pd.DataFrame({column.name: self._series(column, batch.column(column.name)) for column in self.columns})

    def check_all_read(self) -> None:
        """Refuse columns in which nothing could be read."""
        for column in self.columns:
            if self.unread[column.name] and not self.read[column.name]:
                raise ValueError(
                    f"Column {column.name!r} held {column.kind}s in the fit, and none of its "
                    f"{self.unread[column.name]:,} values here is one. Check that it is the same column."
                )

    def remarks(self) -> list[str]:
        """What was not as in the fit."""
        unread = [
            f"Column {name!r}: {count:,} values cannot be read as in the fit, and count as missing."
            for name, count in self.unread.items()
            if count
        ]
        return unread + [
            f"Column {name!r}: {count:,} rows have labels that the fit never saw, and count as average."
            for name, count in self.unknown.items()
            if count
        ]

    def _series(self, column: Column, array: Any) -> pd.Series:
        array = as_plain(array)
        if column.kind == "label" and all(isinstance(label, str) for label in column.categories):
            return self._labels(column, labels_of(array))
        if column.kind == "date":
            form = self.date_forms.get(column.name, ISO_ZONED if column.form == "zoned" else ISO)
            values, unread = dates_of(array, form, _MISSING)
        else:
            values, unread = numbers_of(array, _MISSING)
        values = np.asarray(values)
        self.unread[column.name] += 0 if unread is None else int(unread.sum())
        self.read[column.name] += int(np.sum(~np.isnan(values)))
        if column.kind == "date":
            return _dates(values, column.form == "zoned")
        return pd.Series(values if column.form != "span" else pd.to_timedelta(values, unit="s"))

    def _labels(self, column: Column, labels: Any) -> pd.Series:
        texts = labels.dictionary.to_pylist()
        codes = _MISSING.places_of(labels.dictionary)[codes_of(labels)]
        known = set(column.categories)
        strange = np.array([text not in known for text in texts] + [False])
        self.unknown[column.name] += int(strange[codes].sum())
        return pd.Series(_texts(codes, texts), dtype=object)


_MISSING = Missing()
