"""Spaces over several groups of columns: sums of functions of each, or all functions of them together.

`Sum` allows f_1(x_1) + f_2(x_2) + ..., `Joint` the span of products of functions of each. In a nesting the first lies
inside the second, and the difference is interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from featgeo.features.space import Space
from featgeo.features.variables import Rows
from featgeo.schema import saved


@saved
@dataclass(frozen=True)
class Sum:
    """Sums of functions of groups of columns, one space a group.

    Attributes:
        parts: Pairs of columns (a name, a position, or a list of them) and a space such as "spline" or a scikit-learn
            transformer.
    """

    parts: Sequence[tuple[Any, Any]]


@saved
@dataclass(frozen=True)
class Joint:
    """Sums of products of functions of groups of columns, one space a group: functions of all of them together.

    Attributes:
        parts: Pairs of columns (a name, a position, or a list of them) and a space.
    """

    parts: Sequence[tuple[Any, Any]]


@saved
@dataclass(eq=False, repr=False)
class ColumnsSpace(Space):
    """Functions of some of the columns of a variable.

    Attributes:
        columns: Their names or positions.
        space: Functions of them.
    """

    columns: tuple[str | int, ...]
    space: Space

    def forward(self, rows: Rows) -> Tensor:
        """Features of those columns, (n, d)."""
        return self.space.forward(rows.select(self.columns))


def as_columns(columns: Any) -> tuple[str | int, ...]:
    """A single name or position as a group of one."""
    if isinstance(columns, str | int):
        return (columns,)
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str | int) for column in columns):
        raise ValueError(f"Columns must be a name, a position, or a list of them, got {columns!r}.")
    return tuple(columns)
