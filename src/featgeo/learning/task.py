"""What is to be learned: rows, levels, how to, and the functions that each block may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from featgeo.features.blocks import in_reach
from featgeo.features.recipes import TABLE, Recipe
from featgeo.features.space import Space
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.plan import Plan
from featgeo.learning.setting import Block, Setting

SPACE_ROWS = 200_000  # rows that spaces are fitted to, at most: bounds time
SCALE_ROWS = 1000  # rows that tell how large features are


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Attributes:
        data: The rows.
        setting: The levels.
        plan: How to learn.
        recipes: The spaces that each block may have, the simplest first.
    """

    data: Pairs | Stream
    setting: Setting
    plan: Plan
    recipes: Mapping[str, list[Recipe]]

    @classmethod
    def of(cls, data: Pairs | Stream, setting: Setting, plan: Plan) -> Task:
        """Read what the user asks for."""
        sample = data.sample(SPACE_ROWS, plan.seed)
        blocks = setting.blocks.items()
        return cls(data, setting, plan, {n: block.recipes(getattr(sample, side)) for n, (side, block) in blocks})

    def on(self, data: Pairs | Stream) -> Task:
        """The same with other rows."""
        return replace(self, data=data)

    @cached_property
    def sample(self) -> Pairs:
        """Rows that spaces are fitted to."""
        return self.data.sample(SPACE_ROWS, self.plan.seed)

    @property
    def every(self) -> Pairs:
        """All rows where they are in memory, else the first."""
        return self.data if isinstance(self.data, Pairs) else self.sample

    def block(self, name: str) -> Block:
        """A block by name."""
        return self.setting.blocks[name][1]

    def side(self, name: str, pairs: Pairs) -> Any:
        """Rows of the side of a block."""
        return getattr(pairs, self.setting.blocks[name][0])

    def rows(self, name: str, pairs: Pairs | None = None) -> Any:
        """Rows of the variables that a block reads."""
        return self.side(name, self.every if pairs is None else pairs).of(*self.block(name).of)

    def fitted(self, name: str, recipe: Recipe) -> Space:
        """The space of a block, as functions of the rows of its side."""
        # A rare symbol may miss among some rows, and then would have no function of its own.
        rows = self.every if recipe is TABLE else self.sample
        seed = self.plan.seed + (self.setting.blocks[name][0] == "y")
        space = self.block(name).fitted(recipe, self.side(name, rows), seed)
        return in_reach(space, self.side(name, rows.take(slice(0, SCALE_ROWS)))).to(self.plan.device)
