"""Which interactions of sources are worth a block of functions: what held-out rows say, one group at a time.

Groups of sources are many, and each brings many functions; most know nothing that sums of functions of fewer sources do
not. So each group is first tried on its own, on the rows that have all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.learning.solve import MODE_COUNTS, Folds, Search, Solution, solve
from featgeo.learning.source_blocks import Group, SourceBlocks
from featgeo.learning.targets import clearness

# Modes, and ridge, of functions that a step goes beyond: all that smooth functions hold of y.
BEFORE = Search((max(MODE_COUNTS),), (1e-2,))
SCREEN_RIDGES = (1e-2, 1e-1, 1.0)  # products are many and weak: less would only fit noise
SCREEN_ROWS, SCREEN_FOLDS = 16_384, 3  # rows that tell; parts of them that are held out in turn
PROBE_ROWS = 2048  # rows that small trees are grown on, to see whether anything is left over
MOST_FUNCTIONS = 128  # of all interactions of one order together: beyond, the closed form takes longer than the rest
MOST_JOINT = 1  # groups whose functions are learned jointly: each takes as long as a source
CLEAR = 3.0  # standard errors by which trees must see something left over; groups are many, so more than two


@dataclass(frozen=True)
class _Tried:
    """A group, the energy that its products add on held-out rows with its standard error, and what trees still see."""

    group: Group
    gain: float
    error: float
    left_over: float


def worthwhile(blocks: SourceBlocks, groups: Sequence[Group]) -> list[str]:
    """Blocks of those groups of one order that held-out rows want, the most useful first; at least of one group."""
    if blocks.exact:
        return [name for group in groups for name in blocks.of_group(group)]
    tried = sorted((_tried(blocks, group) for group in groups), key=lambda one: -one.gain)
    names: list[str] = []
    n_functions = 0
    for one in tried:
        (name,) = blocks.products(one.group)
        n_functions += blocks.n_products(name)
        if not names or (one.gain > one.error and n_functions <= MOST_FUNCTIONS):
            names.append(name)
    joint = sorted((one for one in tried if one.left_over > CLEAR), key=lambda one: -one.left_over)
    return names + [name for one in joint[:MOST_JOINT] for name in blocks.joint(one.group)]


def _tried(blocks: SourceBlocks, group: Group) -> _Tried:
    index = blocks.some(blocks.judging(blocks.data.having(*group, "y")), SCREEN_ROWS)
    before = [name for name, of in blocks.of.items() if set(of) < set(group)]
    (products,) = blocks.products(group)
    features = blocks.features_of([*before, products], index)
    folds = Folds.from_chunks([features], SCREEN_FOLDS, blocks.seed)
    searches = [BEFORE, Search((0, *MODE_COUNTS), blocks.plan.ridges(SCREEN_RIDGES))]
    solution = solve(folds, [(before, "y"), ([*before, products], "y")], searches)
    gains = solution.held_out_energies(-1)
    error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0
    left_over = 0.0
    if blocks.may_join(group) and blocks.data.rows[group[0]].variable.is_tensor:
        left_over = np.inf  # networks learn together what they learn at all
    elif blocks.may_join(group):
        probed = blocks.some(np.arange(len(index)), PROBE_ROWS)
        rows = blocks.data.take(index[probed], *group).of(*group)
        left_over = clearness(rows, _residuals(solution, features)[probed], blocks.seed)
    return _Tried(group, float(gains.mean()), error, left_over)


def _residuals(solution: Solution, features: dict[str, Array]) -> Array:
    """What the levels leave of the functions of y that they explain, (n, k)."""
    first = solution.levels[0]
    x, y = np.hstack([features[name] for name in first.x]), np.hstack([features[name] for name in first.y])
    g = first.g(y)
    turn = [modes.g.weight.T @ solution.covariance(modes.y) @ first.g.weight for modes in solution.levels]
    explained = [(modes.f(x) * modes.sigma) @ part for modes, part in zip(solution.levels, turn, strict=True)]
    return np.asarray(g - np.sum(explained, axis=0))
