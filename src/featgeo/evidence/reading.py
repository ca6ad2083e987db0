"""Variables as users hand them in, read as rows and checked."""

from __future__ import annotations

from typing import Any

from featgeo.features.variables import Rows, Variable, symbol_keys
from featgeo.geometry.validation import check_same_rows


def read_rows(**variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable, as many of all."""
    every = {name: Variable.seen(values, name).rows(values) for name, values in variables.items()}
    check_same_rows(**every)
    return tuple(every.values())


def read_tables(**variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable; all must be tables, and X and Y must vary."""
    every = read_rows(**variables)
    check_rows(*every)
    return every


def check_rows(*variables: Rows, tensors: bool = False) -> None:
    """Refuse an X or Y that never varies, and images and sequences, unless tensors will do."""
    for rows in variables:
        name = rows.variable.name
        if rows.variable.is_tensor and not tensors:
            raise ValueError(
                f"{name} must have shape (n,) or (n, p), got rows of shape {rows.variable.shape}. Flatten each row, or "
                "pass features of it, such as those of a network; `independence_test` learns some with "
                "method='learned'."
            )
        if name != "S" and not varies(rows):
            raise ValueError(f"{name} never varies: nothing can depend on it. Pass rows of at least two values.")


def varies(rows: Rows) -> bool:
    """Whether two rows differ."""
    values = rows.tensor.flatten(1).numpy() if rows.variable.is_tensor else symbol_keys(rows.table)
    return bool((values != values[0]).any())
