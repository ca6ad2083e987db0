"""Variables as users hand them in, read once into columns of numbers and of labels, or into a tensor.

A variable is an array, a tensor, a data frame, a series or a list. Up to two dimensions it is a *table*: each column
holds numbers (NaN stands for a missing value), or labels, or dates, which become numbers. With three or more dimensions
it is a *tensor*: images or sequences, for networks. A sparse matrix that is too large for a table is a tensor of one
dimension a row, for transformers. What was seen in the fit is kept: the same columns in the same
order are due later. A label that was not seen then has code -1, and every space answers it with what is true on
average: it says nothing.

A side of a dependence may have several variables (`Parts`), read apart, or side by side as one. In learning with side
information the second side is (S, Y); beside given features Z the first is (X, Z); a history is made of one variable
for each step back. A space reads the parts that it is a function of.

Rows are dealt into folds, and what is learned from some folds tells the rows of the others (`cross_fitted`). A row that
was copied is known to whoever has seen one of its copies: were they dealt apart, held-out rows would praise whatever
memorises. But rows may also be equal by right, where columns take few values or have favourite ones. So equal rows
count as copies only where some column is continuous, x never comes with another y, and chance would hardly make two
such rows: with columns that were independent of each other, there would be none. Labels repeat by right, and so does a
number that they determine, such as the size of the firm that a row is about.

Rows that were left out choose, all by one rule (`preferred`): spaces, ridges, numbers of modes, levels, links, curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing

from featgeo.features.columns import (
    Column,
    RawColumn,
    as_tensor,
    beside_each_other,
    codes_of,
    column_of,
    columns_of,
    finite_size,
    identifiers,
    numbers_of,
    rows_of,
    shape_of,
    taken,
)
from featgeo.features.devices import on_device
from featgeo.geometry.validation import Array, check_same_rows, n_rows_in
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import tell


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers and of coded labels; what belongs to a column lies together in memory: most is done by columns.

    Attributes:
        numbers: Shape (n, p), NaN where missing.
        codes: Shape (n, q), positions among the categories; -1 where unknown.
    """

    numbers: Array
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, index: np.ndarray | slice) -> Table:
        """Some of the rows."""
        return Table(self.numbers.T[:, index].T, self.codes.T[:, index].T)


@saved
@dataclass(frozen=True)
class Variable:
    """How a variable was given in the fit, and is due afterwards.

    Attributes:
        name: What messages call it.
        columns: Its columns, for a table: those that spaces read.
        shape: Shape of one row, for a tensor; () for a table.
        named: Whether the columns came with names.
        came: Names of all columns that came, where some of them identify rows and are not read.
        is_sparse: Whether it is a sparse matrix, too large to be a table: a tensor that only transformers read.
    """

    name: str
    columns: tuple[Column, ...] = ()
    shape: tuple[int, ...] = ()
    named: bool = False
    came: tuple[str, ...] = ()
    is_sparse: bool = False

    @classmethod
    def seen(cls, values: Any, name: str) -> Variable:
        """Learn the columns, or the shape, of a variable."""
        return Rows.seen(values, name).variable

    @classmethod
    def of_columns(cls, raw: Mapping[str, RawColumn], named: bool, name: str) -> Variable:
        """Learn the columns of a table."""
        columns = tuple(column_of(key, column, name) for key, column in raw.items())
        aside = identifiers(columns, raw, name)
        read = tuple(column for i, column in enumerate(columns) if i not in aside)
        return cls(name, read, named=named, came=tuple(raw) if aside else ())

    @property
    def is_tensor(self) -> bool:
        """Whether rows are tensors of one or more dimensions, and not columns."""
        return bool(self.shape)

    @property
    def numbers(self) -> list[Column]:
        """The columns of numbers and dates."""
        return [column for column in self.columns if column.kind != "label"]

    @property
    def labels(self) -> list[Column]:
        """The columns of labels."""
        return [column for column in self.columns if column.kind == "label"]

    @property
    def many_labels(self) -> tuple[int, ...]:
        """Positions, among the columns of labels, of those with more labels than can each have an indicator."""
        return tuple(j for j, column in enumerate(self.labels) if column.n_labels > in_force.get().finite_values)

    @property
    def owners(self) -> tuple[list[int], list[int]]:
        """Positions of the columns that numbers come from, a date's several times; and those of labels."""
        is_label = [column.kind == "label" for column in self.columns]
        numbers = [i for i, column in enumerate(self.columns) if not is_label[i] for _ in range(1 + len(column.parts))]
        return numbers, [i for i, label in enumerate(is_label) if label]

    def positions(self, columns: Sequence[str | int]) -> list[int]:
        """Positions, among the columns that are read, of some by name, or by position among those that came."""
        read = [column.name for column in self.columns]
        came = self.came or read
        names: list[Any] = [came[c] if isinstance(c, int) and -len(came) <= c < len(came) else c for c in columns]
        if not set(names) <= set(read) or (not self.named and any(isinstance(column, str) for column in columns)):
            way_out = (
                "Use these names, or positions from 0 on."
                if self.named
                else "Columns came without names: use positions from 0 on, or keep the names, which scalers drop, by "
                "set_output(transform='pandas')."
            )
            raise ValueError(f"{self.name} has no columns {list(columns)}; it has {read}. {way_out}")
        return [read.index(name) for name in names]

    def rows(self, values: Any) -> Rows:
        """Rows of this variable, checked against what the fit saw."""
        rows = rows_of(values, self.name)
        if self.is_sparse and tuple(rows.shape[1:]) != self.shape:
            raise ValueError(
                f"{self.name} has {rows.shape[-1]} features, but the fit had {self.shape[0]}. Pass the same columns."
            )
        return Rows(self, rows)

    def read(self, raw: Mapping[str, RawColumn], named: bool) -> Table:
        """The columns of the given rows as numbers and codes.

        Args:
            raw: The columns, by name.
            named: Whether they came with names.
        """
        read = [column.name for column in self.columns]
        came, aside = self.came or read, set(self.came) - set(read)
        if not (self.named and named):
            if len(raw) != len(came):
                raise ValueError(
                    f"{self.name} has {len(raw)} features, but the fit had {len(came)}. Pass the same columns. "
                    "Reshape your data with .reshape(1, -1) if it is a single row."
                )
            raw = dict(zip(came, raw.values(), strict=True))
        if raw.keys() - aside != set(read):  # what identifies rows need not be there
            raise ValueError(
                f"{self.name} must have the columns of the fit, {read}, got "
                f"{[name for name in raw if name not in aside]}. Add the missing ones and drop the others."
            )
        numbers, codes = [], []
        for column in self.columns:
            if column.kind == "label":
                codes.append(codes_of(column, raw[column.name], self.name))
            else:
                numbers += numbers_of(column, raw[column.name], self.name)
        n = len(raw[read[0]].values)
        return Table(
            beside_each_other(numbers, raw[read[0]].block) if numbers else np.empty((n, 0)),
            np.stack(codes).T if codes else np.empty((n, 0), dtype=np.int64),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a variable, as each space wants to see them.

    Attributes:
        variable: How the variable was given in the fit.
        raw: The rows as they came; a `Table` where variables were put side by side.
        device: Where the tensors are that spaces read.
        memo: What was already computed of these rows and serves several spaces.
    """

    variable: Variable
    raw: Any
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    memo: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def seen(cls, values: Any, name: str) -> Rows:
        """Rows, from which the columns or the shape of their variable are learned; both by reading them once."""
        values = rows_of(values, name)
        shape = shape_of(values, name)
        if sparse.issparse(values):
            finite_size(values.data, name)
            return cls(Variable(name, shape=tuple(shape[1:]), is_sparse=True), values)
        if len(shape) > 2:
            as_tensor(values, name)
            return cls(Variable(name, shape=tuple(shape[1:])), values)
        raw, named = columns_of(values, name)
        variable = Variable.of_columns(raw, named, name)
        return cls(variable, values)._read(variable.read(raw, named))

    def __len__(self) -> int:
        if self.variable.is_sparse:
            return n_rows_in(self.raw)
        return len(self.tensor) if self.variable.is_tensor else len(self.table)

    @property
    def cells(self) -> int:
        """How many numbers and labels these rows hold."""
        return len(self) * (
            int(np.prod(self.variable.shape)) if self.variable.is_tensor else len(self.variable.columns)
        )

    @cached_property
    def table(self) -> Table:
        """Numbers and codes; for variables that are tables."""
        if self.variable.is_tensor:
            raise ValueError(
                f"{self.variable.name} has rows of shape {self.variable.shape}, which only networks read. Use the "
                "space 'image' or 'sequence', a torch module, or flatten the rows."
            )
        if isinstance(self.raw, Table):
            return self.raw
        return self.variable.read(*columns_of(self.raw, self.variable.name))

    @cached_property
    def numbers(self) -> torch.Tensor:
        """The numbers on the device, (n, p)."""
        return self._there(self.table.numbers)

    @cached_property
    def codes(self) -> torch.Tensor:
        """The codes of labels on the device, (n, q)."""
        return self._there(self.table.codes)

    def _there(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values) if self.device.type == "cpu" else on_device(values, self.device)

    @cached_property
    def tensor(self) -> torch.Tensor:
        """The values as they came, as a float tensor on the device; for networks."""
        if self.variable.is_sparse:
            raise TypeError(f"{self.variable.name} is a large sparse matrix, which networks cannot read. Reduce it.")
        if not self.variable.is_tensor:
            table = self.table
            if table.codes.shape[1] or not np.isfinite(table.numbers).all():
                raise ValueError(
                    f"{self.variable.name} holds labels or missing values, which a torch module cannot read as they "
                    "are. Use the space 'network', which encodes them."
                )
            return self.numbers
        tensor = as_tensor(self.raw, self.variable.name)
        if tuple(tensor.shape[1:]) != self.variable.shape:
            raise ValueError(
                f"{self.variable.name} must have rows of shape {self.variable.shape} as in the fit, got "
                f"{tuple(tensor.shape[1:])}."
            )
        return tensor.to(self.device)

    @property
    def single_numbers(self) -> np.ndarray:
        """The numbers of a variable of one column, as they came, (n,)."""
        (column,) = self.variable.columns
        return column.as_came(self.table.numbers[:, 0])

    def tables(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Numbers and codes of labels on the device; None for images and sequences."""
        return None if self.variable.is_tensor else (self.numbers, self.codes)

    def of(self, *names: str) -> Rows:
        """A single variable is all that there is on its side; see `Parts.of`."""
        return self

    def select(self, columns: Sequence[str | int]) -> Rows:
        """Some of the columns, by name or by position, as a variable of their own."""
        chosen = self.variable.positions(columns)
        numbers, labels = (
            [j for i in chosen for j, owner in enumerate(owners) if owner == i] for owners in self.variable.owners
        )
        table = Table(self.table.numbers[:, numbers], self.table.codes[:, labels])
        kept = tuple(self.variable.columns[i] for i in chosen)
        raw = table if isinstance(self.raw, Table) else self.raw
        if np.ndim(self.raw) > 1:
            raw = _safe_indexing(self.raw, list(columns), axis=1)
        return Rows(replace(self.variable, columns=kept, came=()), raw, self.device)._read(table)

    def take(self, index: np.ndarray | slice) -> Rows:
        """Some of the rows."""
        raw = self.raw.take(index) if isinstance(self.raw, Table) else taken(self.raw, index)
        part = Rows(self.variable, raw, self.device)
        if "tensor" in self.__dict__:
            part.__dict__["tensor"] = taken(self.tensor, index)
        if isinstance(index, slice) and self.device.type != "cpu" and not self.variable.is_tensor:  # moved once for all
            part.__dict__.update(numbers=self.numbers[index], codes=self.codes[index])
        return part._read(self.table.take(index)) if "table" in self.__dict__ else part

    def on(self, device: torch.device) -> Rows:
        """The same rows, for spaces on a device."""
        if device == self.device:
            return self
        moved = Rows(self.variable, self.raw, device)
        return moved._read(self.table) if "table" in self.__dict__ else moved

    def _read(self, table: Table) -> Rows:
        """These rows, where they were read already: nothing is read twice."""
        self.__dict__["table"] = table
        return self


def distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each distinct row of (n, p) comes first, (m,), in their order; the place of each row among them, (n,), and
    their counts, (m,).

    Column by column, which takes a fifth of NumPy's time for rows.
    """
    place = np.zeros(len(keys), dtype=np.int64)
    for column in keys.T:
        values, codes = np.unique(column, return_inverse=True)
        place = np.unique(place * len(values) + codes, return_inverse=True)[1]
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    return first, place, counts


def symbols_of(table: Table) -> tuple[Array, np.ndarray]:
    """The distinct rows of a table, (m, p + q), sorted, as `symbol_keys` writes them, and their counts, (m,)."""
    keys = symbol_keys(table)
    first, _, counts = distinct(keys)
    return keys[first], counts


def symbol_keys(table: Table) -> Array:
    """Each row as numbers that compare: NaN, which equals nothing, becomes infinity, which never comes otherwise."""
    return np.hstack([np.where(np.isnan(table.numbers), np.inf, table.numbers), table.codes])


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of several variables, aligned.

    Attributes:
        rows: The rows of each, by name.
        memo: Groups that were already put side by side.
    """

    rows: Mapping[str, Rows]
    memo: dict[tuple[str, ...], Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_same_rows(**{rows.variable.name: rows for rows in self.rows.values()})

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))

    @property
    def device(self) -> torch.device:
        """Where the tensors are that spaces read."""
        return next(iter(self.rows.values())).device

    @property
    def cells(self) -> int:
        """How many numbers and labels these rows hold."""
        return sum(rows.cells for rows in self.rows.values())

    def tables(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same of all variables side by side; None where there are images or sequences."""
        several = [rows.tables() for rows in self.rows.values()]
        if None in several:
            return None
        numbers, codes = zip(*(pair for pair in several if pair is not None), strict=True)
        return torch.hstack(numbers), torch.hstack(codes)

    def take(self, index: np.ndarray | slice) -> Parts:
        """Some of the rows."""
        return Parts({name: rows.take(index) for name, rows in self.rows.items()})

    def on(self, device: torch.device) -> Parts:
        """The same rows, for spaces on a device."""
        return self if device == self.device else Parts({name: rows.on(device) for name, rows in self.rows.items()})

    def of(self, *names: str) -> Any:
        """The rows of one part, or of several side by side; all parts as they are when none is named."""
        if not names:
            return self
        if len(names) == 1:
            return self.rows[names[0]]
        if names not in self.memo:
            self.memo[names] = _side_by_side([self.rows[name] for name in names])
        return self.memo[names]


def _side_by_side(parts: list[Rows]) -> Rows:
    """The columns of several variables as those of one; images and sequences flattened."""
    name = ", ".join(rows.variable.name for rows in parts)
    if all(rows.variable.is_tensor for rows in parts):
        flat = torch.cat([rows.tensor.flatten(1) for rows in parts], dim=1)
        return Rows(Variable(f"({name})", shape=tuple(flat.shape[1:])), flat, flat.device)
    columns = tuple(
        replace(column, name=f"{rows.variable.name} {column.name}")
        for rows in parts
        for column in rows.variable.columns
    )
    tables = [rows.table for rows in parts]
    table = Table(np.hstack([t.numbers for t in tables]), np.hstack([t.codes for t in tables]))
    return Rows(Variable(f"({name})", columns, named=True), table, parts[0].device)


_MIX = 0x9E3779B97F4A7C15 - 2**64  # odd, with irregular bits: products with it spread over all 64
DEALT_ROWS = 2**20  # that are shuffled; more are dealt like these, over and over: bounds time
HEAD_ROWS = 4096  # columns that are continuous, tables that are too rich, mostly show it early: bounds time


def deal(n_rows: int, n_folds: int, seed: int, copies: np.ndarray | None = None) -> np.ndarray:
    """A fold for each row, (n,), at random and of nearly equal size.

    Args:
        n_rows: How many rows.
        n_folds: How many folds; no more than there are rows.
        seed: Of the deal.
        copies: For each row the group of equal rows that it belongs to, (n,), numbered by first appearance; each row
            for itself when None.
    """
    n_folds = min(n_folds, n_rows)
    n_groups = n_rows if copies is None else int(copies.max(initial=-1)) + 1
    if n_groups < 2 * n_folds:  # folds of a single distinct row do not vary: equal rows are all that there is
        n_groups, copies = n_rows, None
    in_turn = np.tile(np.arange(n_folds), -(-n_groups // n_folds))[: min(n_groups, DEALT_ROWS)]
    fold_of_group = np.resize(np.random.default_rng(seed).permutation(in_turn), n_groups)
    return fold_of_group if copies is None else fold_of_group[copies]


T = TypeVar("T")
Model = TypeVar("Model")


def in_turn(
    fold_of_row: np.ndarray, without: Callable[[np.ndarray], Model], what: str = ""
) -> Iterator[tuple[Model, np.ndarray]]:
    """For each fold a model that has not seen it, and where its rows are; arguments as those of `cross_fitted`."""
    folds = np.unique(fold_of_row)
    for i, fold in enumerate(folds, start=1):
        if what:
            tell(f"{what}, part {i} of {len(folds)}")
        own = np.flatnonzero(fold_of_row == fold)
        yield without(own), own


def cross_fitted(
    fold_of_row: np.ndarray,
    without: Callable[[np.ndarray], Model],
    told: Callable[[Model, np.ndarray], Array],
    what: str = "",
) -> tuple[list[Model], Array]:
    """A model for each fold that has not seen it, and what each row is told by the one that has not seen that row.

    Args:
        fold_of_row: The fold of each row, (n,), as `deal` makes it.
        without: From positions of rows to a model of all others.
        told: What a model says of rows at such positions, one row each.
        what: What to tell that goes on; nothing when "".

    Returns:
        The models, by fold, and what the rows are told, (n, ...).
    """
    found = [(model, own, told(model, own)) for model, own in in_turn(fold_of_row, without, what)]
    models, rows, values = zip(*found, strict=True)
    return list(models), np.concatenate(values)[np.argsort(np.concatenate(rows))]


@dataclass(frozen=True, eq=False)
class Candidate(Generic[T]):
    """Something to choose.

    Attributes:
        what: It.
        cost: Of the same kind for all that it is compared with: modes, functions, work. Cost 0 is to have nothing.
        scores: On each fold of rows that it has not seen, (folds,); the larger the better.
    """

    what: T
    cost: float
    scores: Array

    @property
    def score(self) -> float:
        """Mean over the folds; 0 where no rows judge."""
        return float(np.mean(self.scores)) if len(self.scores) else 0.0


def preferred(candidates: Sequence[Candidate[T]]) -> Candidate[T]:
    """The one that `preferred_places` names."""
    scores, costs = (np.array([getattr(one, part) for one in candidates]) for part in ("scores", "cost"))
    return candidates[int(preferred_places(scores, costs))]


def preferred_places(scores: Array, costs: Array) -> np.ndarray:
    """The cheapest that falls short of the best by no more than one standard error of the difference.

    Of several that cost the same the best, and of equals the first. Whether to have anything at all is for the mean
    score to say: that something is weak is no reason to have nothing.

    Args:
        scores: Of each candidate on each fold, (..., candidates, folds).
        costs: Of each candidate, (..., candidates); 0 for having nothing.

    Returns:
        The place of the one preferred, (...).
    """
    means = scores.mean(axis=-1) if scores.shape[-1] else np.zeros(scores.shape[:-1])
    best = means.argmax(axis=-1)[..., None]
    close = are_within_an_error(np.take_along_axis(scores, best[..., None], axis=-2), scores)
    np.put_along_axis(close, best, True, axis=-1)
    close &= (costs == 0) == (np.take_along_axis(costs, best, axis=-1) == 0)
    cheapest = close & (costs == np.where(close, costs, np.inf).min(axis=-1, keepdims=True))
    return np.where(cheapest, means, -np.inf).argmax(axis=-1)


def is_within_an_error(best: Candidate[T], other: Candidate[T]) -> bool:
    """Whether what the other lacks is no more than its own standard error over the folds."""
    return best is other or bool(are_within_an_error(best.scores, other.scores))


def are_within_an_error(best: Array, others: Array) -> np.ndarray:
    """The same for scores, (..., folds)."""
    loss, folds = best - others, others.shape[-1]
    error = loss.std(axis=-1, ddof=1) / np.sqrt(folds) if folds > 1 else 0.0
    return np.asarray(loss.mean(axis=-1) <= error if folds else np.ones(loss.shape[:-1], dtype=bool))


def equal_beside(tables: Sequence[Any]) -> np.ndarray | None:
    """Positions of rows, (n,), by the first of those that equal them; None where no two are equal.

    Args:
        tables: Numbers and codes of each row, arrays or tensors, (n, d_i).
    """
    keys = _keys(*tables)
    # Sorting takes far less time than their order does; on a CPU it is NumPy that sorts soonest.
    ordered = torch.from_numpy(np.sort(keys.numpy())) if keys.device.type == "cpu" else keys.sort().values
    if (ordered[1:] != ordered[:-1]).all():
        return None
    _, first, place = np.unique(keys.cpu().numpy(), return_index=True, return_inverse=True)
    return np.argsort(first[place], kind="stable")


def copies_of(x: Array, y: Array, codes: np.ndarray | None = None) -> np.ndarray:
    """Groups of copied rows, (n,), numbered by first appearance.

    Args:
        x: Numbers that are known of each row, (n, d); missing values equal each other.
        y: What is to be told from them, (n, e).
        codes: Labels that are known besides, (n, c): however many there are, they repeat by right.
    """
    continuous = [column for column in x.T if _is_continuous(column)]
    if not continuous:
        return np.arange(len(x))
    known = x if codes is None else np.hstack([x, codes])
    x_key, row_key = _keys(known).numpy(), _keys(known, y).numpy()
    _, x_place, x_count = np.unique(x_key, return_inverse=True, return_counts=True)
    if len(x_count) == len(x):
        return np.arange(len(x))
    _, first, place = np.unique(row_key, return_index=True, return_inverse=True)
    if codes is not None and codes.shape[1] and _are_determined(continuous, codes, len(first)):
        return np.arange(len(x))
    y_count = np.bincount(x_place[first], minlength=len(x_count))  # how many different y come with each x
    expected = np.exp(np.log(len(x)) + sum(_log_share(column) for column in np.hstack([known, y]).T))
    copied = (y_count[x_place] == 1) & (expected < in_force.get().chance_copies)
    leader = np.where(copied, first[place], np.arange(len(x)))
    return np.unique(leader, return_inverse=True)[1]


def _is_continuous(column: Array) -> bool:
    """Whether a number takes more values than the square root of the rows: counts of few values grow much faster."""
    most = np.sqrt(len(column))
    return any(len(np.unique(part)) > most for part in (column[:HEAD_ROWS], column))


def _are_determined(numbers: list[Array], codes: np.ndarray, n_distinct: int) -> bool:
    """Whether numbers take hardly a value that the labels of a row do not tell, of labels that different rows share."""
    n_labels = len(np.unique(_keys(codes).numpy()))
    values = (len(np.unique(_keys(codes, column[:, None]).numpy())) for column in numbers)
    return 2 * n_labels < n_distinct and all(n - n_labels < np.sqrt(len(codes)) for n in values)


def _log_share(column: Array) -> Array:
    """The logarithm of the share of rows that have the value of each, (n,)."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    return np.asarray(np.log(counts / len(column))[place])


def _keys(*tables: Any) -> torch.Tensor:
    """A number of 64 bits for each row of some tables side by side, (n,).

    It is equal for equal rows and else different but for a chance of 2^-64.
    """
    keys = torch.zeros(len(tables[0]), dtype=torch.int64, device=getattr(tables[0], "device", None))
    for column in (column for table in tables for column in table.T):
        is_tensor = isinstance(column, torch.Tensor)
        copied = column.to(torch.float64, copy=True) if is_tensor else torch.tensor(column, dtype=torch.float64)
        number = copied.add_(0.0)  # no -0
        bits = number.masked_fill_(number.isnan(), torch.nan).view(torch.int64)  # and one NaN
        keys ^= bits
        keys ^= (keys >> 32).bitwise_and_(2**32 - 1)
        keys *= _MIX
        keys ^= (keys >> 29).bitwise_and_(2**35 - 1)
    return keys
