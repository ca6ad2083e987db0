"""Two variables as users hand them in, read as tables and checked."""

from __future__ import annotations

from typing import Any

from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable


def read_tables(X: Any, Y: Any) -> tuple[Rows, Rows]:
    """Rows of X and of Y; either must be a table and must vary."""
    x, y = read_rows(X, Y)
    for name, rows in (("X", x), ("Y", y)):
        if rows.variable.is_tensor:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network."
            )
        check_not_constant(rows.table, name)
    return x, y


def read_rows(X: Any, Y: Any) -> tuple[Rows, Rows]:
    """Rows of X and of Y, as many of either."""
    x, y = Variable.seen(X, "X").rows(X), Variable.seen(Y, "Y").rows(Y)
    if len(x) != len(y):
        raise ValueError(f"X and Y must have the same rows, got {len(x)} and {len(y)}. Align them row by row.")
    return x, y
