"""Several variables on one side of a dependence: read apart, or side by side as one.

In learning with side information the second side is (S, Y); beside given features Z the first is (X, Z); a history is
made of one variable for each step back. A space reads the parts that it is a function of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from featgeo.features.variables import Rows, Table, Variable
from featgeo.geometry.validation import Array


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
        lengths = {rows.variable.name: len(rows) for rows in self.rows.values()}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"All variables must have the same rows, got inconsistent numbers of samples: {lengths}. Align them "
                "row by row."
            )

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

    def tables(self) -> tuple[Array, Array] | None:
        """All numbers and all codes of labels side by side; None where there are images or sequences."""
        several = [rows.tables() for rows in self.rows.values()]
        if None in several:
            return None
        numbers, codes = zip(*(pair for pair in several if pair is not None), strict=True)
        return np.hstack(numbers), np.hstack(codes)

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
