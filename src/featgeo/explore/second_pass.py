"""From the sketch of a table to the cells of its columns, and from rows to cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from featgeo.explore.cells import OTHERS, Cells, JointCells, date_parts, label_cells, number_cells
from featgeo.explore.counting import Counts, Plan, content_hash, number_hash
from featgeo.explore.seen import ColumnSketch
from featgeo.explore.sketch import Sketch
from featgeo.explore.three_way import Interactions
from featgeo.explore.values import Repeated
from featgeo.features.dates import DATE_PARTS
from featgeo.reading.source import Part, Source
from featgeo.tuning import in_force
from featgeo.watch import tell

TABLE_BYTES = 2**27  # of the tables of all pairs, about: memory
FEWEST_NAMED = 3  # rows that a column must have to be called an identifier: two always count up
SAME_SPREAD = 1e-6  # by which a standard deviation may be off in rounding
FEWEST_CELLS = 8  # of a number, however many columns there are
ROWS_AT_ONCE = 2**18  # that are counted together: all tables go through a processor's cache once for so many
CELLS_AT_ONCE = 2**25  # of these rows and all columns: memory


def cells_of(sketch: Sketch, kept: Collection[str] = ()) -> tuple[Cells, ...]:
    """The cells of all columns that vary, with parts of dates after their dates.

    Args:
        sketch: Of the table.
        kept: Columns that are not set aside as identifiers, since the user speaks of them.
    """
    n_pairs = max(len(sketch.columns) ** 2 / 2, 1)
    by_memory = int(np.sqrt(TABLE_BYTES / (4 * in_force.get().folds * n_pairs)))
    most = int(np.clip(by_memory, FEWEST_CELLS, in_force.get().explore_cells))
    columns: list[Cells] = []
    for column in sketch.columns.values():
        is_constant = column.n_distinct <= 1 and not column.n_missing  # where it is missing may still tell
        if not is_constant and (column.name in kept or not is_identifier(column)):
            columns += _of_column(column, most)
    return tuple(column for column in columns if column.n_values > 1)


def is_identifier(column: ColumnSketch) -> bool:
    """Whether a column names its rows: labels that next to no other row shares, or numbers that count them."""
    n_values = column.n_rows - column.n_missing
    if n_values < FEWEST_NAMED:
        return False
    if column.kind == "label":
        alone = sum(count == 1 for count in column.labels.values()) if column.labels_exact else column.n_distinct
        return n_values - alone < in_force.get().shared_labels * n_values
    if column.kind != "number" or not column.whole or column.maximum - column.minimum != n_values - 1:
        return False
    if column.distinct_exact:
        return column.n_distinct == n_values
    counting = np.sqrt(n_values * (n_values + 1) / 12)  # the standard deviation of n numbers in a row
    return abs(column.std / counting - 1) < SAME_SPREAD


def why_aside(column: ColumnSketch) -> str:
    """Why a column is not among the cells.

    "empty", "constant", "identifier", labels too "rare" to have cells, numbers of too "few rows", or "not compared"
    where it could have been, but not in the exploration that this one is like.
    """
    if column.n_rows == column.n_missing:
        return "empty"
    if column.n_distinct <= 1:
        return "constant"
    if is_identifier(column):
        return "identifier"
    if all(own.n_values == 1 for own in _of_column(column, in_force.get().explore_cells)):
        return "rare" if column.kind == "label" else "few rows"
    return "not compared"


def _of_column(column: ColumnSketch, most: int) -> list[Cells]:
    if column.kind == "label":
        return [label_cells(column.name, dict(column.labels), most, column.labels_exact)]
    n_values = column.n_rows - column.n_missing
    own = [number_cells(column.name, column.kind, column.sample, n_values, most)]
    if column.kind == "date":
        for part, values in date_parts(np.asarray(column.sample)).items():
            cells = number_cells(f"{column.name} ({part})", "number", values, n_values, most, parent=column.name)
            if cells.n_values > 1:
                own.append(cells)
    return own


@dataclass(frozen=True, eq=False)
class Coder:
    """Rows as cells.

    Attributes:
        columns: The cells of each column.
        by_number: Whether the fold of a row follows from its number.
        joint: Columns that are counted together as well, as the last column; None for none.
    """

    columns: tuple[Cells, ...]
    by_number: bool
    joint: JointCells | None = None

    def cells(self, batch: Mapping[str, Any]) -> list[np.ndarray]:
        """The cell of each row, of each column, (n,) each; from a batch as `sketch.typed` gives it."""
        result, parts = [], {}
        for column in self.columns[: -1 if self.joint else None]:
            values = batch[column.parent or column.name]
            if column.kind == "label":
                result.append(column.of_labels(*values))
                continue
            different = values.values if isinstance(values, Repeated) else values
            if column.parent:
                if column.parent not in parts:
                    parts[column.parent] = date_parts(different)
                part = next(part for part in DATE_PARTS if column.name == f"{column.parent} ({part})")
                different = parts[column.parent][part]
            cells = column.of_numbers(different)
            result.append(cells.take(values.codes) if isinstance(values, Repeated) else cells)
        return [*result, self.joint.cells(result)] if self.joint else result

    def joined(self, names: Sequence[str], sketch: Sketch) -> Coder:
        """With a column for some of the columns together, if they are several."""
        members = [i for i, column in enumerate(self.columns) if column.name in names]
        if len(members) < 2:
            return self
        joint = JointCells.of(self.columns, members, self.cells(sample_batch(sketch)), sketch.n_rows)
        return replace(self, columns=(*self.columns, joint.column()), joint=joint)

    @property
    def numbers(self) -> list[Cells]:
        """Columns of numbers and dates, without parts of these."""
        return [column for column in self.columns if column.kind != "label" and not column.parent]

    @cached_property
    def _known(self) -> dict[int, frozenset[str]]:
        """Labels that were seen when the cells were made, of columns where all are kept."""
        return {i: frozenset(column.known) for i, column in enumerate(self.columns) if column.known}

    def new_labels(self, batch: Mapping[str, Any]) -> np.ndarray:
        """Rows of each column with a label that was not there when the cells were made, (p,)."""
        result = np.zeros(len(self.columns), dtype=np.int64)
        for i, known in self._known.items():
            codes, texts = batch[self.columns[i].name]
            is_new = np.array([*(text not in known for text in texts), False])  # the last is that of missing rows
            result[i] = is_new[codes].sum()
        return result

    def folds(self, batch: Mapping[str, Any], cells: list[np.ndarray], first: int, n_folds: int) -> np.ndarray:
        """The fold of each row, (n,): one of so many."""
        hashes = number_hash(first, len(cells[0])) if self.by_number else self.hashes(batch, cells)
        return (hashes % np.uint64(n_folds)).astype(np.int32)

    def hashes(self, batch: Mapping[str, Any], cells: list[np.ndarray]) -> np.ndarray:
        """What each row holds as a number, (n,)."""
        numbers = [batch[column.name] for column in self.numbers]
        labels = [own for column, own in zip(self.columns, cells, strict=True) if column.kind == "label"]
        return content_hash(numbers, labels)


def sample_batch(sketch: Sketch) -> dict[str, Any]:
    """The rows of the sample, as `sketch.typed` gives rows."""
    batch: dict[str, Any] = {}
    for column in sketch.columns.values():
        if column.kind == "label":
            batch[column.name] = column.sample, [*column.labels, OTHERS]  # the last is no label: that of rare ones
        else:
            batch[column.name] = column.sample
    return batch


def are_rows_apart(coder: Coder, sample: Mapping[str, Any], cells: list[np.ndarray], n_rows: int) -> bool:
    """Whether rows have next to no others that are equal to them, judged by a sample of all rows.

    Where they do have many, as in tables of few labels or where most rows hold the same number, a fold would hold all
    rows of a kind, and the others none.
    """
    hashes = coder.hashes(sample, cells)
    if not hashes.ndim:
        return False
    _, counts = np.unique(hashes, return_counts=True)
    n = len(hashes)
    equal = float(np.sum(counts * (counts - 1.0))) / max(n * (n - 1.0), 1.0)  # of two rows
    return equal * n_rows <= in_force.get().equal_rows


def repeated_rows(sketch: Sketch) -> tuple[int, int]:
    """Rows of the sample that are equal to an earlier one of it, in all columns, and of how many that is.

    (0, 0) where rare labels are not told apart.
    """
    if not all(column.labels_exact for column in sketch.columns.values()):
        return 0, 0
    columns = sketch.columns.values()
    numbers = [column.sample for column in columns if column.kind != "label"]
    labels = [np.asarray(column.sample) for column in columns if column.kind == "label"]
    hashes = np.sort(content_hash(numbers, labels))
    return int(np.sum(hashes[1:] == hashes[:-1])), len(hashes)


def counted(
    coder: Coder, source: Source, sketch: Sketch, like: Counts | None = None, three_way: Interactions | None = None
) -> tuple[Counts, Interactions | None]:
    """Count all rows of a table.

    Args:
        coder: From rows to cells.
        source: The table.
        sketch: What the first pass says of it.
        like: Earlier counts, whose tables these are to be like.
        three_way: Sums for interactions, of no rows yet.

    Returns:
        The counts, and the sums for interactions of all rows.
    """
    plan = _plan(coder, sketch) if like is None else like.plan
    if not coder.columns:
        return Counts.empty(plan), three_way
    read = sketch if source.is_read_here else sketch.bare
    found = source.reduced(_SecondPass(coder, read, plan, three_way, like is not None), _Counted.merged)
    return found.counts, found.three_way


def _plan(coder: Coder, sketch: Sketch) -> Plan:
    numbers = [sketch.columns[column.name] for column in coder.numbers]
    centre = np.array([column.mean for column in numbers])
    scale = np.array([column.std for column in numbers])
    reach = [np.abs([column.minimum, column.maximum]).max() for column in numbers]
    scale = np.where(np.isfinite(scale), scale, reach)  # squares of the largest are infinite
    scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
    return Plan.of(coder.columns, sketch.n_rows, coder.by_number, np.nan_to_num(centre), scale)


@dataclass(frozen=True, eq=False)
class _Counted:
    """What the second pass says of some rows."""

    counts: Counts
    three_way: Interactions | None

    def merged(self, other: _Counted) -> _Counted:
        """The same of both."""
        both = self.three_way.merged(other.three_way) if self.three_way and other.three_way else None
        return _Counted(self.counts.merged(other.counts), both)


@dataclass(frozen=True, eq=False)
class _SecondPass:
    """One pass over a part of a table, which counts its rows."""

    coder: Coder
    sketch: Sketch
    plan: Plan
    three_way: Interactions | None
    has_earlier: bool

    def __call__(self, part: Part) -> _Counted:
        coder, counts = self.coder, Counts.empty(self.plan)
        three_way = self.three_way.emptied() if self.three_way else None
        waiting: list[list[np.ndarray]] = []
        at_once, n_rows = min(ROWS_AT_ONCE, CELLS_AT_ONCE // len(coder.columns)), 0
        # Rows are numbered in each file anew, so that files explored one by one add up to all of them together.
        for number, batch in self.sketch.typed_part(part):
            cells = coder.cells(batch)
            folds = coder.folds(batch, cells, number, counts.folds)
            waiting.append([*counts.grouped(cells), folds])
            if three_way is not None:
                three_way.add(cells, folds)
            if self.has_earlier:
                np.add(counts.new_labels, coder.new_labels(batch), out=counts.new_labels)
            if coder.numbers:
                counts.add_values([np.asarray(batch[column.name]) for column in coder.numbers])
            n_rows += len(folds)
            if sum(len(held[-1]) for held in waiting) >= at_once:
                counts.add(waiting)
                waiting = []
            tell(f"second pass, {n_rows:,} rows{part.called} counted")
        if waiting:
            counts.add(waiting)
        return _Counted(counts, three_way)
