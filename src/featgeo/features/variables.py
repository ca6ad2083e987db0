"""Variables as users hand them in, read once into columns of numbers and of labels, or into a tensor.

A variable is an array, a tensor, a data frame, a series or a list. Up to two dimensions it is a *table*: each column
holds numbers (NaN stands for a missing value), or labels, or dates, which become numbers. With three or more dimensions
it is a *tensor*: images or sequences, for networks.

What was seen in the fit is kept: the same columns in the same order are due later. A label that was not seen then has
code -1, and every space answers it with what is true on average: it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.utils import _safe_indexing

from featgeo.features.columns import Column, codes_of, column_of, numbers_of
from featgeo.features.identifiers import identifiers
from featgeo.features.raw import as_tensor, columns_of, is_frame, plain, shape_of, taken
from featgeo.geometry.validation import Array
from featgeo.schema import saved


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers and of coded labels.

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
        return Table(self.numbers[index], self.codes[index])


@saved
@dataclass(frozen=True)
class Variable:
    """How a variable was given in the fit, and is due afterwards.

    Attributes:
        name: What messages call it.
        columns: Its columns, for a table: those that spaces read.
        shape: Shape of one row, for a tensor; () for a table.
        named: Whether the columns came with names.
        set_aside: Positions and names of further columns, which identify rows and are not read.
    """

    name: str
    columns: tuple[Column, ...] = ()
    shape: tuple[int, ...] = ()
    named: bool = False
    set_aside: tuple[tuple[int, str], ...] = ()

    @classmethod
    def seen(cls, values: Any, name: str) -> Variable:
        """Learn the columns, or the shape, of a variable."""
        values = plain(values)
        shape = shape_of(values, name) if not is_frame(values) else ()
        if len(shape) > 2:
            as_tensor(values, name)
            return cls(name, shape=tuple(shape[1:]))
        raw, named = columns_of(values, name)
        columns = tuple(column_of(key, column, name) for key, column in raw.items())
        aside = identifiers(columns, raw, name)
        read = tuple(column for i, column in enumerate(columns) if i not in aside)
        return cls(name, read, named=named, set_aside=tuple((i, columns[i].name) for i in aside))

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
    def owners(self) -> tuple[list[int], list[int]]:
        """Positions of the columns that numbers come from, a date's several times; and those of labels."""
        is_label = [column.kind == "label" for column in self.columns]
        numbers = [i for i, column in enumerate(self.columns) if not is_label[i] for _ in range(1 + len(column.parts))]
        return numbers, [i for i, label in enumerate(is_label) if label]

    @property
    def came(self) -> list[str]:
        """The names of all columns as they came, those that are set aside too."""
        names = [column.name for column in self.columns]
        for i, name in self.set_aside:
            names.insert(i, name)
        return names

    def positions(self, columns: Sequence[str | int]) -> list[int]:
        """Positions, among the columns that are read, of some by name, or by position among those that came."""
        read, came = [column.name for column in self.columns], self.came
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
        return Rows(self, plain(values))

    def read(self, values: Any) -> Table:
        """The columns of the given rows as numbers and codes."""
        raw, named = columns_of(values, self.name)
        read, aside = [column.name for column in self.columns], {name for _, name in self.set_aside}
        if not (self.named and named):
            if len(raw) != len(self.came):
                raise ValueError(
                    f"{self.name} has {len(raw)} features, but the fit had {len(self.came)}. Pass the same columns. "
                    "Reshape your data with .reshape(1, -1) if it is a single row."
                )
            raw = dict(zip(self.came, raw.values(), strict=True))
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
            np.stack(numbers, axis=1) if numbers else np.empty((n, 0)),
            np.stack(codes, axis=1) if codes else np.empty((n, 0), dtype=np.int64),
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

    def __len__(self) -> int:
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
        return self.raw if isinstance(self.raw, Table) else self.variable.read(self.raw)

    @cached_property
    def numbers(self) -> torch.Tensor:
        """The numbers on the device, (n, p)."""
        return torch.as_tensor(self.table.numbers, device=self.device)

    @cached_property
    def codes(self) -> torch.Tensor:
        """The codes of labels on the device, (n, q)."""
        return torch.as_tensor(self.table.codes, device=self.device)

    @cached_property
    def tensor(self) -> torch.Tensor:
        """The values as they came, as a float tensor on the device; for networks."""
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

    def tables(self) -> tuple[Array, Array] | None:
        """Numbers and codes of labels; None for images and sequences."""
        return None if self.variable.is_tensor else (self.table.numbers, self.table.codes)

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
        return Rows(replace(self.variable, columns=kept, set_aside=()), raw, self.device)._read(table)

    def take(self, index: np.ndarray | slice) -> Rows:
        """Some of the rows."""
        raw = self.raw.take(index) if isinstance(self.raw, Table) else taken(self.raw, index)
        part = Rows(self.variable, raw, self.device)
        if "tensor" in self.__dict__:
            part.__dict__["tensor"] = taken(self.tensor, index)
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


def symbols_of(table: Table) -> tuple[Array, np.ndarray]:
    """The distinct rows of a table, (m, p + q), sorted, as `symbol_keys` writes them, and their counts, (m,)."""
    keys = symbol_keys(table)
    if keys.shape[1] > 1:
        return np.unique(keys, axis=0, return_counts=True)
    symbols, counts = np.unique(keys, return_counts=True)  # the same, sooner
    return symbols[:, None], counts


def symbol_keys(table: Table) -> Array:
    """Each row as numbers that compare: NaN, which equals nothing, becomes infinity, which never comes otherwise."""
    return np.hstack([np.where(np.isnan(table.numbers), np.inf, table.numbers), table.codes])
