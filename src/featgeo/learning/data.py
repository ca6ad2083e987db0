"""Rows of both sides of a dependence: in memory, or as a stream of batches that need not fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
import torch

from featgeo.features.columns import UNKNOWN, rows_of, stacked, taken
from featgeo.features.devices import moved
from featgeo.features.recipes import is_finite
from featgeo.features.variables import Parts, Rows, Variable, copies_of, deal, equal_beside
from featgeo.geometry.validation import check_same_rows
from featgeo.ranks import Ranks
from featgeo.watch import launched

T = TypeVar("T")
CPU = torch.device("cpu")
CHUNK_ROWS = 65_536  # rows at a time: bounds memory
MOST_LATE_LABELS = 10_000  # rows that are kept beside the first ones: bounds memory


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of both sides, in memory; a side may have several variables."""

    x: Rows | Parts
    y: Rows | Parts
    _there: dict[torch.device, Pairs] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_same_rows(X=self.x, Y=self.y)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def cells(self) -> float:
        """How many numbers and labels there are."""
        return self.x.cells + self.y.cells

    def check_y(self) -> None:
        """Refuse missing numbers in Y, and labels of Y that the first rows of a stream did not show."""
        y = self.y.of("y")
        if not y.variable.is_tensor and np.isnan(y.table.numbers).any():
            raise ValueError("Y holds missing values (NaN). Drop these rows: what they say about X is not known.")
        if not y.variable.is_tensor and (y.table.codes == UNKNOWN).any():
            raise ValueError("Y has labels that the first rows of the stream did not show. Shuffle the rows.")
        if any(column.origin for column in y.variable.numbers) and not is_finite(y):
            raise ValueError(
                "Y holds whole numbers beyond 2**53 that are one and the same as floats, which is what predictions of "
                "it are. Subtract what they have in common, such as Y - Y.min()."
            )

    def chunks(self, size: int = CHUNK_ROWS) -> Iterator[Pairs]:
        """All rows, some at a time, in order."""
        if len(self) <= size:
            yield self
            return
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def own_chunks(self, ranks: Ranks) -> Iterator[Pairs]:
        """The rows of this rank, some at a time."""
        return (self if ranks.size == 1 else self.take(ranks.own)).chunks()

    def take(self, index: np.ndarray | slice) -> Pairs:
        """Some of the rows."""
        return Pairs(self.x.take(index), self.y.take(index))

    def on(self, device: torch.device) -> Pairs:
        """The same rows on a device; kept, as they are read often."""
        if device == self.x.device == self.y.device:
            return self
        if device not in self._there:
            self._there[device] = Pairs(self.x.on(device), self.y.on(device))
        return self._there[device]

    def there(self, device: torch.device) -> Pairs:
        """The same rows where they are computed with, if they fit there."""
        return self if device.type == "cpu" else moved(self, device)

    def folds(self, n_folds: int, seed: int) -> np.ndarray:
        """A fold for each row, (n,), at random; copies of a row fall into the same one.

        Of columns that take few values, and of labels, rows repeat by right: they are dealt one by one.
        """
        x, y = self.x.tables(), self.y.tables()
        if x is None or y is None or self._order is None:
            return deal(len(self), n_folds, seed)
        return deal(len(self), n_folds, seed, copies_of(x[0].numpy(), torch.hstack(y).numpy(), x[1].numpy()))

    def in_order(self, device: torch.device = CPU) -> Pairs:
        """The same rows, equal ones beside each other: so it does not matter where a row that counts twice comes again.

        Images and sequences stay as they came.

        Args:
            device: Where rows are compared, if they fit there.
        """
        order = self.there(device)._order
        return self if order is None else self.take(order)

    @cached_property
    def _order(self) -> np.ndarray | None:
        """Positions that put equal rows beside each other, (n,); None where no two are equal."""
        for there in self._there.values():  # a GPU is sooner
            return there._order
        x, y = self.x.tables(), self.y.tables()
        return None if x is None or y is None else equal_beside([*x, *y])

    def sample(self, n_rows: int, seed: int) -> Pairs:
        """At most so many rows, at random."""
        return self if len(self) <= n_rows else self.take(some_rows(len(self), seed, n_rows))


def some_rows(n_rows: int, seed: int, most: int) -> np.ndarray:
    """Positions of at most so many rows, at random and in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


@dataclass(frozen=True, eq=False)
class Incomplete:
    """Rows of several variables that may miss anywhere.

    Attributes:
        rows: For each variable the rows that have it.
        where: For each variable the position of each row among those, (n,); -1 where it misses.
    """

    rows: Mapping[str, Rows]
    where: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.where.values())))

    def in_order(self) -> Incomplete:
        """The same rows, equal ones beside each other; images and sequences stay as they came."""
        columns = []
        for name, rows in self.rows.items():
            tables, there = rows.tables(), self.where[name] >= 0
            if tables is None:
                return self
            values = np.full((len(self), sum(table.shape[1] for table in tables)), np.nan)
            values[there] = torch.hstack(tables).numpy()[self.where[name][there]]
            columns.append(values)
        order = equal_beside(columns)
        if order is None:
            return self
        where = {name: place[order] for name, place in self.where.items()}
        rows_in_order = {name: self.rows[name].take(place[place >= 0]) for name, place in where.items()}
        at = {name: np.where(place >= 0, np.cumsum(place >= 0) - 1, -1) for name, place in where.items()}
        return Incomplete(rows_in_order, at)

    def having(self, *names: str) -> np.ndarray:
        """Positions of the rows that have all of these variables."""
        return np.flatnonzero(np.all([self.where[name] >= 0 for name in names], axis=0))

    def take(self, index: np.ndarray, *names: str) -> Parts:
        """Some of the rows, of variables that all of them have."""
        return Parts({name: self.rows[name].take(self.where[name][index]) for name in names})

    def pairs(self, index: np.ndarray, x: tuple[str, ...], y: str = "y") -> Pairs:
        """Some of the rows as pairs of the variables x, side by side, and y."""
        return Pairs(self.take(index, *x).of(*x), self.take(index, y).of(y))

    def groups(self) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
        """Rows that have the same variables, those with the most first: their positions, some at a time, and names."""
        has = np.stack([where >= 0 for where in self.where.values()], axis=1)
        for pattern, index in sorted(rows_by_pattern(has), key=lambda group: -int(group[0].sum())):
            names = tuple(name for name, there in zip(self.where, pattern, strict=True) if there)
            for start in range(0, len(index) if names else 0, CHUNK_ROWS):
                yield index[start : start + CHUNK_ROWS], names


def rows_by_pattern(has: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each distinct row of truth values, (m,), with the positions of the rows that are like it."""
    if len(has) == 0:
        return
    keys = np.packbits(has, axis=1)
    order = np.lexsort(keys.T) if keys.shape[1] > 1 else np.argsort(keys[:, 0], kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        index = np.sort(order[start:end])
        yield has[index[0]], index


def is_apart(x: Any, y: Any) -> bool:
    """Whether x is a table that is read in parts, a Dask frame or a path, of which y names columns."""
    named = isinstance(y, str) or (isinstance(y, list | tuple) and all(isinstance(name, str) for name in y))
    return nw.dependencies.is_dask_dataframe(x) or (named and isinstance(x, str | os.PathLike))


@dataclass(frozen=True, eq=False)
class Sides:
    """Both variables of a stream."""

    x: Variable
    y: Variable

    def pair(self, x: Any, y: Any) -> Pairs:
        """Rows of both, which must be like those that the stream began with."""
        pair = Pairs(self.x.rows(x), self.y.rows(y))
        pair.check_y()
        if self.x.labels and (pair.x.of("x").table.codes == UNKNOWN).any():
            raise ValueError(
                "X has labels that the first rows of the stream did not show, and these batches can be read only once. "
                "Pass a DataLoader, a list or another iterable that can start again, or shuffle the rows."
            )
        return pair


class Stream:
    """Batches (x, y) that are read one after the other; the first rows are kept, to learn spaces from.

    Batches should come in random order: spaces are fitted to the first rows. Labels of X that these do not show are
    looked for in a further pass, and a row of each is kept with them; batches that can be read only once must not bring
    any.
    """

    cells = float("inf")  # nobody knows

    def __init__(self, batches: Iterable[Any], head_rows: int = CHUNK_ROWS) -> None:
        self.batches = batches
        self._repeatable = not isinstance(batches, Iterator)
        self._iterator = self._pass()
        self._head: list[tuple[Any, Any]] = []
        rows = 0
        for batch in self._iterator:
            self._head.append(_two(batch))
            rows += len(self._head[-1][1])
            if rows >= head_rows:
                break
        if not self._head:
            raise ValueError("The stream of batches is empty. Pass an iterable of (x, y) batches.")
        x, y = stacked([x for x, _ in self._head], "X"), stacked([y for _, y in self._head], "Y")
        x_rows, y_rows = Rows.seen(x, "X"), Rows.seen(y, "Y")
        self.head = Pairs(x_rows, y_rows)
        self.x_variable, self.y_variable = x_rows.variable, y_rows.variable
        self._used = False
        if self.x_variable.labels and self._repeatable and rows >= head_rows:
            x, y = self._with_all_labels(x, y)
            self.head = Pairs(self.x_variable.rows(x), self.y_variable.rows(y))

    def _with_all_labels(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The head, and a row for each label of X that it does not show."""
        n_labels = 0
        for batch in self._pass():
            more_x, more_y = _two(batch)
            codes = self.x_variable.rows(more_x).table.codes
            new = np.flatnonzero((codes == UNKNOWN).any(axis=1))
            if not len(new):
                continue
            first = new[_first_rows(taken(rows_of(more_x, "X"), new))]
            n_labels += len(first)
            check_late(n_labels)
            x = stacked([x, taken(rows_of(more_x, "X"), first)], "X")
            y = stacked([y, taken(rows_of(more_y, "Y"), first)], "Y")
            self.x_variable = Variable.seen(x, "X")
        return x, y

    def _pass(self, seed: int = 0) -> Iterator[Any]:
        """All batches; processes that were started together learn spaces from the same ones, by this seed."""
        return iter(self.batches) if launched() is None else _in_one_order(self.batches, seed)

    def own_chunks(self, ranks: Ranks) -> Iterator[Pairs]:
        """Of all batches, in order, the rows of this rank: of a list, and of what has positions as one, whole batches.

        Others are read whole, but for loaders (`shares_of`).
        """
        if ranks.size == 1:
            yield from self.chunks()
            return
        if isinstance(self.batches, Sequence) and len(self.batches) >= ranks.size:
            yield from (self.pair(self.batches[i]) for i in range(len(self.batches))[ranks.own])
            return
        batches, rows = shares_of(self.batches, ranks)
        for batch in _in_one_order(batches):
            own = self.pair(batch).take(rows)
            if len(own):
                yield own

    def chunks(self) -> Iterator[Pairs]:
        """All batches, in order; again from the start where the iterable allows it."""
        if not self._used:
            batches: Iterable[Any] = chain(self._head, self._iterator)
        elif self._repeatable:
            batches = self.batches
        else:
            raise ValueError(
                "These batches can be read only once, and more than one pass is needed. Pass a DataLoader or a list, "
                "or another iterable that can start again."
            )
        self._used = True
        for batch in batches:
            yield self.pair(batch)

    def reduced(self, of_part: Callable[[int, Iterator[Pairs]], T], merged: Callable[[T, T], T]) -> T:
        """What is told of all batches, from what is told of parts: a stream is one part.

        Args:
            of_part: What is told of a part, from its place among all and its batches.
            merged: What is told of both, from what is told of some parts and of those after them.
        """
        return of_part(0, self.chunks())

    def dealt(self, folds: np.ndarray | None) -> dict[int, np.ndarray]:
        """Folds of the rows of the head, by the place of the part that begins with them."""
        return {} if folds is None else {0: folds}

    @property
    def head_of_next_pass(self) -> Pairs | None:
        """The rows that the next pass begins with, where they are known: later passes may come in another order."""
        return None if self._used else self.head

    @property
    def _sides(self) -> Sides:
        return Sides(self.x_variable, self.y_variable)

    def pair(self, batch: Any) -> Pairs:
        """A batch as rows of both variables."""
        return self._sides.pair(*_two(batch))

    @property
    def starts_alike(self) -> bool:
        """Whether every pass begins with the same batch, so that it can be kept apart."""
        if not self._repeatable:
            return False
        first = self.pair(next(self._pass(seed=1))).x.of("x").raw
        return bool(np.array_equal(np.asarray(first), np.asarray(self._head[0][0])))

    def sample(self, n_rows: int, seed: int) -> Pairs:
        """Rows from the head of the stream."""
        return self.head.sample(n_rows, seed)


def check_late(n_rows: int) -> None:
    """Refuse to keep too many rows for the labels that the first rows do not show."""
    if n_rows > MOST_LATE_LABELS:
        raise ValueError(
            f"X brings more than {MOST_LATE_LABELS} labels that its first {CHUNK_ROWS} rows do not show. Drop the "
            "column that tells nearly every row from all others, or merge its rare labels."
        )


@dataclass(frozen=True)
class _OwnPositions:
    """Of the positions that make each batch those of this rank; batches with too few are left out."""

    batches: Iterable[list[Any]]
    ranks: Ranks
    fewest: int

    def __iter__(self) -> Iterator[list[Any]]:
        own = (positions[self.ranks.own] for positions in self.batches if len(positions) >= self.fewest)
        return (positions for positions in own if len(positions))


OF_LOADERS = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
              "generator", "prefetch_factor", "persistent_workers")  # fmt: skip  # options that say how rows are read


def shares_of(batches: Iterable[Any], ranks: Ranks, fewest: int = 1) -> tuple[Iterable[Any], slice]:
    """Batches of which each rank has rows of its own, and where these are in what comes.

    Of a dataset with positions, which a `DataLoader` puts into batches, a rank reads its own rows only; others come
    whole.

    Args:
        batches: The batches of all ranks.
        ranks: Which rows are its own.
        fewest: Rows that a batch of such a loader has, of all ranks together; smaller ones are left out.
    """
    from torch.utils.data import DataLoader, DistributedSampler, IterableDataset

    loader: Any = batches
    is_plain = type(loader) is DataLoader  # other kinds may do other things with positions
    if ranks.size == 1 or not is_plain or isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return batches, ranks.own
    if isinstance(loader.sampler, DistributedSampler):
        raise ValueError(
            "Each rank takes its share of every batch of a loader, and this one has a DistributedSampler, which deals "
            "rows already. Pass a loader without it, the same on all ranks."
        )
    own = _OwnPositions(loader.batch_sampler, ranks, fewest)
    how = {name: getattr(loader, name) for name in OF_LOADERS}
    return DataLoader(loader.dataset, batch_sampler=own, **how), slice(None)


def _in_one_order(batches: Iterable[Any], seed: int = 0) -> Iterator[Any]:
    """A pass over batches that, where it is shuffled, is so on all ranks alike, whatever random numbers they drew."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        one_pass = iter(batches)
        first = list(islice(one_pass, 1))
    return chain(first, one_pass)


def _first_rows(x: Any) -> np.ndarray:
    """Positions of rows that between them show every label, (m,)."""
    codes = Rows.seen(x, "X").table.codes
    firsts = [np.unique(column, return_index=True)[1] for column in codes.T]
    return np.unique(np.concatenate(firsts))


def _two(batch: Any) -> tuple[Any, Any]:
    is_pair = isinstance(batch, tuple | list) and len(batch) == 2
    if not is_pair or not hasattr(batch[1], "__len__") or getattr(batch[1], "ndim", 1) == 0:
        raise ValueError(
            f"Without Y, X must be an iterable of batches (x, y) of arrays, got {type(batch).__name__} in it. "
            "Pass fit(X, Y), or yield tuples of two arrays."
        )
    return batch[0], batch[1]
