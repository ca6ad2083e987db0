"""Variables as users hand them in, read as rows and checked."""

from __future__ import annotations

from typing import Any

from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable


def read_tables(**variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable; all must be tables, and X and Y must vary."""
    every = read_rows(**variables)
    for name, rows in zip(variables, every, strict=True):
        if rows.variable.is_tensor:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network."
            )
        if name != "S":
            check_not_constant(rows.table, name)
    return every


def read_rows(**variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable, as many of all."""
    every = tuple(Variable.seen(values, name).rows(values) for name, values in variables.items())
    lengths = [len(rows) for rows in every]
    if len(set(lengths)) > 1:
        *first, last = variables
        raise ValueError(
            f"{', '.join(first)} and {last} must have the same rows, got {lengths}. Align them row by row."
        )
    return every
