"""Spaces over sides of several variables: of some of the parts, side by side, or products of functions of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from featgeo.features.combined import check_few_products
from featgeo.features.spaces import Space
from featgeo.geometry.validation import Array
from featgeo.schema import saved

LARGEST = 1e100  # sums of squares of numbers between this and its inverse are numbers, with much to spare


@saved
@dataclass(frozen=True, eq=False)
class PartSpace:
    """Functions of some of the variables of a side.

    Attributes:
        names: The parts that are read.
        space: Functions of them.
    """

    names: tuple[str, ...]
    space: Space

    def __call__(self, rows: Any) -> Array:
        """Features of those parts, (n, d)."""
        return self.space(rows.of(*self.names))


@saved
@dataclass(frozen=True, eq=False)
class SideBySide:
    """The sum of several spaces of the same side: their features side by side."""

    spaces: tuple[Space, ...]

    def __call__(self, rows: Any) -> Array:
        """All features, (n, d_1 + d_2 + ...)."""
        return np.hstack([space(rows) for space in self.spaces])


@saved
@dataclass(frozen=True, eq=False)
class ScaledSpace:
    """A space with its features divided by fixed numbers: the span is the same.

    Attributes:
        space: The space.
        scale: One number a feature, (d,).
    """

    space: Space
    scale: Array

    def __call__(self, rows: Any) -> Array:
        """Features of ordinary size, (n, d)."""
        return self.space(rows) / self.scale


def in_reach(space: Space, rows: Any) -> Space:
    """The space, with features so large or so small that their squares would not be numbers brought to size 1."""
    size = np.abs(space(rows)).max(axis=0, initial=0)
    beyond = (size > LARGEST) | ((size < 1 / LARGEST) & (size > 0))
    return ScaledSpace(space, np.where(beyond, size, 1.0)) if beyond.any() else space


@saved
@dataclass(frozen=True, eq=False)
class NoFunctions:
    """The space of constants: a product with it is the other factor alone."""

    def __call__(self, rows: Any) -> Array:
        """No features, (n, 0)."""
        return np.empty((len(rows), 0))


@saved
@dataclass(frozen=True, eq=False)
class ProductSpace:
    """Functions of two variables together: those of the second, alone and times each of the first.

    Attributes:
        first: Functions of the first variable, d_1 of them.
        second: Functions of the second, d_2 of them.
    """

    first: Space
    second: Space

    def __call__(self, rows: Any) -> Array:
        """All products, (n, (d_1 + 1) d_2), those with 1 first."""
        first, second = self.first(rows), self.second(rows)
        check_few_products([first.shape[1], second.shape[1]])
        return products_of([with_one(first), second])


@saved
@dataclass(frozen=True, eq=False)
class InteractionSpace:
    """Products of one function of each of several variables: what no sum of functions of fewer holds.

    Attributes:
        factors: Functions of each variable.
    """

    factors: tuple[Space, ...]

    def __call__(self, rows: Any) -> Array:
        """All products of one feature of each, (n, d_1 d_2 ...)."""
        return products_of([factor(rows) for factor in self.factors])


def products_of(factors: Sequence[Array]) -> Array:
    """All products of one column of each, (n, d_1 d_2 ...)."""
    result = factors[0]
    for factor in factors[1:]:
        result = (result[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)
    return result


def with_one(features: Array) -> Array:
    """The constant 1 before the other features, (n, 1 + d)."""
    return np.hstack([np.ones((len(features), 1)), features])
