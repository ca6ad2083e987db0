"""A column as a finite alphabet of cells, and the functions on it, from smooth to rough.

A number or a date falls into cells of neighbouring ranks, about as many rows in each; a value that is frequent, or one
of few, has a cell of its own. A label that enough rows share has a cell, all others share one. The last cell is that of
missing values. So a table of counts says all that two columns have to say about each other, up to the width of their
cells; what is finite anyway loses nothing.

Functions on cells are ordered: of numbers and dates waves along the ranks, one half-wave, two, ...; of labels contrasts
of the most frequent first. The first few are the smooth ones, all of them are every function there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from featgeo.explore.steps import contrasts
from featgeo.explore.values import Repeated, distinct
from featgeo.features.dates import DATE_PARTS, date_part
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

Kind = Literal["number", "label", "date"]
MOST_JOINT = 256  # cells of several columns together: tables with all others are kept
ROWS_SEARCHED = 2**14  # at a time: they stay in a processor's cache
MOST_KNOWN = 10_000  # labels whose names are kept, so that those of later files are known to be new
POWERS = 2  # of normal scores, and
TAIL_POWERS = 2  # beyond these
GIVEN = "(given, together)"  # a column of cells of several given ones, which is nobody's own
OTHERS = "(others)"
MISSING = "(missing)"
MOST_DIGITS = 17  # tell all numbers apart
_WHOLE_UP_TO = 1e15  # numbers that are written without an exponent
_SHORTEST = 3  # digits of the shortest numbers that are written; dates of as few are days
_UNITS = ("D", "D", "D", "m", "s", "ms", "us")  # of times, by digits beyond these: the coarsest first


@saved
@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column.

    Attributes:
        name: Of the column; a part of a date names it after the date.
        kind: What the column holds.
        edges: Of numbers and dates, the largest value in each cell but the last, rising, (m - 1,).
        places: Of numbers and dates, the mean of the rows in each cell, (m,).
        labels: Those with a cell of their own, the most frequent first; all others have the cell after them.
        known: All labels that were seen, where they are not too many to be kept.
        whole: Whether all functions count: no cell holds more than one value.
        parent: The date that this is a part of.
        spans: Of numbers and dates, the smallest and the largest value seen in each cell, (m, 2).
    """

    name: str
    kind: Kind
    edges: Array
    places: Array
    labels: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    whole: bool = False
    parent: str = ""
    spans: Array = field(default_factory=lambda: np.empty((0, 2)))

    @cached_property
    def n_values(self) -> int:
        """How many cells there are for values, the missing one not counted."""
        return len(self.labels) + 1 if self.kind == "label" else len(self.edges) + 1

    @property
    def is_finite(self) -> bool:
        """Whether all functions on the cells are learned: there are few, and each stands for one value."""
        return self.n_values <= in_force.get().finite_values + 1 and (self.whole or self.kind == "label")

    @property
    def resolutions(self) -> tuple[int, int, int]:
        """How many functions, from the smooth ones on, are tried: a few, more, many."""
        every = max(self.n_values - 1, 1)
        few, more, many = (every, every, every) if self.is_finite else in_force.get().explore_waves
        if self.kind == "label":  # the rarest of many labels are the roughest functions
            few, more, many = more, many, every
        return min(few, every), min(more, every), min(many, every)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.n_values + 1

    def is_same(self, other: Cells) -> bool:
        """Whether the other has the same name and the same cells."""
        return (self.name, self.kind, self.labels) == (other.name, other.kind, other.labels) and np.array_equal(
            self.edges, other.edges
        )

    def of_numbers(self, values: Array) -> np.ndarray:
        """The cell of each number, (n,); NaN is missing."""
        cells = np.empty(len(values), dtype=self._code)
        for start in range(0, len(values), ROWS_SEARCHED):
            some = slice(start, start + ROWS_SEARCHED)
            cells[some] = _places_among(self.edges, values[some])
        cells[np.isnan(values)] = self.n_values
        return cells

    def of_labels(self, codes: np.ndarray, texts: Sequence[str]) -> np.ndarray:
        """The cell of each label, (n,), from its place among `texts`; -1 is missing."""
        cell = {label: i for i, label in enumerate(self.labels)}
        others = len(self.labels)
        cells = np.array([*(cell.get(text, others) for text in texts), self.n_values], dtype=self._code)
        return cells.take(codes)

    @property
    def _code(self) -> np.dtype[Any]:
        """The smallest type that numbers all cells."""
        return np.min_scalar_type(self.n_values)

    def names(self) -> list[str]:
        """What to call each cell, the missing one last."""
        if self.kind == "label":
            return [*self.labels, OTHERS, MISSING]
        return [*self.run_names(np.arange(self.n_values)), MISSING]

    def run_names(self, last: np.ndarray, fewest: int = 6) -> list[str]:
        """What to call runs of neighbouring cells of numbers or dates: by their values, or by ends between them.

        Args:
            last: The cell that each run ends with.
            fewest: Digits of ends, more where they would be the same.
        """
        if self.whole or self.is_of_whole_numbers:
            spans = self.spans if len(self.spans) else np.column_stack([self.places, self.places])
            ends = self.texts(np.r_[spans[np.r_[0, last[:-1] + 1], 0], spans[last, 1]])
            lows, highs = ends[: len(last)], ends[len(last) :]
            return [low if low == high else f"{low} to {high}" for low, high in zip(lows, highs, strict=True)]
        edges = self.texts(self.edges[last[:-1]], fewest=fewest)
        between = [f"{low} to {high}" for low, high in pairwise(edges)]
        return [f"to {edges[0]}", *between, f"over {edges[-1]}"] if edges else ["all"]

    def at(self, run: str) -> str:
        """Where the column is, in a sentence, from a name of cells; what may hold anything is quoted."""
        if self.kind == "label":
            return f"{self.name!r} = {run!r}"
        if " to " in run:
            return f"{self.name!r} from {run}"
        if run.startswith("to "):
            return f"{self.name!r} up {run}"
        return f"{self.name!r} {run}" if run.startswith("over ") else f"{self.name!r} = {run}"

    @property
    def is_of_whole_numbers(self) -> bool:
        """Whether "3 to 5" means 3, 4 and 5."""
        return self.kind == "number" and len(self.spans) > 0 and bool((self.spans == np.rint(self.spans)).all())

    def text(self, value: float) -> str:
        """A number as people write it, a date as one."""
        return self.texts([value])[0]

    def texts(self, values: Sequence[float] | Array, fewest: int = 6) -> list[str]:
        """The same of several, with as many digits as tell them apart, at least so many."""
        written = _dates if self.kind == "date" and np.isfinite(values).all() else _numbers
        distinct, texts = len({float(value) for value in values}), [""]
        for digits in range(fewest, MOST_DIGITS + 1):
            texts = written(values, digits)
            if len(set(texts)) == distinct:
                break
        return texts

    def functions(self, counts: np.ndarray, most: int | None = None) -> Array:
        """Orthonormal functions on the cells under their counts, from smooth to rough, (size, d); 0 where none is.

        As many as are ever looked at: all of a column of few values, else as many as its finest resolution.

        Args:
            counts: Rows in each cell, (size,); the missing cell does not count.
            most: How many of them are wanted, the smoothest; None for all.
        """
        counts = np.asarray(counts, dtype=np.float64)[: self.n_values]
        seen = np.flatnonzero(counts)
        root = np.sqrt(counts[seen] / max(counts.sum(), 1.0))
        d = min(max(len(seen) - 1, 0), self.resolutions[-1])
        kept = d if most is None else min(d, most)
        result = np.zeros((self.size, kept))
        if kept and self.kind == "label":
            result[seen] = label_contrasts(root**2)[:, :kept]
        elif kept:
            start = _waves(np.cumsum(root**2) - root**2 / 2, d)[:, :kept]
            vectors = np.column_stack([root, start * root[:, None]])
            basis, triangle = np.linalg.qr(vectors)
            sign = np.where(np.diag(triangle) < 0, -1.0, 1.0)
            result[seen] = (basis * sign / root[:, None])[:, 1:]
        return result


def label_contrasts(shares: Array) -> Array:
    """Orthonormal functions of labels with these shares, each of one label against those after it, (..., s, s - 1)."""
    return contrasts(shares[..., ::-1])[..., ::-1, ::-1]


def _places_among(edges: Array, values: Array) -> np.ndarray:
    """How many edges, rising, are less than each value, (n,).

    The halves of a search are chosen for all values together, by arithmetic: a processor that guesses them, one value
    after the other, is wrong half of the time.
    """
    half = 1 << len(edges).bit_length() >> 1
    padded = np.append(edges, np.full(2 * half, np.inf))
    place = np.zeros(len(values), dtype=np.intp)
    while half:
        place += half * (padded.take(place + (half - 1)) < values)
        half >>= 1
    return place


def _numbers(values: Sequence[float] | Array, digits: int) -> list[str]:
    # Digits before the point are all written: 1813, not 1.81e+03.
    return [
        f"{value:.0f}"
        if abs(value) < _WHOLE_UP_TO and (value == np.rint(value) or abs(value) >= 10**digits)
        else f"{value:.{digits}g}"
        for value in map(float, values)
    ]


def _dates(values: Sequence[float] | Array, digits: int) -> list[str]:
    """Microseconds since 1970 as dates, with times where not all are at midnight and more than few digits are asked."""
    times = np.asarray(values, dtype=np.float64).astype("datetime64[us]")
    is_whole = (times == times.astype("datetime64[D]")).all()
    unit = "D" if is_whole else _UNITS[min(max(digits - _SHORTEST, 0), len(_UNITS) - 1)]
    return [text.replace("T", " ") for text in times.astype(f"datetime64[{unit}]").astype(str).tolist()]


def _waves(ranks: Array, d: int) -> Array:
    """The first d functions of ranks between 0 and 1, (m, d), from smooth to rough.

    Powers of normal scores, which many laws are smooth in, take turns with half-waves, which serve all others; higher
    powers, which rest on the outermost rows, are the last of many functions. The longest half-waves are along ranks,
    shorter ones along cells, which are narrow towards either end: as curves in normal scores turn faster there.
    """
    turns = min(POWERS, d)
    scales = np.where(np.arange(d) < turns, ranks[:, None], _scale_of_cells(ranks)[:, None])
    half_waves = np.cos(np.pi * scales * np.arange(1, d + 1))
    powers = np.polynomial.hermite_e.hermevander(ndtri(ranks), POWERS + TAIL_POWERS)[:, 1:]
    first = np.stack([powers[:, :turns], half_waves[:, :turns]], axis=2).reshape(len(ranks), 2 * turns)
    last = powers[:, POWERS:] if d > in_force.get().explore_waves[1] else powers[:, :0]
    middle = half_waves[:, turns : max(d - turns - last.shape[1], turns)]
    return np.hstack([first, middle, last])[:, :d]


def _scale_of_cells(ranks: Array) -> Array:
    """Where ranks are, from 0 to 1, if cells that become smaller towards either end are equally far from each other.

    Functions of bell curves change most there.
    """
    return (ranks + 2 / np.pi * np.arcsin(np.sqrt(ranks))) / 2


def number_cells(name: str, kind: Kind, sample: Array | Repeated, n_rows: int, most: int, parent: str = "") -> Cells:
    """The cells of numbers or dates.

    Args:
        name: Of the column.
        kind: "number" or "date".
        sample: Values of a sample of the rows, (s,); NaN where missing.
        n_rows: Rows of all data that have a value.
        most: Cells, at most.
        parent: The date that the numbers are a part of.
    """
    options = in_force.get()
    values, counts = distinct(sample)
    n_sample = int(counts.sum())
    if not len(values):
        return Cells(name, kind, np.empty(0), np.zeros(1), parent=parent, spans=np.zeros((1, 2)))
    fewest = options.rows_a_function * n_sample / max(n_rows, 1)  # rows of the sample in a cell
    few_values = len(values) <= min(options.finite_values, most)
    last = _group_ends(counts, len(values) if few_values else most, fewest)
    if len(last) == 1:  # small groups that grow one by one may end as one, where there are rows for two
        last = _group_ends(counts, 2, fewest)
    first = np.r_[0, last[:-1] + 1]
    largest = np.finfo(np.float64).max / n_sample
    finite = np.clip(values, -largest, largest)
    places = np.add.reduceat(finite * counts, first) / np.add.reduceat(counts, first)
    spans = finite[np.column_stack([first, last])]
    return Cells(name, kind, values[last[:-1]], places, whole=len(last) == len(values), parent=parent, spans=spans)


def _group_ends(counts: np.ndarray, most: int, fewest: float) -> np.ndarray:
    """Where groups of neighbouring values end.

    Args:
        counts: Rows of each value, in order.
        most: Groups, about; a value that alone fills as much as one is a group. Where there are as many values, each.
        fewest: Rows that a group must hold; smaller ones join the smaller of their neighbours.
    """
    total = counts.sum()
    ranks = (np.cumsum(counts) - counts / 2) / total
    part = np.floor(_scale_of_cells(ranks) * most)
    heavy = counts * most >= total if len(counts) > most else np.ones(len(counts), dtype=bool)
    part[heavy] = -1 - np.flatnonzero(heavy)
    ends = [*np.flatnonzero(np.diff(part)).tolist(), len(counts) - 1]
    rows = np.add.reduceat(counts, np.r_[0, np.array(ends[:-1], dtype=np.int64) + 1]).tolist()
    while len(ends) > 1 and min(rows) < fewest:
        i = rows.index(min(rows))
        left = i == len(rows) - 1 or (i > 0 and rows[i - 1] <= rows[i + 1])
        i -= left
        rows[i : i + 2] = [rows[i] + rows[i + 1]]
        del ends[i]
    return np.array(ends, dtype=np.int64)


def is_same_date(a: Cells, b: Cells) -> bool:
    """Whether two columns are a date and a part of it, or two parts."""
    return bool(a.parent or b.parent) and (a.parent or a.name) == (b.parent or b.name)


def coarser(column: Cells, counts: np.ndarray, most: int) -> Cells:
    """The same column in fewer cells: neighbouring ones together, or fewer labels of their own.

    Args:
        column: Its cells.
        counts: Rows in each of them, (size,) or without the missing cell.
        most: Cells for values, at most.
    """
    counts = counts[: column.n_values]
    if column.kind == "label":
        kept = len(column.labels) + (counts[-1] > 0)
        return column if kept <= most else replace(column, labels=column.labels[: most - 1], whole=False)
    if column.n_values <= most:
        return column
    last = _group_ends(np.maximum(counts, COLLINEAR), most, 0)
    while len(last) > most:  # values that are heavy have groups of their own, and all others fill gaps between them
        rows = np.add.reduceat(counts, np.r_[0, last[:-1] + 1])
        last = np.delete(last, int(np.argmin(rows[:-1] + rows[1:])))
    first = np.r_[0, last[:-1] + 1]
    rows = np.maximum(np.add.reduceat(counts, first), 1)
    places = np.add.reduceat(column.places * counts, first) / rows
    spans = np.column_stack([column.spans[first, 0], column.spans[last, 1]])
    return replace(column, edges=column.edges[last[:-1]], places=places, whole=False, spans=spans)


def places_in(column: Cells, merged: Cells) -> np.ndarray:
    """The cell among the merged ones that holds each cell of a column, the missing one last, (size,)."""
    if column.kind == "label":
        inside = np.minimum(np.arange(column.n_values), len(merged.labels))
    else:
        inside = np.r_[np.searchsorted(merged.edges, column.edges), merged.n_values - 1]
    return np.r_[inside, merged.n_values]


def label_cells(name: str, labels: dict[str, int], most: int, exact: bool = True) -> Cells:
    """The cells of labels.

    Args:
        name: Of the column.
        labels: Rows of each label, or of the frequent ones.
        most: Cells, at most.
        exact: Whether these are all labels there are.
    """
    fewest = in_force.get().rows_a_function
    ranked = sorted(labels, key=lambda label: (-labels[label], label))
    frequent = tuple(label for label in ranked[: most - 1] if labels[label] >= fewest)
    known = tuple(ranked) if exact and len(ranked) <= MOST_KNOWN else ()
    return Cells(name, "label", np.empty(0), np.empty(0), frequent, known, whole=len(ranked) - len(frequent) <= 1)


def date_parts(values: Array) -> dict[str, Array]:
    """The parts of dates, as numbers, by name; from microseconds, NaN where missing, (n,)."""
    missing = np.isnan(values)
    times = np.where(missing, 0, values).astype(np.int64).view("datetime64[us]")
    return {part: np.where(missing, np.nan, date_part(times, part)) for part in DATE_PARTS}


@saved
@dataclass(frozen=True, eq=False)
class JointCells:
    """Several columns together, as one of few cells: each is cut into parts, and combinations of parts are the cells.

    Attributes:
        members: Places of the columns.
        parts: The part of each cell, for each member.
        cell: The cell of each combination of parts; rare ones share one.
    """

    members: tuple[int, ...]
    parts: tuple[np.ndarray, ...]
    cell: np.ndarray

    @classmethod
    def of(
        cls, columns: Sequence[Cells], members: Sequence[int], cells: Sequence[np.ndarray], n_rows: int
    ) -> JointCells:
        """From the cells of a sample of rows.

        Args:
            columns: All columns.
            members: Places of those to be joined.
            cells: The cell of each row of a sample, of each column.
            n_rows: Of all data.
        """
        n_sample = len(cells[0])
        most = max(2.0, (n_rows / in_force.get().rows_a_function) ** 0.5)  # so that a cell still tells of functions
        room = min(MOST_JOINT, most) ** (1 / len(members))
        parts = tuple(_parts(columns[i], np.bincount(cells[i], minlength=columns[i].size), room) for i in members)
        combined = _combined(parts, [cells[i] for i in members])
        rows = np.bincount(combined, minlength=math.prod(int(part.max()) + 1 for part in parts))
        frequent = rows * (n_rows / n_sample) >= in_force.get().rows_a_function
        cell = np.where(frequent, np.cumsum(frequent) - 1, frequent.sum())
        return cls(tuple(members), parts, cell)

    def cells(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """The cell of each row, (n,), from the cells of all columns."""
        return self.cell[_combined(self.parts, [cells[i] for i in self.members])]

    def column(self) -> Cells:
        """The cells as a column, which is never missing."""
        labels = tuple(f"combination {i}" for i in range(int(self.cell.max())))
        return Cells(GIVEN, "label", np.empty(0), np.empty(0), labels)


def _combined(parts: Sequence[np.ndarray], cells: Sequence[np.ndarray]) -> np.ndarray:
    place = np.zeros(len(cells[0]), dtype=np.int64)
    for part, own in zip(parts, cells, strict=True):
        place = place * (int(part.max()) + 1) + part[own]
    return place


def _parts(column: Cells, rows: np.ndarray, room: float) -> np.ndarray:
    """The part that each cell belongs to, at most as many as there is room for: neighbours, or frequent labels."""
    n_parts = int(np.clip(room, 2, column.size))
    if column.kind == "label":
        place = np.empty(column.size, dtype=np.int64)
        place[np.argsort(-rows, kind="stable")] = np.arange(column.size)
        return np.minimum(place, n_parts - 1)
    own = rows[:-1] / max(rows[:-1].sum(), 1)
    ranks = np.cumsum(own) - own / 2
    parts = np.floor(ranks * n_parts).astype(np.int64)
    missing = n_parts if rows[-1] else 0  # a part of its own, if there are any
    return np.unique(np.append(parts, missing), return_inverse=True)[1]
