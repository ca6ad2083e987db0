"""Variables as users hand them in, read as rows and checked."""

from __future__ import annotations

from typing import Any

from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable, symbol_keys


def read_tables(**variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable; all must be tables, and X and Y must vary."""
    every = read_rows(**variables)
    check_tables(**dict(zip(variables, every, strict=True)))
    return every


def check_tables(**variables: Rows) -> None:
    """Refuse tensors, and an X or Y that never varies."""
    for name, rows in variables.items():
        if rows.variable.is_tensor:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network; `independence_test` learns some with "
                "method='learned'."
            )
    check_varies(**{name: rows for name, rows in variables.items() if name != "S"})


def check_varies(**variables: Rows) -> None:
    """Refuse variables that never vary."""
    for name, rows in variables.items():
        if not rows.variable.is_tensor:
            check_not_constant(rows.table, name)
        elif not varies(rows):
            raise ValueError(f"{name} never varies: nothing can depend on it. Pass rows of at least two values.")


def varies(rows: Rows) -> bool:
    """Whether two rows differ."""
    values = rows.tensor.flatten(1).numpy() if rows.variable.is_tensor else symbol_keys(rows.table)
    return bool((values != values[0]).any())


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
