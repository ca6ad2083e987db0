"""Settings as data: which functions each level may use. No setting has an engine of its own.

| setting | levels (modes, functions of x, functions of y) |
| --- | --- |
| bivariate | (k, x, y) |
| orthogonal to phi | (all, phi, y), (k, phi + x, y) |
| side information | (k, x, s), (k, x, s + (s, y)) |
| sequential | for each order t: (k, the last t symbols, the next symbol) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from featgeo.features.blocks import PartSpace
from featgeo.features.centred import CentredSpace
from featgeo.features.recipes import Recipe, recipes
from featgeo.features.space import Space
from featgeo.learning.plan import ModeCount


@dataclass(frozen=True)
class Block:
    """Some functions of one side.

    Attributes:
        space: Which functions, as `recipes` reads it.
        of: The variables of the side that they read; all when none is named.
        centred_given: The variable given which learned functions are to have mean 0; "" for none.
    """

    space: Any
    of: tuple[str, ...] = ()
    centred_given: str = ""

    def recipes(self, side: Any) -> list[Recipe]:
        """The spaces that may be taken, for the rows of the side."""
        return recipes(self.space, side.of(*self.of))

    def fitted(self, recipe: Recipe, side: Any, seed: int) -> Space:
        """The space of a recipe, as functions of the rows of the side."""
        if recipe.fit is None:
            raise ValueError(f"The space {recipe.name!r} must be learned together with the other variable.")
        return self.seen_from_side(recipe.fit(side.of(*self.of), seed))

    def seen_from_side(self, space: Space) -> Space:
        """A space of the variables that this block reads as one of the whole side."""
        return PartSpace(self.of, space) if self.of else space

    def centred(self, space: Space, side: Any, seed: int) -> Space:
        """A space of the side with conditional means taken off, where this block wants that."""
        return CentredSpace.fit(space, self.centred_given, side, seed) if self.centred_given else space


@dataclass(frozen=True)
class Step:
    """A level of a setting: what it adds to the levels before.

    Attributes:
        n_modes: How many modes at most; "auto" for as many as raise the held-out H-score, "all" for all there are.
        x: Blocks of the x side that it adds.
        y: Blocks of the y side that it adds.
    """

    n_modes: ModeCount
    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Blocks of either side, and the levels that use them.

    Attributes:
        x: Blocks of the x side by name, in the order in which the levels add them; the last is the richest.
        y: Blocks of the y side; names differ from those of x.
        steps: The levels in order.
    """

    x: Mapping[str, Block]
    y: Mapping[str, Block]
    steps: tuple[Step, ...]

    @classmethod
    def bivariate(cls, n_modes: ModeCount, x_space: Any, y_space: Any) -> Setting:
        """The modes of two variables."""
        return cls({"x": Block(x_space)}, {"y": Block(y_space)}, (Step(n_modes, ("x",), ("y",)),))

    @property
    def is_bivariate(self) -> bool:
        """Whether there is one level with one block on either side."""
        return len(self.steps) == len(self.x) == len(self.y) == 1

    @property
    def blocks(self) -> dict[str, tuple[str, Block]]:
        """All blocks with their side, by name."""
        sides = (("x", self.x), ("y", self.y))
        return {name: (side, block) for side, blocks in sides for name, block in blocks.items()}

    @property
    def richest(self) -> tuple[str, str]:
        """The last block of x and the last of y."""
        return list(self.x)[-1], list(self.y)[-1]

    @property
    def reach(self) -> list[tuple[int, int]]:
        """How many blocks of x and of y each level may use, the first of either side."""
        x = accumulate(len(step.x) for step in self.steps)
        y = accumulate(len(step.y) for step in self.steps)
        return list(zip(x, y, strict=True))

    def spaces(self, called: Mapping[str, str] | None = None) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The blocks of x and of y that each level may use, by their own or by other names."""
        x, y = ([(called or {}).get(name, name) for name in side] for side in (self.x, self.y))
        return [(tuple(x[:n_x]), tuple(y[:n_y])) for n_x, n_y in self.reach]
