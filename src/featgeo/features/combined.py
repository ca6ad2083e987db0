"""Spaces over several groups of columns: sums of functions of each, or all functions of them together.

`Sum` allows f_1(x_1) + f_2(x_2) + ..., `Joint` the span of products of functions of each. In a nesting the first lies
inside the second, and the difference is interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from featgeo.features.spaces import Space
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.validation import Array
from featgeo.schema import saved

MOST_PRODUCTS = 2000


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
@dataclass(frozen=True, eq=False)
class CombinedSpace:
    """A fitted `Sum` or `Joint`.

    Attributes:
        columns: The columns of each group.
        variables: How each group is given.
        spaces: The space of each group.
        products: Whether features of different groups are multiplied.
    """

    columns: tuple[tuple[Any, ...], ...]
    variables: tuple[Variable, ...]
    spaces: tuple[Space, ...]
    products: bool

    def __call__(self, rows: Rows) -> Array:
        """Features of the groups side by side, or their products."""
        groups = zip(self.columns, self.variables, self.spaces, strict=True)
        blocks = [space(variable.rows(group_of(rows, columns))) for columns, variable, space in groups]
        return products(blocks) if self.products else np.hstack(blocks)


def as_columns(columns: Any) -> tuple[Any, ...]:
    """A single name or position as a group of one."""
    if isinstance(columns, str | int):
        return (columns,)
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str | int) for column in columns):
        raise ValueError(f"Columns must be a name, a position, or a list of them, got {columns!r}.")
    return tuple(columns)


def group_of(rows: Rows, columns: tuple[Any, ...]) -> Any:
    """Some columns of the rows, as they came."""
    if np.ndim(rows.raw) == 1 and columns == (0,):
        return rows.raw
    try:
        return _safe_indexing(rows.raw, list(columns), axis=1)
    except (KeyError, IndexError, ValueError) as error:
        names = [column.name for column in rows.variable.columns]
        way_out = (
            "Use these names, or positions from 0 on."
            if rows.variable.named
            else "Columns came without names: use positions from 0 on, or keep the names, which scalers drop, by "
            "set_output(transform='pandas')."
        )
        raise ValueError(f"{rows.variable.name} has no columns {list(columns)}; it has {names}. {way_out}") from error


def check_few_products(sizes: Sequence[int]) -> None:
    """Refuse more products of features of several blocks, and 1, than a Gram matrix should hold."""
    n_products = int(np.prod([size + 1 for size in sizes])) - 1
    if n_products > MOST_PRODUCTS:
        raise ValueError(
            f"A joint space of {list(sizes)} features has {n_products} products, more than {MOST_PRODUCTS}. Use "
            "smaller spaces, or 'kernel' or 'trees' for all columns together."
        )


def products(blocks: Sequence[Array]) -> Array:
    """All products of one feature (or 1) of each block, but for 1 itself, (n, d)."""
    check_few_products([block.shape[1] for block in blocks])
    one = np.ones((len(blocks[0]), 1))
    result = one
    for block in blocks:
        result = (result[:, :, None] * np.hstack([one, block])[:, None, :]).reshape(len(block), -1)
    return result[:, 1:]
