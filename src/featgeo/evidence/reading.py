"""Variables as users hand them in, read as rows and checked.

Weights of a test count rows: a weight of 2 is the row twice, in the statistic, in its null distribution and in how many
rows there are. So rows are taken as often as they count before anything is computed of them, and every test, also by
arrangements of the rows, means the same by them.
"""

from __future__ import annotations

from typing import Any

from featgeo.features.columns import counted
from featgeo.features.variables import Rows, Variable, symbol_keys
from featgeo.geometry.validation import check_same_rows


def read_rows(sample_weight: Any = None, **variables: Any) -> tuple[Rows, ...]:
    """Rows of each variable, as many of all, each as often as it counts; once when `sample_weight` is None."""
    variables = dict(zip(variables, counted(sample_weight, **variables), strict=True))
    every = {name: Variable.seen(values, name).rows(values) for name, values in variables.items()}
    check_same_rows(**every)
    return tuple(every.values())


def read_tables(sample_weight: Any = None, **variables: Any) -> tuple[Rows, ...]:
    """The same of variables that must be tables, and of which X and Y must vary."""
    every = read_rows(sample_weight, **variables)
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
