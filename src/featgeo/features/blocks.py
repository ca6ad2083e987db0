"""Spaces made of spaces: of some of the variables of a side, or of some columns, and their sums and products.

`Sum` allows f_1(x_1) + f_2(x_2) + ... of groups of columns, `Joint` the span of products of functions of each. In a
nesting the first lies inside the second, and the difference is interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featgeo.features.space import Space
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.schema import saved

LARGEST = 1e100  # sums of squares of numbers between this and its inverse are numbers, with much to spare
MOST_PRODUCTS = 2000


@saved
@dataclass(eq=False, repr=False)
class PartSpace(Space):
    """Functions of some of the variables of a side.

    Attributes:
        names: The parts that are read.
        space: Functions of them.
    """

    names: tuple[str, ...]
    space: Space

    def forward(self, rows: Any) -> Tensor:
        """Features of those parts, (n, d)."""
        return self.space.forward(rows.of(*self.names))


@saved
@dataclass(eq=False, repr=False)
class SideBySide(Space):
    """The sum of several spaces of the same side: their features side by side; of no space, none."""

    spaces: tuple[Space, ...]

    def forward(self, rows: Any) -> Tensor:
        """All features, (n, d_1 + d_2 + ...)."""
        if not self.spaces:
            return torch.empty((len(rows), 0), dtype=torch.float64, device=rows.device)
        return torch.cat([space.forward(rows) for space in self.spaces], dim=1)


@saved
@dataclass(eq=False, repr=False)
class ScaledSpace(Space):
    """A space with its features divided by fixed numbers: the span is the same.

    Attributes:
        space: The space.
        scale: One number a feature, (d,).
    """

    space: Space
    scale: Array

    def forward(self, rows: Any) -> Tensor:
        """Features of ordinary size, (n, d)."""
        return self.space.forward(rows) / self.tensor("scale")


def in_reach(space: Space, rows: Any) -> Space:
    """The space, with features so large or so small that their squares would not be numbers brought to size 1."""
    size = np.abs(space(rows)).max(axis=0, initial=0)
    beyond = (size > LARGEST) | ((size < 1 / LARGEST) & (size > 0))
    return ScaledSpace(space, np.where(beyond, size, 1.0)) if beyond.any() else space


@saved
@dataclass(eq=False, repr=False)
class ProductSpace(Space):
    """Products of one function of each of several variables.

    Attributes:
        factors: Functions of each variable.
        or_one: Whether a product may go without each factor; never without all. Without the first of two, those of the
            second come alone as well; without none, there is only what no sum of functions of fewer holds.
    """

    factors: tuple[Space, ...]
    or_one: tuple[bool, ...]

    def forward(self, rows: Any) -> Tensor:
        """All products of one feature of each, (n, d), those with 1 first."""
        blocks = [space.forward(rows) for space in self.factors]
        if any(self.or_one):  # others are counted by whoever multiplies them
            check_few_products([block.shape[1] for block in blocks])
        result = products_of([with_one(z) if one else z for z, one in zip(blocks, self.or_one, strict=True)])
        return result[:, 1:] if all(self.or_one) else result


def check_few_products(sizes: Sequence[int]) -> None:
    """Refuse more products of features of several blocks, and 1, than a Gram matrix should hold."""
    n_products = int(np.prod([size + 1 for size in sizes])) - 1
    if n_products > MOST_PRODUCTS:
        raise ValueError(
            f"A joint space of {list(sizes)} features has {n_products} products, more than {MOST_PRODUCTS}. Use "
            "smaller spaces, or 'kernel' or 'trees' for all columns together."
        )


def products_of(factors: Sequence[Any]) -> Any:
    """All products of one column of each, (n, d_1 d_2 ...), of arrays or of tensors."""
    result = factors[0]
    for factor in factors[1:]:
        result = (result[:, :, None] * factor[:, None, :]).reshape(factor.shape[0], -1)
    return result


def with_one(features: Tensor) -> Tensor:
    """The constant 1 before the other features, (n, 1 + d)."""
    return torch.nn.functional.pad(features, (1, 0), value=1.0)


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
