"""Two variables as users hand them in, read as tables and checked."""

from __future__ import annotations

from typing import Any

from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable
from featgeo.learning.data import Pairs


def read_pairs(X: Any, Y: Any) -> Pairs:
    """Rows of X and Y side by side; either must be a table and must vary."""
    return Pairs(_read(X, "X"), _read(Y, "Y"))


def _read(values: Any, name: str) -> Rows:
    variable = Variable.seen(values, name)
    if variable.is_tensor:
        raise ValueError(
            f"{name} must have shape (n,) or (n, p), got rows of shape {variable.shape}. Flatten each row, or pass "
            "features of it, such as those of a network."
        )
    rows = variable.rows(values)
    check_not_constant(rows.table, name)
    return rows
