"""Names of variables and labels of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from featgeo.geometry.validation import as_names


def variable_names(names: Sequence[str] | None, n_variables: int) -> tuple[str, ...]:
    """The names of the variables of a table; by default y is the last and the others are x, or x1, x2, ..."""
    if n_variables < 1:
        raise ValueError(
            "A table needs at least one variable, got a single number. Pass an array with one axis a variable."
        )
    if names is None:
        many = n_variables > 2
        return (*(f"x{i + 1}" if many else "x" for i in range(n_variables - 1)), "y")
    result = as_names(names)
    if len(result) != n_variables:
        raise ValueError(
            f"The table has {n_variables} axes but {len(result)} names came: {result}. Name each axis once."
        )
    return result


def symbol_labels(
    categories: Sequence[Sequence[Any]] | None, names: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], ...] | None:
    """The labels of the symbols of each variable, checked against the shape of the table."""
    if categories is None:
        return None
    try:
        result = tuple(tuple(labels) for labels in categories)
    except TypeError as error:
        raise ValueError(f"`categories` must list the labels of each variable, got {str(categories)[:80]}.") from error
    sizes = tuple(len(labels) for labels in result)
    if sizes != shape:
        raise ValueError(f"Each symbol of {names} needs one label: expected {shape} labels, got {sizes}.")
    return result


def as_column(values: Any) -> np.ndarray:
    """Labels as they are: left to itself, numpy would turn a missing label among texts into the text "nan"."""
    if hasattr(values, "dtype"):
        column = np.asarray(values)
    elif isinstance(values, Iterable) and not isinstance(values, str | Mapping):
        column = np.fromiter(values, dtype=object)
    else:
        raise ValueError(f"Samples must be columns of labels, got {type(values).__name__}. Pass lists or arrays.")
    if column.dtype.kind == "V":
        raise ValueError(f"Samples must be columns of labels, got {column.dtype}. Pass each field as a column.")
    return column


def coded(column: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of a column, and for each row the position of its label."""
    unequal_to_itself, is_none = column != column, column == None  # noqa: E711 - elementwise
    if np.any(unequal_to_itself | is_none):
        raise ValueError(f"Column {name!r} has missing values. Drop these rows, or give missing values a label.")
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Labels of {name!r} cannot be put in order ({error}). Convert them to text first.") from error
