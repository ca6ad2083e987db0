"""Nesting configurations: which dimensions form a level, which functions a level may use, and how much it counts.

A configuration {(d_1, ..., d_l); (G_X^1, ..., G_X^l); (G_Y^1, ..., G_Y^l)} (Definition nest) groups k = d_1 + ... + d_l
feature dimensions into levels. Level i is scored on the first k_i = d_1 + ... + d_i dimensions, and its own d_i
dimensions are functions in G_X^i and G_Y^i, which grow with i. Any strictly positive weights of the levels lead to the
same maximiser, because it maximises every level at once (Prop. joint:opt) where spaces grow on one side only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from featgeo.geometry.validation import Array, as_names, check_growth, check_number, check_whole

MOST_DIMENSIONS = 100_000  # their Gram matrices would fill 80 GB


@dataclass(frozen=True)
class Level:
    """One level of a nesting.

    Attributes:
        dim: How many feature dimensions it adds.
        x: Names of the feature blocks whose span holds its functions of x.
        y: Names of the feature blocks whose span holds its functions of y.
        weight: How much its H-score counts.
    """

    dim: int
    x: tuple[str, ...] = ("x",)
    y: tuple[str, ...] = ("y",)
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self.dim, "dim", 1, "A level adds at least 1: leave empty ones out.", MOST_DIMENSIONS)
        way_out = "To leave a level out, merge its dimensions into the next one."
        weight = check_number(self.weight, "weight", "finite and strictly positive", way_out, above=True)
        spaces = {"x": as_names(self.x), "y": as_names(self.y)}
        if not all(spaces.values()):
            raise ValueError(f"A level needs at least one block on either side, got {spaces}. Name the blocks.")
        for name, value in {"dim": int(self.dim), "weight": weight, **spaces}.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, init=False)
class Nesting:
    """A nesting configuration: levels in order, each containing the dimensions and the spaces of those before it.

    Args:
        dims: Dimensions d_1, ..., d_l that the levels add, or ready `Level`s.
        weights: Strictly positive weight of each level; 1 when None.
        x: Blocks that span the functions of x: a name or a tuple of names for all levels, or a list with one such entry
            a level, each containing the one before; "x" when None.
        y: The same for the functions of y; "y" when None.

    Attributes:
        levels: In order.
        dims: Dimensions that the levels add, (d_1, ..., d_l).
        weights: Aggregation weights of the levels.
        k: Number of feature dimensions.
    """

    levels: tuple[Level, ...]
    dims: tuple[int, ...] = field(compare=False, repr=False)
    weights: tuple[float, ...] = field(compare=False, repr=False)
    k: int = field(compare=False, repr=False)
    _hash: int = field(compare=False, repr=False)  # of numbers alone: that of names is another in each process

    def __init__(
        self,
        dims: Sequence[int | Level],
        weights: Sequence[float] | None = None,
        x: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
        y: str | tuple[str, ...] | list[str | tuple[str, ...]] | None = None,
    ) -> None:
        if not isinstance(dims, Sequence | np.ndarray) or getattr(dims, "ndim", 1) == 0:
            raise ValueError(f"`dims` must list the dimensions of the levels, got {dims}. Use Nesting([{dims}]).")
        if len(dims) == 0:
            raise ValueError("A nesting needs at least one level, got none. Use Nesting([k]) for a plain H-score.")
        given = [level for level in dims if isinstance(level, Level)]
        if given and len(given) < len(dims):
            raise ValueError(
                "Pass either dimensions or Levels, not both. Write every level as Level(dim, x, y, weight)."
            )
        if not given:
            listed = weights if isinstance(weights, list | tuple) else np.atleast_1d(np.asarray(weights))
            level_weights = 1.0 if weights is None else list(listed)
            options = {"x": "x" if x is None else x, "y": "y" if y is None else y, "weights": level_weights}
            columns = [_per_level(option, len(dims), name) for name, option in options.items()]
            given = [Level(*level) for level in zip(dims, *columns, strict=True)]
        elif any(option is not None for option in (weights, x, y)):
            raise ValueError("Levels bring their own spaces and weights. Set them in each Level instead.")
        read = {"dims": tuple(level.dim for level in given), "weights": tuple(level.weight for level in given)}
        for name, value in {"levels": tuple(given), **read, "k": sum(read["dims"])}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_hash", hash((self.dims, self.weights)))
        for side in ("x", "y"):
            check_growth([getattr(level, side) for level in self.levels], side)

    @classmethod
    def modes(cls, k: int, x: str | tuple[str, ...] | None = None, y: str | tuple[str, ...] | None = None) -> Nesting:
        """One level for each of k dimensions; the maximiser is the modal decomposition (eq. H:cnest)."""
        return cls([k], x=x, y=y).refine()

    def refine(self) -> Nesting:
        """The finest refinement (eq. refine): each dimension its own level, with the spaces and weight it had."""
        return Nesting([Level(1, level.x, level.y, level.weight) for level in self.levels for _ in range(level.dim)])

    @property
    def spaces(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """The blocks of x and of y that each level may use: what `decompose` takes as its levels."""
        return tuple((level.x, level.y) for level in self.levels)

    @property
    def ends(self) -> tuple[int, ...]:
        """Dimensions up to each level, (k_1, ..., k_l)."""
        return tuple(accumulate(self.dims))

    @cached_property
    def level_of(self) -> np.ndarray:
        """Index of the level that adds each dimension, (k,)."""
        return _read_only(np.repeat(np.arange(len(self.levels)), self.dims))

    @cached_property
    def pair_weights(self) -> Array:
        """W, (k, k): W_ab is the total weight of the levels that contain both dimension a and dimension b.

        The sum over levels of tr(La_f La_g) is the sum over a, b of W_ab (La_f)_ab (La_g)_ab, and the covariance terms
        are weighted by the diagonal of W: one pass serves every nesting.
        """
        from_level_on = np.cumsum(self.weights[::-1])[::-1]
        return _read_only(from_level_on[np.maximum.outer(self.level_of, self.level_of)])

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Nesting([{', '.join(map(repr, self.levels))}])"


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _per_level(option: Any, n_levels: int, name: str) -> list[Any]:
    """A list holds one entry a level; anything else serves all levels."""
    if not isinstance(option, list):
        return [option] * n_levels
    if len(option) != n_levels:
        raise ValueError(f"`{name}` must have one entry a level: expected {n_levels}, got {len(option)}. Add or drop.")
    return option
