"""Rows of a table that need not fit in memory, as a stream whose parts are read apart.

What is summed over the rows is summed part by part and merged by the tree of `featgeo.reading`: by this process, or by
the workers of a cluster, which are sent spaces and send back moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from featgeo.features.columns import UNKNOWN, stacked
from featgeo.features.variables import Variable
from featgeo.learning.data import CHUNK_ROWS, Pairs, Sides, Stream, T, check_late
from featgeo.ranks import Ranks
from featgeo.reading.source import Part, Source, open_source

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Which columns of a table are x, and which are y."""

    x: list[str]
    y: list[str]

    @classmethod
    def of(cls, names: Sequence[str], y: Any) -> _Columns:
        """All columns but those of y are x."""
        asked = [y] if isinstance(y, str) else y
        if not isinstance(asked, list | tuple) or not asked or not set(map(repr, asked)) <= set(map(repr, names)):
            shown = repr(y) if isinstance(y, str | list | tuple | None) else type(y).__name__
            raise ValueError(
                f"With a table that is read in parts, Y names columns of it, got {shown}. Pass fit(table, 'name') with "
                f"one of {', '.join(map(repr, names[:10]))}, or a list of names."
            )
        x = [name for name in names if name not in asked]
        if not x:
            raise ValueError(f"X is all columns but those of Y, and there is none beside {asked}. Name fewer.")
        return cls(x, list(asked))

    def batches(self, part: Part) -> Iterator[tuple[pd.DataFrame, Any]]:
        """Rows of both sides, some at a time."""
        for _, batch in part.batches([*self.x, *self.y]):
            frame = batch.to_pandas(date_as_object=False)
            yield frame[self.x], frame[self.y[0]] if len(self.y) == 1 else frame[self.y]


class _Batches:
    """All rows of a table, again and again."""

    def __init__(self, source: Source, columns: _Columns) -> None:
        self._source, self._columns = source, columns
        self.places: list[int] = []  # of the parts that the batches of the latest pass are of

    def __iter__(self) -> Iterator[tuple[pd.DataFrame, Any]]:
        self.places = []
        for part in self._source.parts:
            for batch in self._columns.batches(part):
                if len(batch[1]):
                    self.places.append(part.place)
                    yield batch


class TableStream(Stream):
    """Rows of a table.

    Args:
        table: A Dask frame, or the path of a file or folder, of typed columns.
        y: The name of the column of y, or of several. All others are x.
        head_rows: How many rows spaces are learned from, at least: the first.
    """

    def __init__(self, table: Any, y: Any, head_rows: int = CHUNK_ROWS) -> None:
        source = open_source(table)
        source.check_typed()
        self._source, self._columns = source, _Columns.of(source.names, y)
        self._batches = _Batches(source, self._columns)
        self._places: list[int] | None = None
        try:
            super().__init__(self._batches, head_rows)
        except ValueError:
            source.check_rows(len(self._batches.places))
            raise
        self._places = self._places or self._batches.places[: len(self._head)]

    def _with_all_labels(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The head, and rows for all labels of X that it does not show, looked for in all parts."""
        self._places = self._batches.places[: len(self._head)]
        found = self._source.reduced(_LateLabels(self._columns, self.x_variable), _both)
        if found is None:
            return x, y
        x, y = stacked([x, found.x], "X"), stacked([y, found.y], "Y")
        self.x_variable = Variable.seen(x, "X")
        return x, y

    def reduced(self, of_part: Callable[[int, Iterator[Pairs]], T], merged: Callable[[T, T], T]) -> T:
        """What is told of all rows: by this process, or by the workers of a cluster."""
        self._used = True
        return self._source.reduced(_OfPart(of_part, self._columns, self._sides), merged)

    def own_chunks(self, ranks: Ranks) -> Iterator[Pairs]:
        """The rows of this rank: those of every so many parts, if there is one for each rank. It reads no other."""
        if ranks.size == 1 or len(self._source.parts) < ranks.size:
            yield from super().own_chunks(ranks)
            return
        for part in self._source.parts[ranks.own]:
            yield from (self._sides.pair(*batch) for batch in self._columns.batches(part) if len(batch[1]))

    def dealt(self, folds: np.ndarray | None) -> dict[int, np.ndarray]:
        """Folds of the rows of the head, by the place of the part that begins with them."""
        if folds is None:
            return {}
        ends = np.cumsum([0, *(len(y) for _, y in self._head)])
        found: dict[int, list[np.ndarray]] = {}
        for place, start, end in zip(self._places or [], ends, ends[1:], strict=False):
            found.setdefault(place, []).append(folds[start:end])
        return {place: np.concatenate(parts) for place, parts in found.items()}

    @property
    def head_of_next_pass(self) -> Pairs:
        """All passes begin with the same rows."""
        return self.head


@dataclass(frozen=True, eq=False)
class _OfPart:
    """What is told of a part of a table, from its rows as both variables."""

    of_part: Callable[[int, Iterator[Pairs]], Any]
    columns: _Columns
    sides: Sides

    def __call__(self, part: Part) -> Any:
        return self.of_part(part.place, (self.sides.pair(*batch) for batch in self.columns.batches(part)))


@dataclass(frozen=True, eq=False)
class _Late:
    """Rows that between them show labels: x, y, and for each row those that none before it shows."""

    x: pd.DataFrame
    y: Any
    shown: list[frozenset[tuple[str, Any]]]

    def merged(self, other: _Late) -> _Late:
        """These rows, and of the others those that show more."""
        seen, kept = set().union(*self.shown), []
        for row, labels in enumerate(other.shown):
            if labels - seen:
                kept.append(row)
                seen |= labels
        check_late(len(self.shown) + len(kept))
        x, y = stacked([self.x, other.x.iloc[kept]], "X"), stacked([self.y, other.y.iloc[kept]], "Y")
        return _Late(x, y, [*self.shown, *(other.shown[row] for row in kept)])


def _both(a: _Late | None, b: _Late | None) -> _Late | None:
    return b if a is None else a if b is None else a.merged(b)


@dataclass(frozen=True, eq=False)
class _LateLabels:
    """Rows of a part that show the labels which a variable does not know."""

    columns: _Columns
    variable: Variable

    def __call__(self, part: Part) -> _Late | None:
        found = None
        for x, y in self.columns.batches(part):
            found = _both(found, self._of(x, y))
        return found

    def _of(self, x: pd.DataFrame, y: Any) -> _Late | None:
        unknown = self.variable.rows(x).table.codes == UNKNOWN
        names = [column.name for column in self.variable.labels]
        firsts: set[int] = set()
        for name, of_column in zip(names, unknown.T, strict=True):
            at = np.flatnonzero(of_column)
            firsts |= {*at[~x[name].iloc[at].duplicated().to_numpy()].tolist()}
        if not firsts:
            return None
        rows = sorted(firsts)
        check_late(len(rows))
        shown = [
            frozenset((name, x[name].iloc[row]) for name, new in zip(names, unknown[row], strict=True) if new)
            for row in rows
        ]
        return _Late(x.iloc[rows], y.iloc[rows], shown)
